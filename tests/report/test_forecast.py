"""What the next trials are expected to reach, and what the report says of it."""

from dataclasses import replace

import numpy as np
import optuna
import pytest
from optuna.distributions import (
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.study import Study
from studies import SQUARE, evaluate, new_study, past_study, random_sampler

from metatpe import MetaTPESampler, Task, TransferSampler
from metatpe.report import advice, markdown_report
from metatpe.report.blocks import Items
from metatpe.report.facts import facts_of
from metatpe.report.forecast import MIN_TRIALS, N_NEXT, Expected, Forecast, forecast
from metatpe.report.glossary import reading
from metatpe.tuning.batch import next_batch


def bowl(params: dict[str, float]) -> list[float]:
    """Return two losses that are positive and smooth."""
    x, y = params["x"], params["y"]
    return [0.1 + (x - 0.2) ** 2 + (y - 0.4) ** 2, 1.0 + (x - 0.6) ** 2]


@pytest.fixture(scope="module")
def past() -> Study:
    return past_study(bowl, space=SQUARE, n=40, name="past")


@pytest.fixture(scope="module")
def study(past: Study) -> Study:
    made = new_study(MetaTPESampler([past], seed=0), name="new")
    evaluate(made, 25, space=SQUARE, losses=bowl)
    return made


@pytest.fixture(scope="module")
def found(study: Study, past: Study) -> Forecast:
    made = forecast(study, [Task.from_study(past)], "meta-tpe")
    assert made is not None
    return made


def test_the_proposals_are_those_of_the_sampler(
    study: Study, past: Study, found: Forecast
) -> None:
    chosen = next_batch(study, [Task.from_study(past)], 3, sampler="meta-tpe", seed=0)
    assert [p.choice.params for p in found.proposals] == [choice.params for choice in chosen]
    assert len(study.trials) == 25


def test_a_smooth_objective_is_predicted_well(found: Forecast) -> None:
    assert min(found.correlation) > 0.8
    for proposal in found.proposals:
        for expected, value in zip(proposal.values, bowl(proposal.choice.params), strict=True):
            assert expected.low <= expected.middle <= expected.high
            assert abs(expected.middle - value) < 0.1


def test_the_last_gain_is_that_of_the_hypervolume(study: Study, found: Forecast) -> None:
    import moocore

    values = np.array([trial.values for trial in study.trials])
    volumes = [moocore.hypervolume(values[:n], ref=values.max(axis=0)) for n in (15, 25)]
    assert found.last == pytest.approx(1.0 - volumes[0] / volumes[1])
    assert 0.0 <= found.next.low <= found.next.middle <= found.next.high


def test_a_maximised_objective_is_expected_in_its_own_units() -> None:
    made = new_study(random_sampler(0), ("maximize",))
    evaluate(made, 25, space=SQUARE, losses=lambda params: [100.0 - bowl(params)[0]])
    expected = forecast(made, [], "meta-tpe")
    assert expected is not None
    assert all(99.0 < p.values[0].middle < 100.5 for p in expected.proposals)


def test_values_over_decades_are_expected_on_a_log_scale() -> None:
    made = new_study(random_sampler(0), ("minimize",))
    evaluate(made, 30, space=SQUARE, losses=lambda params: [10.0 ** (4 * params["x"])])
    expected = forecast(made, [], "meta-tpe")
    assert expected is not None
    assert all(p.values[0].low > 0.0 for p in expected.proposals)


@pytest.mark.parametrize("n", [0, 1, MIN_TRIALS - 1])
def test_it_is_too_early_with_few_trials(n: int) -> None:
    made = new_study(random_sampler(0))
    evaluate(made, n, space=SQUARE, losses=bowl)
    text = markdown_report(made)
    assert "are expected to add" not in text
    if n > 1:
        assert forecast(made, [], "meta-tpe") is None


def test_a_space_that_is_used_up_has_no_forecast() -> None:
    made = new_study(random_sampler(0))
    for i in range(20):
        made.add_trial(
            optuna.trial.create_trial(
                params={"i": i % 4},
                distributions={"i": IntDistribution(0, 3)},
                values=[float(i % 4), float(-i % 4)],
            )
        )
    assert markdown_report(made)


# In the report


@pytest.mark.parametrize(
    ("last", "low", "middle", "high", "sentence"),
    [
        (0.0, 0.0, 0.0004, 0.002, "More trials will probably add little."),
        (0.0, 0.0, 0.004, 0.0, "More trials will probably add little."),  # hardly a chance
        (0.0, 0.0, 0.004, 0.025, "More trials are worth it only if they are cheap."),
        (0.0, 0.002, 0.004, 0.025, "the model may be too optimistic."),
        (0.01, 0.0, 0.04, 0.06, "That is much more than the last 10 added; the model may be"),
        (0.01, 0.0, 0.02, 0.06, "More trials are worth it."),
        (0.02, 0.0, 0.01, 0.06, "More trials are still worth it, but add less than before."),
    ],
)
def test_whether_more_trials_are_worth_it(
    found: Forecast, last: float, low: float, middle: float, high: float, sentence: str
) -> None:
    text = advice._verdict(replace(found, last=last, next=Expected(low, middle, high)))
    assert sentence in text
    assert ("much more" in text) == (middle > 3 * last and "optimistic" in text)


def test_a_small_gain_is_not_called_nothing() -> None:
    assert advice._percent(0.0) == "0.0%"
    assert advice._percent(0.0001) == "less than 0.1%"
    assert advice._percent(0.0123) == "1.2%"


def test_how_a_proposal_is_chosen_is_explained(study: Study, past: Study, found: Forecast) -> None:
    facts = facts_of(study, [past])
    assert "no_past" not in facts.reasons
    first = found.proposals[0]
    record = replace(first.choice.record, reason="no_past")
    proposal = replace(first, choice=replace(first.choice, record=record))
    (meanings,) = reading(facts, replace(found, proposals=[proposal]))
    assert isinstance(meanings, Items)
    assert any(text.startswith("Alone, no past study: ") for text in meanings.texts)


def test_the_report_has_proposals_with_their_expectations(study: Study, past: Study) -> None:
    text = markdown_report(study, [past])
    assert "## What to run next" in text
    assert f"The last {N_NEXT} trials added " in text
    assert "| 0 expected |" in text or "objective 0 expected" in text
    assert "the configurations that MetaTPESampler would choose now" in text
    assert "have a rank correlation of " in text


def test_the_sampler_is_the_one_that_chose_last(past: Study) -> None:
    made = new_study(TransferSampler([past], seed=0))
    evaluate(made, 16, space=SQUARE, losses=bowl)
    assert "the configurations that TransferSampler would choose now" in markdown_report(
        made, [past]
    )


def test_a_model_that_knows_nothing_is_called_poor(rng: np.random.Generator) -> None:
    made = new_study(random_sampler(0))
    evaluate(made, 40, space=SQUARE, losses=lambda _: rng.random(2).tolist())
    assert "That is poor: do not rely on these predictions." in markdown_report(made)


def test_one_objective_is_measured_by_its_best_value() -> None:
    made = new_study(random_sampler(0), ("minimize",))
    evaluate(made, 25, space=SQUARE, losses=lambda params: bowl(params)[:1])
    text = markdown_report(made)
    assert "the distance from the worst to the best value grew by" in text
    assert "hypervolume" not in text.partition("## What to run next")[2].partition("##")[0]


def test_parameters_are_narrowed_or_fixed() -> None:
    space = {**SQUARE, "idle": FloatDistribution(0.0, 1.0)}
    made = new_study(random_sampler(0), ("minimize",))
    evaluate(made, 300, space=space, losses=lambda p: [abs(p["x"] - 0.3) + 0.1 * p["y"]])
    text = markdown_report(made).partition("## What to run next")[2]
    row = next(line for line in text.splitlines() if line.startswith("| x | float 0 to 1 |"))
    assert "| narrowed to float 0." in row
    row = next(line for line in text.splitlines() if line.startswith("| idle | float 0 to 1 |"))
    assert "| fixed, for example at 0." in row or "narrowed" in row


def test_few_good_trials_say_nothing_of_ranges() -> None:
    made = new_study(random_sampler(0))
    evaluate(made, 30, space=SQUARE, losses=bowl)
    assert "| could be |" not in markdown_report(made)


def test_the_value_of_the_best_trial_is_not_narrowed_away() -> None:
    """Although nearly all good trials have another one."""
    space = {"units": CategoricalDistribution([16, 32, 64, 128]), "x": FloatDistribution(0.0, 1.0)}

    best: list[float] = []

    def loss(params: dict[str, float]) -> list[float]:
        if params["units"] == 16 and not best:
            best.append(params["x"])
            return [-1.0]
        return [params["x"] + (params["units"] != 128)]

    made = new_study(random_sampler(0), ("minimize",))
    evaluate(made, 300, space=space, losses=loss)
    assert made.best_params["units"] == 16
    text = markdown_report(made).partition("## What to run next")[2]
    row = next(line for line in text.splitlines() if line.startswith("| units |"))
    assert row.endswith(r"narrowed to 16 \| 128 |")
    assert "and all values of the best trial" in text
