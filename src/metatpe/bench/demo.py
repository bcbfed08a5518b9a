"""The demonstration: a new HPOlib task tuned with and without three past ones, and with TPE.

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
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution
from optuna.samplers import BaseSampler, RandomSampler, TPESampler
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
    """The task, and one run of each sampler on it."""

    problem: Problem
    past: tuple[str, ...]
    with_past: DemoRun
    without: DemoRun
    tpe: DemoRun

    @property
    def runs(self) -> tuple[DemoRun, ...]:
        """All runs, in the order in which they are shown."""
        return self.with_past, self.without, self.tpe

    @property
    def trials_to_reach_tpe(self) -> int | None:
        """The trials with past studies that reach the last hypervolume of TPE; None if none do."""
        reached = np.flatnonzero(self.with_past.hypervolume >= self.tpe.hypervolume[-1])
        return int(reached[0]) + 1 if reached.size else None


def past_problems() -> list[Problem]:
    """Return the tasks that were tuned before."""
    return [problem for problem in get_suite("hpolib") if problem.name != TARGET_PROBLEM]


def run_demo(database: Path, n_trials: int, seed: int, step: Step) -> Demo:
    """Store the past studies, tune the new task with each sampler, and return the results.

    Args:
        database: The SQLite file. Past studies in it are used again, the new ones are redone.
        n_trials: Evaluations of the new task by each sampler.
        seed: Of the past configurations, the samplers and the noise.
        step: Is told of every evaluation.
    """
    storage = RDBStorage(f"sqlite:///{database}")
    past = past_problems()
    for stream, problem in enumerate(past, 1):
        _store_past(storage, problem, (seed, stream), step)
    problem = get_problem(TARGET_PROBLEM)
    sources = load_tasks(storage, [_study_name(p, seed) for p in past])
    samplers: dict[str, BaseSampler] = {
        "with past studies": TransferSampler(sources, seed=seed),
        "without past studies": TransferSampler(seed=seed),
        "TPE": TPESampler(multivariate=True, seed=seed),
    }
    with_past, without, tpe = (
        _tune(storage, problem, way, sampler, n_trials, seed, step)
        for way, sampler in samplers.items()
    )
    return Demo(problem, tuple(task.name for task in sources), with_past, without, tpe)


def _study_name(problem: Problem, seed: int) -> str:
    return problem.name.split("/")[1] + (f" (seed {seed})" if seed else "")


_LABELS = {  # end of a study's name -> what tables and pictures call it
    "with past studies": "TransferSampler, with past studies",
    "without past studies": "TransferSampler, without",
    "TPE": "Optuna's TPE",
}


def space_of_values(problem: Problem) -> dict[str, BaseDistribution]:
    """Return the space of a problem as people write it: values such as 64, no indices of them."""
    written = {name: _distribution_of(values) for name, values in problem.levels.items()}
    return {**problem.space, **written}


def _distribution_of(values: Sequence[Any]) -> BaseDistribution:
    """Return evenly spaced numbers as a range with a step, others as choices.

    Optuna's TPE knows the order of a range, but not of choices.
    """
    steps = np.diff(values)
    if np.allclose(steps, steps[0]):
        return FloatDistribution(values[0], values[-1], step=float(steps[0]))
    return CategoricalDistribution(values)


def _index_of(value: Any, values: Sequence[Any]) -> int:
    """Return the index of the nearest value: a range with a step may be off by a rounding."""
    return int(np.argmin(np.abs(np.subtract(values, value))))


def _evaluate(problem: Problem, params: Mapping[str, Any], seed: int) -> tuple[float, ...]:
    """Return the objectives of a configuration of that space."""
    levels = problem.levels
    indices = {n: _index_of(v, levels[n]) if n in levels else v for n, v in params.items()}
    return problem.evaluate(indices, seed)


def _store_past(storage: RDBStorage, problem: Problem, key: tuple[int, int], step: Step) -> None:
    """Store a study of random configurations of a past task, unless it is there already.

    The seed and the number of the task are the key: each task has configurations of its own.
    """
    name, space = _study_name(problem, key[0]), space_of_values(problem)
    if name in optuna.study.get_all_study_names(storage):
        stored = optuna.load_study(study_name=name, storage=storage).get_trials(deepcopy=False)
        if any(trial.distributions != space for trial in stored):  # of another version
            optuna.delete_study(study_name=name, storage=storage)
    study = optuna.create_study(
        storage=storage, study_name=name, directions=problem.directions, load_if_exists=True
    )
    while (n_stored := len(study.get_trials(deepcopy=False))) < N_PAST:
        state = np.random.SeedSequence((*key, n_stored)).generate_state(1)
        sampler = RandomSampler(seed=int(state[0]))
        scratch = optuna.create_study(directions=problem.directions, sampler=sampler)
        params = scratch.ask(space).params
        values = _evaluate(problem, params, key[0])
        study.add_trial(create_trial(params=params, distributions=space, values=values))
        step(f"past task {problem.name}", 1)


def _tune(
    storage: RDBStorage,
    problem: Problem,
    way: str,
    sampler: BaseSampler,
    n_trials: int,
    seed: int,
    step: Step,
) -> DemoRun:
    """Tune the problem in a study of its own, which replaces that of an earlier demonstration."""
    name = f"{_study_name(problem, seed)}, {way}"
    if name in optuna.study.get_all_study_names(storage):
        optuna.delete_study(study_name=name, storage=storage)
    study = optuna.create_study(
        storage=storage, study_name=name, directions=problem.directions, sampler=sampler
    )
    study.set_metric_names(list(problem.objective_names))
    for _ in range(n_trials):
        trial = study.ask(space_of_values(problem))
        study.tell(trial, _evaluate(problem, trial.params, seed))
        step(f"{problem.name.split('/')[1]}, {way}", 1)
    values = np.array([trial.values for trial in study.get_trials(deepcopy=False)])
    front = [(tuple(trial.values), trial.params) for trial in study.best_trials]
    front.sort(key=lambda entry: entry[0])
    hypervolume = hypervolume_curve(problem, values)
    return DemoRun(_LABELS[way], values, hypervolume, front, transfer_history(study))


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


# Distinguishable for the colour-blind too.
_OF_RUNS = ("#0072B2", "#D55E00", "#333333")
_OF_TASKS = ("#009E73", "#CC79A7", "#E69F00")


def _draw_hypervolume(axis: Any, demo: Demo) -> None:
    for run, colour, style in zip(demo.runs, _OF_RUNS, ("-", "--", "-."), strict=True):
        n = np.arange(1, len(run.hypervolume) + 1)
        axis.plot(n, run.hypervolume, style, color=colour, label=run.label, linewidth=2)
    axis.axhline(1.0, color="0.6", linewidth=1, label="true Pareto front")
    axis.set(
        title=f"Tuning {demo.problem.name.split('/')[1]}",
        xlabel="trials",
        ylabel="normalised hypervolume",
    )
    axis.legend(frameon=False, loc="lower right")


def _draw_weights(axis: Any, records: Sequence[TransferRecord], past: Sequence[str]) -> None:
    weighed = [record for record in records if record.weights]
    n = [record.number + 1 for record in weighed]
    for name, colour in zip(past, _OF_TASKS, strict=True):
        weights = [record.weights.get(name, 0.0) for record in weighed]
        axis.plot(n, weights, color=colour, label=name, linewidth=2)
    n_warm = sum(record.origin == "warm_start" for record in records)
    axis.axvspan(0.5, n_warm + 0.5, color="0.9", label="warm starts", linewidth=0)
    axis.set(title="Weight of each past task", xlabel="trials", ylabel="weight")
    axis.set_ylim(0, 1.35 * max(axis.get_ylim()[1], 0.1))  # room for the legend
    axis.legend(frameon=False, loc="upper right", ncols=2, fontsize=8)


def _draw_fronts(axis: Any, demo: Demo) -> None:
    for run, colour, marker in zip(demo.runs, _OF_RUNS, ("o", "s", "^"), strict=True):
        axis.plot(*run.values.T, marker, color=colour, alpha=0.2, markersize=3)
        front = np.array([values for values, _ in run.front])
        axis.step(*front.T, where="post", marker=marker, color=colour, label=run.label)
    assert demo.problem.front is not None
    axis.step(*demo.problem.front.T, where="post", color="0.7", label="true Pareto front")
    error, seconds = demo.problem.objective_names
    axis.set(title="Pareto fronts", xlabel=error, ylabel=seconds, xscale="log", yscale="log")
    axis.legend(frameon=False)
