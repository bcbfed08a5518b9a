from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest
from optuna.pruners import (
    HyperbandPruner,
    MedianPruner,
    PercentilePruner,
    SuccessiveHalvingPruner,
)

from metatpe import PruningRecord, TransferPruner, pruning_history
from metatpe.bench import pruners, run
from metatpe.bench.families import ellipsoid
from metatpe.bench.plan import Run, plan
from metatpe.bench.pruners import check_pruner, compare, make_pruner, pruner_names
from metatpe.bench.records import Evaluation, Record


def test_every_pruner_can_be_made() -> None:
    for name in pruner_names():
        make_pruner(name if name != "percentile" else "percentile-25", [])
    for unknown in ("medain", "medain-10", "-10", "median-", "median-x"):
        with pytest.raises(ValueError, match="unknown pruner"):
            make_pruner(unknown, [])
    with pytest.raises(ValueError, match="unknown pruner 'medain'; did you mean 'median'"):
        make_pruner("medain", [])


def test_numbers_after_a_name_are_the_settings_of_the_pruner() -> None:
    def settings(name: str) -> dict[str, Any]:
        return vars(make_pruner(name, []))

    assert settings("transfer-75")["_threshold"] == 0.75
    assert settings("transfer")["_threshold"] == TransferPruner()._threshold
    assert settings("median-10") == vars(MedianPruner(n_warmup_steps=10))
    assert settings("percentile-25-10") == vars(PercentilePruner(25, n_warmup_steps=10))
    assert settings("halving") == vars(SuccessiveHalvingPruner())
    own = SuccessiveHalvingPruner(min_resource=4, reduction_factor=3)
    assert settings("halving-4-3") == vars(own)
    hyperband, own_hyperband = make_pruner("hyperband-4-5", []), HyperbandPruner(4, "auto", 5)
    assert vars(hyperband) == vars(own_hyperband)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("median-10-3", "'median-10-3' has 2 numbers, but 'median' takes warm_up"),
        ("percentile", "'percentile' has 0 numbers, but 'percentile' takes percent and warm_up"),
        ("none-1", "'none-1' has 1 number, but 'none' takes none"),
        ("transfer-200", "threshold must be between 0 and 1"),
    ],
)
def test_settings_that_a_pruner_does_not_have_are_refused(name: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_pruner(name)


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
