import copy
import pickle
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import optuna
import pytest
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState, create_trial

from metatpe import Task, TransferPruner, load_tasks, pruning_history, report_values
from metatpe.pruning.curves import SHARES, Curves, Length, completed, length_of, row_of
from metatpe.pruning.forecast import AHEAD, Forecast, Forecaster
from metatpe.pruning.judge import Judge, Verdict, _Check, _n_own
from metatpe.pruning.positions import N_FEATURES, Frame, Positions, frame_of, replayed
from metatpe.pruning.pruner import _has_diverged, _patience, _record_of
from metatpe.space import Mask
from metatpe.study.access import as_storage, study_id

optuna.logging.set_verbosity(optuna.logging.ERROR)
N_STEPS = 30
Curve = Callable[[float, int], float]


def decay(x: float, step: int) -> float:
    """Return a loss that falls towards |x|: good ones are good from early on."""
    return abs(x) + 3.0 * np.exp(-0.3 * step) + 0.02 * np.sin(50.0 * x + step)


def late(x: float, step: int) -> float:
    """Return a loss whose order turns round in the last third: the worst become the best."""
    return decay(x, step) if step < 20 else 2.0 - abs(x) + 0.01 * (N_STEPS - step)


def run(
    pruner: optuna.pruners.BasePruner,
    *,
    curve: Curve = decay,
    n_trials: int = 40,
    n_steps: int = N_STEPS,
    seed: int = 0,
    sign: float = 1.0,
    study: optuna.Study | None = None,
    step_of: Callable[[int], int] = lambda i: i,
) -> optuna.Study:
    direction = "minimize" if sign > 0 else "maximize"
    if study is None:
        sampler = optuna.samplers.RandomSampler(seed=seed)
        study = optuna.create_study(direction=direction, sampler=sampler, pruner=pruner)

    def objective(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", -1.0, 1.0)
        for i in range(n_steps):
            trial.report(sign * curve(x, i * N_STEPS // n_steps), step_of(i))
            if trial.should_prune():
                raise optuna.TrialPruned
        return sign * curve(x, N_STEPS - 1)

    study.optimize(objective, n_trials=n_trials)
    return study


def n_reports(study: optuna.Study) -> int:
    return sum(len(t.intermediate_values) for t in study.get_trials(deepcopy=False))


@pytest.fixture(scope="module")
def past() -> list[Task]:
    nop = optuna.pruners.NopPruner()
    return [Task.from_study(run(nop, seed=10 + i, n_trials=100), name=str(i)) for i in range(5)]


def test_past_trials_with_a_single_report_do_not_replace_the_made_up_curves() -> None:
    small = run(optuna.pruners.NopPruner(), seed=10, n_trials=10)
    single = optuna.create_study()
    for trial in run(optuna.pruners.NopPruner(), seed=11, n_trials=500, n_steps=1).trials:
        single.add_trial(trial)
    alone, both = (run(TransferPruner(own)) for own in ([small], [small, single]))
    assert pruning_history(alone)
    assert pruning_history(both) == pruning_history(alone)


@pytest.fixture(scope="module")
def pruned(past: list[Task]) -> optuna.Study:
    """A study that was pruned with this past; several tests look at it."""
    return run(TransferPruner(past))


def test_trials_that_will_not_be_good_are_stopped_and_the_best_is_found(
    pruned: optuna.Study,
) -> None:
    without = run(optuna.pruners.NopPruner())
    assert n_reports(pruned) < 0.6 * n_reports(without)
    assert pruned.best_value == without.best_value


def test_a_trial_of_a_study_without_trials_goes_on() -> None:
    study, trial = optuna.create_study(), create_trial(value=1.0, intermediate_values={0: 1.0})
    assert not TransferPruner().prune(study, trial)


def test_the_first_trials_and_those_that_check_the_others_complete(pruned: optuna.Study) -> None:
    states = [trial.state for trial in pruned.trials]
    assert all(states[i] == TrialState.COMPLETE for i in (0, 10))
    assert TrialState.PRUNED in states


def test_as_many_trials_complete_at_the_start_as_were_asked_for(past: list[Task]) -> None:
    pruner = TransferPruner(past, threshold=1.0, n_startup_trials=5)
    states = [trial.state for trial in run(pruner, n_trials=10).trials]
    assert states[:5] == [TrialState.COMPLETE] * 5
    assert TrialState.PRUNED in states[5:]


def test_the_trials_that_check_the_others_are_ten_and_each_time_ten_times_as_many() -> None:
    pruner = TransferPruner(n_startup_trials=3)
    found = [number for number in range(1000) if pruner._always_completes(number)]
    assert found == [0, 1, 2, 10, 100]


def test_the_threshold_is_smaller_in_the_first_fifth_of_the_length() -> None:
    # A quarter of it at a quarter of a fifth.
    assert [_patience(share) for share in (0.05, 0.2, 0.9)] == pytest.approx([0.25, 1.0, 1.0])


def test_no_trial_is_stopped_at_its_last_step(past: list[Task]) -> None:
    pruner = TransferPruner(past, threshold=1.0)
    study = run(pruner, curve=noise, n_trials=60, n_steps=6)
    records = pruning_history(study)
    assert records
    last = max(max(t.intermediate_values) for t in study.trials if t.state == TrialState.COMPLETE)
    assert all(record.step < last for record in records)


def test_a_threshold_of_zero_stops_nothing(past: list[Task]) -> None:
    study = run(TransferPruner(past, threshold=0.0), n_trials=20)
    assert {trial.state for trial in study.trials} == {TrialState.COMPLETE}


def test_a_maximised_metric_is_pruned_like_its_negative(
    past: list[Task], pruned: optuna.Study
) -> None:
    raised = run(TransferPruner(past), sign=-1.0)
    assert [t.state for t in raised.trials] == [t.state for t in pruned.trials]
    expected = [r.expected for r in pruning_history(pruned) if r.expected is not None]
    negated = [r.expected for r in pruning_history(raised) if r.expected is not None]
    np.testing.assert_allclose(negated, [-value for value in expected])


def test_other_steps_and_another_length_change_nothing_of_substance(past: list[Task]) -> None:
    study = run(TransferPruner(past), n_steps=120, step_of=lambda i: 500 * (i + 1))
    assert n_reports(study) < 0.6 * 40 * 120
    assert study.best_value == run(optuna.pruners.NopPruner()).best_value


def test_a_study_without_a_past_is_pruned_cautiously() -> None:
    study = run(TransferPruner(), n_trials=60)
    pruned = [t.number for t in study.trials if t.state == TrialState.PRUNED]
    assert pruned
    assert study.best_value == run(optuna.pruners.NopPruner(), n_trials=60).best_value


def test_past_studies_without_reports_are_not_used() -> None:
    silent = optuna.create_study()
    silent.optimize(lambda trial: trial.suggest_float("x", -1.0, 1.0), n_trials=5)
    assert repr(TransferPruner([silent])) == "TransferPruner(0 sources, threshold=0.9)"


def test_past_trials_that_reported_once_say_nothing() -> None:
    once = Task.from_study(run(optuna.pruners.NopPruner(), n_trials=5, n_steps=1))
    stops = [
        [(t.number, t.last_step) for t in run(pruner, n_trials=30).trials]
        for pruner in (TransferPruner([once]), TransferPruner())
    ]
    assert stops[0] == stops[1]


def test_a_past_whose_order_turns_round_late_does_not_stop_early_losers() -> None:
    nop = optuna.pruners.NopPruner()
    turning = [Task.from_study(run(nop, curve=late, seed=i, n_trials=100)) for i in range(5, 10)]
    best = run(nop, curve=late).best_value
    assert run(TransferPruner(turning), curve=late).best_value < best + 0.05


def noise(x: float, step: int) -> float:
    """Return a loss that says nothing before the last ten steps."""
    generator = np.random.default_rng([int(1e6 * abs(x)), step])
    return float(generator.random()) + 1.0 if step < 20 else abs(x)


def test_a_past_that_does_not_predict_the_study_loses_its_influence(
    past: list[Task], pruned: optuna.Study
) -> None:
    study = run(TransferPruner(past), curve=noise, n_trials=60)
    early = [r.number for r in pruning_history(study) if r.step < 15]
    assert len(early) < len([r for r in pruning_history(pruned) if r.step < 15])
    assert all(number < 30 for number in early)


def test_a_trial_that_diverges_is_stopped_with_that_reason(past: list[Task]) -> None:
    def diverging(x: float, step: int) -> float:
        return float("nan") if x > 0.0 and step >= 3 else decay(x, step)

    study = run(TransferPruner(past), curve=diverging)
    reasons = {r.reason for r in pruning_history(study) if study.trials[r.number].params["x"] > 0}
    assert "diverged" in reasons
    assert study.best_params["x"] <= 0.0


def test_what_counts_is_the_last_step_and_not_the_last_report() -> None:
    assert _has_diverged({1: [0.5, 0.5], 2: [1.0, np.inf]})
    assert _has_diverged({3: [np.nan], 1: [0.5]})
    assert not _has_diverged({3: [0.5], 1: [np.nan]})
    assert not _has_diverged({1: [np.nan], 2: [np.inf]})


def test_infinite_and_huge_losses_do_no_harm(past: list[Task]) -> None:
    def wild(x: float, step: int) -> float:
        if x < -0.8:
            return float("inf")
        return 1e18 if x > 0.8 else decay(x, step)

    study = run(TransferPruner(past), curve=wild)
    assert study.best_value == run(optuna.pruners.NopPruner(), curve=wild).best_value


def test_failed_trials_are_compared_as_far_as_they_came(past: list[Task]) -> None:
    def failing(x: float, step: int) -> float:
        if step == 12 and int(1000 * abs(x)) % 3 == 0:
            raise RuntimeError("out of memory")
        return decay(x, step)

    study = optuna.create_study(
        sampler=optuna.samplers.RandomSampler(seed=0), pruner=TransferPruner(past)
    )

    def objective(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", -1.0, 1.0)
        for step in range(N_STEPS):
            trial.report(failing(x, step), step)
            if trial.should_prune():
                raise optuna.TrialPruned
        return decay(x, N_STEPS - 1)

    study.optimize(objective, n_trials=40, catch=RuntimeError)
    states = [trial.state for trial in study.trials]
    assert TrialState.FAIL in states
    assert TrialState.PRUNED in states


@pytest.mark.parametrize(("x", "is_stopped"), [(0.05, False), (1.0, True)])
def test_a_trial_whose_first_report_is_late_does_not_disturb_what_is_expected_of_others(
    x: float, is_stopped: bool, past: list[Task]
) -> None:
    study = optuna.create_study(pruner=TransferPruner(past))
    for i, other in enumerate([0.5, 0.1, 0.9, 0.3, 0.6, 0.2, 0.7, 0.4]):
        curve = {step: decay(other, step) for step in range(15 if i == 1 else 0, N_STEPS)}
        study.add_trial(create_trial(value=curve[N_STEPS - 1], intermediate_values=curve))
    trial, decisions = study.ask(), []
    for step in range(20):
        trial.report(decay(x, step), step)
        decisions.append(trial.should_prune())
    assert any(decisions) == is_stopped


def test_a_record_says_when_and_why_and_what_was_expected(pruned: optuna.Study) -> None:
    records = [r for r in pruning_history(pruned) if r.reason == "curve"]
    assert records
    for record in records:
        trial = pruned.trials[record.number]
        assert record.step == trial.last_step
        assert record.chance is not None
        assert record.base is not None
        assert record.chance < 0.9 * record.base
        assert record.expected is not None
        assert record.deviation is not None
        actual = decay(trial.params["x"], N_STEPS - 1)
        assert abs(actual - record.expected) < 1.5


def test_a_record_has_the_chance_and_half_of_what_lies_between_a_deviation_below_and_above() -> (
    None
):
    frame = Frame(Curves(*np.empty((5, 0))), np.array([1.0]), np.array([3.0]), 0.05)
    verdict = Verdict(0.2, 0.75, 0.05, frame, Forecast(0.2, 0.5, 0.1), 0.4)
    record = _record_of(7, 4, verdict, [StudyDirection.MAXIMIZE])
    assert (record.number, record.step, record.reason) == (7, 4, "curve")
    assert (record.chance, record.base, record.influence) == (pytest.approx(0.01), 0.05, 0.75)
    low, middle, high = (frame.loss(x) for x in (0.4, 0.5, 0.6))
    assert record.expected == pytest.approx(-middle)
    assert record.deviation == pytest.approx((high - low) / 2)


def test_a_constant_that_is_added_to_all_losses_is_added_to_what_is_expected_and_no_more(
    past: list[Task], pruned: optuna.Study
) -> None:
    raised = run(TransferPruner(past), curve=lambda x, step: decay(x, step) + 8.0)
    before, after = pruning_history(pruned), pruning_history(raised)
    assert [(r.number, r.step) for r in after] == [(r.number, r.step) for r in before]
    # Records have six digits.
    expected = [r.expected + 8.0 for r in before if r.expected is not None]
    np.testing.assert_allclose([r.expected for r in after], expected, rtol=1e-5)
    deviations = [r.deviation for r in before]
    np.testing.assert_allclose([r.deviation for r in after], deviations, rtol=1e-5)


def test_a_pickled_and_a_copied_pruner_decide_alike(past: list[Task]) -> None:
    pruner = TransferPruner(past)
    runs = [run(p) for p in (pruner, pickle.loads(pickle.dumps(pruner)), copy.deepcopy(pruner))]
    stops = [[(t.number, t.last_step) for t in study.trials] for study in runs]
    assert stops[0] == stops[1] == stops[2]


def test_one_pruner_serves_several_studies(past: list[Task]) -> None:
    pruner = TransferPruner(past)
    stops = [[(t.number, t.last_step) for t in run(pruner).trials] for _ in range(2)]
    assert stops[0] == stops[1]


def test_a_study_that_is_resumed_by_another_process_goes_on(
    past: list[Task], tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path / 'studies.db'}"

    def opened() -> optuna.Study:
        return optuna.create_study(
            study_name="s",
            storage=url,
            load_if_exists=True,
            sampler=optuna.samplers.RandomSampler(seed=0),
            pruner=TransferPruner(past),
        )

    run(TransferPruner(), study=opened(), n_trials=8, n_steps=10)
    study = run(TransferPruner(), study=opened(), n_trials=8, n_steps=10)
    assert TrialState.PRUNED in {trial.state for trial in study.trials[8:]}
    task = load_tasks(url)[0]
    assert len(task.curves) == n_reports(study)
    assert pruning_history(study)


def test_a_study_that_gets_the_number_of_a_deleted_one_is_judged_anew(
    past: list[Task], tmp_path: Path
) -> None:
    storage = as_storage(optuna.storages.RDBStorage(f"sqlite:///{tmp_path / 'studies.db'}"))
    pruner, stops, numbers = TransferPruner(past), [], set()
    for own, curve in ((pruner, noise), (pruner, decay), (TransferPruner(past), decay)):
        sampler = optuna.samplers.RandomSampler(seed=0)
        study = optuna.create_study(study_name="s", storage=storage, sampler=sampler, pruner=own)
        numbers.add(study_id(study))
        run(own, study=study, curve=curve, n_trials=8, n_steps=10)
        stops.append([(t.number, t.last_step) for t in study.trials])
        optuna.delete_study(study_name="s", storage=storage)
    assert len(numbers) == 1
    assert stops[1] == stops[2] != stops[0]


def test_running_trials_of_other_workers_are_compared(past: list[Task]) -> None:
    study = run(TransferPruner(past), n_trials=30)
    trials = [study.ask() for _ in range(6)]
    stopped = set()
    for step in range(N_STEPS):
        for trial in trials:
            if trial.number not in stopped:
                trial.report(0.1 * trial.number + 3.0 * np.exp(-0.3 * step), step)
                if trial.should_prune():
                    stopped.add(trial.number)
    assert trials[-1].number in stopped


def reported(study: optuna.Study, n_trials: int, *, prune: bool = True) -> int:
    """Run a study with two objectives; return the number of reports."""
    n = 0

    def objective(trial: optuna.Trial) -> Sequence[float]:
        nonlocal n
        x, y = trial.suggest_float("x", 0.0, 1.0), trial.suggest_float("y", 0.0, 1.0)
        for step in range(N_STEPS):
            n += 1
            slow = 3.0 * np.exp(-0.3 * step)
            if report_values(trial, [x + y + slow, 1.0 - x + y + slow], step) and prune:
                raise optuna.TrialPruned
        return x + y, 1.0 - x + y

    study.optimize(objective, n_trials=n_trials)
    return n


def two(pruner: optuna.pruners.BasePruner, seed: int) -> optuna.Study:
    sampler = optuna.samplers.RandomSampler(seed=seed)
    return optuna.create_study(directions=["minimize", "minimize"], sampler=sampler, pruner=pruner)


def test_several_objectives_are_pruned_and_the_front_stays() -> None:
    olds = [two(optuna.pruners.NopPruner(), seed) for seed in (1, 2)]
    for old in olds:
        reported(old, 60)
    whole, study = two(optuna.pruners.NopPruner(), 0), two(TransferPruner(olds), 0)
    n_whole, n = reported(whole, 40), reported(study, 40)
    assert n < 0.8 * n_whole
    kept = {t.number for t in study.best_trials}
    front = {t.number for t in whole.best_trials}
    assert len(front & kept) >= 0.7 * len(front)


def test_as_many_values_as_objectives_are_reported() -> None:
    trial = two(TransferPruner(), 0).ask()
    with pytest.raises(ValueError, match="2 objectives, but 1 values"):
        report_values(trial, [1.0], 0)


def test_steps_begin_at_zero() -> None:
    study = two(TransferPruner(), 0)
    trial = study.ask()
    with pytest.raises(ValueError, match="step must be 0 or more, but is -1"):
        report_values(trial, [1.0, 2.0], -1)
    assert report_values(trial, [1.0, 2.0], 0) is False
    assert Task.from_study(finished(study, trial)).curves.tolist() == [[0.0, 0.0, 1.0, 2.0]]


def test_what_was_reported_first_for_a_step_is_kept() -> None:
    study = two(TransferPruner(), 0)
    trial = study.ask()
    for values in ([1.0, 2.0], [3.0, 4.0]):
        report_values(trial, values, 5)
    assert Task.from_study(finished(study, trial)).curves.tolist() == [[0.0, 5.0, 1.0, 2.0]]


def finished(study: optuna.Study, trial: optuna.Trial) -> optuna.Study:
    trial.suggest_float("x", 0.0, 1.0)
    study.tell(trial, [1.0, 1.0])
    return study


def test_past_studies_with_another_number_of_objectives_are_left_out_with_a_warning(
    past: list[Task], pruned: optuna.Study, caplog: pytest.LogCaptureFixture
) -> None:
    other = two(optuna.pruners.NopPruner(), 1)
    reported(other, 5)
    study = run(TransferPruner([*past, other]))
    assert [t.state for t in study.trials] == [t.state for t in pruned.trials]
    (message,) = [m for m in caplog.messages if "pruning" in m]
    assert message.startswith("1 past studies with another number of objectives are not used")


def test_past_studies_that_all_fit_are_no_reason_for_a_warning(
    past: list[Task], caplog: pytest.LogCaptureFixture
) -> None:
    run(TransferPruner(past), n_trials=3)
    assert not [m for m in caplog.messages if "pruning" in m]


def test_one_objective_can_be_reported_in_the_same_way() -> None:
    study = optuna.create_study(pruner=TransferPruner())
    trial = study.ask()
    assert report_values(trial, [1.0], 3) is False
    assert study.trials[0].intermediate_values == {3: 1.0}


def test_a_pruner_of_one_objective_is_not_asked_where_there_are_two() -> None:
    class Strict(optuna.pruners.BasePruner):
        def prune(self, study: optuna.Study, trial: FrozenTrial) -> bool:
            return True

    trial = two(Strict(), 0).ask()
    assert report_values(trial, [1.0, 2.0], 0) is False


def test_wrong_settings_are_refused() -> None:
    with pytest.raises(ValueError, match="threshold must be between 0 and 1, but is 2"):
        TransferPruner(threshold=2)
    with pytest.raises(ValueError, match="n_startup_trials must be a whole number of 1 or more"):
        TransferPruner(n_startup_trials=0)


@pytest.mark.parametrize("seed", [1, 13, 51])
def test_a_decision_depends_on_what_is_stored_and_not_on_what_was_seen_before(seed: int) -> None:
    """Three trials run at a time and finish out of order; one pruner watches, others do not."""
    sampler = optuna.samplers.TPESampler(seed=seed)
    study = optuna.create_study(sampler=sampler, pruner=TransferPruner(threshold=1.0))
    rng, n_asked = np.random.default_rng(0), 0
    for _ in range(8):
        trials = [study.ask() for _ in range(3)]
        xs = [trial.suggest_float("x", -1.0, 1.0) for trial in trials]
        for i in rng.permutation(3).tolist():
            for step in range(15):
                trials[i].report(noise(xs[i], step), step)
            is_pruned = trials[i].should_prune()
            watched = study.trials[trials[i].number].user_attrs
            frozen = study.get_trials(deepcopy=False)[trials[i].number]
            assert TransferPruner(threshold=1.0).prune(study, frozen) == is_pruned
            assert study.trials[trials[i].number].user_attrs == watched
            n_asked += is_pruned
            state = TrialState.PRUNED if is_pruned else TrialState.COMPLETE
            for step in range(15, N_STEPS) if not is_pruned else ():
                trials[i].report(noise(xs[i], step), step)
            study.tell(trials[i], None if is_pruned else abs(xs[i]), state=state)
    assert n_asked > 5


@pytest.mark.parametrize("direction", [1, -1], ids=["stored in order", "stored in reverse"])
def test_a_trial_is_judged_whenever_it_has_come_a_share_of_its_length_further(
    direction: int,
) -> None:
    def reported(n: int, state: TrialState, level: float = 0.0) -> FrozenTrial:
        value = level if state == TrialState.COMPLETE else None
        curve = {step: level + 1.0 / (step + 1) for step in range(n)[::direction]}
        return create_trial(state=state, value=value, intermediate_values=curve)

    trials = [reported(100, TrialState.COMPLETE, float(i)) for i in range(9)]
    running = [reported(n, TrialState.RUNNING) for n in (1, 2, 3, 4, 7, 8, 9, 10)]
    for number, trial in enumerate([*trials, *running]):
        trial.number = number
    judge = Judge(Forecaster([]), [StudyDirection.MINIMIZE])
    judge.update(trials)
    # The columns are the shares 0.03, 0.038, 0.047, 0.059, 0.075, 0.094 ... of the length, of
    # which each report is a hundredth.
    found = [judge.verdict(trial, [*trials, trial]) is not None for trial in running]
    assert found == [False, False, True, True, False, True, False, True]


def test_at_the_last_step_and_beyond_it_a_trial_is_not_judged() -> None:
    def reported(n: int, state: TrialState, level: float = 0.0) -> FrozenTrial:
        value = level if state == TrialState.COMPLETE else None
        curve = {step: level + 1.0 / (step + 1) for step in range(n)}
        return create_trial(state=state, value=value, intermediate_values=curve)

    trials = [reported(6, TrialState.COMPLETE, float(i)) for i in range(9)]
    running = [reported(n, TrialState.RUNNING) for n in (4, 6, 7)]
    for number, trial in enumerate([*trials, *running]):
        trial.number = number
    judge = Judge(Forecaster([]), [StudyDirection.MINIMIZE])
    judge.update(trials)
    found = [judge.verdict(trial, [*trials, trial]) is not None for trial in running]
    assert found == [True, False, False]


def test_a_trial_that_was_stopped_has_no_end_and_no_values_beyond_its_last_report() -> None:
    states = [TrialState.COMPLETE] * 4 + [TrialState.PRUNED, TrialState.RUNNING]
    trials = []
    for i, (state, n) in enumerate(zip(states, (100, 100, 100, 100, 41, 65), strict=True)):
        value = float(i) if state == TrialState.COMPLETE else None
        curve = {step: i + 1.0 / (step + 1) for step in range(n)}
        trials.append(create_trial(state=state, value=value, intermediate_values=curve))
        trials[-1].number = i
    judge = Judge(Forecaster([]), [StudyDirection.MINIMIZE])
    judge.update(trials)
    verdict = judge.verdict(trials[-1], trials)
    assert verdict is not None
    before = verdict.frame.before
    assert np.isposinf(before.final).ravel().tolist() == [False] * 4 + [True]
    assert SHARES[before.reached[:4]].tolist() == [SHARES[-1]] * 4
    assert SHARES[before.reached[4]] == pytest.approx(0.4, rel=0.26)


def test_a_completed_trial_without_a_number_counts_like_one_that_failed() -> None:
    finals = []
    for last in (TrialState.COMPLETE, TrialState.FAIL):
        states = [TrialState.COMPLETE] * 4 + [last, TrialState.RUNNING]
        trials = []
        for i, (state, n) in enumerate(zip(states, (100, 100, 100, 100, 41, 65), strict=True)):
            value = float(i) if state == TrialState.COMPLETE else None
            curve = {step: i + 1.0 / (step + 1) for step in range(n)}
            trials.append(create_trial(state=state, value=value, intermediate_values=curve))
            trials[-1].number = i
        if last == TrialState.COMPLETE:  # as versions of Optuna stored it that did not check
            trials[4].values = [np.nan]
        judge = Judge(Forecaster([]), [StudyDirection.MINIMIZE])
        judge.update(trials)
        verdict = judge.verdict(trials[-1], trials)
        assert verdict is not None
        finals.append(verdict.frame.before.final.ravel())
        assert SHARES[verdict.frame.before.reached[4]] == pytest.approx(0.4, rel=0.26)
    np.testing.assert_array_equal(finals[0], finals[1])


def test_the_last_shares_are_distrusted_like_those_before_which_can_be_checked() -> None:
    judge = Judge(Forecaster([]), [StudyDirection.MINIMIZE])
    sums = np.zeros((3, len(SHARES)))
    sums[:, -AHEAD - 1] = 20.0, 3.0, 1.0  # squared error, expected variance, number of trials
    judge._checks[1] = judge._checks[2] = _Check(1, sums)
    # Five trials that were as expected stand beside the two that were not, then five that were as
    # much in error as all are.
    overall = (2 * 20.0 + 5 * 3.0) / (2 * 3.0 + 5 * 3.0)
    expected = (2 * 20.0 + 5 * 3.0 * overall) / (2 * 3.0 + 5 * 3.0)
    np.testing.assert_allclose(judge._distrust()[-AHEAD - 1 :], expected)
    np.testing.assert_allclose(judge._distrust()[: -AHEAD - 1], overall)


def test_a_share_at_which_nothing_was_checked_is_distrusted_as_all_are() -> None:
    judge = Judge(Forecaster([]), [StudyDirection.MINIMIZE])
    np.testing.assert_array_equal(judge._distrust(), 1.0)
    sums = np.zeros((3, len(SHARES)))
    sums[:, 0] = 20.0, 1.0, 1.0
    judge._checks[1] = _Check(1, sums)
    np.testing.assert_allclose(judge._distrust()[1:], (20.0 + 5.0) / (1.0 + 5.0))


def test_a_past_that_predicts_too_much_change_is_not_distrusted() -> None:
    judge = Judge(Forecaster([]), [StudyDirection.MINIMIZE])
    sums = np.zeros((3, len(SHARES)))
    sums[:, 0] = 0.1, 1.0, 1.0
    judge._checks[1] = _Check(1, sums)
    np.testing.assert_array_equal(judge._distrust(), 1.0)


def test_the_own_curves_of_a_study_are_judged_by_its_completed_trials(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    judged: list[list[bool]] = []

    def recorded(curves: Curves, is_judged: Mask) -> list[Positions]:
        judged.append(is_judged.tolist())
        return replayed(curves, is_judged)

    monkeypatch.setattr("metatpe.pruning.judge.replayed", recorded)
    is_complete = [True, False, True, True, False, True, True]
    trials = []
    for i, completes in enumerate(is_complete):
        curve = {step: i + 1.0 / (step + 1) for step in range(100 if completes else 40)}
        state = TrialState.COMPLETE if completes else TrialState.PRUNED
        value = float(i) if completes else None
        trials.append(create_trial(state=state, value=value, intermediate_values=curve))
        trials[-1].number = i
    Judge(Forecaster([]), [StudyDirection.MINIMIZE]).update(trials)
    assert judged == [is_complete]


def test_finished_trials_without_a_report_do_not_count() -> None:
    silent, trials = create_trial(value=-9.0), []
    for i in range(7):
        curve = {step: i + 1.0 / (step + 1) for step in range(100 if i < 6 else 41)}
        state, value = (TrialState.COMPLETE, float(i)) if i < 6 else (TrialState.RUNNING, None)
        trials.append(create_trial(state=state, value=value, intermediate_values=curve))
        trials[-1].number = i
    silent.number = 7
    verdicts = []
    for stored in (trials, [*trials, silent]):
        judge = Judge(Forecaster([]), [StudyDirection.MINIMIZE])
        judge.update(stored)
        verdicts.append(judge.verdict(trials[-1], stored))
    assert verdicts[0] is not None
    assert verdicts[1] is not None
    assert verdicts[0].ratio == verdicts[1].ratio
    assert verdicts[0].base == verdicts[1].base


def test_the_own_curves_are_read_again_after_a_fifth_more_trials() -> None:
    found = [_n_own(n) for n in range(19)]
    assert found == [0] * 5 + [5, 6, 6, 8, 8, 10, 10, 12, 12, 12, 15, 15, 15, 18]


def test_of_trials_that_are_equally_long_the_first_says_how_far_reports_are_apart() -> None:
    trials = []
    for number, steps in enumerate([range(0, 101, 10), range(0, 101, 5), range(0, 91, 2)]):
        curve = {step: 1.0 / (step + 1) for step in steps}
        state = TrialState.COMPLETE
        trials.append(create_trial(state=state, value=0.0, intermediate_values=curve))
        trials[-1].number = number
    for order in ([0, 1, 2], [2, 1, 0]):
        judge = Judge(Forecaster([]), [StudyDirection.MINIMIZE])
        for n in (1, 2, 3):
            judge.update([trials[i] for i in sorted(order[:n])])
        assert judge._length == (0, 100, 10.0)


@pytest.mark.parametrize(("distrust", "is_past"), [(1.41, True), (1.42, False)])
def test_what_is_expected_comes_from_whom_the_judge_trusts_more(
    distrust: float, is_past: bool
) -> None:
    curves = {i: {step: i + 1.0 / (step + 1) for step in range(100)} for i in range(6)}
    trials = []
    for i, curve in curves.items():
        trials.append(create_trial(value=float(i), intermediate_values=curve))
        trials[-1].number = i
    part = {step: curves[3][step] for step in range(41)}
    trials.append(create_trial(state=TrialState.RUNNING, intermediate_values=part))
    trials[-1].number = 6
    features = np.zeros((500, len(SHARES), N_FEATURES))
    past = Forecaster([Positions(features, np.full(500, -0.7), np.full(500, 0.05))])
    judge = Judge(past, [StudyDirection.MINIMIZE])
    judge.update(trials)
    sums = np.ones((3, len(SHARES)))
    sums[0] = (36.0 * distrust - 25.0) / 11.0  # beside five trials in advance
    judge._checks = {1: _Check(1, sums)}
    verdict = judge.verdict(trials[-1], trials)
    assert verdict is not None
    position = verdict.frame.position(
        row_of({k: [v] for k, v in part.items()}, Length(0, 99, 1.0))
    )
    column = int(np.argmin(np.abs(SHARES - verdict.share)))
    own, theirs = (
        each.forecast(position[column], column, verdict.base) for each in (judge._own, past)
    )
    assert verdict.forecast == (theirs if is_past else own)
    assert verdict.influence == pytest.approx(1.0 / distrust**2)
    mixed = verdict.influence * theirs.ratio + (1.0 - verdict.influence) * own.ratio
    assert verdict.ratio == pytest.approx(mixed)


@pytest.mark.parametrize(("n_reports", "n_checked"), [(100, 14), (41, 10), (5, 1)])
def test_the_past_is_checked_at_every_share_whose_later_rank_is_known(
    n_reports: int, n_checked: int
) -> None:
    whole = {step: [1.0 / (step + 1)] for step in range(100)}
    length = length_of([whole])
    assert length is not None
    levels = np.arange(4.0)[:, None]
    values = np.repeat(levels[:, None], len(SHARES), axis=1)
    before = Curves(values, values, levels + 1.0, levels, np.full(4, len(SHARES) - 1))
    row = row_of({step: [1.5] for step in range(n_reports)}, length)
    if n_reports == 100:
        row = completed({step: [1.5] for step in range(n_reports)}, [1.5], length)
    features = np.zeros((500, len(SHARES), N_FEATURES))
    features[:250, :, 0] = 0.2
    past = Forecaster([Positions(features, np.zeros(500), np.full(500, 0.05))])
    sums = Judge(past, [StudyDirection.MINIMIZE])._check_past(before, row)
    is_checked = ~np.isnan(row.values[:, 0]) & (np.arange(len(SHARES)) <= row.reached - AHEAD)
    np.testing.assert_array_equal(sums[2], is_checked)
    assert is_checked.sum() == n_checked
    frame = frame_of(before, row.first)
    assert frame is not None
    position = frame.position(row)
    for g in np.flatnonzero(is_checked).tolist():
        mean, variance = past.next_rank(position[g], g) or (np.nan, np.nan)
        assert sums[:2, g].tolist() == [(position[g + AHEAD, 0] - mean) ** 2, variance]
