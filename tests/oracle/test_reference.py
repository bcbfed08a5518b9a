"""The fast code against the plain loops of `reference`, fed the same random numbers."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import optuna
import pytest
from helpers import MIXED, plain_columns, random_points, whole_space
from optuna.distributions import FloatDistribution
from oracle import reference

from metatpe import MetaTPESampler, Space, Task, transfer_history
from metatpe.past.known import Past
from metatpe.samplers import densities as densities_module
from metatpe.samplers.guards import MIN_GOOD, trust
from metatpe.space import Columns, Floats
from metatpe.tpe import kernel as kernel_module
from metatpe.tpe.acquisition import Densities, draw_candidates, score
from metatpe.tpe.kde import Parzen, sample_kernels
from metatpe.tpe.kernel import task_weights
from metatpe.tpe.pareto import levels, split

GAMMA, ETA, N_POINTS = 0.2, 2.0, 60
SPACES = {
    "mixed": MIXED,
    "discrete": Space({name: MIXED.distributions[name] for name in ("grid", "log int", "choice")}),
    "continuous": Space({f"x{j}": FloatDistribution(0, 1) for j in range(4)}),
}
Drawn = dict[bytes, Floats]  # the centres of a density -> the points drawn from it


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> Drawn:
    """The points at which densities are compared, as the library draws them."""
    points: Drawn = {}

    def recorded(
        columns: Columns, centers: Floats, h: Floats, n: int, *, rng: np.random.Generator
    ) -> Floats:
        X = sample_kernels(columns, centers, h, n, rng=rng)
        points.update(zip((own.tobytes() for own in centers), X, strict=True))
        return X

    monkeypatch.setattr(kernel_module, "sample_kernels", recorded)
    return points


@pytest.fixture
def double_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forbid single precision, which is right to three digits only."""
    monkeypatch.setattr(Parzen, "_may_be_coarse", False)


@dataclass
class Plain:
    """The method by the reference; the study is the first task that is added."""

    columns: Columns
    is_published: bool = False  # without the rules beyond the paper
    X: list[list[float]] = field(default_factory=list)  # the study's observations
    levels: list[int] = field(default_factory=list)
    goods: list[reference.Density] = field(default_factory=list)
    bads: list[reference.Density] = field(default_factory=list)

    def add(self, X: Floats, losses: Floats, violation: Floats) -> None:
        """Take a task in."""
        good, bad, levels = reference.split(
            losses.tolist(), violation.tolist(), GAMMA, keeps_front=not self.is_published
        )
        if not self.goods:
            self.X, self.levels = X.tolist(), levels
        columns = plain_columns(self.columns)
        self.goods.append(reference.fit(columns, X[sorted(good)].tolist()))
        self.bads.append(reference.fit(columns, X[sorted(bad)].tolist()))

    def weights(self, drawn: Drawn) -> tuple[list[float], list[int]]:
        """Return the task weights, and the columns that they were measured on."""
        keeps_one, past = not self.is_published, []
        kept = reference.kept_columns(self.goods, GAMMA, ETA, keeps_one=keeps_one)
        for whole, bad in zip(self.goods[1:], self.bads[1:], strict=True):
            own = [j for j in kept if not all(math.isnan(c[j]) for c in whole[1])]
            p, q = reference.reduced(self.goods[0], own), reference.reduced(whole, own)
            s = reference.similarity(p, q, self._nodes(q, own, drawn)) if own else float(not kept)
            if not self.is_published:
                s *= reference.trust(whole, bad, self.X, self.levels)
            past.append(s / len(self.goods))
        return [1 - sum(past), *past], kept

    def _nodes(
        self, q: reference.Density, own: list[int], drawn: Drawn
    ) -> list[tuple[list[float], float]]:
        """Return points and the mass of q at each: all cells, or those that were drawn."""
        columns = self.columns.take(own)
        if not columns.is_finite:
            X = drawn[np.array(q[1]).tobytes()].tolist()
            return [(x, 1 / len(X)) for x in X]
        cells, volumes = whole_space(columns, 1)
        points = zip(cells.tolist(), volumes.tolist(), strict=True)
        masses = [(x, volume * reference.density(q, x, 0)) for x, volume in points]
        return [(x, mass) for x, mass in masses if mass > 0]

    def scores(self, weights: list[float], X: Floats) -> list[float]:
        """Return the acquisition at some points."""
        good, bad = (
            [math.log(reference.joint(side, weights, x)) for x in X.tolist()]
            for side in (self.goods, self.bads)
        )
        return [g - b for g, b in zip(good, bad, strict=True)]


def random_task(
    space: Space, n: int, m: int, lacking: Sequence[int], missing: float, rng: np.random.Generator
) -> Task:
    """Return a task with ties, infeasible observations and missing entries."""
    X = np.array(random_points(space.columns, n, rng, missing))
    X[:, -1] = random_points(space.columns, n, rng)[:, -1]  # none is empty
    X[:, list(lacking)] = np.nan
    middle = rng.random(len(space))
    shifts = np.abs(np.nan_to_num(X, nan=0.5)[:, :, None] - middle[:, None] - 0.1 * np.arange(m))
    losses = shifts.sum(axis=1).round(1)
    violation = np.maximum(0.0, rng.normal(-1.0, size=n))
    return Task("t", space, X, losses, violation)


@pytest.mark.parametrize("missing", [0.0, 0.3], ids="missing={}".format)
@pytest.mark.parametrize("m", [1, 2, 3], ids="objectives={}".format)
@pytest.mark.parametrize("name", SPACES)
@pytest.mark.usefixtures("double_precision")
def test_weights_and_scores_are_those_of_the_plain_loops(
    name: str, m: int, missing: float, drawn: Drawn, rng: np.random.Generator
) -> None:
    space = SPACES[name]
    lacking: list[list[int]] = [[], [], [0] if missing else [], [0, 1] if missing else []]
    tasks = [random_task(space, 25 + 5 * i, m, js, missing, rng) for i, js in enumerate(lacking)]
    plain = Plain(space.columns)
    for task in tasks:
        plain.add(task.X, task.losses, task.violation)

    study, past = tasks[0], Past(tasks[1:], space).densities(GAMMA)
    is_good = split(study.losses, study.violation, GAMMA)
    target = Densities.of(space.columns, study.X, is_good)
    s, kept = past.similarities(target.good, eta=ETA, n_mc_samples=N_POINTS)
    z = past.agreement(study.X, levels(study.losses, study.violation))
    weights = task_weights(s * trust(z))
    expected, expected_kept = plain.weights(drawn)
    assert list(kept) == expected_kept
    np.testing.assert_allclose(weights, expected, atol=1e-9)

    densities = [target, *past.tasks]
    X = draw_candidates(densities, weights, 10, rng=rng)
    scores = plain.scores(expected, X)
    np.testing.assert_allclose(score(densities, weights, X), scores, atol=1e-8)
    assert np.argmax(score(densities, weights, X)) == np.argmax(scores)


def with_our_rules(sources: Sequence[Task], **settings: Any) -> MetaTPESampler:
    sampler = MetaTPESampler(sources, start="draw", **settings)
    sampler.rules = replace(sampler.rules, restart=False, widths=False)
    return sampler


def run_beside_the_reference(
    make: Callable[..., MetaTPESampler],
    directions: list[str],
    drawn: Drawn,
    monkeypatch: pytest.MonkeyPatch,
) -> list[tuple[float, float]]:
    """Run a study with two sources; return the score of each pick and the best score there was."""
    rng, m, is_published = np.random.default_rng(0), len(directions), make != with_our_rules
    sources = [random_task(MIXED, 30, m, [], 0.0, rng) for _ in range(2)]
    space = Space(dict(sorted(MIXED.distributions.items())))
    candidates: list[Floats] = []

    def recorded(*args: Any, **given: Any) -> Floats:
        candidates.append(draw_candidates(*args, **given))
        return candidates[-1]

    monkeypatch.setattr(densities_module, "draw_candidates", recorded)
    sampler = make(
        sources, gamma=GAMMA, eta=ETA, n_mc_samples=N_POINTS, n_ei_candidates=8, epsilon=0.0,
        seed=0,
    )  # fmt: skip
    study = optuna.create_study(directions=directions, sampler=sampler)
    signs = np.array([-1.0 if d == "maximize" else 1.0 for d in directions])
    X, losses, picks = np.empty((0, len(space))), np.empty((0, m)), []
    for n in range(25):
        trial = study.ask(MIXED.distributions)
        x = space.encode([trial.params])
        if n >= 5:
            plain = Plain(space.columns, is_published)
            plain.add(X, losses, np.zeros(n))
            for source in sources:
                plain.add(source.encode_in(space).X, source.losses, source.violation)
            # After the start the past has no weight while few observations are good.
            is_silent = len(plain.goods[0][1]) < MIN_GOOD and not is_published
            weights, kept = ([1.0, 0.0, 0.0], []) if is_silent else plain.weights(drawn)
            record = transfer_history(study)[n]
            assert (record.reason == "silent") == is_silent
            assert record.kept == tuple(space.names[j] for j in kept)
            assert sorted(record.weights.values()) == pytest.approx(sorted(weights), abs=1e-3)
            used = [1.0, 0.0, 0.0] if record.reason == "own" else weights
            picks.append((plain.scores(used, x)[0], max(plain.scores(used, candidates[-1]))))
        X, losses = np.vstack([X, x]), np.vstack([losses, rng.random((1, m)) + x[:, :1]])
        study.tell(trial, (signs * losses[-1]).tolist())
    reasons = {"best", "weighed"} | (set() if is_published else {"silent", "own"})
    assert {record.reason for record in transfer_history(study)} == reasons
    return picks


@pytest.mark.parametrize("directions", [["minimize"], ["minimize", "maximize"]], ids=len)
@pytest.mark.parametrize("make", [with_our_rules, MetaTPESampler.as_published])
@pytest.mark.usefixtures("double_precision")
def test_every_suggestion_is_the_best_candidate_of_the_plain_loops(
    make: Callable[..., MetaTPESampler],
    directions: list[str],
    drawn: Drawn,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for pick, best in run_beside_the_reference(make, directions, drawn, monkeypatch):
        assert pick == pytest.approx(best, abs=1e-8)


def test_in_single_precision_a_suggestion_is_as_good_to_three_digits(
    drawn: Drawn, monkeypatch: pytest.MonkeyPatch
) -> None:
    two = ["minimize"] * 2
    for pick, best in run_beside_the_reference(with_our_rules, two, drawn, monkeypatch):
        assert pick == pytest.approx(best, abs=2e-3)
