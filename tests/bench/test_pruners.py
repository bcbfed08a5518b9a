from dataclasses import replace
from pathlib import Path

import numpy as np
import optuna
import pytest

from metatpe import PruningRecord, pruning_history
from metatpe.bench import pruners, run
from metatpe.bench.families import ellipsoid
from metatpe.bench.plan import Run, plan
from metatpe.bench.pruners import compare, make_pruner, pruner_names
from metatpe.bench.records import Evaluation, Record


def test_every_pruner_can_be_made() -> None:
    for name in pruner_names():
        make_pruner(name, [])
    with pytest.raises(ValueError, match="unknown pruner 'medain'; did you mean 'median'"):
        make_pruner("medain", [])


def test_a_run_without_a_pruner_keeps_its_key() -> None:
    assert "pruner" not in Run("ellipsoid4", "random", 0).to_json()
    assert Run("ellipsoid4", "random", 0, pruner="none").key != Run("ellipsoid4", "random", 0).key


def test_a_pruner_looks_at_the_past_even_where_the_method_does_not() -> None:
    assert not plan(["ellipsoid4"], ["random"], [0], past=["ellipsoid4-c2"])[0].past
    runs = plan(["ellipsoid4"], ["random"], [0], past=["ellipsoid4-c2"], pruners=["transfer"])
    assert runs[0].past


@pytest.fixture
def problem(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the ellipsoid a curve of ten steps down to its value."""
    own = ellipsoid.load("ellipsoid4")

    def curve(params: dict[str, float]) -> np.ndarray:
        return own.function(params, 0)[0] + np.linspace(50.0, 0.0, 10)

    with_curve = replace(own, curve=curve)
    for module in (run, pruners):
        monkeypatch.setattr(module, "get_problem", lambda name: with_curve)


@pytest.mark.usefixtures("problem")
def test_pruned_evaluations_have_their_epochs_and_the_worst_value() -> None:
    records = [
        run.execute(Run("ellipsoid4", "random", 0, 20, pruner=name)) for name in ("none", "median")
    ]
    whole, pruned = records
    assert [e.epochs for e in whole.evaluations] == [10] * 20
    stopped = [e for e in pruned.evaluations if e.epochs is not None and e.epochs < 10]
    assert stopped
    assert {e.values for e in stopped} == {tuple(ellipsoid.load("ellipsoid4").worst.tolist())}
    assert Record.from_json(pruned.to_json()) == pruned
    by_name = {entry.pruner: entry for entry in compare(records)}
    assert (by_name["none"].epochs, by_name["none"].regret, by_name["none"].lost) == (1.0, 0, 0)
    assert by_name["median"].epochs < 0.8
    assert by_name["median"].regret == 0.0  # the order is the same at every step


def test_without_a_run_without_pruning_there_is_nothing_to_compare_with() -> None:
    record = Record(Run("ellipsoid4", "random", 0, pruner="median"))
    with pytest.raises(ValueError, match="run `--pruner none` as well"):
        compare([record])


def test_records_without_curves_stay_as_they_were(tmp_path: Path) -> None:
    evaluation = Evaluation({}, (1.0,), "sampler", {}, 0.0)
    record = Record(Run("ellipsoid4", "random", 0), ("minimize",), (evaluation,))
    assert "epochs" not in record.to_json()["evaluations"][0]


def test_a_forgetful_pruner_stops_the_same_trials_and_writes_down_less() -> None:
    def stopped(name: str) -> list[PruningRecord]:
        study = optuna.create_study(
            sampler=optuna.samplers.RandomSampler(seed=0), pruner=make_pruner(name, [])
        )

        def objective(trial: optuna.Trial) -> float:
            x = trial.suggest_float("x", 0, 1)
            for step in range(20):
                trial.report(x + 0.7**step, step)
                if trial.should_prune():
                    raise optuna.TrialPruned
            return x

        study.optimize(objective, n_trials=20)
        return pruning_history(study)

    whole, sure, silent = map(stopped, ("transfer", "transfer-sure", "transfer-silent"))
    assert whole
    assert [replace(record, deviation=None) for record in whole] == sure
    assert [replace(record, expected=None) for record in sure] == silent
