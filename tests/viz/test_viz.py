"""The plots show what `transfer_history`, moocore and the method's own measures say, in both
backends. What is drawn is compared with its source, not with pictures."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import moocore
import numpy as np
import pytest
from helpers import MIXED, task_of
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.study import Study
from optuna.trial import TrialState
from studies import SPACE, SQUARE, evaluate, frozen, new_study, past_study, random_sampler, spread
from transferred import OLD_RECORDS, OLD_TURN, recorded_study, start_of, weighed, weighed_study

from metatpe import (
    MetaTPESampler,
    Space,
    Task,
    gamma_similarity,
    importance,
    portfolio,
    transfer_history,
)
from metatpe.extras import install_command
from metatpe.past.similarity import similarity_matrix
from metatpe.space import Floats
from metatpe.study.record import Reason
from metatpe.tpe.pareto import split
from metatpe.viz.portfolio import MAX_ROWS, MAX_VALUES, coverage_of
from metatpe.viz.regions import gamma_sets
from metatpe.viz.runs import attainment_of, progress_of
from metatpe.viz.tasks import MAX_COMPARED, importances_of, shares_of, similarities_of
from metatpe.viz.weights import LANES, LOOKS, described, weights_of

pytest.importorskip("plotly", reason="needs the extra viz")
mpl = pytest.importorskip("matplotlib", reason="needs the extra viz")
mpl.use("Agg")

from metatpe import viz  # noqa: E402

NASTY = "<b>x</b> <script>alert(1)</script> $\\frac{1}$ %{x} & _y"
ESCAPED = "&lt;b&gt;x&lt;/b&gt; &lt;script&gt;alert(1)&lt;/script&gt; "
ESCAPED += "&#36;\\frac{1}&#36; %&#123;x} &amp; _y"


@pytest.fixture(params=["plotly", "matplotlib"])
def plots(request: pytest.FixtureRequest) -> Iterator[ModuleType]:
    """Both backends; figures of matplotlib are closed afterwards."""
    yield viz if request.param == "plotly" else viz.matplotlib
    from matplotlib import pyplot as plt

    plt.close("all")


@pytest.fixture(scope="module")
def sources() -> list[Study]:
    return [past_study(seed=seed, name=f"past {seed}", n=30) for seed in range(2)]


@pytest.fixture(scope="module")
def study(sources: list[Study]) -> Study:
    sampler = MetaTPESampler(sources, seed=0, epsilon=0.2, start="draw")
    study = new_study(sampler, name="new")
    evaluate(study, 30)
    return study


@pytest.fixture(scope="module")
def many() -> list[Task]:
    rng = np.random.default_rng(0)
    space = Space(SQUARE)
    centres = rng.random((200, 2))
    return [
        task_of(
            f"task number {i:03d}",
            space,
            20,
            lambda X, c=c: np.stack([((X - c) ** 2).sum(1), ((X - c - 0.1) ** 2).sum(1)], axis=1),
            rng,
        )
        for i, c in enumerate(centres)
    ]


@pytest.fixture(scope="module")
def of_many(many: list[Task]) -> Study:
    study = new_study(MetaTPESampler(many, seed=0), name="of many")
    evaluate(study, 12, space=SQUARE)
    return study


def figure_of(result: Any) -> Any:
    """Return the figure, drawn once: what cannot be drawn fails here."""
    if hasattr(result, "to_json"):
        result.to_json()
        return result
    figure = result.figure if hasattr(result, "get_xlim") else result
    figure.draw_without_rendering()
    return figure


def labels(result: Any) -> list[str]:
    """Return what the legend says."""
    figure = figure_of(result)
    if hasattr(figure, "data"):
        return [t.name for t in figure.data if t.name is not None and t.showlegend is not False]
    return [text.get_text() for legend in figure.legends for text in legend.get_texts()]


def texts(result: Any) -> str:
    """Return everything that is written, in one string."""
    figure = figure_of(result)
    if hasattr(figure, "to_json"):
        found = strings(figure.to_plotly_json())
    else:
        from matplotlib.text import Text

        found = (text.get_text() for text in figure.findobj(Text))
    return " ".join(" ".join(found).replace("<br>", " ").split())


def numbers(values: Any) -> Floats:
    """Return what plotly holds, where None is a gap."""
    return np.array([math.nan if v is None else v for v in values], dtype=np.float64)


def line(result: Any, label: str) -> tuple[Floats, Floats]:
    """Return x and y of the first line with this label."""
    figure = figure_of(result)
    if hasattr(figure, "data"):
        trace = next(t for t in figure.data if t.name == label)
        return numbers(trace.x), numbers(trace.y)
    legend = figure.legends[0]
    i = [text.get_text() for text in legend.get_texts()].index(label)
    colour = legend.legend_handles[i].get_color()
    drawn = next(li for a in figure.axes for li in a.lines if li.get_color() == colour)
    return np.asarray(drawn.get_xdata(), float), np.asarray(drawn.get_ydata(), float)


def bars(result: Any) -> list[tuple[int, float]]:
    """Return row and length of the horizontal bars."""
    figure = figure_of(result)
    if hasattr(figure, "data"):
        trace = next(t for t in figure.data if t.type == "bar")
        return list(zip(numbers(trace.y).tolist(), numbers(trace.x).tolist(), strict=True))
    found = figure.axes[0].patches
    return [(round(bar.get_y() + bar.get_height() / 2), bar.get_width()) for bar in found]


# Weights --------------------------------------------------------------------------------------


def test_each_past_task_has_a_line_of_its_recorded_weights(
    plots: ModuleType, study: Study, sources: list[Study]
) -> None:
    shown = plots.plot_task_weights(study)
    weighed = [record for record in transfer_history(study) if record.weights]
    assert set(labels(shown)) == {"past 0", "past 1", "the study itself"}
    for source in sources:
        x, y = line(shown, source.study_name)
        assert x.tolist() == [record.number for record in weighed]
        np.testing.assert_allclose(y, [r.weights[source.study_name] for r in weighed])


def test_every_trial_has_its_mark_in_the_lane_of_its_reason(study: Study) -> None:
    data = weights_of(study)
    history = transfer_history(study)
    reasons = {record.reason for record in history}
    assert reasons == {"best", "epsilon", "silent", "weighed", "own"}
    assert data.lanes == {
        LANES[reason]: [r.number for r in history if r.reason == reason]
        for reason in LANES
        if reason in reasons
    }
    assert list(data.lanes) == [LANES[reason] for reason in LANES if reason in reasons]
    marked = [t for t in viz.plot_task_weights(study).data if t.mode == "markers"]
    assert {t.name: numbers(t.x).tolist() for t in marked} == data.lanes


def test_no_two_lanes_look_alike(plots: ModuleType) -> None:
    shown = figure_of(plots.plot_task_weights(recorded_study(*map(reasoned, LANES))))
    if hasattr(shown, "data"):
        marked = [t for t in shown.data if t.mode == "markers"]
        looks = {(t.marker.color, t.marker.symbol) for t in marked}
    else:
        looks = {(li.get_color(), li.get_marker()) for li in shown.axes[2].lines}
    assert len(looks) == len(LANES)
    assert all(name in texts(shown) for name in LANES.values())


def test_reasons_of_different_kinds_differ_in_colour_and_marker() -> None:
    kinds: list[Reason] = ["portfolio", "weighed", "own", "epsilon", "densities"]
    looks = [LOOKS[LANES[reason]] for reason in kinds]
    assert len({look.colour for look in looks}) == len({look.marker for look in looks}) == 5


def reasoned(reason: Reason) -> dict[str, Any]:
    return weighed({"target": 0.5, "a": 0.5}, reason)


def test_records_of_earlier_versions_are_drawn_with_what_they_say(plots: ModuleType) -> None:
    study = recorded_study(*OLD_RECORDS, OLD_TURN)
    assert weights_of(study).lanes == {
        "warm start": [0],
        "with past studies": [4],
        "alone, to compare": [3],
        "unknown": [1, 2],
    }
    assert line(plots.plot_task_weights(study), "past")[1].tolist() == [0.4, 0.4, 0.4]


def test_a_warm_start_is_described_with_the_past_studies_that_it_came_from() -> None:
    study = recorded_study(start_of("a", "b"), OLD_RECORDS[0], OLD_RECORDS[1], OLD_TURN)
    assert [described(record) for record in transfer_history(study)] == [
        "warm start of a, b",
        "warm start of unknown",
        "unknown",
        "with past studies",
    ]


def test_of_200_sources_the_largest_are_drawn_and_the_rest_is_summed_up(
    plots: ModuleType, of_many: Study
) -> None:
    data = weights_of(of_many)
    assert len(data.past) == 8
    total = sum(np.nan_to_num(weights) for weights in data.past.values())
    np.testing.assert_allclose(total + data.rest + data.target, 1.0, atol=1e-4)
    shown = labels(plots.plot_task_weights(of_many))
    assert len(shown) == 10
    assert "all other past tasks" in shown


def test_those_with_the_largest_weights_over_all_trials_are_drawn() -> None:
    weights = {f"t{i}": 0.001 * i for i in range(1, 11)}
    study = weighed_study({"target": 1 - sum(weights.values()), **weights})
    data = weights_of(study)
    assert list(data.past) == ["t10", "t9", "t8", "t7", "t6", "t5", "t4", "t3"]
    np.testing.assert_allclose(data.rest, [0.003])


def test_a_past_task_that_is_hidden_in_the_rest_is_not_drawn_as_zero() -> None:
    study = weighed_study(
        {"target": 0.5, "a": 0.5},
        {"target": 0.5, "b": 0.3, "rest": 0.2},
        {"target": 1.0, "b": 0.0},
    )
    data = weights_of(study)
    np.testing.assert_array_equal(data.past["a"], [0.5, np.nan, 0.0])
    np.testing.assert_array_equal(data.past["b"], [0.0, 0.3, 0.0])
    np.testing.assert_allclose(data.rest, [0.0, 0.2, 0.0])


def test_a_study_of_another_sampler_says_that_it_has_no_records(plots: ModuleType) -> None:
    shown = plots.plot_task_weights(past_study(n=3))
    assert "no trial of this study was suggested by a sampler of metatpe" in texts(shown)


def test_a_study_without_sources_says_that_there_are_no_weights(plots: ModuleType) -> None:
    study = new_study(MetaTPESampler(seed=0))
    evaluate(study, 8)
    assert "no past task has had a weight yet" in texts(plots.plot_task_weights(study))


# Runs -----------------------------------------------------------------------------------------


def test_the_hypervolume_is_that_of_moocore_after_each_trial(
    plots: ModuleType, study: Study
) -> None:
    values = np.array([trial.values for trial in study.trials])
    x, y = line(plots.plot_hypervolume(study, reference_point=[2.0, 3.0]), "new")
    wanted = [moocore.hypervolume(values[:n], ref=[2.0, 3.0]) for n in range(1, len(values) + 1)]
    assert x.tolist() == list(range(1, 31))
    np.testing.assert_allclose(y, wanted)


def test_without_a_reference_point_it_is_the_worst_value_of_all_studies(
    study: Study, sources: list[Study]
) -> None:
    every = [study, *sources]
    worst = np.max([trial.values for s in every for trial in s.trials], axis=0)
    found = progress_of(every, None)
    for curve, s in zip(found.curves, every, strict=True):
        values = np.log10([trial.values for trial in s.trials])  # they span decades
        ends = [moocore.hypervolume(values[:n], ref=np.log10(worst)) for n in (1, len(values))]
        np.testing.assert_allclose(curve.mean[[0, -1]], ends)
    assert f"objective 0 = {worst[0]:.4g} (log scale)" in found.about


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_the_hypervolume_is_taken_where_the_values_are_spread(direction: str) -> None:
    study = new_study(random_sampler(0), [direction, "minimize"])
    values = [[1e-4, 1.0], [1e-2, 1.5], [1.0, 1.2]]
    study.add_trials([frozen(p, v) for p, v in zip(spread(3), values, strict=True)])
    data = progress_of(study, None)
    sign = -1.0 if direction == "maximize" else 1.0
    losses = [[sign * math.log10(a), b] for a, b in values]
    wanted = [moocore.hypervolume(losses[: n + 1], ref=np.max(losses, axis=0)) for n in range(3)]
    np.testing.assert_allclose(data.curves[0].mean, wanted)
    assert "(log scale), objective 1 = 1.5" in data.about
    linear = progress_of(study, [2.0 if sign > 0 else 0.0, 2.0])
    assert "log scale" not in linear.about


def test_best_values_that_span_decades_are_drawn_on_a_log_scale() -> None:
    study = new_study(random_sampler(0), ["minimize"])
    study.add_trials([frozen(p, [v]) for p, v in zip(spread(3), [4.0, 0.3, 2e-3], strict=True)])
    axis = viz.plot_hypervolume(study).layout.yaxis
    assert axis.type == "log"
    assert list(axis.ticktext) == ["0.01", "0.1", "1"]
    drawn = viz.matplotlib.plot_hypervolume(study)
    assert drawn.get_yscale() == "log"
    assert [label.get_text() for label in drawn.get_yticklabels()] == ["0.01", "0.1", "1"]


def test_an_axis_of_a_few_trials_has_no_halves(study: Study) -> None:
    few = new_study(MetaTPESampler([study], seed=0), name="few")
    evaluate(few, 4)
    for figure in (viz.plot_task_weights(few), viz.plot_hypervolume(few)):
        assert figure.layout.xaxis.dtick == 1
    for figure in map(
        figure_of,
        (viz.matplotlib.plot_task_weights(few), viz.matplotlib.plot_hypervolume(few)),
    ):
        ticks = figure.axes[-1].get_xticks()
        assert (ticks == np.round(ticks)).all()


def test_maximising_the_negative_shows_the_same_hypervolume() -> None:
    values = [[3.0, 1.0], [2.0, 2.0], [1.0, 1.5]]
    down, up = (new_study(random_sampler(0), [d] * 2) for d in ("minimize", "maximize"))
    for (a, b), params in zip(values, spread(3), strict=True):
        down.add_trial(frozen(params, [a, b]))
        up.add_trial(frozen(params, [-a, -b]))
    curves = [progress_of(s, None).curves[0].mean for s in (down, up)]
    np.testing.assert_array_equal(*curves)
    np.testing.assert_array_equal(progress_of(up, [-3.0, -2.0]).curves[0].mean, curves[0])


@pytest.mark.parametrize("n_objectives", [2, 3, 4])
def test_up_to_four_objectives_have_a_hypervolume(plots: ModuleType, n_objectives: int) -> None:
    study = new_study(random_sampler(0), ["minimize"] * n_objectives, name="several")
    rng = np.random.default_rng(0)
    evaluate(study, 6, losses=lambda _: rng.random(n_objectives).tolist())
    _, y = line(plots.plot_hypervolume(study), "several")
    assert (np.diff(y) >= 0).all()
    assert y[-1] > 0


@pytest.mark.parametrize(("direction", "best"), [("minimize", [3, 1, 1]), ("maximize", [3, 3, 5])])
def test_one_objective_has_the_best_value_so_far(
    plots: ModuleType, direction: str, best: list[float]
) -> None:
    study = new_study(random_sampler(0), [direction], name="one")
    study.add_trials([frozen(p, v) for p, v in zip(spread(3), (3.0, 1.0, 5.0), strict=True)])
    shown = plots.plot_hypervolume(study)
    assert line(shown, "one")[1].tolist() == best
    assert "best value so far" in texts(shown)


def test_seeds_are_drawn_as_their_mean_with_a_standard_error(plots: ModuleType) -> None:
    runs = [past_study(seed=seed, n=n, name=f"run {seed}") for seed, n in ((0, 8), (1, 6), (2, 7))]
    shown = plots.plot_hypervolume({"ours": runs, "one": runs[0]})
    assert labels(shown) == ["ours (3 runs)", "one"]
    data = progress_of({"ours": runs, "one": runs[0]}, None).curves[0]
    reference = np.log10(np.max([t.values for run in runs for t in run.trials], axis=0))
    each = np.array(
        [
            [
                moocore.hypervolume(np.log10([t.values for t in r.trials[: n + 1]]), ref=reference)
                for n in range(6)
            ]
            for r in runs
        ]
    )
    np.testing.assert_allclose(data.mean, each.mean(axis=0))
    np.testing.assert_allclose(data.se, each.std(axis=0, ddof=1) / math.sqrt(3))
    assert line(shown, "ours (3 runs)")[0].tolist() == [1, 2, 3, 4, 5, 6]


def test_what_is_infeasible_infinite_or_unfinished_adds_nothing() -> None:
    study = new_study(random_sampler(0))
    points = iter(spread(9))
    study.add_trial(frozen(next(points), [2.0, 2.0]))
    study.add_trial(frozen(next(points), [1.0, 1.0]))
    expected = progress_of(study, [3.0, 3.0]).curves[0].mean[-1]
    study.add_trial(frozen(next(points), [0.0, 0.0], constraint=1.0))
    study.add_trial(frozen(next(points), [-math.inf, 0.0]))
    study.add_trial(frozen(next(points), [math.inf, 0.0]))
    study.add_trial(frozen(next(points), state=TrialState.PRUNED))
    study.add_trial(frozen(next(points), state=TrialState.FAIL))
    study.ask(SQUARE)
    curve = progress_of(study, [3.0, 3.0]).curves[0]
    assert curve.mean.tolist()[1:] == [expected] * 5
    assert curve.numbers.tolist() == [0, 1, 2, 3, 4, 5]


def test_the_surface_is_that_of_moocore(plots: ModuleType) -> None:
    runs = [past_study(seed=seed, name=f"run {seed}") for seed in range(4)]
    points = np.array([trial.values for run in runs for trial in run.trials])
    corners = moocore.eaf(points, np.repeat(range(4), 20), percentiles=[50])[:, :2]
    shown = plots.plot_attainment({"ours": runs})
    assert labels(shown) == ["ours (4 runs)", "front of all"]
    drawn = set(zip(*(v.tolist() for v in line(shown, "ours (4 runs)")), strict=True))
    assert {tuple(corner) for corner in corners.tolist()} <= drawn
    front = points[moocore.is_nondominated(points)]
    everyone = set(zip(*(v.tolist() for v in line(shown, "front of all")), strict=True))
    assert {tuple(point) for point in front.tolist()} <= everyone


def test_a_single_run_shows_its_best_trials(study: Study) -> None:
    (surface,) = attainment_of(study).surfaces
    assert sorted(surface.numbers) == sorted(t.number for t in study.best_trials)
    for point, n in zip(surface.points.tolist(), surface.numbers, strict=True):
        assert point == study.trials[n].values
    dots = next(t for t in viz.plot_attainment(study).data if t.mode == "markers")
    assert numbers(dots.customdata).tolist() == surface.numbers.tolist()


def test_a_maximised_objective_is_drawn_in_its_own_units() -> None:
    study = new_study(random_sampler(0), ["minimize", "maximize"])
    values = [[1.0, 5.0], [2.0, 9.0], [3.0, 4.0]]
    study.add_trials([frozen(p, v) for p, v in zip(spread(3), values, strict=True)])
    data = attainment_of(study)
    (surface,) = data.surfaces
    assert surface.points.tolist() == [[1.0, 5.0], [2.0, 9.0]]
    assert surface.border[:, 1].max() == 9.0
    bad = data.limits[0, 1], data.limits[1, 0]  # large and small: the border ends there
    assert surface.border[0].tolist() == [1.0, bad[1]]
    assert surface.border[-1].tolist() == [bad[0], 9.0]


@pytest.mark.parametrize("directions", [["minimize"], ["minimize"] * 3])
def test_attainment_is_for_two_objectives(plots: ModuleType, directions: list[str]) -> None:
    with pytest.raises(ValueError, match=f"two objectives, but there are {len(directions)}"):
        plots.plot_attainment(new_study(random_sampler(0), directions))


def test_studies_with_other_objectives_cannot_be_drawn_together(plots: ModuleType) -> None:
    one = new_study(random_sampler(0), ["minimize"], name="one")
    two = new_study(random_sampler(0), name="two")
    for plot in (plots.plot_hypervolume, plots.plot_attainment):
        with pytest.raises(ValueError, match="'two' and 'one' have different objectives"):
            plot([two, one])


@pytest.mark.parametrize("point", [[1.0], [1.0, math.inf], [1.0, 2.0, 3.0]])
def test_a_reference_point_that_does_not_fit_is_refused(study: Study, point: list[float]) -> None:
    with pytest.raises(ValueError, match="reference_point must be 2 numbers"):
        viz.plot_hypervolume(study, reference_point=point)


def test_what_is_no_study_is_refused(study: Study) -> None:
    with pytest.raises(ValueError, match="but there is a Task"):
        viz.plot_hypervolume([Task.from_study(study)])  # type: ignore[list-item]


def test_studies_of_one_name_are_both_drawn(plots: ModuleType) -> None:
    runs = [past_study(seed=seed, n=3) for seed in range(2)]
    assert labels(plots.plot_hypervolume(runs)) == ["past", "past (2)"]


# Tasks ----------------------------------------------------------------------------------------


def test_importances_are_those_of_the_study_beside_its_sources(
    plots: ModuleType, study: Study, sources: list[Study]
) -> None:
    shown = plots.plot_importances(study, sources)
    assert sorted(labels(shown)) == ["past 0", "past 1", "the study itself"]
    data = importances_of(study, sources)
    own = shares_of(importance(Task.from_study(study)))
    assert sum(own.values()) == pytest.approx(1.0)
    assert list(data.parameters) == list(own)
    assert data.target.tolist() == list(own.values())
    past = shares_of(importance(Task.from_study(sources[1])))
    x, y = line(shown, "past 1")
    assert x.tolist() == [past[name] for name in own]
    assert y.tolist() == list(range(len(own)))
    assert bars(shown) == list(enumerate(own.values()))


def test_a_parameter_is_marked_in_the_trials_that_kept_it(study: Study) -> None:
    data = importances_of(study, [])
    history = transfer_history(study)
    for name in SPACE:
        assert data.kept[name] == [r.number for r in history if name in r.kept]
    assert data.n_compared == sum(bool(record.kept) for record in history)
    marks = viz.plot_importances(study).data[-1]
    found = list(zip(numbers(marks.x), numbers(marks.y), strict=True))
    assert found == [(n, i) for i, p in enumerate(data.parameters) for n in data.kept[p]]


def test_of_200_sources_the_weightiest_are_shown_beside_the_mean_of_the_others(
    plots: ModuleType, of_many: Study, many: list[Task]
) -> None:
    shown = labels(plots.plot_importances(of_many, many))
    assert len(shown) == 10
    assert "mean of 192 others" in shown
    data = importances_of(of_many, many)
    others = [shares_of(importance(task)) for task in many if task.name not in data.sources]
    means = [np.mean([other[name] for other in others]) for name in data.parameters]
    np.testing.assert_allclose(data.others, means)


def test_similarities_are_those_of_each_pair(
    plots: ModuleType, study: Study, sources: list[Study]
) -> None:
    tasks = {s.study_name: Task.from_study(s) for s in (study, *sources)}
    data = similarities_of([study, *sources])
    assert sorted(data.names) == sorted(tasks)
    for i, a in enumerate(data.names):
        for j, b in enumerate(data.names):
            assert data.matrix[i, j] == pytest.approx(gamma_similarity(tasks[a], tasks[b]))
    shown = texts(plots.plot_similarity([study, *sources]))
    assert f"{data.matrix[0, 1]:.2f}" in shown


def test_similar_tasks_stand_side_by_side(rng: np.random.Generator) -> None:
    space = Space(SQUARE)
    centres = {"a0": 0.1, "b0": 0.9, "a1": 0.1, "b1": 0.9}
    tasks = [
        task_of(name, space, 100, lambda X, c=c: np.abs(X - c).max(axis=1), rng)
        for name, c in centres.items()
    ]
    assert [name[0] for name in similarities_of(tasks).names] in (list("aabb"), list("bbaa"))


def test_of_many_tasks_those_most_like_the_first_are_compared(many: list[Task]) -> None:
    tasks = many[: MAX_COMPARED + 10]
    alike = {task.name: gamma_similarity(tasks[0], task) for task in tasks[1:]}
    data = similarities_of(tasks)
    assert len(data.names) == MAX_COMPARED
    assert tasks[0].name in data.names
    left_out = [s for name, s in alike.items() if name not in data.names]
    assert max(left_out) <= min(s for name, s in alike.items() if name in data.names)
    assert f"of the other 10 is {np.mean(left_out):.4g}." in data.about


def test_tasks_of_different_spaces_are_compared_in_the_space_of_the_row(
    rng: np.random.Generator,
) -> None:
    a = task_of("a", MIXED, 60, lambda X: X[:, :2], rng)
    b = task_of("b", Space({**SQUARE, "float": FloatDistribution(0, 2)}), 60, lambda X: X, rng)
    c = task_of("c", Space(SQUARE), 60, lambda X: X, rng)
    wanted = [[gamma_similarity(x, y) for y in (a, b, c)] for x in (a, b, c)]
    np.testing.assert_allclose(similarity_matrix([a, b, c]), wanted)


def test_no_task_is_refused(plots: ModuleType) -> None:
    with pytest.raises(ValueError, match="no task with a finished trial"):
        plots.plot_similarity([])


# Portfolio ------------------------------------------------------------------------------------


def opposed(n_objectives: int = 1, n: int = 40) -> list[Task]:
    """Return past tasks whose best configurations are far apart."""
    rng = np.random.default_rng(0)
    weights = np.linspace(0.0, 0.1, n_objectives)
    return [
        task_of(
            name,
            Space(SQUARE),
            n,
            lambda X, c=c: ((X[:, :, None] - c - weights) ** 2).sum(axis=1),
            rng,
        )
        for name, c in (("low", 0.1), ("high", 0.8))
    ]


def heat_map(result: Any) -> Floats:
    figure = figure_of(result)
    if hasattr(figure, "data"):
        return np.array(next(t.z for t in figure.data if t.type == "heatmap"), dtype=np.float64)
    return np.asarray(figure.axes[1].images[0].get_array())


def outlined(result: Any) -> set[tuple[int, int]]:
    """Return row and column of the cells that have an outline."""
    figure = figure_of(result)
    if hasattr(figure, "data"):
        shapes = figure.layout.shapes
        middles = [((s.y0 + s.y1) / 2, (s.x0 + s.x1) / 2 - 1) for s in shapes]
    else:
        middles = [p.get_center()[::-1] for p in figure.axes[1].patches]
    return {(round(row), round(column)) for row, column in middles}


def columns(result: Any) -> list[float]:
    """Return the heights of the vertical bars."""
    figure = figure_of(result)
    if hasattr(figure, "data"):
        return numbers(next(t for t in figure.data if t.type == "bar").y).tolist()
    return [bar.get_height() for bar in figure.axes[0].patches]


@pytest.mark.parametrize("n_objectives", [1, 3])
def test_the_heat_map_and_the_bars_are_what_the_members_of_the_portfolio_reach(
    plots: ModuleType, n_objectives: int
) -> None:
    tasks = opposed(n_objectives)
    members, data = portfolio(tasks, k=3), coverage_of(tasks, 3, None)
    shown = plots.plot_portfolio(tasks, k=3)
    assert sorted(data.names) == ["high", "low"]
    wanted = [[member.alone[name] for member in members] for name in data.names]
    np.testing.assert_allclose(heat_map(shown), wanted)
    assert outlined(shown) == {
        (row, column)
        for row, name in enumerate(data.names)
        for column, member in enumerate(members)
        if name in member.serves
    }
    np.testing.assert_allclose(
        columns(shown), [np.mean([*member.together.values()]) for member in members]
    )
    assert labels(shown) == ["chosen for this study"]


def test_the_table_has_the_parameters_of_each_configuration(plots: ModuleType) -> None:
    tasks = opposed()
    written = texts(plots.plot_portfolio(tasks, k=2))
    for member in portfolio(tasks, k=2):
        assert all(f"{value:.3g}" in written for value in member.params.values())


def test_one_past_study_has_a_row_of_its_own(plots: ModuleType, sources: list[Study]) -> None:
    shown = plots.plot_portfolio(sources[:1], k=2)
    wanted = [member.alone["past 0"] for member in portfolio(sources[:1], k=2)]
    np.testing.assert_allclose(heat_map(shown), [wanted])
    assert "past 0" in texts(shown)


def test_of_200_past_studies_some_are_shown_and_the_mean_of_the_others(
    plots: ModuleType, many: list[Task]
) -> None:
    members, data = portfolio(many, k=4), coverage_of(many, 4, None)
    assert len(data.names) == MAX_ROWS
    assert data.names[-1] == f"mean of {200 - MAX_ROWS + 1} others"
    left_out = {task.name for task in many} - set(data.names)
    wanted = [np.mean([member.alone[name] for name in left_out]) for member in members]
    np.testing.assert_allclose(data.alone[-1], wanted)
    assert data.serves.any(axis=0).all()
    shown = plots.plot_portfolio(many, k=4)
    np.testing.assert_allclose(heat_map(shown), data.alone)
    np.testing.assert_allclose(
        columns(shown), [np.mean([*member.together.values()]) for member in members]
    )


def test_past_studies_of_one_configuration_are_neighbours(many: list[Task]) -> None:
    data = coverage_of(many, 4, None)
    first = [row.argmax() for row in data.serves if row.any()]
    assert first == sorted(first)


def test_a_parameter_that_a_configuration_does_not_use_is_left_open(
    plots: ModuleType, rng: np.random.Generator
) -> None:
    space = Space({"kind": CategoricalDistribution(("a", "b")), "only a": FloatDistribution(0, 1)})
    X = np.array([[0.25, x] if x < 0.5 else [0.75, np.nan] for x in rng.random(60)])
    is_a = X[:, 0] < 0.5
    losses = np.where(is_a, X[:, 1], 0.3)
    tasks = [Task("a wins", space, X, losses[:, None])]
    tasks.append(Task("b wins", space, X, np.where(is_a, 0.5 + X[:, 1], 0.1)[:, None]))
    values = coverage_of(tasks, 2, None).values
    assert sorted(values["kind"]) == ["a", "b"]
    assert values["only a"][values["kind"].index("b")] == "–"
    assert values["only a"][values["kind"].index("a")] != "–"
    assert "–" in texts(plots.plot_portfolio(tasks, k=2))


def test_of_many_parameters_those_that_differ_are_written(
    plots: ModuleType, rng: np.random.Generator
) -> None:
    names = [f"p{i:02d}" for i in range(MAX_VALUES + 3)]
    space = Space({n: FloatDistribution(0, 0 if n == "p00" else 1) for n in names})
    task = task_of("wide", space, 30, lambda X: np.stack([X[:, 1], 1.0 - X[:, 1]], axis=1), rng)
    data = coverage_of([task], 3, None)
    assert len(data.values) == MAX_VALUES
    assert "p00" not in data.values
    assert f"{MAX_VALUES} of {len(names)} parameters" in texts(plots.plot_portfolio([task], k=3))


def test_of_many_configurations_no_numbers_are_written(plots: ModuleType) -> None:
    # Each past task has one good choice of its own.
    space = Space({"c": CategoricalDistribution([f"c{i}" for i in range(12)])})
    X = (np.arange(12.0)[:, None] + 0.5) / 12
    tasks = [Task(f"{i}", space, X, 1.0 - np.eye(12)[:, [i]]) for i in range(12)]
    data, shown = coverage_of(tasks, 12, None), plots.plot_portfolio(tasks, k=12)
    assert heat_map(shown).shape == (12, 12)
    np.testing.assert_allclose(heat_map(shown), data.alone)
    np.testing.assert_allclose(columns(shown), data.together)
    assert data.values == {}
    assert f"{data.together[0]:.2f}" not in texts(shown).split()


def test_the_portfolio_is_drawn_in_the_space_of_the_new_study(plots: ModuleType) -> None:
    space = {"x": FloatDistribution(0.5, 1.0), "y": FloatDistribution(0.0, 1.0)}
    data = coverage_of(opposed(), 2, space)
    assert all(member.params["x"] >= 0.5 for member in data.members)
    np.testing.assert_allclose(
        heat_map(plots.plot_portfolio(opposed(), k=2, space=space)), data.alone
    )


def test_a_cell_of_plotly_has_what_is_expected_and_the_parameters() -> None:
    tasks = opposed(2)
    data = coverage_of(tasks, 2, None)
    heat = next(t for t in viz.plot_portfolio(tasks, k=2).data if t.type == "heatmap")
    member = data.members[1]
    losses = ", ".join(f"{loss:.4g}" for loss in member.expected[data.names[0]])
    assert heat.customdata[0][1].split("<br>") == [
        data.names[0],
        f"configuration 2: {data.alone[0, 1]:.3f}",
        f"expected losses {losses}",
        *(f"{name} = {value:.4g}" for name, value in member.params.items()),
    ]


def test_without_a_past_study_there_is_no_portfolio(plots: ModuleType) -> None:
    with pytest.raises(ValueError, match="there is no past study"):
        plots.plot_portfolio([])


# Regions --------------------------------------------------------------------------------------


@pytest.mark.parametrize("names", [["float"], ["choice"], ["log", "grid"], ["log int", "choice"]])
def test_the_similarity_that_is_written_is_the_method_s_own(
    names: list[str], rng: np.random.Generator
) -> None:
    space = Space({name: MIXED.distributions[name] for name in names})
    a, b = (
        task_of(n, space, 150, lambda X, c=c: ((X - c) ** 2).sum(1), rng)
        for n, c in (("a", 0.3), ("b", 0.5))
    )
    # With so small an eta all parameters are compared.
    wanted = gamma_similarity(a, b, eta=1.01, n_mc_samples=20_000)
    assert gamma_sets(a, b, names).similarity == pytest.approx(wanted, abs=0.02)


def test_two_regions_overlap_where_both_tasks_are_good(
    plots: ModuleType, rng: np.random.Generator
) -> None:
    space = Space(SQUARE)
    a, b = (
        task_of(name, space, 400, lambda X, c=c: np.abs(X - [c, 0.5]).max(axis=1), rng)
        for name, c in (("left", 0.35), ("right", 0.65))
    )
    data = gamma_sets(a, b, ["x", "y"])
    middles = [(axis.edges[1:] + axis.edges[:-1]) / 2 for axis in data.axes]
    x, y = np.meshgrid(*middles)
    for code, wanted in ((1, 0.35), (3, 0.5), (2, 0.65)):
        assert x[data.codes == code].mean() == pytest.approx(wanted, abs=0.1)
        assert y[data.codes == code].mean() == pytest.approx(0.5, abs=0.1)
    for good in (data.a, data.b):
        cell = 1.0 / good.density.size
        assert good.density.sum() * cell == pytest.approx(1.0)
        held = good.density[good.region].sum() * cell
        assert 0.8 <= held < 0.81
        assert good.density[good.region].min() >= good.density[~good.region].max()
    assert sorted(labels(plots.plot_gamma_sets(a, b, ["x", "y"]))) == ["both", "left", "right"]


def test_good_observations_are_the_points(study: Study, sources: list[Study]) -> None:
    data = gamma_sets(study, sources[0], ["x", "lr"])
    task = Task.from_study(study)
    good = task.space.decode(task.X[split(task.losses, task.violation, 0.1)])
    points = [(values["x"], values["lr"]) for values in data.a.values]
    np.testing.assert_allclose(sorted(points), sorted((p["x"], p["lr"]) for p in good))
    assert 0 < len(points) < len(task)


def test_left_out_the_two_parameters_that_matter_most_are_drawn(
    study: Study, sources: list[Study]
) -> None:
    tasks = [Task.from_study(s) for s in (study, sources[0])]
    V = [importance(task) for task in tasks]
    top = sorted(SPACE, key=lambda name: -(V[0].get(name, 0) + V[1].get(name, 0)))[:2]
    assert [axis.name for axis in gamma_sets(study, sources[0], None).axes] == top


@pytest.mark.parametrize(
    ("distribution", "wanted"),
    [
        (FloatDistribution(0, 1), ["0", "0.2", "0.4", "0.6", "0.8", "1"]),
        (FloatDistribution(1e-4, 1, log=True), ["0.0001", "0.001", "0.01", "0.1", "1"]),
        (FloatDistribution(0, 0.5, step=0.25), ["0", "0.25", "0.5"]),
        (IntDistribution(1, 4), ["1", "2", "3", "4"]),
        (IntDistribution(0, 1000), ["0", "200", "400", "600", "800", "1000"]),
        (IntDistribution(1, 100, log=True), ["1", "10", "100"]),
        (CategoricalDistribution((None, True, "a$b")), ["None", "True", "a$b"]),
        (IntDistribution(3, 3), ["3"]),
    ],
    ids=str,
)
def test_ticks_have_the_parameter_s_own_values(
    plots: ModuleType, distribution: Any, wanted: list[str], rng: np.random.Generator
) -> None:
    task = task_of("a", Space({"p": distribution}), 30, lambda X: X, rng)
    (axis,) = gamma_sets(task, task, "p").axes
    assert axis.labels == wanted
    assert ((axis.ticks >= 0) & (axis.ticks <= 1)).all()
    figure_of(plots.plot_gamma_sets(task, task, "p"))


def test_conditional_parameters_are_drawn_where_they_were_used(
    plots: ModuleType, rng: np.random.Generator
) -> None:
    space = Space(SQUARE)
    X = np.array(rng.random((60, 2)))
    X[::2, 1] = np.nan
    task = Task("half", space, X, X[:, :1])
    data = gamma_sets(task, task, ["x", "y"])
    assert len(data.a.X) < 6
    figure_of(plots.plot_gamma_sets(task, task, ["x", "y"]))


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ("z", "'z' is not a parameter of both tasks; they share"),
        (["x", "lr", "depth"], "params must be one parameter or two"),
        ([], "params must be one parameter or two"),
    ],
)
def test_parameters_that_cannot_be_drawn_are_refused(
    study: Study, sources: list[Study], params: Any, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        viz.plot_gamma_sets(study, sources[0], params)


def test_tasks_without_a_common_parameter_are_refused(rng: np.random.Generator) -> None:
    a = task_of("a", Space({"x": FloatDistribution(0, 1)}), 20, lambda X: X, rng)
    b = task_of("b", Space({"y": FloatDistribution(0, 1)}), 20, lambda X: X, rng)
    far = task_of("far", Space({"x": FloatDistribution(5, 6)}), 20, lambda X: X, rng)
    with pytest.raises(ValueError, match="'a' and 'b' have no parameter in common"):
        viz.plot_gamma_sets(a, b)
    with pytest.raises(ValueError, match="no good observation of task 'far'"):
        viz.plot_gamma_sets(a, far)


# All of them ----------------------------------------------------------------------------------


def test_an_empty_study_has_figures_that_say_so(plots: ModuleType) -> None:
    study = new_study(MetaTPESampler(seed=0))
    drawn = [
        plots.plot_hypervolume(study),
        plots.plot_hypervolume([]),
        plots.plot_attainment(study),
        plots.plot_importances(study),
    ]
    for shown in drawn:
        assert "no finished trial yet" in texts(shown)
    with pytest.raises(ValueError, match="both tasks need a finished trial"):
        plots.plot_gamma_sets(study, past_study(n=3))


def test_running_trials_do_not_disturb(plots: ModuleType, sources: list[Study]) -> None:
    study = new_study(MetaTPESampler(sources, seed=0), name="running")
    evaluate(study, 6)
    study.ask(dict(SPACE))
    study.ask()
    assert len(line(plots.plot_hypervolume(study), "running")[0]) == 6
    for shown in (
        plots.plot_task_weights(study),
        plots.plot_attainment(study),
        plots.plot_importances(study, sources),
        plots.plot_similarity([study, *sources]),
        plots.plot_gamma_sets(study, sources[0]),
    ):
        figure_of(shown)


@pytest.fixture(scope="module")
def nasty() -> tuple[Study, Study]:
    """Studies whose names, parameters, choices and objectives are full of markup."""
    space = {NASTY: CategoricalDistribution((NASTY, "b")), "x": FloatDistribution(0, 1)}
    losses = lambda p: [p["x"] + (p[NASTY] == "b"), 1 - p["x"]]  # noqa: E731
    past = past_study(losses, space=space, name=NASTY)
    study = new_study(MetaTPESampler([past], seed=0), name=f"{NASTY} new")
    study.set_metric_names([NASTY, "cost"])
    evaluate(study, 12, space=space, losses=losses)
    return study, past


def all_plots(plots: ModuleType, study: Study, past: Study) -> list[Any]:
    return [
        plots.plot_task_weights(study),
        plots.plot_hypervolume([study, past]),
        plots.plot_attainment({NASTY: [study, past]}),
        plots.plot_importances(study, [past]),
        plots.plot_similarity([study, past]),
        plots.plot_gamma_sets(study, past, NASTY),
        plots.plot_gamma_sets(study, past, [NASTY, "x"]),
        plots.plot_portfolio([study, past], k=2),
    ]


def test_plotly_shows_names_as_text(nasty: tuple[Study, Study]) -> None:
    for figure in all_plots(viz, *nasty):
        shown = list(strings(figure.to_plotly_json()))
        assert not any(mark in text for text in shown for mark in ("<b>", "<script", "$"))
        assert any("&lt;b&gt;x" in text for text in shown)
        # Of what users wrote, no %{x} is left to be replaced by a value.
        assert not any("%{x} &amp;" in text for text in shown)
    weights = viz.plot_task_weights(nasty[0])
    assert weights.data[0].meta == ESCAPED


def strings(value: Any) -> Iterator[str]:
    """Return every string of nested lists and dictionaries."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from strings(inner)
    elif isinstance(value, list | tuple | np.ndarray):
        for inner in value:
            yield from strings(inner)


def test_matplotlib_shows_names_as_text(nasty: tuple[Study, Study]) -> None:
    from matplotlib.text import Text

    for result in all_plots(viz.matplotlib, *nasty):
        found = [text for text in figure_of(result).findobj(Text) if "<b>x" in text.get_text()]
        assert found
        for text in found:
            assert "$" not in text.get_text().replace(r"\$", "")
    viz_labels = labels(viz.matplotlib.plot_hypervolume({"_hidden": nasty[0]}))
    assert viz_labels == ["_hidden"]


def test_figures_are_transparent_and_take_another_template(study: Study) -> None:
    figure = viz.plot_hypervolume(study)
    assert figure.layout.template.layout.paper_bgcolor == "rgba(0,0,0,0)"
    assert figure.layout.paper_bgcolor is None
    figure.update_layout(template="plotly_dark")
    assert figure.layout.template.layout.paper_bgcolor != "rgba(0,0,0,0)"


def test_matplotlib_follows_the_style_in_use(study: Study) -> None:
    from matplotlib import pyplot as plt

    with plt.style.context("dark_background"):
        axis = viz.matplotlib.plot_hypervolume(study)
    assert axis.get_facecolor() == (0.0, 0.0, 0.0, 1.0)
    assert axis.xaxis.label.get_color() == "white"
    plt.close("all")


@pytest.mark.parametrize(
    ("package", "call"),
    [("plotly", "viz.plot_task_weights"), ("matplotlib", "viz.matplotlib.plot_task_weights")],
)
def test_without_its_library_a_plot_says_what_to_install(package: str, call: str) -> None:
    code = (
        f"import sys; sys.modules[{package!r}] = None\n"
        "import optuna; from metatpe import viz\n"
        "assert not {'plotly.graph_objects', 'matplotlib.pyplot'} & sys.modules.keys()\n"
        f"try: {call}(optuna.create_study())\n"
        "except ImportError as error: print(error)"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip().endswith(install_command("viz"))


def test_both_backends_have_the_same_names() -> None:
    assert set(viz.__all__) - {"matplotlib"} == set(viz.matplotlib.__all__)
