"""The demonstration: a new HPOlib task tuned with and without three past ones.

Everything a user would do, on real data: the past tasks are studies in a SQLite file, the sampler
reads them from there, and the new study is stored beside them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.samplers import RandomSampler
from optuna.storages import RDBStorage
from optuna.trial import create_trial

from metatpe.bench.metrics import hypervolume_curve
from metatpe.bench.problems import Problem, get_problem, get_suite
from metatpe.past.read.studies import load_tasks
from metatpe.samplers.transfer import TransferSampler
from metatpe.space import Floats
from metatpe.study.record import TransferRecord, transfer_history

TARGET_PROBLEM = "hpolib/slice_localization"
N_PAST = 100
Step = Callable[[str, int], None]  # what is being done, and how many evaluations more are done


@dataclass(frozen=True, eq=False)
class DemoRun:
    """One study of the demonstration."""

    label: str
    values: Floats  # (n, 2) in the order of evaluation
    hypervolume: Floats  # (n,) normalised: 1 is the true Pareto front
    front: list[tuple[tuple[float, ...], dict[str, Any]]]  # values and parameters, sorted
    records: list[TransferRecord]


@dataclass(frozen=True, eq=False)
class Demo:
    """What was tuned, and how it went both ways."""

    problem: Problem
    past: tuple[str, ...]
    with_past: DemoRun
    without: DemoRun


def past_problems() -> list[Problem]:
    """Return the tasks that were tuned before."""
    return [problem for problem in get_suite("hpolib") if problem.name != TARGET_PROBLEM]


def run_demo(database: Path, n_trials: int, seed: int, step: Step) -> Demo:
    """Store the past, tune the new task both ways, and return what came out.

    Args:
        database: The SQLite file. Past studies in it are used again, the two new ones are redone.
        n_trials: Evaluations of the new task, each way.
        seed: Of the past configurations, the samplers and the noise.
        step: Is told of every evaluation.
    """
    storage = RDBStorage(f"sqlite:///{database}")
    past = past_problems()
    for problem in past:
        _store_past(storage, problem, seed, step)
    problem = get_problem(TARGET_PROBLEM)
    sources = load_tasks(storage, [_study_name(p, seed) for p in past])
    samplers = {
        "with the past": TransferSampler(sources, seed=seed),
        "without": TransferSampler(seed=seed),
    }
    with_past, without = (
        _tune(storage, problem, label, sampler, n_trials, seed, step)
        for label, sampler in samplers.items()
    )
    return Demo(problem, tuple(task.name for task in sources), with_past, without)


def _study_name(problem: Problem, seed: int) -> str:
    return problem.name.split("/")[1] + (f" (seed {seed})" if seed else "")


def space_of_values(problem: Problem) -> dict[str, BaseDistribution]:
    """Return the space of a problem as people write it: values such as 64, no indices of them."""
    choices = {name: CategoricalDistribution(values) for name, values in problem.levels.items()}
    return {**problem.space, **choices}


def _evaluate(problem: Problem, params: Mapping[str, Any], seed: int) -> tuple[float, ...]:
    """Return the objectives of a configuration of that space."""
    levels = problem.levels
    indices = {n: levels[n].index(v) if n in levels else v for n, v in params.items()}
    return problem.evaluate(indices, seed)


def _store_past(storage: RDBStorage, problem: Problem, seed: int, step: Step) -> None:
    """Store a study of random configurations of a past task, unless it is there already."""
    study = optuna.create_study(
        storage=storage,
        study_name=_study_name(problem, seed),
        directions=problem.directions,
        load_if_exists=True,
    )
    space = space_of_values(problem)
    while (n_stored := len(study.get_trials(deepcopy=False))) < N_PAST:
        key = np.random.SeedSequence((seed, n_stored)).generate_state(1)
        sampler = RandomSampler(seed=int(key[0]))
        scratch = optuna.create_study(directions=problem.directions, sampler=sampler)
        params = scratch.ask(space).params
        values = _evaluate(problem, params, seed)
        study.add_trial(create_trial(params=params, distributions=space, values=values))
        step(f"past task {problem.name}", 1)


def _tune(
    storage: RDBStorage,
    problem: Problem,
    label: str,
    sampler: TransferSampler,
    n_trials: int,
    seed: int,
    step: Step,
) -> DemoRun:
    """Tune the problem in a study of its own, which replaces that of an earlier demonstration."""
    name = f"{_study_name(problem, seed)}, {label}"
    if name in optuna.study.get_all_study_names(storage):
        optuna.delete_study(study_name=name, storage=storage)
    study = optuna.create_study(
        storage=storage, study_name=name, directions=problem.directions, sampler=sampler
    )
    study.set_metric_names(list(problem.objective_names))
    for _ in range(n_trials):
        trial = study.ask(space_of_values(problem))
        study.tell(trial, _evaluate(problem, trial.params, seed))
        step(f"{problem.name} {label}", 1)
    values = np.array([trial.values for trial in study.get_trials(deepcopy=False)])
    front = [(tuple(trial.values), trial.params) for trial in study.best_trials]
    front.sort(key=lambda entry: entry[0])
    hypervolume = hypervolume_curve(problem, values)
    return DemoRun(label, values, hypervolume, front, transfer_history(study))


def draw_demo(demo: Demo, path: Path) -> None:
    """Draw the hypervolume, the weights of the past tasks and the fronts into a PNG file."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    with plt.rc_context({"axes.spines.top": False, "axes.spines.right": False, "font.size": 9}):
        figure, axes = plt.subplots(1, 3, figsize=(12, 3.8), layout="constrained")
        _draw_hypervolume(axes[0], demo)
        _draw_weights(axes[1], demo.with_past.records, demo.past)
        _draw_fronts(axes[2], demo)
        figure.savefig(path, dpi=120)
        plt.close(figure)


_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7")  # told apart by the colour-blind too


def _draw_hypervolume(axis: Any, demo: Demo) -> None:
    runs = zip((demo.with_past, demo.without), _COLOURS, ("-", "--"), strict=False)
    for run, colour, style in runs:
        n = np.arange(1, len(run.hypervolume) + 1)
        axis.plot(n, run.hypervolume, style, color=colour, label=run.label, linewidth=2)
    axis.axhline(1.0, color="0.6", linewidth=1, label="true Pareto front")
    axis.set(
        title=f"Tuning {demo.problem.name.split('/')[1]}",
        xlabel="evaluations",
        ylabel="normalised hypervolume",
    )
    axis.legend(frameon=False, loc="lower right")


def _draw_weights(axis: Any, records: Sequence[TransferRecord], past: Sequence[str]) -> None:
    weighed = [record for record in records if record.weights]
    n = [record.number + 1 for record in weighed]
    for name, colour in zip(past, _COLOURS, strict=False):
        weights = [record.weights.get(name, 0.0) for record in weighed]
        axis.plot(n, weights, color=colour, label=name, linewidth=2)
    n_warm = sum(record.origin == "warm_start" for record in records)
    axis.axvspan(0.5, n_warm + 0.5, color="0.9", label="warm starts", linewidth=0)
    axis.set(title="Weight of each past task", xlabel="evaluations", ylabel="weight")
    axis.set_ylim(bottom=0)
    axis.legend(frameon=False)


def _draw_fronts(axis: Any, demo: Demo) -> None:
    runs = zip((demo.with_past, demo.without), _COLOURS, ("o", "s"), strict=False)
    for run, colour, marker in runs:
        axis.plot(*run.values.T, marker, color=colour, alpha=0.2, markersize=3)
        front = np.array([values for values, _ in run.front])
        axis.step(*front.T, where="post", marker=marker, color=colour, label=run.label)
    assert demo.problem.front is not None
    axis.step(*demo.problem.front.T, where="post", color="0.6", label="true Pareto front")
    error, seconds = demo.problem.objective_names
    axis.set(title="Pareto fronts", xlabel=error, ylabel=seconds, xscale="log", yscale="log")
    axis.legend(frameon=False)
