"""The last section of a report: what its words mean."""

from __future__ import annotations

from metatpe.report.blocks import Block, Items
from metatpe.report.facts import SMALL, Facts
from metatpe.report.forecast import Forecast
from metatpe.samplers.guards import MIN_GOOD
from metatpe.study.record import Reason
from metatpe.viz.weights import LANES

WITH_MODELS = ("TransferSampler", "RGPESampler", "TSTRSampler")


_MEANINGS: dict[Reason, str] = {
    "portfolio": "one of a few configurations that were chosen together, so that each past study "
    "has at least one that does well there.",
    "best": "one of the best configurations of a past study.",
    "reversed": "one of the worst configurations of a past study, because the past studies "
    "order the trials in reverse. Check that the directions of the objectives agree.",
    "startup": "a random configuration, because the study had too few trials to model.",
    "no_start_left": "a random configuration, because there was no further warm start that fits "
    "the search space.",
    "unknown_space": "chosen when no parameter of the study was known yet.",
    "epsilon": "a configuration drawn at random from the whole search space.",
    "weighed": "chosen from past studies and the study itself, each with its weight.",
    "own": "chosen from the study alone, although past studies have weights. This happens at "
    "random, so that trials chosen with and without past studies can be compared.",
    "silent": "chosen from the study alone. After the warm starts, past studies have no weight "
    f"until the study has {MIN_GOOD} good trials to compare them with.",
    "no_weight": "chosen from the study alone, because no past study has any weight.",
    "densities": "chosen by densities, because the models do not order the trials well.",
    "no_past": "chosen from the study alone, because there are no past studies.",
    "unknown": "recorded by an older version, which did not record reasons.",
}


def reading(facts: Facts, forecast: Forecast | None) -> list[Block]:
    """Return what the words of a report mean, those that it uses."""
    texts = ["A trial is one evaluation of one configuration. Trials are numbered from 0."]
    if len(facts.objectives) > 1:
        texts.append(
            "The Pareto front contains the trials that no other trial dominates. Which of them is "
            "best for you depends on how you value the objectives."
        )
    if facts.used:
        texts.append(
            "Progress: how many of the warm starts from a past study, and of the trials that its "
            "weight influenced, found values that no earlier trial had matched. Weight over time: "
            "the mean in the first, the middle and the last third of the trials."
        )
    proposals = () if forecast is None else forecast.proposals
    used = {*facts.reasons, *(proposal.choice.record.reason for proposal in proposals)}
    lanes = {r: LANES[r][0].upper() + LANES[r][1:] for r in LANES if r in used}
    texts += [f"{lane}: {_MEANINGS[reason]}" for reason, lane in lanes.items()]
    if any(record.kept for record in facts.records):
        texts.append(
            "The weight of a past study depends on its similarity: how much the region of its "
            "best configurations overlaps with that of this study. It is updated before each "
            "trial."
        )
    if any(name in WITH_MODELS for name in facts.samplers):
        texts.append(
            "The weight of a past study is its share of the predictions of the model. It is "
            "updated before each trial."
        )
    if facts.is_weighed:
        texts.append(
            f"Weights below {SMALL:.0%} of an equal share, here {facts.least:.3f}, do not "
            "count. A past study counts as used if it gave a warm start, or had at least "
            "this weight in a trial that was chosen with past studies."
        )
    return [Items(texts)]
