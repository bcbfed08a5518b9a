"""The start as a component of every sampler: which configuration a start-up trial evaluates.

Which configurations there are depends on the past tasks (`past.start`, `past.portfolio`). Here the
k-th trial of a study gets the k-th of them, unless it has been evaluated, does not fit the space,
or another worker has taken it; then the next one of the reserve.

A configuration is known by its index: 0, ..., n - 1 belong to the n start-up trials, the reserve
follows, and behind it what a sampler gives out later (`MetaTPESampler._restart`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from metatpe.past.known import Past
from metatpe.past.portfolio import LEAST_LOG_ODDS, Candidates, Member, Tried, joined_space
from metatpe.past.start import First, Start, portfolio_start
from metatpe.past.task import Task
from metatpe.space import Space
from metatpe.study.moment import Moment
from metatpe.study.record import Plan

if TYPE_CHECKING:
    from metatpe.samplers.base import PastSampler

Portfolio = tuple[Candidates, list[Member]]  # the candidates, and the choice before any result


class FirstTrials:
    """The first trials of a study.

    Args:
        tasks: The past tasks.
        start: The configurations to start with; with a portfolio, those behind it.
        has_portfolio: Whether a portfolio comes first.
    """

    def __init__(self, tasks: Sequence[Task], start: Start, *, has_portfolio: bool) -> None:
        self._tasks = tasks
        self._start = start
        self._has_portfolio = has_portfolio and len(tasks) > 0

    @property
    def n(self) -> int:
        """The number of start-up trials."""
        return self._start.n

    @property
    def has_past(self) -> bool:
        """Whether they evaluate configurations of the past."""
        return self.n > 0 and bool(self._start.configurations)

    @property
    def n_indices(self) -> int:
        """The number of configurations that there may be, reserve included."""
        return self.n * self._has_portfolio + max(len(self._start.configurations), self.n)

    def plan(self, sampler: PastSampler, moment: Moment) -> Plan | None:
        """Return the warm start of the trial that asks.

        None if the start is over, and no worker has died with a configuration of it. It is over
        sooner if the results contradict all past tasks.
        """
        index = moment.start_index(self.n)
        if index is None:
            return self._abandoned(sampler, moment)
        start = self._start_of(sampler, moment, index)
        if start is None:
            return None
        order = start.order_for(index, has_collided=moment.attempt > 0)
        if not sampler.rules.reserve:
            order = [index] if index < start.n_drawn else []
        numbered = [(i, start.configurations[i]) for i in order]
        found = first_fitting(sampler, moment, numbered)
        if found is None and not sampler.knows_space(moment):
            # It may still differ in parameters that running trials have not asked for yet.
            found = first_fitting(sampler, moment, numbered, may_agree=True)
        return found or sampler.random(moment, "random", "no_start_left")

    def _abandoned(self, sampler: PastSampler, moment: Moment) -> Plan | None:
        """Return the warm start of a worker that died."""
        index = moment.abandoned_start
        if index is None or index >= self.n_indices:
            return None
        start = self._start_of(sampler, moment, index)
        abandoned = start.configurations[index : index + 1] if start else []
        return first_fitting(sampler, moment, [(index, first) for first in abandoned])

    def _start_of(self, sampler: PastSampler, moment: Moment, index: int) -> Start | None:
        """Return the start of trial `index`: with a portfolio, of the past tasks that fit.

        None if the results contradict all of them.
        """
        if not self._has_portfolio:
            return self._start
        space = self._space(sampler.past_in, moment.space)
        past = sampler.past_in(space)
        if not past.names:
            return portfolio_start({}, self._start, [])
        names = moment.objective_names
        candidates, portfolio = sampler.cached_portfolio(
            (space, names), lambda: _portfolio(Candidates(past, names), self.n)
        )
        if not sampler.rules.listen:
            return portfolio_start(dict(enumerate(portfolio)), self._start, portfolio)
        # Earlier trials that have not chosen yet will take the next best ones: each knows which is
        # its own, although it does not see what the others choose.
        n_ahead, tried = moment.n_undecided(self.n), [Tried(*one) for one in moment.tried]
        if sampler.rules.contradicted and candidates.log_odds(tried) < LEAST_LOG_ODDS:
            return None
        members = candidates.members(n_ahead + 1, tried)
        own = dict(zip([index], members[n_ahead:], strict=False))
        return portfolio_start(own, self._start, portfolio)

    def _space(self, past_in: Callable[[Space], Past], asked: Space) -> Space:
        """Return the space of the past tasks that fit, with the ranges that the study asks for.

        A branch that no trial of the study has used yet has its parameters too.
        """
        names = past_in(asked).names if len(asked) else [t.name for t in self._tasks]
        known = joined_space([t for t in self._tasks if t.name in names]).distributions
        return Space({**known, **{n: d for n, d in asked.distributions.items() if n in known}})


def _portfolio(candidates: Candidates, n: int) -> Portfolio:
    return candidates, candidates.members(n)


def first_fitting(
    sampler: PastSampler,
    moment: Moment,
    numbered: Iterable[tuple[int, First]],
    *,
    may_agree: bool = False,
) -> Plan | None:
    """Return the first configuration that is free, new, and shares a parameter."""
    space = moment.space
    filling = moment.values(sampler.rng(moment.trial, "warm_start").random(len(space)))
    for i, first in numbered:
        if i in moment.taken_starts:
            continue
        if not len(space) and moment.is_given_to_others(first.params):
            continue  # in a known space, new ones are told apart below
        fitting = space.fit(first.params)
        params = {**first.params, **filling, **fitting}
        # A source without a shared parameter has nothing to start from.
        if not len(space) or (fitting and (may_agree or _is_fresh(moment, params, fitting))):
            return Plan("warm_start", first.reason, params, start=i, sources=first.sources)
    return None


def _is_fresh(moment: Moment, params: Mapping[str, Any], fitting: Mapping[str, Any]) -> bool:
    """Return whether a first configuration is new, in a continuous space too.

    One may have been enqueued by hand, as `metatpe suggest --enqueue` does.

    Args:
        moment: What the study knows.
        params: A value for each parameter of its space.
        fitting: Those that come from the past: of a branch, the ones that it uses.
    """
    whole, own = (moment.space.encode([part]) for part in (params, fitting))
    return bool(moment.is_new(whole)[0]) and not moment.has(own[0])
