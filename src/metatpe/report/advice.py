"""The section of a report about the next trials: what to run, whether to, what to narrow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from optuna.distributions import BaseDistribution, CategoricalDistribution

from metatpe.past.known import Past
from metatpe.past.ranges import GoodRange, good_ranges, widened
from metatpe.past.similarity import importance
from metatpe.report.blocks import Block, Table, Text
from metatpe.report.facts import Facts
from metatpe.report.forecast import N_NEXT, Expected, Forecast, forecast
from metatpe.report.glossary import WITH_MODELS
from metatpe.space import Space, shown
from metatpe.study.trials import used_distributions
from metatpe.tpe.pareto import GAMMA, split
from metatpe.tuning.setup import SamplerName
from metatpe.viz.style import value_text
from metatpe.viz.tasks import shares_of
from metatpe.viz.weights import described
from metatpe.words import counted

_HARDLY = 0.001  # of the hypervolume; a smaller gain is hardly one
_DOUBTFUL = 3.0  # times what the last trials brought; to expect more is optimistic
_POOR = 0.3  # rank correlation; a model with less says little
_NARROW = 0.7  # of a range; what is smaller is worth narrowing
_MINOR = 0.02  # of the importance; a parameter with less hardly matters
_MASS = 0.9  # of the good trials, in the narrowed range
_MIN_GOOD = 20  # trials, of all studies together; fewer say little about ranges
_MAX_PAST = 10  # studies that are asked


def forecast_of(facts: Facts) -> Forecast | None:
    """Return what the next trials are expected to reach; None while it is too early."""
    return None if facts.task is None else forecast(facts.study, facts.at_hand, _sampler(facts))


def next_steps(facts: Facts, found: Forecast | None) -> list[Block]:
    """Return what the next trials would be, what they would bring, and what could be narrowed."""
    return [*next_trials(facts, found), *_narrowing(facts)]


def next_trials(facts: Facts, found: Forecast | None) -> list[Block]:
    """Return what the next trials would be, and what they would bring; empty while too early."""
    if found is None:
        return []
    worth = Text(_is_worth_it(facts, found))
    return [worth, *_proposals(facts, found), Text(_model(facts, found))]


def _sampler(facts: Facts) -> SamplerName:
    """Return the sampler that chose last."""
    is_model = bool(facts.records) and facts.records[-1].sampler in WITH_MODELS
    return "transfer" if is_model else "meta-tpe"


# More trials ----------------------------------------------------------------------------------


def _is_worth_it(facts: Facts, found: Forecast) -> str:
    last = _percent(found.last)
    likely = f"likely {found.next.low:.1%} to {found.next.high:.1%}"
    expected = f"{_percent(found.next.middle)} ({likely})"
    if len(facts.objectives) == 1:
        return (
            f"In the last {N_NEXT} trials the distance from the worst to the best value grew by "
            f"{last}. In the next {N_NEXT} it is expected to grow by {expected}. {_verdict(found)}"
        )
    return (
        f"The last {N_NEXT} trials added {last} to the hypervolume. The next {N_NEXT} are "
        f"expected to add {expected}. {_verdict(found)}"
    )


def _percent(part: float) -> str:
    """Return a part in percent; what is little is not called nothing."""
    return "less than 0.1%" if 0.0 < part < 0.0005 else f"{part:.1%}"


def _verdict(found: Forecast) -> str:
    # The mean may lie above the interval: a gain that is large but has hardly a chance.
    if min(found.next.middle, found.next.high) < _HARDLY:
        return "More trials will probably add little."
    # Nothing is a small number to be compared with: any gain is many times as much.
    if max(found.last, found.next.low) < _HARDLY:
        return (
            f"The last {N_NEXT} added next to nothing, and the next {N_NEXT} may add nothing "
            "either. More trials are worth it only if they are cheap."
        )
    if found.next.middle > _DOUBTFUL * found.last:
        return f"That is much more than the last {N_NEXT} added; the model may be too optimistic."
    if found.next.middle >= found.last:
        return "More trials are worth it."
    return "More trials are still worth it, but add less than before."


def _proposals(facts: Facts, found: Forecast) -> list[Block]:
    """Return the next configurations with what differs between them; the rest is listed below."""
    all_params = [proposal.choice.params for proposal in found.proposals]
    names = list(dict.fromkeys(name for params in all_params for name in params))
    same = [n for n in names if len({value_text(params.get(n)) for params in all_params}) == 1]
    rows = []
    for i, proposal in enumerate(found.proposals, 1):
        params = {n: v for n, v in proposal.choice.params.items() if n not in same}
        values = [_range(expected) for expected in proposal.values]
        rows.append([str(i), _listed(params), *values, described(proposal.choice.record)])
    objectives = [f"{name} expected" for name, _ in facts.objectives]
    blocks: list[Block] = [Table(["", "configuration", *objectives, "how it is chosen"], rows)]
    if same:
        shared = _listed({name: all_params[0].get(name) for name in same})
        blocks.append(Text(f"The same in all of them: {shared}."))
    return blocks


def _listed(params: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {value_text(value)}" for name, value in params.items())


def _range(expected: Expected) -> str:
    # Three digits, and no exponent for a thousand.
    low, middle, high = (f"{float(f'{number:.3g}'):g}" for number in expected)
    return f"{middle} ({low} to {high})"


def _model(facts: Facts, found: Forecast) -> str:
    names = [name for name, _ in facts.objectives]
    pairs = zip(names, found.correlation, strict=True)
    order = ", ".join(f"{rho:.2f} for {name}" for name, rho in pairs)
    sampler = "TransferSampler" if found.sampler == "transfer" else "MetaTPESampler"
    text = (
        f"These are the configurations that {sampler} would choose now. With another seed it may "
        "choose others. Nothing was written to the study. The ranges in brackets are 90 % "
        "intervals of a model of the trials so far and of the past studies. For trials that it "
        f"has not seen, the predictions of the model have a rank correlation of {order}."
    )
    if min(found.correlation) < _POOR:
        text += " That is poor: do not rely on these predictions."
    return text


# Ranges ---------------------------------------------------------------------------------------


def _narrowing(facts: Facts) -> list[Block]:
    """Return which parameters could be narrowed or fixed, by all studies that are alike."""
    if facts.task is None:
        return []
    tasks = [facts.task, *facts.at_hand[:_MAX_PAST]]
    n_good = sum(int(split(task.losses, task.violation, GAMMA).sum()) for task in tasks)
    if n_good < _MIN_GOOD:
        return []
    space = Space(used_distributions(facts.trials))
    shares = [shares_of(importance(task)) for task in tasks]
    rows = []
    for name, found in good_ranges(Past(tasks, space), _MASS).items():
        share = float(np.mean([each[name] for each in shares if name in each] or [0.0]))
        searched = space.distributions[name]
        values = [trial.params[name] for trial in facts.front if name in trial.params]
        good = widened(found, searched, values)
        if advice := _advice(facts, name, searched, good, share):
            rows.append((name, shown(searched), f"{share:.0%}", advice))
    if not rows:
        return []
    past = "" if len(tasks) == 1 else f" and of {counted(len(tasks) - 1, 'past study')}"
    text = (
        f"The ranges hold {_MASS:.0%} of the best tenth of the trials of this study{past}, "
        f"{counted(n_good, 'trial')} in all, for each parameter separately, and all values of "
        f"{_best(facts)}. They may be too "
        "narrow if few trials were run elsewhere: widen a range if the best trials lie near one "
        "of its ends. Importances are means over these studies."
    )
    head = ("parameter", "searched", "importance", "could be")
    return [Table(head, rows), Text(text)]


def _best(facts: Facts) -> str:
    return "the best trial" if len(facts.objectives) == 1 else "the Pareto front"


def _advice(
    facts: Facts, name: str, searched: BaseDistribution, good: GoodRange, share: float
) -> str:
    """Return what could be done with a parameter; empty where nothing."""
    if searched.single() or good.usage < 1.0:
        return ""
    if share < _MINOR:
        return f"fixed, for example at {_typical(facts, name)}: it hardly matters"
    if good.distribution.single():
        return f"fixed at {_only_value(good.distribution)}"
    return f"narrowed to {shown(good.distribution)}" if good.volume <= _NARROW else ""


def _only_value(distribution: BaseDistribution) -> str:
    if isinstance(distribution, CategoricalDistribution):
        return value_text(distribution.choices[0])
    return value_text(getattr(distribution, "low", ""))


def _typical(facts: Facts, name: str) -> str:
    """Return the value that a trial in the middle of the front has."""
    front: Sequence[Any] = sorted(facts.front, key=lambda t: (t.values, t.number))
    with_it = [trial.params[name] for trial in front if name in trial.params]
    return value_text(with_it[len(with_it) // 2]) if with_it else "any value"
