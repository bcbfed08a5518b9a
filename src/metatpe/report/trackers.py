"""Callbacks that log trials to experiment trackers, with where each came from.

Both log the same for each trial: its parameters, its values under the names of the objectives, and
of its record (`TransferRecord`) the origin, the reason, and the weight of each past study. MLflow
gets a run per trial, which `Task.from_mlflow` reads again; Weights & Biases a step per trial of
one run.
"""

from __future__ import annotations

import re
import time
from typing import Any

from optuna.study import Study
from optuna.trial import FrozenTrial

from metatpe.extras import require
from metatpe.study.record import TransferRecord, flat_record, record_of
from metatpe.viz.runs import plain_names

_PREFIX = "metatpe"
_MAX_NAME = 250  # characters, of parameters and metrics of MLflow


class WandbCallback:
    """Logs each trial to Weights & Biases as one step of a run (extra `wandb`).

    A step has the parameters, the values of the objectives, the state, `metatpe/origin`,
    `metatpe/reason`, and `metatpe/weight/NAME` of each past study, so that the weights over the
    trials can be drawn there. Works offline (`mode="offline"`) too.

    Args:
        run: The run to log to; by default the one that is open, or a new one.
        **settings: What `wandb.init` takes where a run is begun: `project`, `mode`, ...

    Example:
        >>> callback = WandbCallback(project="new")  # mode="offline" needs no account
        >>> study.optimize(objective, n_trials=30, callbacks=[callback])  # doctest: +SKIP
    """

    def __init__(self, run: Any = None, **settings: Any) -> None:
        if run is None:  # not after the first trial, which may take hours
            require("WandbCallback", "wandb", "wandb")
        self._run = run
        self._settings = settings

    def __call__(self, study: Study, trial: FrozenTrial) -> None:
        """Log a trial."""
        self._opened(study).log({**_logged(study, trial), "trial": trial.number})

    def _opened(self, study: Study) -> Any:
        """Return the run, which is begun with the first trial."""
        if self._run is None:
            import wandb

            settings = {"name": study.study_name, **self._settings}
            self._run = wandb.run or wandb.init(**settings)
            directions = [direction.name.lower() for direction in study.directions]
            self._run.config.update({"study": study.study_name, "directions": directions})
        return self._run


class MLflowCallback:
    """Logs each trial to MLflow as a run of the experiment with the study's name (extra `mlflow`).

    A run has the parameters, the values of the objectives as metrics, and as tags the number and
    state of the trial, `metatpe.origin`, `metatpe.reason`, `metatpe.sampler`, `metatpe.kept` and
    `metatpe.sources`. The weights of past studies are metrics, `metatpe/weight/NAME`.
    `Task.from_mlflow` reads the experiment as a past study.

    Args:
        tracking_uri: Where the runs are stored; by default where MLflow is set to.
        experiment: The name of the experiment, by default that of the study.

    Example:
        >>> callback = MLflowCallback(experiment="resnet")
        >>> study.optimize(objective, n_trials=30, callbacks=[callback])  # doctest: +SKIP
    """

    def __init__(self, tracking_uri: str | None = None, experiment: str | None = None) -> None:
        require("MLflowCallback", "mlflow", "mlflow")
        self._tracking_uri = tracking_uri
        self._experiment = experiment

    def __call__(self, study: Study, trial: FrozenTrial) -> None:
        """Log a trial."""
        from mlflow import MlflowClient, entities

        client = MlflowClient(tracking_uri=self._tracking_uri)
        name = self._experiment or study.study_name
        found = client.get_experiment_by_name(name)
        experiment = found.experiment_id if found else client.create_experiment(name)
        run = client.create_run(experiment, run_name=f"trial {trial.number}").info.run_id
        record, now = record_of(trial), round(1000 * time.time())
        metrics = {**_values(study, trial), **_weights(record)}
        tags = {"trial": trial.number, "state": trial.state.name, **_origin(record, ".")}
        client.log_batch(
            run,
            metrics=[entities.Metric(_safe(n), v, now, 0) for n, v in metrics.items()],
            params=[entities.Param(_safe(n), str(v)) for n, v in trial.params.items()],
            tags=[entities.RunTag(n, str(v)) for n, v in tags.items()],
        )
        client.set_terminated(run, "FINISHED" if trial.values else "FAILED")


def _logged(study: Study, trial: FrozenTrial) -> dict[str, Any]:
    """Return all that is known of a trial."""
    record = record_of(trial)
    known = {**trial.params, **_values(study, trial), "state": trial.state.name}
    return {**known, **_origin(record, "/"), **_weights(record)}


def _values(study: Study, trial: FrozenTrial) -> dict[str, float]:
    """Return the values by the names of the objectives; none of a trial that was not finished."""
    if not trial.values:
        return {}
    names = study.metric_names or plain_names(len(trial.values))
    return dict(zip(names, trial.values, strict=True))


def _origin(record: TransferRecord | None, between: str) -> dict[str, str]:
    """Return where a trial came from; nothing where that was not recorded."""
    if record is None:
        return {}
    flat = {name: text for name, text in flat_record(record).items() if name != "number" and text}
    return {f"{_PREFIX}{between}{name}": text for name, text in flat.items()}


def _weights(record: TransferRecord | None) -> dict[str, float]:
    weights = record.weights if record else {}
    return {f"{_PREFIX}/weight/{name}": weight for name, weight in weights.items()}


def _safe(name: str) -> str:
    """Return a name that MLflow takes: letters, digits and _-. :/."""
    return re.sub(r"[^\w\-. :/]", "_", name)[:_MAX_NAME]
