"""The finished runs of an MLflow experiment as a table. Needs the extra `mlflow`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from metatpe.extras import install_command
from metatpe.past.read.frames import Column, columns_of


def read_experiment(
    experiment: str, metrics: Sequence[str], tracking_uri: str | None
) -> dict[str, Column]:
    """Return one column a parameter that was logged, and one a metric.

    Raises:
        ImportError: The extra is not installed.
        ValueError: MLflow does not answer, or there is no such experiment, or no finished run.
    """
    try:
        from mlflow import MlflowClient
        from mlflow.exceptions import MlflowException
    except ImportError:
        raise ImportError(f"Task.from_mlflow needs: {install_command('mlflow')}") from None
    try:
        runs = _finished_runs(MlflowClient(tracking_uri=tracking_uri), experiment)
    except MlflowException as error:
        raise ValueError(f"MLflow: {str(error).splitlines()[0]}") from None
    return _columns(runs, metrics, experiment)


def _finished_runs(client: Any, experiment: str) -> list[Any]:
    """Return the data of the runs that came to their end, the oldest first."""
    found = client.get_experiment_by_name(experiment)
    if found is None:
        known = sorted(e.name for e in client.search_experiments())[:10]
        raise ValueError(f"MLflow has no experiment {experiment!r}; it has {known}.")
    runs: list[Any] = []
    page = client.search_runs([found.experiment_id])
    while page.token:
        runs += page
        page = client.search_runs([found.experiment_id], page_token=page.token)
    runs += page
    finished = [run.data for run in reversed(runs) if run.info.status == "FINISHED"]
    if not finished:
        raise ValueError(
            f"the MLflow experiment {experiment!r} has no finished run, and {len(runs)} others."
        )
    return finished


def _columns(runs: Sequence[Any], metrics: Sequence[str], source: str) -> dict[str, Column]:
    logged = {name: None for run in runs for name in run.metrics}
    wanted = [name for name in metrics if name in logged]  # what is missing is said later
    params = {name: None for run in runs for name in run.params if name not in wanted}
    table: Mapping[str, list[Any]] = {
        **{name: [run.params.get(name) for run in runs] for name in sorted(params)},
        **{name: [run.metrics.get(name) for run in runs] for name in wanted},
    }
    return columns_of(table, source)
