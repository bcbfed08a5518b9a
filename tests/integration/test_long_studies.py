"""Studies of thousands of trials: what is read of them, and what is remembered."""

import datetime
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import optuna
import pytest
import sqlalchemy
from optuna.distributions import FloatDistribution, distribution_to_json
from optuna.storages._rdb import models
from optuna.trial import FrozenTrial
from sqlalchemy import event
from studies import postgresql

from metatpe import MetaTPESampler, Space, Task

SPACE = {name: FloatDistribution(0.0, 1.0) for name in "ab"}


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp(request.param)
    if request.param == "sqlite":
        yield f"sqlite:///{folder / 'studies.db'}"
    else:
        with postgresql(folder) as address:
            yield address


def past_task() -> Task:
    X = np.random.default_rng(0).random((50, 2))
    return Task("past", Space(SPACE), X, ((X - 0.3) ** 2).sum(axis=1, keepdims=True))


def add_finished(url: str, study: optuna.Study, n: int) -> None:
    """Write n finished trials into the tables, thousands in a second."""
    now, X = datetime.datetime.now(), np.random.default_rng(1).random((n, 2))
    trials = [
        {
            "trial_id": i,
            "number": i - 1,
            "study_id": study._study_id,
            "state": "COMPLETE",
            "datetime_start": now,
            "datetime_complete": now,
        }
        for i in range(1, n + 1)
    ]
    params = [
        {
            "trial_id": i,
            "param_name": name,
            "param_value": float(x),
            "distribution_json": distribution_to_json(SPACE[name]),
        }
        for i, row in enumerate(X, start=1)
        for name, x in zip(SPACE, row, strict=True)
    ]
    values = [
        {"trial_id": i, "objective": 0, "value": float(y), "value_type": "FINITE"}
        for i, y in enumerate(((X - 0.3) ** 2).sum(axis=1), start=1)
    ]
    rows = [
        (models.TrialModel, trials),
        (models.TrialParamModel, params),
        (models.TrialValueModel, values),
    ]
    engine = sqlalchemy.create_engine(url)
    with engine.begin() as connection:
        for model, entries in rows:
            connection.execute(sqlalchemy.insert(model), entries)
        if engine.dialect.name == "postgresql":  # the next number follows the last one
            connection.execute(sqlalchemy.text(f"SELECT setval('trials_trial_id_seq', {n}), 1"))
    engine.dispose()


@pytest.mark.parametrize("n", [500, pytest.param(30_000, marks=pytest.mark.slow)])
def test_of_a_long_study_only_new_trials_are_read(url: str, n: int) -> None:
    study = optuna.create_study(storage=url, study_name="long")
    add_finished(url, study, n)
    study = optuna.load_study(
        storage=url, study_name="long", sampler=MetaTPESampler([past_task()])
    )
    read: list[Any] = []
    counts = []

    def count(*args: Any) -> None:
        read.append(args)

    event.listen(models.TrialModel, "load", count)
    for _ in range(4):
        read.clear()
        trial = study.ask()
        x = np.array([trial.suggest_float(name, 0.0, 1.0) for name in SPACE])
        study.tell(trial, float(((x - 0.3) ** 2).sum()))
        counts.append(len(read))
    event.remove(models.TrialModel, "load", count)
    assert trial.number == n + 3
    assert counts[0] >= n
    assert max(counts[1:]) < 40  # the running one, once for each question and each value


def size_of(thing: Any, seen: set[int]) -> tuple[int, int]:
    """Return the bytes of the arrays that a thing holds, and those of all else.

    Trials, and the parameters of trials, belong to the storage.
    """
    if id(thing) in seen or isinstance(thing, FrozenTrial | type):
        return 0, 0
    seen.add(id(thing))
    if isinstance(thing, np.ndarray):
        base = thing.base if isinstance(thing.base, np.ndarray) else thing
        is_new = base is thing or id(base) not in seen
        seen.add(id(base))
        return (base.nbytes if is_new else 0), 0
    parts: list[Any] = []
    if isinstance(thing, Mapping):
        parts = [*thing.keys(), *thing.values()]
    elif isinstance(thing, list | tuple | set | frozenset):
        parts = list(thing)
    elif hasattr(thing, "__dict__"):
        parts = [vars(thing)]
    sizes = [size_of(part, seen) for part in parts]
    others = sys.getsizeof(thing) + sum(other for _, other in sizes)
    return sum(arrays for arrays, _ in sizes), others


@pytest.mark.slow
def test_over_five_thousand_suggestions_a_sampler_holds_its_arrays_and_little_more() -> None:
    sampler = MetaTPESampler([past_task()], seed=0, n_ei_candidates=10)
    study = optuna.create_study(sampler=sampler)
    held = {}
    for n in range(1, 5001):
        trial = study.ask(SPACE)
        x = np.array(list(trial.params.values()))
        study.tell(trial, float(((x - 0.3) ** 2).sum()))
        if n in (1000, 2500, 5000):
            trials = study.get_trials(deepcopy=False)
            of_storage = {id(part) for t in trials for part in (t.params, *t.params.values())}
            held[n] = size_of(vars(sampler), of_storage | {id(study), id(study._storage)})
    # Of each trial loss, violation, turn, start, lateness and both parameters, in arrays that
    # double.
    assert held[5000][0] < 5000 * 8 * (7 + 2) * 2 + held[1000][0]
    per_trial = (held[5000][1] - held[2500][1]) / 2500
    # A number, a reference to the storage's parameters, and the cells that tell a repeat.
    assert per_trial < 300
