"""Seeds, copies and processes: when suggestions agree, and when they must not."""

from __future__ import annotations

import copy
import json
import multiprocessing
import os
import pickle
from collections.abc import Callable
from functools import cache
from pathlib import Path

import optuna
import pytest
from optuna.samplers import BaseSampler
from studies import (
    SQUARE,
    Params,
    answer_of,
    evaluate,
    new_study,
    start_python,
    suggestions,
    two_losses,
)

from metatpe.samplers.base import PastSampler
from samplers.five import EVERY, Make, pasts, with_and_without

N_START, N = 3, 6
Copy = Callable[[PastSampler], BaseSampler]


def pickled(sampler: BaseSampler) -> BaseSampler:
    copied: BaseSampler = pickle.loads(pickle.dumps(sampler))
    return copied


copied = pytest.mark.parametrize("copied", [pickled, copy.deepcopy, copy.copy])


def seeded(make: Make, n_sources: int = 2, seed: int | None = 3) -> PastSampler:
    return make(pasts(n_sources), seed=seed, n_startup_trials=N_START)


@cache
def suggested(make: Make, n_sources: int = 2) -> list[Params]:
    """Return what a new sampler suggests first."""
    return suggestions(seeded(make, n_sources), N)


def differ(a: list[Params], b: list[Params], n_random: int = N_START) -> bool:
    """Return whether no random configuration is the same, nor all of those that were chosen.

    The best of the space's corners may be chosen with any seed.
    """
    return not [p for p in a[:n_random] if p in b] and a[n_random:] != b[n_random:]


# The same seed -----------------------------------------------------------------------------------


@with_and_without
def test_the_same_seed_gives_the_same_suggestions(make: Make, n_sources: int) -> None:
    assert suggestions(seeded(make, n_sources), N) == suggested(make, n_sources)


def test_another_seed_gives_other_suggestions(make: Make) -> None:
    one, other = (suggestions(seeded(make, 0, seed), N) for seed in (0, 1))
    assert differ(one, other)


def test_the_seed_decides_nothing_about_the_warm_starts(make: Make) -> None:
    one, other = (suggestions(seeded(make, 2, seed), N) for seed in (0, 1))
    assert one[:N_START] == other[:N_START]
    assert one[N_START:] != other[N_START:]


def of_every_sampler() -> dict[str, list[Params]]:
    return {str(make): suggestions(seeded(make), N) for make in EVERY}


@pytest.fixture(scope="module")
def in_other_processes() -> list[dict[str, list[Params]]]:
    """What other processes suggest, each with another order of its sets."""
    code = (
        "import json; from samplers.test_seeds import of_every_sampler;"
        "print(json.dumps(of_every_sampler()))"
    )
    processes = [start_python(code, PYTHONHASHSEED=seed) for seed in ("1", "2")]
    return [answer_of(process) for process in processes]


def test_the_same_seed_gives_the_same_suggestions_in_other_processes(
    make: Make, in_other_processes: list[dict[str, list[Params]]]
) -> None:
    here = json.loads(json.dumps(suggested(make)))
    assert [others[str(make)] for others in in_other_processes] == [here, here]


@copied
@with_and_without
def test_a_copy_suggests_what_the_original_would(make: Make, copied: Copy, n_sources: int) -> None:
    original = seeded(make, n_sources)
    assert suggestions(copied(original), N) == suggestions(original, N)


@copied
def test_a_copy_made_in_the_middle_of_a_study_goes_on_as_the_original_would(
    make: Make, copied: Copy
) -> None:
    study = new_study(sampler := seeded(make))
    first = evaluate(study, 4)
    study.sampler = copied(sampler)
    assert first + evaluate(study, 2) == suggested(make)


def test_a_copy_made_between_two_parameters_of_a_trial_goes_on_as_the_original_would(
    make: Make,
) -> None:
    def objective(trial: optuna.Trial) -> list[float]:
        x = trial.suggest_float("x", 0, 1)
        study.sampler = pickled(study.sampler)
        return two_losses({"x": x, "y": trial.suggest_float("y", 0, 1)})

    study = new_study(seeded(make, 0))
    study.optimize(objective, n_trials=N)
    assert [t.params for t in study.trials] == suggestions(seeded(make, 0), N, space=SQUARE)


@with_and_without
def test_a_sampler_that_joins_late_suggests_what_the_first_one_would(
    make: Make, n_sources: int
) -> None:
    study = new_study(seeded(make, n_sources))
    evaluate(study, N)
    first_seen_late = new_study(seeded(make, n_sources), trials=study.trials)
    assert evaluate(first_seen_late, 2) == evaluate(study, 2)


# No seed -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("copied", [pickled, copy.deepcopy])
def test_without_a_seed_a_copy_differs(make: Make, copied: Copy) -> None:
    sampler = seeded(make, 0, seed=None)
    assert differ(suggestions(sampler, N), suggestions(copied(sampler), N))


def test_without_a_seed_two_samplers_differ(make: Make) -> None:
    one, other = (suggestions(seeded(make, 0, seed=None), N) for _ in range(2))
    assert differ(one, other)


def test_without_a_seed_one_sampler_used_twice_agrees_with_itself(make: Make) -> None:
    sampler = seeded(make, 0, seed=None)
    assert suggestions(sampler, N) == suggestions(sampler, N)


def test_reseeding_changes_the_suggestions_of_a_seeded_sampler(make: Make) -> None:
    reseeded = [seeded(make, 0), seeded(make, 0)]
    for sampler in reseeded:
        sampler.reseed_rng()
    plain, first, second = (suggestions(s, N) for s in (seeded(make, 0), *reseeded))
    assert differ(plain, first)
    assert differ(first, second)


def test_reseeding_in_the_middle_changes_what_follows(make: Make) -> None:
    study = new_study(seeded(make, 0))
    evaluate(study, 2)
    study.sampler.reseed_rng()
    assert differ(evaluate(study, N - 2), suggestions(seeded(make, 0), N)[2:], N_START - 2)


def test_reseeding_again_changes_the_suggestions_again(make: Make) -> None:
    sampler = seeded(make, 0, seed=None)
    first = suggestions(sampler, N)
    sampler.reseed_rng()
    assert differ(first, suggestions(sampler, N))


def test_without_a_seed_a_pickled_copy_differs_in_another_process(tmp_path: Path) -> None:
    samplers = {str(make): seeded(make, 0, seed=None) for make in EVERY}
    here = {name: suggestions(sampler, N) for name, sampler in samplers.items()}
    (tmp_path / "samplers").write_bytes(pickle.dumps(samplers))
    code = (
        "import json, pickle, pathlib, studies;"
        f"samplers = pickle.loads(pathlib.Path({str(tmp_path / 'samplers')!r}).read_bytes());"
        f"there = {{name: studies.suggestions(s, {N}) for name, s in samplers.items()}};"
        "print(json.dumps(there))"
    )
    there = answer_of(start_python(code))
    assert [name for name in here if not differ(here[name], there[name])] == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_without_a_seed_a_forked_copy_differs_from_its_parent(make: Make) -> None:
    study = new_study(seeded(make, 0, seed=None))
    evaluate(study, 2)
    context = multiprocessing.get_context("fork")
    queue: multiprocessing.queues.Queue[list[Params]] = context.Queue()
    child = context.Process(target=lambda: queue.put(evaluate(study, N - 2)))
    child.start()
    in_child = queue.get(timeout=60)
    child.join(timeout=60)
    assert differ(in_child, evaluate(study, N - 2), N_START - 2)
