"""What a report says about trials that were pruned."""

import math

import numpy as np
import optuna
import pytest
from optuna.trial import TrialState

from metatpe import TransferPruner, pruning_history, report_values
from metatpe.report import html_report, markdown_report
from metatpe.report.facts import facts_of
from metatpe.report.stops import interval, saved_by_pruning, stopped_sentence

N_STEPS = 20


def run(
    pruner: optuna.pruners.BasePruner, *, n_trials: int = 20, name: str = "new"
) -> optuna.Study:
    sampler = optuna.samplers.RandomSampler(seed=0)
    study = optuna.create_study(study_name=name, sampler=sampler, pruner=pruner)

    def objective(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", 0.0, 1.0)
        for step in range(N_STEPS):
            trial.report(x + math.exp(-0.4 * step), step)
            if trial.should_prune():
                raise optuna.TrialPruned
        return x

    study.optimize(objective, n_trials=n_trials)
    return study


@pytest.fixture(scope="module")
def past() -> optuna.Study:
    return run(optuna.pruners.NopPruner(), n_trials=60, name="old")


@pytest.fixture(scope="module")
def study(past: optuna.Study) -> optuna.Study:
    return run(TransferPruner([past]))


def section(text: str) -> str:
    """Return the section of a report in Markdown."""
    return text.partition("Trials stopped early")[2].partition("\n## ")[0]


def test_the_saving_is_what_was_reported_against_whole_trials(study: optuna.Study) -> None:
    saved = saved_by_pruning(facts_of(study))
    assert saved is not None
    reported = sum(len(t.intermediate_values) for t in study.trials)
    assert saved.share == pytest.approx(1 - reported / (N_STEPS * len(study.trials)))
    text = markdown_report(study)
    sentence = f"{saved.n_pruned} of 20 trials were pruned, which saved about {saved.share:.0%}"
    assert sentence in section(text)
    assert sentence in text.partition("## ")[2].partition("\n## ")[0]  # also in short


def test_steps_and_reasons_are_counted(study: optuna.Study, past: optuna.Study) -> None:
    text = section(markdown_report(study, [past]))
    n_pruned = [t.state for t in study.trials].count(TrialState.PRUNED)
    counts = [int(line.split("|")[2]) for line in text.splitlines() if "% to" in line]
    assert sum(counts) == n_pruned
    n_by_curve = sum(record.reason == "curve" for record in pruning_history(study))
    (row,) = (line for line in text.splitlines() if "seldom ended among the best" in line)
    assert int(row.split("|")[2]) == n_by_curve


def test_what_was_lost_is_the_sum_of_the_recorded_chances_with_an_interval(
    study: optuna.Study,
) -> None:
    chances = [r.chance for r in pruning_history(study) if r.chance is not None]
    low, high = interval(chances)
    text = section(markdown_report(study))
    assert f"about {sum(chances):.1f} would have ended among the best 5% of" in text
    assert f"(90 % interval: {low} to {high})" in text


def test_the_interval_is_that_of_a_binomial_where_all_chances_are_alike(
    rng: np.random.Generator,
) -> None:
    drawn = rng.binomial(40, 0.1, size=100_000)
    low, high = interval([0.1] * 40)
    assert [low, high] == np.quantile(drawn, [0.05, 0.95]).tolist()
    assert interval([1.0, 1.0]) == (2, 2)
    assert interval([0.0]) == (0, 0)


def test_another_pruner_leaves_no_chances_and_nothing_is_made_up() -> None:
    study = run(optuna.pruners.MedianPruner(n_startup_trials=2))
    text = section(markdown_report(study))
    assert "no record: stopped by the objective, or by another pruner" in text
    assert "interval" not in text


def test_a_study_in_which_nothing_was_pruned_has_no_section(past: optuna.Study) -> None:
    assert stopped_sentence(facts_of(past)) == ""
    assert "Trials stopped early" not in markdown_report(past)


def test_with_several_objectives_it_is_about_the_front() -> None:
    study = optuna.create_study(
        directions=["minimize"] * 2,
        sampler=optuna.samplers.RandomSampler(seed=0),
        pruner=TransferPruner(),
    )

    def objective(trial: optuna.Trial) -> tuple[float, float]:
        x, y = trial.suggest_float("x", 0, 1), trial.suggest_float("y", 0, 1)
        for step in range(N_STEPS):
            slow = math.exp(-0.3 * step)
            if report_values(trial, [x + y + slow, 1 - x + y + slow], step):
                raise optuna.TrialPruned
        return x + y, 1 - x + y

    study.optimize(objective, n_trials=25)
    assert "on the Pareto front of the trials until then" in section(markdown_report(study))


def test_the_page_has_the_curves(study: optuna.Study, past: optuna.Study) -> None:
    pytest.importorskip("plotly", reason="needs the extra viz")
    page = html_report(study, [past])
    assert "Trials stopped early" in page
    assert 'id="curves"' in page
