"""Threads and processes that tune one study together."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import optuna
import pytest
from optuna.distributions import BaseDistribution, IntDistribution
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState, create_trial
from studies import (
    GRID,
    ONE,
    SQUARE,
    answer_of,
    configurations,
    in_space,
    new_study,
    past_study,
    start_python,
    two_losses,
)
from workers import BLOCKS

from metatpe import MetaTPESampler, Space, transfer_history
from metatpe.baselines import WarmStartSampler
from metatpe.past.read.storage import open_storage
from metatpe.samplers import base, densities, surrogate
from metatpe.space import Floats
from metatpe.study.record import read_plan, start_of
from samplers.five import (
    EVERY,
    LEARNING,
    Make,
    learning,
    modelling,
    pasts,
    with_and_without,
)


def in_square(trial: optuna.Trial) -> list[float]:
    return two_losses({name: trial.suggest_float(name, 0.0, 1.0) for name in SQUARE})


def in_grid(trial: optuna.Trial) -> list[float]:
    i, c = trial.suggest_int("i", 0, 3), trial.suggest_categorical("c", "pqr")
    return two_losses({"i": i, "c": c, "f": trial.suggest_float("f", 0.0, 0.5, step=0.5)})


def starts(study: Study) -> list[int]:
    return sorted(start for t in study.trials if (start := start_of(t)) >= 0)


@pytest.mark.parametrize(
    ("storage", "n_sources"), [("in memory", 0), ("in memory", 2), ("sqlite", 2)]
)
def test_four_threads_share_a_sampler(
    make: Make, storage: str, n_sources: int, tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path / 'studies.db'}" if storage == "sqlite" else None
    study = new_study(make(pasts(n_sources, space=SQUARE), n_startup_trials=4), storage=url)
    study.optimize(in_square, n_trials=10, n_jobs=4)
    assert [t.state for t in study.trials] == [TrialState.COMPLETE] * 10
    assert len(transfer_history(study)) == 10
    found = configurations(study)
    if make.kind not in (MetaTPESampler, WarmStartSampler):
        # Before the space is known, trials that begin at once choose value by value. Then two of
        # them may end at the same corner.
        found = [c for c in found if not {v for _, v in c} <= {0.0, 1.0}]
    assert len(set(found)) == len(found)
    assert all(in_space(t.params, SQUARE) for t in study.trials)
    n_starts = len(starts(study))
    assert n_starts == len(set(starts(study))) == (4 if n_sources else 0)


@with_and_without
def test_four_threads_explore_a_finite_space_without_a_repeat(make: Make, n_sources: int) -> None:
    # The space is given: before one is known, trials that begin at once choose value by value.
    sampler = make(pasts(n_sources, space=GRID), n_startup_trials=4, search_space=GRID)
    study = new_study(sampler)
    study.optimize(in_grid, n_trials=20, n_jobs=4)
    assert len(set(configurations(study))) == 20


WORKER = """
import json, pickle, pathlib, optuna, studies
from metatpe.past.read.storage import open_storage
samplers = pickle.loads(pathlib.Path({samplers!r}).read_bytes())
suggested = {{}}
for name, sampler in samplers.items():
    storage = open_storage({journal!r})
    study = optuna.load_study(study_name=name, storage=storage, sampler=sampler)
    suggested[name] = studies.evaluate(study, 4, space=studies.GRID)
print(json.dumps(suggested))
"""


def test_two_processes_with_copies_of_one_seeded_sampler_never_repeat_each_other(
    tmp_path: Path,
) -> None:
    journal = str(tmp_path / "studies.log")
    storage = open_storage(journal, create=True)
    samplers = {str(make): make(pasts(2, space=GRID), n_startup_trials=4) for make in EVERY}
    (tmp_path / "samplers").write_bytes(pickle.dumps(samplers))
    studies = [new_study(s, storage=storage, name=name) for name, s in samplers.items()]
    code = WORKER.format(samplers=str(tmp_path / "samplers"), journal=journal)
    workers = [start_python(code) for _ in range(2)]
    for worker in workers:
        assert {len(suggested) for suggested in answer_of(worker).values()} == {4}
    for study in studies:
        assert len(set(configurations(study))) == 8
    for study in studies[: len(LEARNING)]:
        assert len(starts(study)) == len(set(starts(study))) == 4


@modelling
def test_workers_that_collided_choose_among_fewer_candidates(make: Make) -> None:
    grid: dict[str, BaseDistribution] = {name: IntDistribution(0, 31) for name in "ij"}
    study = past_study(space=grid, n=12, directions=ONE)
    sampler = make(n_startup_trials=0)

    def chosen(attempt: int) -> set[tuple[Any, ...]]:
        found = set()
        for number in range(100, 106):
            trial = create_trial(state=TrialState.RUNNING)
            trial.number = number
            moment = sampler._moment(study, trial, Space(grid), attempt)
            plan = sampler.propose(moment, sampler.rng(trial, "acquisition"))
            found.add(tuple(plan.params.values()))
        return found

    assert len(chosen(0)) == 1  # the best of all
    assert len(chosen(4)) >= 4


class Lockstep:
    """Lets threads go on together: each waits until all others are at the same place or done."""

    def __init__(self, n: int) -> None:
        self._n, self._n_waiting, self._round = n, 0, 0
        self._changed = threading.Condition()

    def wait(self) -> None:
        with self._changed:
            own, self._n_waiting = self._round, self._n_waiting + 1
            self._go_on()
            assert self._changed.wait_for(lambda: self._round > own, timeout=60)

    def leave(self) -> None:
        with self._changed:
            self._n -= 1
            self._go_on()

    def _go_on(self) -> None:
        if self._n_waiting == self._n:
            self._n_waiting, self._round = 0, self._round + 1
            self._changed.notify_all()


@learning
@pytest.mark.parametrize("n_ahead", [0, 1, 2])
def test_start_up_trials_that_choose_in_lockstep_get_different_configurations(
    make: Make, n_ahead: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources = [past_study(space=BLOCKS, seed=i, n=30, name=f"past {i}") for i in range(2)]
    study = new_study(sampler := make(sources, search_space=BLOCKS))
    trials = [frozen_new(study) for _ in range(5)]
    # The last ones were faster: the others see their choices, but not those of each other.
    slow = trials[: 5 - n_ahead]
    for trial in trials[5 - n_ahead :]:
        sampler.sample_relative(study, trial, BLOCKS)
    together, write = Lockstep(len(slow)), base.set_system_attributes

    def write_together(*args: Any) -> None:
        together.wait()  # all have chosen
        write(*args)
        together.wait()  # each will see what the others have written

    def choose(trial: FrozenTrial) -> None:
        copy = pickle.loads(pickle.dumps(sampler))
        copy.sample_relative(study, trial, BLOCKS)
        together.leave()

    monkeypatch.setattr(base, "set_system_attributes", write_together)
    with ThreadPoolExecutor(len(slow)) as pool:
        list(pool.map(choose, slow))
    planned = [read_plan(t) for t in study.trials]
    assert len({str(plan.params) for plan in planned if plan}) == 5
    assert len(starts(study)) == len(set(starts(study))) == 5


def frozen_new(study: Study) -> FrozenTrial:
    """Return a new trial that has not asked for anything yet."""
    return study._storage.get_trial(study._storage.create_new_trial(study._study_id))


@modelling
@pytest.mark.parametrize(("has_rule", "share"), [(True, 1 / 16), (False, 1.0)])
def test_how_many_candidates_workers_have_after_two_collisions(
    has_rule: bool, share: float, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts: list[int] = []

    def counting(draw: Callable[..., Floats]) -> Callable[..., Floats]:
        def counted(some: Any, others: Any, n: int, *rest: Any, **options: Any) -> Floats:
            counts.append(n)
            return draw(some, others, n, *rest, **options)

        return counted

    monkeypatch.setattr(surrogate, "candidates", counting(surrogate.candidates))
    monkeypatch.setattr(densities, "draw_candidates", counting(densities.draw_candidates))
    study, sampler = past_study(space=SQUARE, n=12, directions=ONE), make(n_startup_trials=0)
    sampler.rules = replace(sampler.rules, fewer=has_rule)
    for attempt in (0, 2):
        trial = create_trial(state=TrialState.RUNNING)
        trial.number = 100
        moment = sampler._moment(study, trial, Space(SQUARE), attempt)
        sampler.propose(moment, sampler.rng(trial, "acquisition"))
    assert counts[1] == int(share * counts[0])
