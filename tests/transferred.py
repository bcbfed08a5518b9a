"""Studies with records of a transfer, for the tests of reports and of the dashboard."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution
from optuna.storages import BaseStorage
from optuna.study import Study
from optuna.trial import Trial, create_trial
from studies import SPACE, TWO, evaluate, new_study, past_study, random_sampler, two_losses

from metatpe import MetaTPESampler
from metatpe.study.access import storage_of, study_id

# What must be shown as it is: HTML, script, Markdown, plotly's own markup, quotes, alphabets.
ODD = (
    "<img src=x onerror=\"window.hacked='yes'\"></script><b>*_fett_*</b> `x` |$y$| 'ü' 日本 😀 "
    "&amp;"
)
ODD_SPACE: dict[str, BaseDistribution] = {
    ODD: FloatDistribution(0.0, 1.0),
    "kind": CategoricalDistribution((ODD, "plain")),
}


def transferred(n: int = 20, *, storage: str | BaseStorage | None = None) -> tuple[Study, Study]:
    """Return a study that was tuned with the past, and its past."""
    past = past_study(n=30, name="past", storage=storage)
    study = new_study(MetaTPESampler([past], seed=0), storage=storage, name="new")
    study.set_metric_names(["error", "cost"])
    evaluate(study, n)
    return study, past


def odd_study(storage: str | BaseStorage | None = None) -> tuple[Study, Study]:
    """Return the same with names and values that look like HTML and script."""
    past = past_study(n=8, name=f"past {ODD}", space=ODD_SPACE, storage=storage)
    study = new_study(MetaTPESampler([past], seed=0), storage=storage, name=ODD)
    study.set_metric_names([ODD, "cost"])
    study.set_user_attr(ODD, ODD)
    for _ in range(9):
        trial = study.ask(ODD_SPACE)
        trial.set_user_attr(ODD, ODD)
        study.tell(trial, two_losses(trial.params))
    return study, past


def large_study(n_trials: int, n_past: int, rng: np.random.Generator) -> tuple[Study, list[Study]]:
    """Return a study of many trials with made-up records, and its past."""
    past = [past_study(n=20, seed=m, name=f"past study {m}") for m in range(n_past)]
    study = new_study(random_sampler(0), name="large")
    scratch = evaluate(new_study(random_sampler(1)), n_trials)
    for number, params in enumerate(scratch):
        weights = rng.dirichlet(np.ones(n_past + 1))
        names = ["target", *(task.study_name for task in past)]
        record = weighed(dict(zip(names, weights.tolist(), strict=True)))
        values = rng.random(2) + np.array([1.0, 1000.0 / (number + 1)])
        study.add_trial(done(params, values.tolist(), record))
    return study, past


def weighed(weights: Mapping[str, float], reason: str = "weighed") -> dict[str, Any]:
    """Return the record of a trial that was chosen with these weights, or for another reason."""
    return {
        "sampler": "MetaTPESampler",
        "origin": "acquisition",
        "reason": reason,
        "weights": dict(weights),
        "kept": [] if reason == "silent" else ["x"],
    }


def start_of(*sources: str) -> dict[str, Any]:
    """Return the record of a warm start of these past studies."""
    return {
        "sampler": "MetaTPESampler",
        "origin": "warm_start",
        "reason": "best",
        "weights": {},
        "kept": [],
        "sources": list(sources),
    }


# Records of a study from before there were reasons, samplers and sources.
OLD_RECORDS: list[dict[str, Any]] = [
    {"origin": "warm_start", "weights": {}, "kept": []},
    {"origin": "random", "weights": {}, "kept": []},
    {"origin": "acquisition", "weights": {"target": 0.6, "past": 0.4}, "kept": ["x"]},
    {
        "origin": "acquisition",
        "weights": {"target": 0.6, "past": 0.4},
        "kept": ["x"],
        "turn": "own",
    },
]
OLD_TURN: dict[str, Any] = {
    "origin": "acquisition",
    "weights": {"target": 0.6, "past": 0.4},
    "kept": ["x"],
    "turn": "past",
}


def done(
    params: dict[str, Any], values: Sequence[float], record: Mapping[str, Any] | None = None
) -> optuna.trial.FrozenTrial:
    """Return a finished trial with a record."""
    return create_trial(
        params=params,
        distributions={name: SPACE[name] for name in params},
        values=list(values),
        user_attrs={} if record is None else {"metatpe": dict(record)},
    )


def recorded_study(
    *records: Mapping[str, Any] | None,
    directions: Sequence[str] = TWO,
    storage: str | BaseStorage | None = None,
    name: str | None = None,
) -> Study:
    """Return a study whose trials have these records, one trial each."""
    study = new_study(random_sampler(0), directions, storage=storage, name=name)
    for i, record in enumerate(records):
        values = [float(i), float(-i)][: len(directions)]
        study.add_trial(done({"x": 0.1 * (i % 10)}, values, record))
    return study


def weighed_study(*weights: Mapping[str, float], directions: Sequence[str] = TWO) -> Study:
    """Return a study whose trials were chosen with these weights, one trial each."""
    return recorded_study(*map(weighed, weights), directions=directions)


def objective(trial: Trial) -> list[float]:
    """Return two losses of two parameters."""
    return two_losses({"x": trial.suggest_float("x", 0, 1), "y": trial.suggest_float("y", 0, 1)})


GRAPHS = {"metatpe-progress", "metatpe-weights", "metatpe-importances"}


def system_attributes_of(study: Study) -> dict[str, Any]:
    """Return what is stored with a study beside its trials."""
    return storage_of(study).get_study_system_attrs(study_id(study))


def saved_figures(study: Study) -> dict[str, Any]:
    """Return the figures that the dashboard reads out of a study."""
    from optuna_dashboard._custom_plot_data import get_plotly_graph_objects

    found = get_plotly_graph_objects(system_attributes_of(study))
    return {name: json.loads(text) for name, text in found.items()}
