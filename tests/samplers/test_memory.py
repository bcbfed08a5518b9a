"""What a sampler remembers of its studies, and what a pickle of it holds."""

from __future__ import annotations

import gc
import io
import pickle
import weakref
from threading import Thread
from typing import Any

import numpy as np
import optuna
import pytest
from optuna.distributions import BaseDistribution, FloatDistribution
from optuna.storages import InMemoryStorage, RDBStorage
from studies import (
    GRID,
    ONE,
    SPACE,
    SQUARE,
    TWO,
    Params,
    evaluate,
    new_study,
    past_study,
    suggestions,
    two_losses,
)

from metatpe import Space, Task
from metatpe.samplers import base
from metatpe.samplers.base import PastSampler
from samplers.five import Make, learning, pasts

# A second study ----------------------------------------------------------------------------------


def seeded(make: Make, n_sources: int = 0) -> PastSampler:
    return make(pasts(n_sources), n_startup_trials=2)


@pytest.mark.parametrize(
    ("space", "directions"),
    [(SPACE, TWO), (GRID, TWO), (SQUARE, ONE), (SQUARE, ("maximize", "minimize", "minimize"))],
    ids=["same space", "other space", "one objective", "three objectives"],
)
@pytest.mark.parametrize("is_shared", [False, True], ids=["own storage", "same storage"])
def test_a_used_sampler_suggests_to_a_second_study_what_a_fresh_one_would(
    make: Make, space: dict[str, BaseDistribution], directions: tuple[str, ...], is_shared: bool
) -> None:
    shared = InMemoryStorage() if is_shared else None

    def second_study(sampler: PastSampler) -> list[Params]:
        study = new_study(sampler, directions, storage=shared)
        return evaluate(study, 4, space=space, losses=lambda p: [*two_losses(p), 0.5])

    used = seeded(make)
    evaluate(new_study(used, TWO, storage=shared), 4)
    assert second_study(used) == second_study(seeded(make))


def test_a_used_sampler_with_sources_suggests_what_a_fresh_one_would(make: Make) -> None:
    used = seeded(make, 2)
    suggestions(used, 5)
    assert suggestions(used, 5, space=GRID) == suggestions(seeded(make, 2), 5, space=GRID)
    assert suggestions(used, 5) == suggestions(seeded(make, 2), 5)


@learning
def test_a_used_sampler_starts_a_study_whose_objectives_have_other_names_as_a_fresh_one_would(
    make: Make,
) -> None:
    def first_five(sampler: PastSampler, names: list[str]) -> list[Params]:
        study = new_study(sampler)
        study.set_metric_names(names)
        return evaluate(study, 5, space=SQUARE)

    def uneven(params: Params) -> list[float]:
        return [params["x"] ** 2, (1.0 - params["x"]) ** 4 + abs(params["y"] - 0.3)]

    sources = pasts(2, losses=uneven, space=SQUARE)
    for source in sources:
        source.set_metric_names(["error", "time"])
    used = make(sources)
    first_five(used, ["error", "time"])
    other = first_five(used, ["time", "error"])
    assert other == first_five(make(sources), ["time", "error"])


def test_two_studies_that_take_turns_do_not_confuse_a_sampler(make: Make) -> None:
    sampler = seeded(make)
    a, b = new_study(sampler), new_study(sampler, ONE)
    suggested: list[list[Params]] = [[], []]
    for _ in range(5):
        suggested[0] += evaluate(a, 1)
        suggested[1] += evaluate(b, 1, space=GRID)
    assert suggested[0] == suggestions(seeded(make), 5)
    assert suggested[1] == suggestions(seeded(make), 5, space=GRID, directions=ONE)


def test_more_studies_than_are_remembered_do_not_confuse_a_sampler(make: Make) -> None:
    sampler, storage = seeded(make), InMemoryStorage()
    studies = [new_study(sampler, ONE, storage=storage) for _ in range(7)]
    suggested = [evaluate(study, 3, space=SQUARE) for _ in range(2) for study in studies]
    six = suggestions(seeded(make), 6, space=SQUARE, directions=ONE)
    assert suggested == [six[:3]] * len(studies) + [six[3:]] * len(studies)


def test_a_study_that_took_the_place_of_a_deleted_one_is_read_anew(make: Make) -> None:
    storage, sampler = RDBStorage("sqlite:///:memory:"), seeded(make)
    deleted = new_study(sampler, storage=storage, name="study")
    evaluate(deleted, 4)
    optuna.delete_study(study_name="study", storage=storage)
    study = new_study(sampler, ONE, storage=storage, name="study")
    assert study._study_id == deleted._study_id  # SQLite gives the number out again
    fresh = suggestions(seeded(make), 4, space=SQUARE, directions=ONE)
    assert evaluate(study, 4, space=SQUARE) == fresh


def test_threads_may_use_one_sampler_on_different_studies(make: Make) -> None:
    sampler, results = seeded(make, 2), dict[int, list[Params]]()

    def work(i: int) -> None:
        results[i] = suggestions(sampler, 5)

    threads = [Thread(target=work, args=(i,)) for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [results[i] for i in range(3)] == [suggestions(seeded(make, 2), 5)] * 3


def test_a_sampler_does_not_keep_its_studies_alive(make: Make) -> None:
    sampler = seeded(make, 2)
    study = new_study(sampler)
    evaluate(study, 4)
    storage = weakref.ref(study._storage)
    del study
    gc.collect()
    assert storage() is None


# What is kept of the past ------------------------------------------------------------------------


@pytest.mark.parametrize(("n_tasks", "n_kept"), [(1, 4), (40, 3), (200, 1)])
def test_models_of_many_observations_are_kept_for_fewer_spaces(
    make: Make, n_tasks: int, n_kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(base, "_MAX_OBSERVATIONS", 1200)
    X = np.random.default_rng(0).random((10, 2))
    past = Task("past", Space(SQUARE), X, ((X - 0.3) ** 2).sum(axis=1, keepdims=True))
    sampler = make([past] * n_tasks)
    study = new_study(sampler, ONE)
    for high in range(1, 6):  # a range that moves; past models are made after the start
        evaluate(study, 1, space={"x": FloatDistribution(0.0, high)})
    assert len(sampler._cache.pasts.values()) == n_kept


# What a pickle holds -----------------------------------------------------------------------------


class Recorder(pickle.Unpickler):
    """Unpickles, and notes the modules of everything that was needed for it."""

    def __init__(self, data: bytes) -> None:
        super().__init__(io.BytesIO(data))
        self.modules: set[str] = set()

    def find_class(self, module: str, name: str) -> Any:
        self.modules.add(module.partition(".")[0] if module.startswith("numpy") else module)
        return super().find_class(module, name)


def test_a_pickle_does_not_grow_when_the_sampler_is_used(make: Make) -> None:
    sampler = seeded(make, 2)
    before = len(pickle.dumps(sampler))
    suggestions(sampler, 6)
    suggestions(sampler, 4, space=GRID)
    assert len(pickle.dumps(sampler)) == before


def test_a_pickle_holds_arrays_and_distributions_but_no_study_and_no_connection(
    make: Make,
) -> None:
    storage = RDBStorage("sqlite:///:memory:")
    source = past_study(storage=storage, n=6, name="source study")
    sampler = make([source], n_startup_trials=2)
    evaluate(new_study(sampler, storage=storage, name="secret study"), 4)
    data = pickle.dumps(sampler)
    assert b"secret study" not in data
    recorder = Recorder(data)
    recorder.load()
    assert "numpy" in recorder.modules
    allowed = {"builtins", "collections", "copyreg", "numpy", "optuna.distributions"}
    assert {m for m in recorder.modules - allowed if not m.startswith("metatpe")} == set()


def test_a_pickle_is_little_larger_than_the_arrays_of_its_sources(make: Make) -> None:
    sources = [Task.from_study(past) for past in pasts(3, n=300)]
    arrays = [
        getattr(t, name) for t in sources for name in ("X", "losses", "violation", "numbers")
    ]
    n_bytes = sum(array.nbytes for array in arrays)
    size = len(pickle.dumps(make(sources)))
    print(f"{size} bytes, {n_bytes} of them in arrays")
    assert size < n_bytes + 20_000
