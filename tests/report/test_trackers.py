"""Trials in experiment trackers: the real packages, a local MLflow store, wandb offline."""

import json
import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import optuna
import pytest
from optuna.study import Study
from studies import SPACE, new_study, past_study, two_losses

from metatpe import (
    MetaTPESampler,
    MLflowCallback,
    Task,
    TransferCallback,
    WandbCallback,
    transfer_history,
)
from metatpe.extras import install_command

os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"  # read when it is imported
os.environ["WANDB_SILENT"] = "true"
pytestmark = pytest.mark.filterwarnings("ignore:The ``noload`` loader")  # MLflow's own
N = 7


def optimized(callback: Any) -> Study:
    """Return a study of which a callback was told; its last trial has failed."""
    study = new_study(MetaTPESampler([past_study(name="past: a/b")], seed=0), name="new")
    study.set_metric_names(["error", "cost"])

    def objective(trial: optuna.Trial) -> list[float]:
        params = {
            "x": trial.suggest_float("x", 0, 1),
            "lr": trial.suggest_float("lr", 1e-4, 1, log=True),
            "depth": trial.suggest_int("depth", 1, 8),
            "kind": trial.suggest_categorical("kind", ["a", "b", "c"]),
        }
        if trial.number == N - 1:
            raise RuntimeError
        return two_losses(params)

    study.optimize(objective, n_trials=N, callbacks=[callback], catch=RuntimeError)
    return study


# MLflow


@pytest.fixture(scope="module")
def tracked(tmp_path_factory: pytest.TempPathFactory) -> tuple[Study, Any, str]:
    """A study, the runs of its experiment by the number of the trial, and the store."""
    mlflow = pytest.importorskip("mlflow", reason="the extra `mlflow` is not installed")
    uri = f"sqlite:///{tmp_path_factory.mktemp('mlflow') / 'mlflow.db'}"
    study = optimized(MLflowCallback(tracking_uri=uri))
    client = mlflow.MlflowClient(tracking_uri=uri)
    runs = client.search_runs([client.get_experiment_by_name("new").experiment_id])
    return study, {int(run.data.tags["trial"]): run for run in runs}, uri


def test_mlflow_has_a_run_per_trial_with_its_values(tracked: tuple[Study, Any, str]) -> None:
    study, runs, _ = tracked
    assert sorted(runs) == list(range(N))
    for trial in study.trials[:-1]:
        run = runs[trial.number]
        assert run.info.status == "FINISHED"
        assert run.data.params == {name: str(value) for name, value in trial.params.items()}
        assert [run.data.metrics["error"], run.data.metrics["cost"]] == trial.values
    assert runs[N - 1].info.status == "FAILED"
    assert runs[N - 1].data.tags["state"] == "FAIL"


def test_mlflow_has_where_a_trial_came_from(tracked: tuple[Study, Any, str]) -> None:
    study, runs, _ = tracked
    for record in transfer_history(study):
        data = runs[record.number].data
        assert data.tags["metatpe.origin"] == record.origin
        assert data.tags["metatpe.reason"] == record.reason
        assert data.tags["metatpe.sampler"] == "MetaTPESampler"
        weights = {f"metatpe/weight/{name}": w for name, w in record.weights.items()}
        found = {n: v for n, v in data.metrics.items() if n.startswith("metatpe/")}
        assert found == pytest.approx(weights)
    assert any(r.weights for r in transfer_history(study))
    assert runs[0].data.tags["metatpe.sources"] == "past: a/b"


def test_what_mlflow_has_is_a_past_study_again(tracked: tuple[Study, Any, str]) -> None:
    study, _, uri = tracked
    task = Task.from_mlflow("new", objectives=["error", "cost"], params=SPACE, tracking_uri=uri)
    done = study.trials[:-1]
    assert task.losses.tolist() == [trial.values for trial in done]
    assert task.configurations(range(len(done))) == [trial.params for trial in done]


def test_names_that_mlflow_does_not_take_are_changed(tracked: tuple[Study, Any, str]) -> None:
    mlflow, uri = pytest.importorskip("mlflow"), tracked[2]
    study = optuna.create_study(study_name="odd")
    callback = MLflowCallback(tracking_uri=uri, experiment="mine")
    study.optimize(lambda trial: trial.suggest_float("a|b (%)", 0, 1), 1, callbacks=[callback])
    client = mlflow.MlflowClient(tracking_uri=uri)
    (run,) = client.search_runs([client.get_experiment_by_name("mine").experiment_id])
    assert run.data.params == {"a_b ___": str(study.best_params["a|b (%)"])}


# Weights & Biases


def test_wandb_has_a_step_per_trial_with_where_it_came_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wandb = pytest.importorskip("wandb", reason="the extra `wandb` is not installed")
    monkeypatch.chdir(tmp_path)
    study = optimized(WandbCallback(mode="offline", project="test", dir=str(tmp_path)))
    wandb.teardown()  # ends the run, and waits until its file is written
    (path,) = tmp_path.glob("wandb/offline-run-*/run-*.wandb")
    steps = {step["trial"]: step for step in steps_of(path)}
    assert sorted(steps) == list(range(N))
    for trial in study.trials[:-1]:
        assert [steps[trial.number][name] for name in ("error", "cost")] == trial.values
        assert {n: steps[trial.number][n] for n in trial.params} == trial.params
    assert steps[N - 1]["state"] == "FAIL"
    for record in transfer_history(study):
        step = steps[record.number]
        assert (step["metatpe/origin"], step["metatpe/reason"]) == (record.origin, record.reason)
        for name, weight in record.weights.items():
            assert step[f"metatpe/weight/{name}"] == pytest.approx(weight)


def steps_of(path: Path) -> list[dict[str, Any]]:
    """Return what an offline run has logged."""
    from wandb.proto import wandb_internal_pb2

    steps = []
    for data in chunks_of(path.read_bytes()):
        record = wandb_internal_pb2.Record()
        record.ParseFromString(data)
        if record.WhichOneof("record_type") == "history":
            items = record.history.item
            names = [item.key or "/".join(item.nested_key) for item in items]
            values = [json.loads(item.value_json) for item in items]
            steps.append(dict(zip(names, values, strict=True)))
    return steps


def chunks_of(content: bytes) -> Iterator[bytes]:
    """Yield the records of a file of wandb: LevelDB's log, after seven bytes of its own."""
    at, parts = 7, b""
    while at + 7 <= len(content):
        if 32768 - at % 32768 < 7:  # the rest of a block that is too short for a header
            at += 32768 - at % 32768
            continue
        _, size, kind = struct.unpack("<IHB", content[at : at + 7])
        parts += content[at + 7 : at + 7 + size]
        at += 7 + size
        if kind in (1, 4):  # whole, or the last part
            yield parts
            parts = b""


@pytest.mark.parametrize(
    ("make", "extra"),
    [(WandbCallback, "wandb"), (MLflowCallback, "mlflow"), (TransferCallback, "viz")],
)
def test_a_missing_package_is_named_before_the_first_trial(
    make: Any, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("metatpe.extras.find_spec", lambda _: None)
    with pytest.raises(ImportError) as error:
        make()
    assert str(error.value) == f"{make.__name__} needs: {install_command(extra)}"
