"""Learning curves as they are drawn: what was reported, where trials stopped, and why."""

from __future__ import annotations

import math
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np
import optuna
import pytest

from metatpe import TransferPruner, pruning_history, report_values
from metatpe.viz.curves import BEST, COMPLETE, EXPECTED, PAST, PRUNED, STOP, learning_curves_of

pytest.importorskip("plotly", reason="needs the extra viz")
mpl = pytest.importorskip("matplotlib", reason="needs the extra viz")
mpl.use("Agg")

from metatpe import viz  # noqa: E402

N_STEPS = 20


@pytest.fixture(params=["plotly", "matplotlib"])
def plots(request: pytest.FixtureRequest) -> Iterator[ModuleType]:
    yield viz if request.param == "plotly" else viz.matplotlib
    from matplotlib import pyplot as plt

    plt.close("all")


def run(
    n_trials: int,
    pruner: optuna.pruners.BasePruner,
    *,
    n_steps: int = N_STEPS,
    scale: float = 1.0,
    name: str = "new",
    direction: str = "minimize",
) -> optuna.Study:
    study = optuna.create_study(
        study_name=name,
        sampler=optuna.samplers.RandomSampler(seed=0),
        pruner=pruner,
        direction=direction,
    )

    def objective(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", 0.01, 1.0)
        for step in range(n_steps):
            trial.report(scale * (x + math.exp(-8.0 * step / n_steps)), step)
            if trial.should_prune():
                raise optuna.TrialPruned
        return scale * x

    study.optimize(objective, n_trials=n_trials)
    return study


@pytest.fixture(scope="module")
def past() -> optuna.Study:
    return run(30, optuna.pruners.NopPruner(), n_steps=40, name="old")


@pytest.fixture(scope="module")
def study(past: optuna.Study) -> optuna.Study:
    return run(15, TransferPruner([past]))


def traces(shown: Any) -> dict[str, tuple[Any, Any]]:
    """Return x and y of what is drawn, by its name in the legend."""
    if hasattr(shown, "to_json"):
        shown.to_json()
        return {trace.name: (np.array(trace.x), np.array(trace.y)) for trace in shown.data}
    shown.draw_without_rendering()
    legend = shown.legends[0]
    names = [text.get_text() for text in legend.get_texts()]
    lines = dict(zip(names, shown.axes[0].get_lines(), strict=False))
    return {name: line.get_data() for name, line in lines.items()}


def test_all_that_was_reported_is_drawn(
    plots: ModuleType, study: optuna.Study, past: optuna.Study
) -> None:
    drawn = traces(plots.plot_curves(study, [past]))
    assert set(drawn) == {PAST, PRUNED, COMPLETE, BEST, STOP, EXPECTED}
    best = study.best_trial.intermediate_values
    x, y = drawn[BEST]
    np.testing.assert_allclose(x[~np.isnan(x)], list(best))
    np.testing.assert_allclose(y[~np.isnan(y)], list(best.values()))
    n_pruned = sum(len(t.intermediate_values) for t in study.trials if t.state.name == "PRUNED")
    assert np.count_nonzero(~np.isnan(drawn[PRUNED][1])) == n_pruned


def test_a_pruned_trial_is_marked_at_its_step_with_what_it_was_expected_to_reach(
    plots: ModuleType, study: optuna.Study
) -> None:
    records = pruning_history(study)
    x, y = traces(plots.plot_curves(study))[STOP]
    np.testing.assert_allclose(x, [record.step for record in records])
    values = [study.trials[r.number].intermediate_values[r.step] for r in records]
    np.testing.assert_allclose(y, values)
    (panel,) = learning_curves_of(study, ()).panels
    assert [stop.expected for stop in panel.stops] == [record.expected for record in records]
    assert {stop.end for stop in panel.stops} == {N_STEPS - 1}
    text = panel.stops[0].text
    assert text.startswith(
        f"trial {records[0].number}: pruned at step {records[0].step}, expected"
    )


def test_past_curves_are_drawn_over_the_steps_of_the_study(
    study: optuna.Study, past: optuna.Study
) -> None:
    (panel,) = learning_curves_of(study, [past]).panels
    curve = panel.groups[PAST][0]
    assert curve.label == "old"
    assert len(curve.steps) == 40
    assert curve.steps[-1] == pytest.approx(N_STEPS - 1)


def test_losses_that_span_decades_have_a_log_scale_and_what_diverges_leaves_it() -> None:
    study = run(10, optuna.pruners.NopPruner(), scale=1.0)
    (linear,) = learning_curves_of(study, ()).panels
    assert linear.limits is not None
    values = {step: 10.0 ** (-step / 5) for step in range(N_STEPS)}
    study.add_trial(optuna.create_trial(value=values[19], intermediate_values=values))
    diverging = {0: 1.0, 1: 1e9, 2: 1e18, 3: math.nan}
    pruned = optuna.trial.TrialState.PRUNED
    study.add_trial(optuna.create_trial(state=pruned, intermediate_values=diverging))
    (panel,) = learning_curves_of(study, ()).panels
    assert panel.is_log
    assert panel.limits is not None
    assert panel.limits[0] < values[19]
    assert 1.0 < panel.limits[1] < 1e6
    assert panel.stops[-1].value == 1e18


def test_a_maximised_metric_keeps_its_sign() -> None:
    study = run(8, TransferPruner(), direction="maximize")
    (panel,) = learning_curves_of(study, ()).panels
    shown = [curve for curves in panel.groups.values() for curve in curves]
    assert min(curve.values.min() for curve in shown) > 0.0


def test_several_objectives_have_a_panel_each(plots: ModuleType) -> None:
    study = optuna.create_study(directions=["minimize", "maximize"])
    study.set_metric_names(["error", "score"])

    def objective(trial: optuna.Trial) -> tuple[float, float]:
        x = trial.suggest_float("x", 0, 1)
        for step in range(5):
            report_values(trial, [x + 1 / (step + 1), 2 * x - 1 / (step + 1)], step)
        return x, 2 * x

    study.optimize(objective, n_trials=3)
    data = learning_curves_of(study, ())
    assert [panel.name for panel in data.panels] == ["error", "score"]
    traces(plots.plot_curves(study))


def test_a_study_without_reports_says_so(plots: ModuleType) -> None:
    study = optuna.create_study()
    shown = plots.plot_curves(study)
    if plots is viz:
        assert "no intermediate values yet" in shown.to_json()
    else:
        assert "no intermediate values yet" in [t.get_text() for t in shown.axes[0].texts]


@pytest.mark.parametrize("scale", [1.7e307, -1.7e307])
@pytest.mark.parametrize("end", [0.9, 1e-200, -0.9])
def test_curves_of_huge_values_have_an_axis(plots: ModuleType, scale: float, end: float) -> None:
    study = optuna.create_study()
    for first in (10.0, 9.0):
        trial = study.ask({"x": optuna.distributions.FloatDistribution(0.0, 1.0)})
        trial.report(first * scale, 0)
        trial.report(end * scale, 1)
        study.tell(trial, end * scale)
    (panel,) = learning_curves_of(study, []).panels
    assert panel.limits is not None
    low, high = panel.limits
    assert math.isfinite(high - low)
    assert low < high
    assert plots.plot_curves(study) is not None
