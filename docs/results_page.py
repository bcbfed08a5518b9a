"""Write docs/results.md, and numbers of README.md and other pages, from the runs in docs/results.

    python docs/results_page.py            # after docs/results or a template has changed
    python docs/results_page.py --picture  # draws README's picture, too
    python docs/results_page.py --check    # exit status 1 if a page is not up to date

The templates are docs/results.in.md, docs/comparison.in.md (README.md), docs/samplers.in.md
(docs/which-sampler.md) and docs/early.in.md (docs/will-it-help.md): Markdown with Python
expressions in double braces, each on one line. An expression can use the public methods of `Runs`,
the functions `spaced`, `cells`, `span`, `least` and `most`, and the budgets `AT`, `LATER`, `FIRST`
and `FEW`. A row of a table whose runs are not stored is left out, with a message; anywhere else
that is an error.

A curve is named by its method and by what is unusual about its runs: "meta-tpe eta=1.5", "meta-tpe
c=3 tasks=8". Commas stand for several curves: "meta-tpe c=0,1,2". A place is a problem or a suite;
on a suite, the mean over its datasets is taken seed by seed before anything else.
"""

from __future__ import annotations

import argparse
import itertools
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from metatpe.bench import read_results, standard_error
from metatpe.bench.plan import AT, N_START, plan
from metatpe.bench.problems import expand, suite_names
from metatpe.bench.records import Trace
from metatpe.bench.summary import Comparison, Curves, compare, curves_of, suite_mean

DOCS = Path(__file__).parent
ROOT = DOCS.parent
COMMAND = "python docs/results_page.py"
BLOCK = re.compile(r"(?<=<!-- results -->\n).*?(?=<!-- end of results -->)", flags=re.DOTALL)
EXPRESSION = re.compile(r"{{(.*?)}}")
LATER = AT[1:]  # evaluations after which methods differ that share their first configurations
FIRST = (1, 2, 3, 5, 10)
FEW = (10, 20, 50, 100)
SUITES = {"hpolib": "HPOlib: neural networks", "nmt": "NMT-Bench: machine translation"}
TPE = "optuna-tpe-multivariate"
REACH = {  # the curves of README's picture
    "transfer": ("TransferSampler, with past studies", "#0072B2"),
    f"{TPE}+warm": ("Optuna's TPE, five of the best past trials enqueued", "#E69F00"),
    TPE: ("Optuna's TPE", "#999999"),
}
ROUNDING = 1e-12  # the same points in another order have hypervolumes that differ by less


class MissingRunsError(LookupError):
    """An expression needs runs that are not stored."""


# How numbers are written ----------------------------------------------------------------------


@dataclass(frozen=True)
class Numbers:
    """Numbers and how each of them is written."""

    values: tuple[float, ...]
    form: Callable[[float], str]

    def __str__(self) -> str:
        return ", ".join(map(self.form, self.values))


def as_hypervolume(value: float) -> str:
    """Return "0.974"."""
    return f"{value:.3f}"


def as_difference(value: float) -> str:
    """Return "+0.004" or "−0.004", with a real minus sign."""
    return f"{value:+z.3f}".replace("-", "−")


def as_multiple(value: float) -> str:
    """Return "1.5" or "−1.5": a number of standard errors."""
    return f"{value:z.1f}".replace("-", "−")


def as_best_value(value: float, digits: int = 2) -> str:
    """Return "0.69", "7.2", "164" or "4.1e5"."""
    if value >= 1000:
        mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
        return f"{mantissa}e{int(exponent)}"
    if value >= 10:
        return f"{value:.0f}"
    return f"{value:#.{digits}g}".rstrip(".")


def as_error(value: float) -> str:
    """Return the standard error of a best value, with one digit."""
    return as_best_value(float(f"{value:.0e}"), 1)


def as_weight(value: float) -> str:
    """Return "0.34", "0.004", or "0" for what rounds to nothing."""
    if value >= 0.01:
        return f"{value:.2f}"
    return f"{value:.3f}" if value >= 0.0005 else "0"


def spaced(numbers: Numbers) -> str:
    """Return numbers with spaces between them, for one cell of a table."""
    return " ".join(map(numbers.form, numbers.values))


def cells(numbers: Numbers) -> str:
    """Return numbers as cells of a table."""
    return " | ".join(map(numbers.form, numbers.values))


def span(*numbers: Numbers) -> str:
    """Return the smallest and the largest of some numbers: "0.2 to 2.5"."""
    values = [value for group in numbers for value in group.values]
    return f"{numbers[0].form(min(values))} to {numbers[0].form(max(values))}"


def least(*numbers: Numbers) -> str:
    """Return the smallest of some numbers."""
    return numbers[0].form(min(value for group in numbers for value in group.values))


def most(*numbers: Numbers) -> str:
    """Return the largest absolute value of some numbers."""
    largest = max(abs(value) for group in numbers for value in group.values)
    return numbers[0].form(largest).removeprefix("+")


# What is stored -------------------------------------------------------------------------------


def names_in(names: str) -> list[str]:
    """Return the curves that a name with commas stands for: "a c=0,1" is "a c=0" and "a c=1"."""
    choices = []
    for word in names.split():
        key, equals, values = word.rpartition("=")
        choices.append([f"{key}{equals}{value}" for value in values.split(",")])
    return [" ".join(words) for words in itertools.product(*choices)]


def label_of(name: str, problem: str) -> str:
    """Return the label that the runs of a curve are stored under: the one place that knows it.

    Args:
        name: The method, then `eta=`, `c=` (the centre of the past ellipsoids; left out, what the
            benchmark has) and `tasks=` (how many past ellipsoids; left out, one) where needed.
        problem: The problem that was run.
    """
    method, *settings = name.split()
    given = dict(entry.split("=") for entry in settings)
    eta, c, n_tasks = (given.pop(key, None) for key in ("eta", "c", "tasks"))
    if given:
        raise ValueError(f"{name!r} has {', '.join(given)}, but only eta, c and tasks are known.")
    past = None if c is None else [problem if c == "0" else f"{problem}-c{c}"] * int(n_tasks or 1)
    (run,) = plan(
        [problem],
        [method],
        [0],
        n_start=10 if problem == "ellipsoid10" else N_START,
        past=past,
        settings={} if eta is None else {"eta": float(eta)},
    )
    return run.label


class Runs:
    """The stored runs, and the numbers that a template asks for.

    Arguments have the same names in all methods: `names` and `against` are curves, `place` is a
    problem or a suite, `at` and `n` are numbers of evaluations.
    """

    def __init__(self, traces: Iterable[Trace]) -> None:
        self._traces = tuple(traces)
        self._places = {curves.name: curves for curves in curves_of(self._traces)}

    # One curve after the other

    def n_seeds(self, name: str, place: str) -> int:
        """Return how many seeds a curve has."""
        return len(self._at(name, place, 1))

    def mean(self, names: str, place: str, at: Sequence[int]) -> Numbers:
        """Return the mean over seeds: hypervolume, or best value with one objective."""
        form = as_hypervolume if self._curves(place).sign > 0 else as_best_value
        return Numbers(
            tuple(float(self._at(name, place, n).mean()) for name in names_in(names) for n in at),
            form,
        )

    def mean_se(self, names: str, place: str, at: Sequence[int]) -> str:
        """Return each mean with its standard error: "0.69 ± 0.1"."""
        is_hypervolume = self._curves(place).sign > 0
        return ", ".join(
            f"{self.mean(name, place, [n])} ± "
            f"{(as_hypervolume if is_hypervolume else as_error)(self._error(name, place, n))}"
            for name in names_in(names)
            for n in at
        )

    def evaluations_to_reach(self, name: str, against: str, place: str, n: int) -> int:
        """Return after how many evaluations the mean of `name` is that of `against` after n."""
        wanted = self.mean(against, place, [n]).values[0]
        return next(k for k in range(1, n + 1) if self.mean(name, place, [k]).values[0] >= wanted)

    def per_dataset(self, name: str, suite: str, n: int) -> Numbers:
        """Return the mean over seeds on each dataset of a suite."""
        means = [self.mean(name, problem, [n]).values[0] for problem in expand(suite)]
        return Numbers(tuple(means), as_hypervolume)

    def median_weight(self, names: str, problem: str, n: int) -> Numbers:
        """Return the median weight of the one past task, of the seeds that have one."""
        medians = [self._median_weight(name, problem, n) for name in names_in(names)]
        return Numbers(tuple(medians), as_weight)

    # Two curves, paired by seed

    def difference(self, names: str, against: str, place: str, at: Sequence[int]) -> Numbers:
        """Return the mean paired difference of each curve from each other one."""
        compared = self._all_compared(names, against, place, at)
        return Numbers(tuple(found.difference for found in compared), as_difference)

    def in_se(self, names: str, against: str, place: str, at: Sequence[int]) -> Numbers:
        """Return these differences in standard errors, positive where `names` is ahead."""
        sign = self._curves(place).sign
        compared = self._all_compared(names, against, place, at)
        return Numbers(tuple(sign * _in_se(found) for found in compared), as_multiple)

    def p_value(self, name: str, against: str, place: str, n: int) -> str:
        """Return the p-value of Wilcoxon's signed-rank test of the differences."""
        (compared,) = self._all_compared(name, against, place, [n])
        return f"p = {compared.p:.2f}" if compared.p >= 0.01 else "p < 0.01"

    def n_ahead(
        self, name: str, against: str, suites: Sequence[str], at: Sequence[int]
    ) -> Numbers:
        """Return on how many datasets of some suites the mean of `name` is the better one."""
        counts = [sum(x > 0 for x in self._on_each(name, against, suites, n)) for n in at]
        return Numbers(tuple(counts), str)

    def least_in_se(
        self, name: str, against: str, suites: Sequence[str], at: Sequence[int]
    ) -> Numbers:
        """Return `in_se` on the dataset of some suites where it is smallest."""
        smallest = [min(self._on_each(name, against, suites, n)) for n in at]
        return Numbers(tuple(smallest), as_multiple)

    # Many curves

    def best_first(self, names: str, place: str, n: int) -> str:
        """Return curves and their means, the best one first."""
        sign = self._curves(place).sign
        means = {name: self.mean(name, place, [n]) for name in names_in(names)}
        order = sorted(means, key=lambda name: -sign * means[name].values[0])
        return ", ".join(f"{name} {means[name]}" for name in order)

    def mean_ranks(self, names: str, suites: Sequence[str], at: Sequence[int]) -> str:
        """Return curves and their mean rank over datasets and budgets, the best one first."""
        ranks: dict[str, list[int]] = {name: [] for name in names_in(names)}
        for problem, n in itertools.product(itertools.chain(*map(expand, suites)), at):
            means = {name: float(self._at(name, problem, n).mean()) for name in ranks}
            for name, mean in means.items():
                ranks[name].append(1 + sum(other > mean for other in means.values()))
        order = sorted(ranks, key=lambda name: sum(ranks[name]))
        return ", ".join(f"{name} {np.mean(ranks[name]):.2f}" for name in order)

    # Reading

    def _curves(self, place: str) -> Curves:
        if place in suite_names() and place not in self._places:
            members = [self._curves(problem) for problem in expand(place)]
            self._places[place] = suite_mean(place, members)
        if place not in self._places:
            raise MissingRunsError(f"no runs on {place}")
        return self._places[place]

    def _label(self, name: str, place: str, n: int) -> str:
        label = label_of(name, expand(place)[0])
        if not self._curves(place).at(label, n):
            raise MissingRunsError(f"no runs of {label!r} on {place} with {n} evaluations")
        return label

    def _at(self, name: str, place: str, n: int) -> np.ndarray:  # (seeds,)
        by_seed = self._curves(place).at(self._label(name, place, n), n)
        return np.array(list(by_seed.values()))

    def _error(self, name: str, place: str, n: int) -> float:
        return float(standard_error(self._at(name, place, n)[:, None])[0])

    def _median_weight(self, name: str, problem: str, n: int) -> float:
        label = self._label(name, problem, n)
        runs = [t for t in self._traces if (t.run.problem, t.run.label) == (problem, label)]
        weights = [trace.weights[trace.run.past[0].problem][n - 1] for trace in runs]
        return float(np.nanmedian(weights))

    def _all_compared(
        self, names: str, against: str, place: str, at: Sequence[int]
    ) -> list[Comparison]:
        pairs = itertools.product(names_in(names), names_in(against), at)
        return [self._compared(name, other, place, n) for name, other, n in pairs]

    def _compared(self, name: str, against: str, place: str, n: int) -> Comparison:
        labels = (self._label(name, place, n), self._label(against, place, n))
        compared = compare(self._curves(place), n, *labels)
        if compared is None:
            raise MissingRunsError(f"{name!r} and {against!r} share no seed on {place}")
        return compared

    def _on_each(self, name: str, against: str, suites: Sequence[str], n: int) -> list[float]:
        problems = itertools.chain(*map(expand, suites))
        return [self.in_se(name, against, problem, [n]).values[0] for problem in problems]


def _in_se(compared: Comparison) -> float:
    if abs(compared.difference) < ROUNDING:
        return 0.0  # equal runs have no error to divide by
    return compared.difference / (compared.se or np.nan)


# Pages ----------------------------------------------------------------------------------------


def render(template: Path, runs: Runs) -> str:
    """Return the text of a template, with its expressions replaced by what they come to."""
    known: dict[str, Any] = {
        "__builtins__": {},
        "AT": AT,
        "LATER": LATER,
        "FIRST": FIRST,
        "FEW": FEW,
    }
    known |= {function.__name__: function for function in (spaced, cells, span, least, most)}
    known |= {name: getattr(runs, name) for name in vars(Runs) if not name.startswith("_")}
    lines = []
    for number, line in enumerate(template.open(encoding="utf-8"), start=1):
        try:
            lines.append(EXPRESSION.sub(lambda found: str(eval(found[1].strip(), known)), line))
        except MissingRunsError as error:
            if not line.startswith("|"):
                raise
            print(f"{template.name}:{number}: row left out, {error}", file=sys.stderr)
    return "".join(lines)


def pages(runs: Runs) -> dict[Path, str]:
    """Return what each page that is made from the runs has to hold."""
    made = {DOCS / "results.md": render(DOCS / "results.in.md", runs)}
    for page, template in (
        (ROOT / "README.md", DOCS / "comparison.in.md"),
        (DOCS / "which-sampler.md", DOCS / "samplers.in.md"),
        (DOCS / "will-it-help.md", DOCS / "early.in.md"),
    ):
        block = render(template, runs)
        made[page] = BLOCK.sub(lambda _, block=block: block, page.read_text("utf-8"))
    return made


def draw_reach(runs: Runs, file: Path) -> None:
    """Draw how soon TransferSampler reaches what Optuna's TPE reaches in 100 evaluations."""
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9.0, 3.6), layout="constrained", sharex=True)
    at = range(1, 101)
    for axis, (suite, title) in zip(axes, SUITES.items(), strict=True):
        for method, (label, color) in REACH.items():
            axis.plot(at, runs.mean(method, suite, at).values, label=label, color=color, lw=2)
        n = runs.evaluations_to_reach("transfer", TPE, suite, 100)
        level = runs.mean(TPE, suite, [100]).values[0]
        axis.plot([n, 100], [level, level], color="#666666", lw=1, ls="--")
        axis.annotate(
            f"{n} trials", (n, level), (n + 12, level - 0.12), arrowprops={"arrowstyle": "->"}
        )
        axis.set(title=title, xlabel="trials", ylim=(0.6, 1.0), xlim=(0, 100))
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("normalised hypervolume")
    lines, labels = axes[0].get_legend_handles_labels()
    figure.legend(lines, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    figure.savefig(file, dpi=110)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing, exit 1 if it would")
    parser.add_argument("--picture", action="store_true", help="draw README's picture, too")
    arguments = parser.parse_args()
    only_checks = arguments.check
    runs = Runs(read_results(DOCS / "results").traces)
    wanted = pages(runs)
    stale = {page: text for page, text in wanted.items() if page.read_text("utf-8") != text}
    for page, text in stale.items():
        if only_checks:
            sys.exit(f"{page.relative_to(ROOT)} is not up to date; run: {COMMAND}")
        page.write_text(text, "utf-8")
        print(f"Wrote {page.relative_to(ROOT)}.")
    if arguments.picture:
        draw_reach(runs, DOCS / "figures" / "reach.png")


if __name__ == "__main__":
    main()
