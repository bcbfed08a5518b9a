"""Seeds, copies, processes and threads: when suggestions agree, and when they must not."""

from __future__ import annotations

import copy
import gc
import io
import json
import multiprocessing
import os
import pickle
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import optuna
import pytest
from optuna.storages import InMemoryStorage, RDBStorage
from optuna.study import Study
from optuna.trial import TrialState
from studies import (
    GRID,
    ONE,
    SPACE,
    SQUARE,
    TWO,
    Params,
    answer_of,
    configurations,
    evaluate,
    in_space,
    new_study,
    past_study,
    settled,
    start_python,
    suggestions,
    two_losses,
)

from metatpe import MetaTPESampler, transfer_history

Copy = Callable[[MetaTPESampler], MetaTPESampler]


def pickled(sampler: MetaTPESampler) -> MetaTPESampler:
    copied = pickle.loads(pickle.dumps(sampler))
    assert isinstance(copied, MetaTPESampler)
    return copied


def same(sampler: MetaTPESampler) -> MetaTPESampler:
    return sampler


copied = pytest.mark.parametrize("copied", [pickled, copy.deepcopy, copy.copy, same])
with_and_without = pytest.mark.parametrize("n_sources", [0, 2], ids=["alone", "with sources"])


def sources(n: int) -> list[Study]:
    return [past_study(seed=seed, name=f"past {seed}") for seed in range(n)]


def seeded(n_sources: int = 2, **settings: Any) -> MetaTPESampler:
    return MetaTPESampler(sources(n_sources), **{"seed": 3, **settings})


# The same seed -----------------------------------------------------------------------------------


@with_and_without
def test_the_same_seed_gives_the_same_suggestions(n_sources: int) -> None:
    assert suggestions(seeded(n_sources), 20) == suggestions(seeded(n_sources), 20)


def test_another_seed_gives_other_suggestions() -> None:
    assert not common(suggestions(seeded(0, seed=0), 20), suggestions(seeded(0, seed=1), 20))


def test_the_seed_decides_nothing_about_the_warm_starts() -> None:
    assert suggestions(seeded(seed=0), 5) == suggestions(seeded(seed=1), 5)


def test_the_same_seed_gives_the_same_suggestions_in_other_processes() -> None:
    code = "import json, test_sampler_seeds as t; print(json.dumps(t.suggestions(t.seeded(), 14)))"
    processes = [start_python(code, PYTHONHASHSEED=seed) for seed in ("1", "2")]
    here = json.loads(json.dumps(suggestions(seeded(), 14)))
    for process in processes:
        assert answer_of(process) == here


@copied
@with_and_without
def test_a_copy_suggests_what_the_original_would(copied: Copy, n_sources: int) -> None:
    assert suggestions(copied(seeded(n_sources)), 14) == suggestions(seeded(n_sources), 14)


@copied
def test_a_copy_made_in_the_middle_of_a_study_goes_on_as_the_original_would(copied: Copy) -> None:
    study = new_study(seeded())
    first = evaluate(study, 8)
    study.sampler = copied(study.sampler)  # type: ignore[arg-type]
    assert first + evaluate(study, 8) == suggestions(seeded(), 16)


def test_a_copy_made_between_two_parameters_of_a_trial_goes_on_as_the_original_would() -> None:
    def objective(trial: optuna.Trial, study: Study) -> list[float]:
        x = trial.suggest_float("x", 0, 1)
        study.sampler = pickled(study.sampler)  # type: ignore[arg-type]
        return two_losses({"x": x, "y": trial.suggest_float("y", 0, 1)})

    study = new_study(seeded(0))
    study.optimize(lambda trial: objective(trial, study), n_trials=12)
    assert [t.params for t in study.trials] == suggestions(seeded(0), 12, space=SQUARE)


def test_a_sampler_that_joins_late_suggests_what_the_first_one_would() -> None:
    study = new_study(seeded(0))
    evaluate(study, 10)
    first_seen_late = new_study(seeded(0), trials=study.trials)
    assert evaluate(first_seen_late, 5) == evaluate(study, 5)


# No seed -----------------------------------------------------------------------------------------


def common(a: list[Params], b: list[Params]) -> list[Params]:
    return [params for params in a if params in b]


@pytest.mark.parametrize("other", [lambda s: seeded(0, seed=None), pickled, copy.deepcopy])
def test_without_a_seed_two_samplers_differ(other: Copy) -> None:
    sampler = seeded(0, seed=None)
    assert not common(suggestions(sampler), suggestions(other(sampler)))


def test_without_a_seed_one_sampler_used_twice_agrees_with_itself() -> None:
    sampler = seeded(0, seed=None)
    assert suggestions(sampler, 3) == suggestions(sampler, 3)


def test_reseeding_changes_the_suggestions_of_a_seeded_sampler() -> None:
    reseeded = [seeded(0), seeded(0)]
    for sampler in reseeded:
        sampler.reseed_rng()
    plain, first, second = suggestions(seeded(0)), *map(suggestions, reseeded)
    assert not common(plain, first)
    assert not common(first, second)


def test_reseeding_in_the_middle_changes_what_follows() -> None:
    study = new_study(seeded(0))
    evaluate(study, 6)
    study.sampler.reseed_rng()
    assert not common(evaluate(study, 6), suggestions(seeded(0))[6:])


def test_reseeding_again_changes_the_suggestions_again() -> None:
    sampler = seeded(0, seed=None)
    first = suggestions(sampler)
    sampler.reseed_rng()
    assert not common(first, suggestions(sampler))


def test_without_a_seed_a_pickled_copy_differs_in_another_process(tmp_path: Path) -> None:
    sampler = seeded(0, seed=None)
    (tmp_path / "sampler").write_bytes(pickle.dumps(sampler))
    code = (
        "import json, pickle, pathlib, studies;"
        f"sampler = pickle.loads(pathlib.Path({str(tmp_path / 'sampler')!r}).read_bytes());"
        "print(json.dumps(studies.suggestions(sampler)))"
    )
    assert not common(suggestions(sampler), answer_of(start_python(code)))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_without_a_seed_a_forked_copy_differs_from_its_parent() -> None:
    sampler = seeded(0, seed=None)
    study = new_study(sampler)
    evaluate(study, 2)
    context = multiprocessing.get_context("fork")
    queue: multiprocessing.queues.Queue[list[Params]] = context.Queue()
    child = context.Process(target=lambda: queue.put(evaluate(study, 6)))
    child.start()
    in_child = queue.get(timeout=60)
    child.join(timeout=60)
    assert not common(in_child, evaluate(study, 6))


# Several workers ---------------------------------------------------------------------------------

WORKER = """
import json, pickle, pathlib, optuna, studies
sampler = pickle.loads(pathlib.Path({sampler!r}).read_bytes())
study = optuna.load_study(study_name="shared", storage={url!r}, sampler=sampler)
print(json.dumps(studies.evaluate(study, 8)))
"""


def test_two_workers_with_copies_of_one_seeded_sampler_never_repeat_each_other(
    tmp_path: Path,
) -> None:
    url = f"sqlite:///{tmp_path / 'studies.db'}"
    (tmp_path / "sampler").write_bytes(pickle.dumps(seeded()))
    study = new_study(seeded(), storage=url, name="shared")
    code = WORKER.format(sampler=str(tmp_path / "sampler"), url=url)
    workers = [start_python(code) for _ in range(2)]
    first, second = [answer_of(worker) for worker in workers]
    assert len(first) == len(second) == 8
    assert not common(first, second)
    assert len(set(configurations(study))) == 16
    origins = [record.origin for record in transfer_history(study)]
    assert origins.count("warm_start") == 5


@pytest.mark.parametrize("storage", ["in memory", "sqlite"])
@pytest.mark.parametrize("n_sources", [0, 2], ids=["alone", "with sources"])
def test_four_threads_share_a_sampler(storage: str, n_sources: int, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'studies.db'}" if storage == "sqlite" else None
    study = new_study(seeded(n_sources), storage=url)
    n = 12 if url else 40

    def objective(trial: optuna.Trial) -> list[float]:
        x, lr = trial.suggest_float("x", 0, 1), trial.suggest_float("lr", 1e-4, 1, log=True)
        kind = trial.suggest_categorical("kind", ("a", "b", "c"))
        return two_losses({"x": x, "lr": lr, "kind": kind})

    study.optimize(objective, n_trials=n, n_jobs=4)
    assert [t.state for t in study.trials] == [TrialState.COMPLETE] * n
    assert len(set(configurations(study))) == n
    assert len(transfer_history(study)) == n
    assert all(in_space(t.params, SPACE) for t in study.trials)


def test_threads_may_use_one_sampler_on_different_studies() -> None:
    sampler = seeded()
    results: dict[int, list[Params]] = {}

    def work(i: int) -> None:
        results[i] = suggestions(sampler, 10)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [results[i] for i in range(4)] == [suggestions(seeded(), 10)] * 4


# A second study ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("space", "directions"),
    [(SPACE, TWO), (GRID, TWO), (SQUARE, ONE), (SPACE, ("maximize", "minimize", "minimize"))],
    ids=["same space", "other space", "one objective", "three objectives"],
)
@pytest.mark.parametrize("storage", [None, "shared"], ids=["own storage", "same storage"])
def test_a_used_sampler_suggests_to_a_second_study_what_a_fresh_one_would(
    space: dict[str, Any], directions: tuple[str, ...], storage: str | None
) -> None:
    shared = InMemoryStorage() if storage else None

    def losses(params: Params) -> list[float]:
        return [*two_losses(params), 0.5]

    def second_study(sampler: MetaTPESampler) -> list[Params]:
        study = new_study(sampler, directions, storage=shared)
        return evaluate(study, 12, space=space, losses=losses)

    used = MetaTPESampler(seed=3)
    evaluate(new_study(used, TWO, storage=shared), 12)
    assert second_study(used) == second_study(MetaTPESampler(seed=3))


def test_a_used_sampler_with_sources_suggests_what_a_fresh_one_would() -> None:
    used = seeded()
    suggestions(used, 12)
    assert suggestions(used, 12, space=GRID) == suggestions(seeded(), 12, space=GRID)
    assert suggestions(used, 12) == suggestions(seeded(), 12)


def test_two_studies_that_take_turns_do_not_confuse_a_sampler() -> None:
    sampler = MetaTPESampler(seed=3)
    a, b = new_study(sampler), new_study(sampler, ONE)
    turns: list[list[Params]] = [[], []]
    for _ in range(12):
        turns[0] += evaluate(a, 1)
        turns[1] += evaluate(b, 1, space=GRID)
    assert turns[0] == suggestions(MetaTPESampler(seed=3))
    assert turns[1] == suggestions(MetaTPESampler(seed=3), space=GRID, directions=ONE)


def test_more_studies_than_are_remembered_do_not_confuse_a_sampler() -> None:
    sampler, storage = settled(), InMemoryStorage()
    studies = [new_study(sampler, storage=storage) for _ in range(7)]
    suggested = [[*evaluate(s, 4)] for s in studies for _ in range(2)]
    twice = suggestions(settled(), 8)
    assert suggested == [twice[:4], twice[4:]] * 7


def test_a_study_that_took_the_place_of_a_deleted_one_is_read_anew() -> None:
    storage, sampler = RDBStorage("sqlite:///:memory:"), seeded(0)
    deleted = new_study(sampler, storage=storage, name="study")
    evaluate(deleted, 8)
    optuna.delete_study(study_name="study", storage=storage)
    study = new_study(sampler, ONE, storage=storage, name="study")
    assert study._study_id == deleted._study_id  # SQLite gives the number out again
    assert evaluate(study, 8, space=SQUARE) == suggestions(
        seeded(0), 8, space=SQUARE, directions=ONE
    )


# What a pickle holds -----------------------------------------------------------------------------


class Recorder(pickle.Unpickler):
    """Unpickles, and notes the modules of everything that was needed for it."""

    def __init__(self, data: bytes) -> None:
        super().__init__(io.BytesIO(data))
        self.modules: set[str] = set()

    def find_class(self, module: str, name: str) -> Any:
        self.modules.add(module.partition(".")[0] if module.startswith("numpy") else module)
        return super().find_class(module, name)


def test_a_pickle_does_not_grow_when_the_sampler_is_used() -> None:
    sampler = seeded()
    before = len(pickle.dumps(sampler))
    suggestions(sampler, 30)
    suggestions(sampler, 10, space=GRID)
    assert len(pickle.dumps(sampler)) == before


def test_a_pickle_holds_arrays_and_distributions_but_no_study_and_no_connection() -> None:
    storage = RDBStorage("sqlite:///:memory:")
    source = past_study(storage=storage, n=6, name="source study")
    sampler = MetaTPESampler([source], seed=0)
    evaluate(new_study(sampler, storage=storage, name="secret study"), 8)
    data = pickle.dumps(sampler)
    assert b"secret study" not in data
    recorder = Recorder(data)
    recorder.load()
    assert "numpy" in recorder.modules
    allowed = {"builtins", "collections", "copyreg", "numpy", "optuna.distributions"}
    assert {m for m in recorder.modules - allowed if not m.startswith("metatpe")} == set()


def test_a_sampler_does_not_keep_its_studies_alive() -> None:
    sampler = seeded()
    study = new_study(sampler)
    evaluate(study, 8)
    storage = weakref.ref(study._storage)
    del study
    gc.collect()
    assert storage() is None
