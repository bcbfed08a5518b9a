"""Which sampler to choose, on problems made for that question: families of tasks, alike and not.

    python benchmarks/families.py --seeds 5 --jobs 2
    python benchmarks/families.py --seeds 2 --methods transfer,rgpe-ehvi --family waves

TransferSampler was chosen among its variants here (docs/method/transfer-sampler.md says how). A
family is named FUNCTION-SPACE-OBJECTIVES-PAST[-SCALE]; each seed makes another problem of it:

    bowls      rotated ellipsoids, an optimum for each objective
    waves      random smooth functions; the second objective is mostly monotone, as a cost is
    floats, grid (finite, with noise in each cell), mixed, branches (conditional)
    similar    three past tasks that are the target, shifted and a little different
    far        three that have 60 % of the target's variance
    blend      a similar one, an unrelated one, and one that is reversed
    unrelated, reversed, many (two similar, four far, four unrelated)
    the values are exponentials of smooth functions, or told as they are (plain) or as sinh (heavy)
    zero       bowls whose values go down to 0
    failing, lost (exponentials, and values as they are, with 1e6 for all that are bad)

Each past task has 100 random evaluations. Printed is, after 10, 20, 30, 50 and 100 evaluations,
the hypervolume of the smooth functions' values divided by the best one that any method or 1,000
random configurations reached on the problem: means over all problems, the paired difference from
the first method in standard errors, and the mean rank. Methods are those of `metatpe bench`, and
some variants that were not chosen (see docs/method/transfer-sampler.md).
"""

from __future__ import annotations

import argparse
import os
import zlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")  # one core a run, before numpy is loaded

import moocore
import numpy as np
import optuna
from numpy.typing import NDArray
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.samplers import BaseSampler
from optuna.trial import Trial, create_trial

from metatpe import MetaTPESampler, Space, Task, TransferSampler
from metatpe.baselines import RGPESampler, TSTRSampler
from metatpe.bench.problems import suggest
from metatpe.gp.informed import inform
from metatpe.gp.models import Observed
from metatpe.gp.process import GaussianProcess
from metatpe.past.models import PastModels
from metatpe.samplers import transfer
from metatpe.samplers.base import PastSampler
from metatpe.samplers.surrogate import Surrogate, best_configuration, expected_improvement
from metatpe.study.moment import Moment
from metatpe.study.record import Plan

Floats = NDArray[np.float64]
Function = Callable[[Floats], float]
Make = Callable[[Sequence[Task], int], BaseSampler]

AT = (10, 20, 30, 50, 100)
N_PAST = 100
UNIT, LOG = FloatDistribution(0.0, 1.0), FloatDistribution(1e-5, 1e-1, log=True)

# Problems ---------------------------------------------------------------------------------------

PASTS = {
    "similar": ["similar"] * 3,
    "far": ["far"] * 3,
    "blend": ["similar", "unrelated", "reversed"],
    "unrelated": ["unrelated"] * 3,
    "reversed": ["reversed"] * 3,
    "many": ["similar"] * 2 + ["far"] * 4 + ["unrelated"] * 4,
}
SHARED = {"target": 1.0, "similar": 0.95, "far": 0.6, "unrelated": 0.0, "reversed": 0.95}
SPACES: dict[str, dict[str, BaseDistribution]] = {
    "floats": {f"x{i}": UNIT for i in range(5)},
    "grid": {
        **{name: IntDistribution(0, n) for name, n in zip("abcde", (2, 5, 3, 4, 2), strict=True)},
        "f": CategoricalDistribution(("u", "v", "w")),
    },
    "mixed": {
        "lr": LOG,
        "wd": LOG,
        "drop": UNIT,
        "layers": IntDistribution(1, 8),
        "act": CategoricalDistribution(("relu", "tanh", "gelu")),
        "norm": CategoricalDistribution(("a", "b", "c", "d")),
    },
    "branches": {
        "opt": CategoricalDistribution(("adam", "sgd")),
        "lr_adam": LOG,
        "beta_adam": UNIT,
        "lr_sgd": LOG,
        "momentum_sgd": UNIT,
        "width": IntDistribution(8, 256, log=True),
        "drop": UNIT,
    },
}
TOLD: dict[str, tuple[Callable[[float], float], Callable[[Floats], Floats]]] = {  # and back
    "exp": (np.exp, np.log),
    "plain": (float, np.asarray),
    "heavy": (lambda v: float(np.sinh(3 * v)), lambda v: np.arcsinh(v) / 3),
    "zero": (lambda v: max(float(np.exp(v)) - 0.01, 1e-9), np.asarray),
    "failing": (
        lambda v: float(np.exp(v)) if v < 1 else 1e6,
        lambda v: np.log(np.minimum(v, np.e)),
    ),
    "lost": (lambda v: float(v) if v < 1 else 1e6, lambda v: np.minimum(v, 1.0)),
}


@dataclass(frozen=True)
class Family:
    """A kind of problem."""

    function: str
    space: str
    n_objectives: int
    past: str
    scale: str = "exp"

    @property
    def name(self) -> str:
        """The name as it is printed."""
        end = "" if self.scale == "exp" else f"-{self.scale}"
        return f"{self.function}-{self.space}-{self.n_objectives}-{self.past}{end}"


FAMILIES = [
    Family("bowls", "floats", 2, "similar"),
    Family("bowls", "floats", 2, "reversed"),
    Family("bowls", "floats", 2, "similar", "plain"),
    Family("bowls", "floats", 2, "similar", "zero"),
    Family("bowls", "floats", 2, "unrelated", "zero"),
    Family("bowls", "mixed", 2, "blend"),
    Family("bowls", "floats", 4, "similar"),
    Family("bowls", "floats", 1, "similar"),
    Family("waves", "floats", 2, "blend", "heavy"),
    Family("waves", "grid", 2, "similar"),
    Family("waves", "grid", 2, "far"),
    Family("waves", "mixed", 2, "similar", "plain"),
    Family("waves", "mixed", 2, "unrelated"),
    Family("waves", "mixed", 2, "similar", "failing"),
    Family("waves", "mixed", 2, "blend", "lost"),
    Family("waves", "mixed", 2, "many"),
    Family("waves", "mixed", 3, "blend"),
    Family("waves", "mixed", 1, "blend"),
    Family("waves", "branches", 2, "similar"),
    Family("waves", "branches", 2, "far"),
]


def is_active(name: str, params: Mapping[str, Any]) -> bool:
    """Return whether a parameter belongs to the branch that was chosen."""
    _, _, branch = name.partition("_")
    return not branch or params["opt"] == branch


class Problem:
    """One problem of a family: the target, which is task 0, and its past tasks."""

    def __init__(self, family: Family, seed: int) -> None:
        self.family, self.space = family, SPACES[family.space]
        self._rng = np.random.default_rng([zlib.crc32(family.name.encode()), seed])
        self._choices = {  # a place in the plane for each
            (name, choice): self._rng.normal(size=2) / 2
            for name, distribution in self.space.items()
            if isinstance(distribution, CategoricalDistribution)
            for choice in distribution.choices
        }
        self._n_features = len(self.features({}))
        self._shared = [self._function() for _ in range(family.n_objectives)]
        self._slope = self._cost()
        self.kinds = PASTS[family.past]
        self.tasks = [self._task(kind) for kind in ("target", *self.kinds)]

    def features(self, params: Mapping[str, Any]) -> Floats:
        """Return a configuration as numbers around 0, which a missing parameter has."""
        found: list[float] = []
        for name, distribution in self.space.items():
            if isinstance(distribution, CategoricalDistribution):
                place = self._choices[name, params[name]] if name in params else (0.0, 0.0)
                found.extend(place)
            else:
                encoded = Space({name: distribution}).encode([params])[0, 0]
                found.append(0.0 if np.isnan(encoded) else encoded - 0.5)
        return np.array(found)

    def _function(self) -> Function:
        return self._bowl() if self.family.function == "bowls" else self._wave()

    def _bowl(self) -> Function:
        p, rng = self._n_features, self._rng
        centre, stretch = (rng.random(p) - 0.5) * 0.8, np.exp(0.8 * rng.normal(size=p))
        rotation = np.linalg.qr(rng.normal(size=(p, p)))[0]
        return lambda z: float(np.log(0.01 + ((stretch * (rotation @ (z - centre))) ** 2).sum()))

    def _wave(self) -> Function:
        p, rng = self._n_features, self._rng
        lengths = np.exp(rng.normal(np.log(0.6), 0.8, size=p))
        waves, phases = rng.standard_t(5, size=(200, p)) / lengths, 2 * np.pi * rng.random(200)
        heights = rng.normal(size=200) / 10
        return lambda z: float(heights @ np.cos(waves @ z + phases))

    def _cost(self) -> Floats:
        p = self._n_features
        return np.abs(self._rng.normal(size=p)) * (self._rng.random(p) < 0.5)

    def _task(self, kind: str) -> Callable[[Mapping[str, Any]], list[float]]:
        """Return the objectives of a task."""
        rng, m, rho = self._rng, self.family.n_objectives, SHARED[kind]
        shift = 0.05 * rng.normal(size=self._n_features) * (kind != "target")
        own, own_slope, sign = [self._function() for _ in range(m)], self._cost(), 1.0
        if kind == "reversed":
            sign = -1.0
        slope = own_slope if kind == "unrelated" else self._slope
        factors = np.exp(rng.normal(size=m)) if kind != "target" else np.ones(m)
        salt, noise = int(rng.integers(1 << 30)), 0.1 * (self.family.space == "grid")
        tell = TOLD[self.family.scale][0]

        def objectives(params: Mapping[str, Any]) -> list[float]:
            z = self.features(params)
            key = zlib.crc32(repr((salt, sorted(params.items()))).encode())
            values = noise * np.random.default_rng(key).normal(size=m)
            for j in range(m):
                v = np.sqrt(rho) * sign * self._shared[j](z + shift) + np.sqrt(1 - rho) * own[j](z)
                if self.family.function == "waves" and j == 1:
                    v = 0.3 * v + 2.0 * sign * float(slope @ z)
                values[j] += v
            return [float(f * tell(v)) for f, v in zip(factors, values, strict=True)]

        return objectives

    def random(self, rng: np.random.Generator) -> dict[str, Any]:
        """Return a random configuration."""
        space = Space(self.space)
        (params,) = space.decode(space.columns.snap(rng.random((1, len(space)))))
        return {name: value for name, value in params.items() if is_active(name, params)}

    def past(self, seed: int) -> list[Task]:
        """Return the past tasks, each evaluated at random."""
        return [self._past(i, kind, seed) for i, kind in enumerate(self.kinds, start=1)]

    def _past(self, i: int, kind: str, seed: int) -> Task:
        rng = np.random.default_rng([seed, i, 77])
        directions = ["minimize"] * self.family.n_objectives
        study = optuna.create_study(directions=directions, study_name=f"{kind} {i}")
        for params in [self.random(rng) for _ in range(N_PAST)]:
            own = {name: self.space[name] for name in params}
            values = self.tasks[i](params)
            study.add_trial(create_trial(params=params, distributions=own, values=values))
        return Task.from_study(study)

    def evaluate(self, trial: Trial) -> list[float]:
        """Return the target's objectives of a trial."""
        params: dict[str, Any] = {}
        for name, distribution in self.space.items():
            if is_active(name, params):
                params[name] = suggest(trial, name, distribution)
        return self.tasks[0](params)


# Variants that were not chosen ------------------------------------------------------------------


class Turns(TransferSampler):
    """Every tenth suggestion, by chance, is one of the densities."""

    def __init__(self, sources: Sequence[Task], *, seed: int) -> None:
        super().__init__(sources, seed=seed)
        self.densities = MetaTPESampler(sources, seed=seed)

    def propose(self, moment: Moment, rng: np.random.Generator) -> Plan:
        """Choose a configuration once the start-up trials are done."""
        if self.rng(moment.trial, "tenth").random() < 0.1:
            return self.densities.propose_value(moment, rng)
        return super().propose(moment, rng)


class MeanFront(TransferSampler):
    """What was reached is what the model predicts for it, not what was observed."""

    def propose(self, moment: Moment, rng: np.random.Generator) -> Plan:
        """Choose a configuration once the start-up trials are done."""
        plan, past = super().propose(moment, rng), self.past_in(moment.space)
        if plan.reason == "densities":
            return plan
        models, study = observed(self, moment)
        chosen = np.arange(0) if plan.reason == "own" else self._chosen(moment, past)
        fitted = transfer._fitted(study, models, chosen)
        surrogate = transfer._surrogate(study, models, chosen, fitted)
        reached = surrogate.predict(study.reached)[0]
        return chosen_again(self, moment, plan, replace(surrogate, reached=reached), rng)


class OneCoefficient(RGPESampler):
    """The past's predictions, weighed as RGPE does, with one coefficient for all of them."""

    def propose(self, moment: Moment, rng: np.random.Generator) -> Plan:
        """Choose a configuration once the start-up trials are done."""
        plan, past = super().propose(moment, rng), self.past_in(moment.space)
        models, study = observed(self, moment)
        weights = np.array([plan.weights[name] for name in past.names])
        everyone = models.of(np.flatnonzero(weights))
        shares = weights[weights > 0] / max(weights.sum(), 1e-12)
        fitted = []
        for j, y in enumerate(study.y.T):
            mean = [_Weighed([task[j] for task in everyone], shares)] if everyone else []
            fitted += inform(mean, study.features, [y], models.encoder.owner, study.is_used)  # type: ignore[arg-type]

        def predict(features: Floats) -> tuple[Floats, Floats]:
            mean, variance = zip(*[model.predict(features) for model in fitted], strict=True)
            return np.stack(mean, axis=1), np.sqrt(np.stack(variance, axis=1))

        surrogate = Surrogate(
            predict=predict,
            encoder=models.encoder,
            branches=study.branches,
            reached=study.y[study.is_valid],
            front=study.front,
            past_best=models.best(range(len(past.names))),
        )
        return chosen_again(self, moment, plan, surrogate, rng)


def observed(sampler: PastSampler, moment: Moment) -> tuple[PastModels, Observed]:
    """Return the models of the past tasks, and the study's observations as they see them."""
    models = sampler.past_in(moment.space).models(moment.objective_names)
    done, columns = moment.observations, moment.space.columns
    losses = done.losses, done.violation
    return models, Observed.of(columns, models.encoder, done.X, *losses, moment.running)


def chosen_again(
    sampler: PastSampler,
    moment: Moment,
    plan: Plan,
    surrogate: Surrogate,
    rng: np.random.Generator,
) -> Plan:
    """Return a plan with the configuration that another model would choose."""
    acquisition = partial(expected_improvement, surrogate.reached)
    x = best_configuration(sampler, moment, surrogate, acquisition, rng)
    return replace(plan, params=moment.values(x))


@dataclass(frozen=True, eq=False)
class _Weighed:
    models: Sequence[GaussianProcess]
    shares: Floats

    def mean(self, features: Floats) -> Floats:
        return np.stack([model.mean(features) for model in self.models], axis=1) @ self.shares


METHODS: dict[str, Make] = {
    "transfer": lambda past, seed: TransferSampler(past, seed=seed),
    "rgpe-ehvi": lambda past, seed: RGPESampler(past, seed=seed),
    "tstr-ehvi": lambda past, seed: TSTRSampler(past, seed=seed),
    "meta-tpe": lambda past, seed: MetaTPESampler(past, seed=seed),
    "one-coefficient": lambda past, seed: OneCoefficient(past, seed=seed),
    "mean-front": lambda past, seed: MeanFront(past, seed=seed),
    "turns": lambda past, seed: Turns(past, seed=seed),
    "no-past": lambda past, seed: TransferSampler(seed=seed),
}

# Runs -------------------------------------------------------------------------------------------


def search(job: tuple[Family, int, str]) -> Floats:  # (n, m)
    """Return the values of the smooth functions in the order of evaluation."""
    family, seed, method = job
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    problem = Problem(family, seed)
    sampler = METHODS[method](problem.past(seed), seed)
    study = optuna.create_study(directions=["minimize"] * family.n_objectives, sampler=sampler)
    study.optimize(problem.evaluate, n_trials=max(AT))
    return TOLD[family.scale][1](np.array([trial.values for trial in study.trials]))


def reached(family: Family, seed: int, runs: Sequence[Floats]) -> Floats:  # (methods, AT)
    """Return the hypervolumes of the runs on one problem, as parts of the best one."""
    problem, rng = Problem(family, seed), np.random.default_rng([seed, 5])
    told = np.array([problem.tasks[0](problem.random(rng)) for _ in range(1000)])
    random = TOLD[family.scale][1](told)
    everything = np.vstack([random, *runs])
    low, high = everything.min(axis=0), random.max(axis=0)

    def volume(values: Floats) -> float:
        scaled = np.minimum((values - low) / (high - low), 1.0)
        return float(moocore.hypervolume(scaled, ref=np.ones(scaled.shape[1])))

    best = volume(everything)
    return np.array([[volume(run[:n]) / best for n in AT] for run in runs])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--methods", default=",".join(METHODS), help="the first is compared")
    parser.add_argument("--family", default="", help="only those with this in their name")
    args = parser.parse_args()
    methods = args.methods.split(",")
    families = [family for family in FAMILIES if args.family in family.name]
    problems = [(family, seed) for seed in range(args.seeds) for family in families]
    jobs = [(*problem, method) for problem in problems for method in methods]
    with ProcessPoolExecutor(args.jobs) as pool:
        runs = list(pool.map(search, jobs))
    n = len(methods)
    volumes = np.array(
        [reached(*problem, runs[i * n : (i + 1) * n]) for i, problem in enumerate(problems)]
    )
    for family in families:
        here = np.array([v for v, (f, _) in zip(volumes, problems, strict=True) if f == family])
        print(family.name)
        for method, row in zip(methods, here.mean(axis=0), strict=True):
            print(f"  {method:18}", " ".join(f"{v:.3f}" for v in row))
    ranks = (-volumes).argsort(axis=1).argsort(axis=1) + 1
    print(f"all {len(problems)} problems at {AT}, difference from {methods[0]} / its SE, rank")
    for i, method in enumerate(methods):
        behind = volumes[:, i] - volumes[:, 0]
        error = behind.std(axis=0, ddof=1) / np.sqrt(len(behind))
        t = behind.mean(axis=0) / np.where(error > 0, error, 1.0)
        means = " ".join(f"{v:.3f}" for v in volumes[:, i].mean(axis=0))
        print(f"  {method:18}", means, " ", " ".join(f"{x:+.1f}" for x in t), end="  ")
        print(f"{ranks[:, i].mean():.2f}")


if __name__ == "__main__":
    main()
