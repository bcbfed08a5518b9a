"""Many worker processes on one study, in real storages, and some of them killed with kill -9."""

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

import optuna
import pytest
import sqlalchemy
import workers
from optuna.storages.journal._storage import JournalOperation
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState
from studies import (
    Params,
    answer_of,
    asked,
    evaluate,
    grpc_proxy,
    new_study,
    past_study,
    postgresql,
    start_python,
    two_losses,
)
from workers import BLOCKS, N_BEFORE, STUDY, Job

from metatpe import MetaTPESampler
from metatpe.past.read.storage import open_storage
from metatpe.study.record import start_of

N_CONFIGURATIONS = 100
RUNNING, COMPLETE, FAIL = TrialState.RUNNING, TrialState.COMPLETE, TrialState.FAIL


def make_sampler() -> MetaTPESampler:
    sources = [past_study(space=BLOCKS, seed=i, n=30, name=f"past {i}") for i in range(2)]
    return MetaTPESampler(sources, seed=0)


@pytest.fixture
def postgres_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with postgresql(tmp_path_factory.mktemp("pg")) as url:
        yield url


def tune(storage: str, folder: Path, *, n_workers: int, n_trials: int, n_victims: int) -> Study:
    """Let workers tune a study, kill the victims in the middle, and check what is left."""
    job = Job(storage, str(folder), n_workers, n_trials, n_victims=n_victims)
    sampler = make_sampler()
    opened = open_storage(storage, create=True)
    study = new_study(sampler, storage=opened, name=STUDY)
    launched = workers.start(sampler, job)
    try:
        n_before = kill_victims(study, n_victims)
        (folder / workers.KILLED).touch()
        exit_codes = answer_of(launched)
    finally:
        launched.kill()
        launched.communicate()
    assert sorted(exit_codes) == [-signal.SIGKILL] * n_victims + [0] * (n_workers - n_victims)
    n_finished = (n_workers - n_victims) * n_trials + n_victims * N_BEFORE
    assert n_before < n_finished  # the others went on
    assert [t.number for t in study.trials] == list(range(n_finished + n_victims))
    assert [t.state for t in study.trials].count(RUNNING) == n_victims
    assert workers.is_complete(study, job)  # nothing that was finished is lost
    n_overlapping, n_later = workers.repeats(study)
    print(f"{n_overlapping} of {len(study.trials)} trials repeat one suggested at the same time")
    assert n_later == 0
    given = warm_starts(study)
    assert len(set(given)) == len(given) == 5, given
    return study


def kill_victims(study: Study, n: int) -> int:
    """Kill the workers that are stuck in an evaluation; return how many trials had finished."""
    deadline = time.monotonic() + 60
    while len(stuck := [t for t in study.trials if t.user_attrs.get("is_stuck")]) < n:
        assert time.monotonic() < deadline
        time.sleep(0.2)
    time.sleep(0.5)  # until they hold no lock of the journal, for which the others would wait
    for trial in stuck:
        os.kill(trial.user_attrs["pid"], signal.SIGKILL)
    return len(study.get_trials(states=[COMPLETE]))


def warm_starts(study: Study) -> list[int]:
    return [start for t in study.trials if (start := start_of(t)) >= 0]


def goes_on(study: Study, storage: str, set_back: Callable[[list[int], datetime], None]) -> bool:
    """Return whether the dead workers' trials do no harm once they are more than a minute old."""
    dead = [t for t in study.trials if t.state == RUNNING]
    taken = {tuple(sorted(t.params.items())) for t in dead}
    fresh = {tuple(sorted(params.items())) for params in asked(study, 3, BLOCKS)}
    assert not fresh & taken  # somebody may still be at it
    long_ago = datetime.now() - timedelta(hours=2)
    set_back([t.number for t in study.trials if t.state == RUNNING], long_ago)
    study = optuna.load_study(
        study_name=STUDY, storage=open_storage(storage), sampler=make_sampler()
    )
    assert {t.datetime_start for t in study.trials if t.state == RUNNING} == {long_ago}
    assert next_three(study.trials) == next_three([as_failed(t) for t in study.trials])
    done = explored(study)
    return taken < done and len(done) == N_CONFIGURATIONS


def explored(study: Study) -> set[tuple[object, ...]]:
    """Return what is evaluated once all that is left has been suggested; in memory."""
    rest = new_study(make_sampler(), trials=study.trials)
    evaluate(rest, N_CONFIGURATIONS - len(evaluated(rest)), space=BLOCKS)
    return evaluated(rest)


def evaluated(study: Study) -> set[tuple[object, ...]]:
    return {configuration(t) for t in study.get_trials(states=[COMPLETE])}


def configuration(trial: FrozenTrial) -> tuple[object, ...]:
    return tuple(sorted(trial.params.items()))


def next_three(trials: list[FrozenTrial]) -> list[Params]:
    return asked(new_study(make_sampler(), trials=trials), 3, BLOCKS)


def as_failed(trial: FrozenTrial) -> FrozenTrial:
    """Return a trial, a RUNNING one as a FAILed one: of those it is known that they do no harm."""
    if trial.state == RUNNING:
        trial.state, trial.datetime_complete = FAIL, datetime.now()
    return trial


def set_back_in_database(url: str, numbers: list[int], when: datetime) -> None:
    engine = sqlalchemy.create_engine(url)
    with engine.begin() as connection:
        for number in numbers:
            statement = "update trials set datetime_start = :when where number = :number"
            connection.execute(sqlalchemy.text(statement), {"when": when, "number": number})
    engine.dispose()


def set_back_in_journal(path: Path, numbers: list[int], when: datetime) -> None:
    entries = [json.loads(line) for line in path.read_text().splitlines()]
    created = [entry for entry in entries if entry["op_code"] == JournalOperation.CREATE_TRIAL]
    for number in numbers:
        created[number]["datetime_start"] = when.astimezone().isoformat()
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries))


@pytest.mark.parametrize(
    ("n_workers", "n_trials", "n_victims"),
    [(8, 4, 3), pytest.param(20, 6, 5, marks=pytest.mark.slow)],
)
def test_many_workers_on_postgresql_some_of_which_are_killed(
    n_workers: int, n_trials: int, n_victims: int, postgres_url: str, tmp_path: Path
) -> None:
    study = tune(
        postgres_url, tmp_path, n_workers=n_workers, n_trials=n_trials, n_victims=n_victims
    )
    assert goes_on(study, postgres_url, partial(set_back_in_database, postgres_url))


def test_workers_on_a_journal_two_of_which_are_killed(tmp_path: Path) -> None:
    path = tmp_path / "studies.log"
    study = tune(str(path), tmp_path / "workers", n_workers=6, n_trials=6, n_victims=2)
    assert goes_on(study, str(path), partial(set_back_in_journal, path))


@pytest.mark.slow
def test_workers_on_the_grpc_proxy_two_of_which_are_killed(
    postgres_url: str, tmp_path: Path
) -> None:
    pytest.importorskip("grpc")
    open_storage(postgres_url, create=True)
    with grpc_proxy(postgres_url) as proxy:
        study = tune(proxy, tmp_path, n_workers=5, n_trials=4, n_victims=2)
        assert goes_on(study, proxy, partial(set_back_in_database, postgres_url))


HANGING = """
import time
from integration.test_workers import with_heartbeat
study = with_heartbeat({url!r})
study.optimize(lambda trial: time.sleep(3600) or [trial.suggest_int("i", 0, 4), 0])
"""


def with_heartbeat(url: str) -> Study:
    storage = optuna.storages.RDBStorage(url, heartbeat_interval=1, grace_period=3)
    return optuna.load_study(study_name=STUDY, storage=storage, sampler=make_sampler())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Heartbeat of storage is supposed to be used")
def test_a_heartbeat_tells_sooner_that_a_worker_is_dead(postgres_url: str) -> None:
    new_study(make_sampler(), storage=open_storage(postgres_url, create=True), name=STUDY)
    study = with_heartbeat(postgres_url)
    worker = start_python(HANGING.format(url=postgres_url))
    while not study.trials:
        time.sleep(0.2)
    time.sleep(2)  # a beat or two
    worker.kill()
    worker.communicate()
    assert study.trials[0].state == RUNNING
    time.sleep(5)
    study.optimize(lambda trial: two_losses(suggest(trial)), n_trials=1)
    assert [t.state for t in study.trials] == [FAIL, COMPLETE]
    assert len(explored(study)) == N_CONFIGURATIONS


def suggest(trial: optuna.Trial) -> Params:
    return {name: trial._suggest(name, distribution) for name, distribution in BLOCKS.items()}
