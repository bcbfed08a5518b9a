"""Tasks out of a real local MLflow store."""

import os
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from metatpe import Task
from metatpe.past.read.mlflow import _finished_runs

os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"  # read when it is imported
mlflow = pytest.importorskip("mlflow", reason="the extra `mlflow` is not installed")

pytestmark = pytest.mark.filterwarnings("ignore:The ``noload`` loader")  # MLflow's own

RUNS = [  # parameters, metrics, status
    ({"lr": 0.1, "depth": 2, "act": "relu"}, {"loss": 3.0, "acc": 0.5}, "FINISHED"),
    ({"lr": 0.001, "depth": 4, "act": "it's ünusual"}, {"loss": 1.0, "acc": 0.7}, "FINISHED"),
    ({"lr": 0.00001, "depth": 8}, {"loss": 2.0, "acc": 0.9}, "FINISHED"),
    ({"lr": 0.5, "depth": 8}, {"loss": 2.0}, "FINISHED"),
    ({"lr": 7.0, "depth": 9}, {"loss": 0.1, "acc": 1.0}, "FAILED"),
    ({"lr": 7.0, "depth": 9}, {"loss": 0.1, "acc": 1.0}, "RUNNING"),
]


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> str:
    found = f"sqlite:///{tmp_path_factory.mktemp('mlflow') / 'mlflow.db'}"
    client = mlflow.MlflowClient(tracking_uri=found)
    client.create_experiment("nothing yet")
    experiment = client.create_experiment("resnet's größe")
    for params, metrics, status in RUNS:
        run = client.create_run(experiment).info.run_id
        for name, value in params.items():
            client.log_param(run, name, value)
        for name, metric in metrics.items():
            client.log_metric(run, name, 9.0, step=0)
            client.log_metric(run, name, metric, step=1)
        if status != "RUNNING":
            client.set_terminated(run, status)
    return found


def test_the_finished_runs_of_an_experiment_become_a_task(
    uri: str, caplog: pytest.LogCaptureFixture
) -> None:
    task = Task.from_mlflow(
        "resnet's größe",
        objectives=["loss", "acc"],
        directions=["minimize", "maximize"],
        tracking_uri=uri,
    )
    assert task.name == "resnet's größe"
    assert task.losses.tolist() == [[3.0, -0.5], [1.0, -0.7], [2.0, -0.9]]
    assert task.space.distributions == {
        "act": CategoricalDistribution(("it's ünusual", "relu")),
        "depth": IntDistribution(2, 8),
        "lr": FloatDistribution(1e-5, 0.1, log=True),
    }
    assert task.configurations([1, 2]) == [
        {"act": "it's ünusual", "depth": 4, "lr": 0.001},
        {"depth": 8, "lr": 1e-5},
    ]
    assert "1 of 4 rows have no result" in caplog.text


class Page(list[Any]):
    """Some of the runs, the newest first, and where the next ones are."""

    def __init__(self, runs: Iterable[int], token: str | None) -> None:
        info = SimpleNamespace(status="FINISHED")
        super().__init__(SimpleNamespace(info=info, data=i) for i in runs)
        self.token = token


def test_runs_on_several_pages_are_all_read_the_oldest_first() -> None:
    pages = {None: Page((5, 4), "a"), "a": Page((3,), "b"), "b": Page((2, 1), None)}
    client = SimpleNamespace(
        get_experiment_by_name=lambda name: SimpleNamespace(experiment_id="7"),
        search_runs=lambda ids, page_token=None: pages[page_token],
    )
    assert _finished_runs(client, "resnet") == [1, 2, 3, 4, 5]


def test_what_is_known_can_be_given(uri: str) -> None:
    lr = FloatDistribution(1e-6, 1.0, log=True)
    task = Task.from_mlflow(
        "resnet's größe", objectives="loss", params={"lr": lr}, tracking_uri=uri, name="old"
    )
    assert (task.name, len(task), task.space.distributions) == ("old", 4, {"lr": lr})


@pytest.mark.parametrize(
    ("experiment", "objective", "message"),
    [
        ("resnet", "loss", r"MLflow has no experiment 'resnet'; it has \['Default', 'noth"),
        ("nothing yet", "loss", "'nothing yet' has no finished run, and 0 others"),
        ("resnet's größe", "los", "has no column 'los'"),
    ],
)
def test_what_is_not_there_is_said(
    uri: str, experiment: str, objective: str, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        Task.from_mlflow(experiment, objectives=objective, tracking_uri=uri)


def test_of_many_experiments_the_first_ten_are_named(uri: str) -> None:
    known = [SimpleNamespace(name=f"e{i:02}") for i in reversed(range(12))]
    with (
        patch.object(mlflow.MlflowClient, "get_experiment_by_name", return_value=None),
        patch.object(mlflow.MlflowClient, "search_experiments", return_value=known),
        pytest.raises(ValueError, match=r"it has \['e00', .*, 'e09'\]\.$"),
    ):
        Task.from_mlflow("x", objectives="loss", tracking_uri=uri)


def test_a_store_that_cannot_be_used_is_said(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"MLflow: .*"):
        Task.from_mlflow("x", objectives="loss", tracking_uri="what://ever")
