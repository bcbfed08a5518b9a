"""What a report says: that it is what the records say, and that there is one for every study."""

import re
from collections.abc import Sequence
from types import ModuleType
from typing import Any, Literal

import numpy as np
import optuna
import pytest
from optuna.distributions import FloatDistribution
from optuna.study import Study
from optuna.trial import TrialState
from studies import (
    ONE,
    SQUARE,
    TWO,
    evaluate,
    frozen,
    new_study,
    past_study,
    random_sampler,
    spread,
    two_losses,
)
from transferred import (
    OLD_RECORDS,
    OLD_TURN,
    recorded_study,
    start_of,
    transferred,
    weighed,
    weighed_study,
)

import metatpe.report
from metatpe import MetaTPESampler, TransferSampler, transfer_history
from metatpe.baselines import RGPESampler, WarmStartSampler
from metatpe.report import html_report, markdown_report, note
from metatpe.report.facts import facts_of
from metatpe.viz.weights import LANES, LOOKS

INF = float("inf")


def test_functions_do_not_hide_the_modules_of_their_names() -> None:
    from metatpe.report import html, markdown

    assert isinstance(html, ModuleType)
    assert isinstance(markdown, ModuleType)
    assert set(metatpe.report.__all__) == {"html_report", "markdown_report", "note"}


# Contribution of past studies --------------------------------------------------------------------


def test_warm_starts_are_listed_with_every_past_study_that_they_came_from() -> None:
    study = recorded_study(start_of("a"), start_of("a", "b"), start_of("c"))
    sources = {source.name: list(source.starts) for source in facts_of(study).sources}
    assert sources == {"a": [0, 1], "b": [1], "c": [2]}
    text = markdown_report(study)
    assert "| a | trials 0, 1 |" in text
    assert "| b | trial 1 |" in text
    assert "warm start of a, b |" in text
    assert "It used 3 past studies: 3 warm starts." in text
    assert "None so far: no weights have been computed yet." in text


def test_the_starts_of_a_real_study_are_those_of_its_records() -> None:
    study, past = transferred(8)
    (source,) = facts_of(study, [past]).sources
    assert source.starts == [r.number for r in transfer_history(study) if r.sources == ("past",)]
    assert source.starts == [0, 1, 2, 3, 4]


def test_a_past_study_is_left_aside_from_the_trial_on_where_its_weight_stays_small() -> None:
    study = weighed_study(
        {"target": 0.7, "a": 0.3, "b": 0.0},
        {"target": 0.99, "a": 0.01, "b": 0.0},
        {"target": 0.7, "a": 0.3, "b": 0.0},
        {"target": 0.99, "a": 0.01, "b": 0.0},
        {"target": 0.99, "a": 0.01, "b": 0.0},
    )
    a, b = facts_of(study).sources
    assert (a.name, a.small_from, a.is_used, list(a.influenced)) == ("a", 3, True, [0, 2])
    assert (b.name, b.is_used) == ("b", False)
    text = markdown_report(study)
    assert "| a | from trial 3 on | its weight fell below 0.033. |" in text
    assert "| b | in any trial | its weight was always below 0.033. |" in text


def test_a_past_study_that_keeps_its_weight_is_not_left_aside() -> None:
    study = weighed_study({"target": 0.7, "a": 0.3}, {"target": 0.7, "a": 0.3})
    (a,) = facts_of(study).sources
    assert a.small_from is None
    assert "None: every past study had weight until the end." in markdown_report(study)


WEIGHTS = {"target": 0.5, "a": 0.5}


@pytest.mark.parametrize(
    ("reason", "weights", "influences"),
    [
        ("weighed", WEIGHTS, True),
        ("densities", WEIGHTS, True),
        ("own", WEIGHTS, False),
        ("silent", {"target": 1.0, "a": 0.0}, False),
        ("weighed", {"target": 0.96, "a": 0.04}, False),
        ("weighed", {"target": 0.95, "a": 0.05}, True),
        ("densities", {}, False),
    ],
)
def test_a_trial_counts_where_a_weight_that_is_not_small_influenced_it(
    reason: str, weights: dict[str, float], influences: bool
) -> None:
    study = recorded_study(weighed(weights, reason), weighed({"target": 1.0, "a": 0.0}))
    (a,) = facts_of(study).sources
    assert list(a.influenced) == ([0] if influences else [])
    assert a.is_used == influences
    assert ("It used 1 past study: 1 trial chosen with past studies." in note(study)) == influences
    assert ("It used no past study." in note(study)) != influences


def test_a_weight_that_was_never_used_is_not_called_small() -> None:
    text = markdown_report(recorded_study(weighed(WEIGHTS, "own")))
    assert (
        "| a | in any trial | it only had weight in trials chosen without past studies. |" in text
    )


def borrowed_from(text: str) -> list[str]:
    """Return the first sentence about what was borrowed, and the names of the table below it."""
    sentence = re.search(r"It used.*?\.", text)
    assert sentence is not None
    table = text.partition("Contribution of past studies")[2].partition("| --- |")[2]
    rows = [line for line in table.partition("\n\n")[0].splitlines() if line.startswith("| ")]
    return [sentence[0], *(row.split(" | ")[0].removeprefix("| ") for row in rows)]


def tuned(sampler: optuna.samplers.BaseSampler, n: int) -> Study:
    study = new_study(sampler)
    evaluate(study, n)
    return study


def three_pasts() -> list[Study]:
    return [
        past_study(n=30, name="same"),
        past_study(n=30, name="constant", losses=constant),
        past_study(n=30, name="other", losses=lambda p: [-v for v in two_losses(p)]),
    ]


def constant(params: dict[str, Any]) -> list[float]:
    return [1.0, 1.0]


@pytest.mark.parametrize("n", [3, 7, 30])
@pytest.mark.parametrize(
    "kind",
    [MetaTPESampler, TransferSampler, RGPESampler, WarmStartSampler],
    ids=lambda k: k.__name__,
)
def test_a_note_and_a_report_agree_on_what_was_borrowed(kind: Any, n: int) -> None:
    """With the past at hand and without, and with studies that the sampler did not have."""
    past = three_pasts()
    n = min(n, 12) if kind in (TransferSampler, RGPESampler) else n
    study = tuned(kind(past, seed=0), n)
    more = [past_study(n=5, name=f"more {i}") for i in range(10)]
    texts = [note(study), note(study, past), markdown_report(study)]
    texts += [markdown_report(study, past), markdown_report(study, [*more, *past])]
    expected = borrowed_from(texts[0])
    assert [borrowed_from(text) for text in texts] == [expected] * len(texts)
    counted = re.search(r"used (\d) past", expected[0])
    assert counted is not None
    assert int(counted[1]) == len(expected) - 1


def test_which_weight_is_small_does_not_depend_on_the_past_studies_at_hand() -> None:
    study = weighed_study({"target": 0.97, "a": 0.03})  # an equal share is one half
    past = [past_study(n=3, name=name) for name in "abcdefgh"]
    for text in (note(study), markdown_report(study), markdown_report(study, past)):
        assert "It used no past study." in text


def test_what_the_records_say_was_borrowed_counts_even_if_the_past_study_has_changed_since() -> (
    None
):
    study = recorded_study(start_of("past"), start_of("past"))
    past = past_study(directions=ONE)
    assert borrowed_from(markdown_report(study, [past]))[1:] == ["past"]


# Why past studies are left aside ----------------------------------------------------------------


@pytest.mark.parametrize("n", [6, 7])
def test_a_past_of_the_same_problem_is_not_blamed_while_nothing_is_compared(n: int) -> None:
    past = past_study(n=30, directions=ONE)
    study = new_study(MetaTPESampler([past], seed=0, epsilon=0.0), ONE)
    evaluate(study, n)
    assert {r.reason for r in transfer_history(study)} == {"portfolio", "best", "silent"}
    for text in (markdown_report(study), markdown_report(study, [past])):
        why = "not compared yet: the study has too few good trials."
        assert f"| past | from trial 5 on | {why} |" in text
        assert "past studies have no weight until the study has 3 good trials" in text
        assert not re.search(
            "misleading|wrong order|dissimilar|fell below|all weigh the same", text
        )


def test_a_past_without_a_part_in_the_start_is_not_blamed_either() -> None:
    silent = weighed({"target": 1.0, "a": 0.0, "b": 0.0}, "silent")
    text = markdown_report(recorded_study(start_of("a"), silent, silent))
    why = "not compared yet: the study has too few good trials."
    assert f"| a | from trial 1 on | {why} |" in text
    assert f"| b | in any trial | {why} |" in text


def test_a_past_study_that_gave_a_start_and_has_no_weight_on_record_is_left_aside() -> None:
    text = markdown_report(recorded_study(start_of("b"), weighed(WEIGHTS)))
    assert "| b | from trial 1 on | its weight was too small to be recorded. |" in text


def test_trials_without_a_comparison_say_nothing_about_a_weight() -> None:
    """A study may have too few good trials again, after one that dominates all others."""
    silent = weighed({"target": 1.0, "a": 0.0}, "silent")
    study = recorded_study(silent, weighed(WEIGHTS), silent, silent)
    assert facts_of(study).sources[0].small_from is None
    assert "| a | from trial 2 on | not compared yet" in markdown_report(study)
    study = recorded_study(silent, weighed(WEIGHTS), silent, weighed(WEIGHTS))
    assert "None: every past study had weight until the end." in markdown_report(study)


def test_a_weight_that_is_lost_in_rounding_is_not_taken_for_too_few_good_trials() -> None:
    lost = {**weighed({"target": 1.0, "a": 1e-18}, "no_weight"), "kept": ["x"]}
    text = markdown_report(recorded_study(start_of("a"), lost, lost))
    assert "| a | from trial 1 on | its weight was always below 0.050. |" in text


def test_a_similarity_is_a_number_and_no_cause() -> None:
    past = past_study(n=30)
    records = [weighed({"target": 0.6, "past": 0.4}), weighed({"target": 1.0, "past": 0.0})]
    text = markdown_report(recorded_study(*records), [past])
    row = next(line for line in text.splitlines() if line.startswith("| past | from trial 1 on |"))
    assert re.search(r"\| its weight fell below 0\.050 \(similarity now 0\.\d\d\)\. \|", row)


def test_past_studies_that_cannot_help_are_listed_with_the_reason() -> None:
    study, past = transferred(12)
    single = past_study(name="single", directions=ONE)
    elsewhere = past_study(name="elsewhere", space={"other": FloatDistribution(0, 1)})
    wider = past_study(name="wider", space={"x": FloatDistribution(0.0, 2.0)})
    text = markdown_report(study, [past, single, elsewhere, wider])
    assert "| single | in any trial | it has 1 objective, but the new study has 2. |" in text
    assert (
        "| elsewhere | in any trial | it has no parameter in common with the new study. |" in text
    )
    assert "| wider | in any trial | it was not among the sampler's sources. |" in text


@pytest.mark.parametrize(
    ("records", "why"),
    [
        ([], "the study has no record of a transfer."),
        ([start_of("a")], "no weights have been computed yet, or it was not among the sampler's"),
        ([weighed(WEIGHTS)], "it was not among the sampler's sources. |"),
        ([weighed({**WEIGHTS, "rest": 0.1})], "its weight was among the smallest, which are"),
        (
            [weighed({"target": 1.0}, "no_past")],
            "no weights have been computed yet, or it was not",
        ),
    ],
)
def test_a_past_study_without_a_record_is_listed_with_what_that_can_mean(
    records: Sequence[dict[str, Any]], why: str
) -> None:
    text = markdown_report(recorded_study(*records, None), [past_study(name="new")])
    assert f"| new | in any trial | {why}" in text


def test_the_part_of_a_past_study_that_does_not_fit_is_listed() -> None:
    wide = past_study(n=30, name="wide", space={"x": FloatDistribution(0.0, 2.0)})
    study = tuned(MetaTPESampler([wide], seed=0), 10)
    n = sum(t.params["x"] > 1.0 for t in wide.trials)
    text = markdown_report(study, [wide])
    assert f"| wide | in part | search space: {n} values of x out of range; it lacks" in text


# How trials were chosen -------------------------------------------------------------------------


def test_every_reason_has_a_name_a_look_and_a_meaning() -> None:
    assert len(set(LANES.values())) == len(LANES)
    assert len({(look.colour, look.marker) for look in LOOKS.values()}) == len(LOOKS)
    assert len({(look.colour, look.mpl_marker) for look in LOOKS.values()}) == len(LOOKS)
    study = recorded_study(*(weighed(WEIGHTS, reason) for reason in LANES))
    text = markdown_report(study)
    for name in LANES.values():
        assert f"| {name} | 1 |" in text
        assert f"- {name[0].upper()}{name[1:]}: " in text
    drawn = html_report(study)
    assert 'id="front"' in drawn


def test_the_weights_of_models_are_explained_as_shares_and_not_as_similarities() -> None:
    past = three_pasts()[:2]
    study = tuned(TransferSampler(past, seed=0), 10)
    text = markdown_report(study, past)
    assert "| sampler | TransferSampler |" in text
    assert re.search(r"\| same \| 30 \|.*\| \d trials \|", text)
    assert re.search(
        r"\| constant \| from trial \d on \| its weight (fell|was always) below 0\.033", text
    )
    assert "is its share of the predictions of the model" in text
    assert "depends on its similarity" not in text


def test_trials_that_the_study_chose_alone_are_counted_by_their_reason() -> None:
    past, done = past_study(n=30, space=SQUARE), [frozen(p, two_losses(p)) for p in spread(55)]
    study = new_study(TransferSampler([past], seed=0), trials=done)
    evaluate(study, 8, space=SQUARE)
    reasons = [record.reason for record in transfer_history(study)]
    assert {"own", "weighed"} <= set(reasons)
    text = markdown_report(study, [past])
    for reason in set(reasons):
        assert f"| {LANES[reason]} | {reasons.count(reason)} |" in text
    assert "- Alone, to compare: chosen from the study alone" in text


@pytest.mark.parametrize("weights", ["similarity", "uniform"])
def test_weights_that_were_not_measured_are_not_called_similarities(
    weights: Literal["similarity", "uniform"],
) -> None:
    past = past_study(n=30)
    study = tuned(MetaTPESampler([past], weights=weights, start="random", seed=0), 10)
    text = markdown_report(study, [past])
    assert "share in the predictions" not in text
    assert ("depends on its similarity" in text) == (weights == "similarity")
    assert ("- Alone, to compare" in text) == (weights == "similarity")


def test_the_front_is_listed_with_how_it_was_chosen() -> None:
    study, past = transferred(15)
    text, records = markdown_report(study, [past]), transfer_history(study)
    for trial in study.best_trials:
        row = next(line for line in text.splitlines() if line.startswith(f"| {trial.number} |"))
        assert f"{trial.values[0]:.5g}" in row
        assert f"{trial.values[1]:.5g}" in row
        is_start = records[trial.number].reason == "best"
        assert row.endswith("| warm start of past |" if is_start else " |")
        assert ("warm start" in row) == is_start
    assert f"The Pareto front has {len(study.best_trials)} points." in text


def test_a_measurement_against_runs_without_a_past_is_described() -> None:
    study = new_study(random_sampler(0), ONE, trials=[frozen({"x": 0.5}, v) for v in (3, 1)])
    other = new_study(
        random_sampler(0), ONE, trials=[frozen({"x": 0.5}, v) for v in (3, 2, 2, 1)], name="plain"
    )
    text = markdown_report(study, without=[other])
    assert "One run without past studies needed 2 more trials to get as far, which may be" in text
    assert "Measured against 1 run of the same problem without past studies (plain)." in text
    assert "the run needed 4 trials, this study 2" in text
    reverse = markdown_report(other, without=[study])
    assert "One run without past studies did not need more trials to get as far." in reverse
    both = markdown_report(study, without=[other, study])
    assert "2 runs without past studies do not show that trials were saved: they needed" in both
    both = markdown_report(study, without=[other, other])
    assert (
        "2 runs without past studies needed 2 to 2 more trials to get as far (median 2)." in both
    )
    assert "needed" not in markdown_report(study)
    with pytest.raises(ValueError, match="their objectives differ"):
        markdown_report(study, without=[past_study()])


# Records of earlier versions --------------------------------------------------------------------


@pytest.mark.parametrize("past", [[], [past_study(n=30)]], ids=["records", "past at hand"])
def test_what_old_records_do_not_say_is_unknown(past: list[Study]) -> None:
    study = recorded_study(*OLD_RECORDS)
    for text in (markdown_report(study, past), note(study, past)):
        assert "It used past studies: 1 warm start. It is unknown how 2 trials were" in text
        assert "It is unknown how 2 trials were chosen." in text
        assert re.search(r"\| past \|( 30 \|)? unknown \| unknown \| 0\.400 \(trial 2\) \|", text)
    text = markdown_report(study, past)
    assert "| sampler | unknown |" in text
    assert "| warm start of unknown |" in text
    assert "| unknown | 2 |" in text
    assert "| alone, to compare | 1 |" in text
    assert html_report(study, past)


@pytest.mark.parametrize("past", [[], [past_study(n=30)]], ids=["records", "past at hand"])
def test_what_old_records_say_is_read(past: list[Study]) -> None:
    study = recorded_study(OLD_TURN, OLD_TURN, OLD_RECORDS[2])
    for text in (markdown_report(study, past), note(study, past)):
        assert "It used 1 past study: 2 trials chosen with past studies." in text
        assert re.search(r"\| past \|( 30 \|)? at least 2 trials \|", text)


# Studies of every kind -------------------------------------------------------------------------


def test_a_study_of_another_sampler_gets_what_can_be_said() -> None:
    study = past_study(n=25)
    text = markdown_report(study)
    assert "There is no record of a transfer" in text
    assert "The Pareto front has" in text
    assert "Which parameters matter" in text
    assert "Contribution of past studies" not in text
    assert "Past studies that were not used" not in text
    assert html_report(study)


def test_an_empty_study_says_so() -> None:
    study = new_study(random_sampler(0), name="empty")
    assert "The study has no trials yet." in markdown_report(study)
    assert "The study has no trials yet." in html_report(study)
    assert "The study has no trials yet." in html_report(study, [past_study()])


def test_a_running_study_says_so() -> None:
    study, past = transferred(7)
    study.ask()
    text = markdown_report(study, [past])
    assert "The study is still running." in text
    assert "| trials | 1 running, 7 complete |" in text
    lonely = new_study(random_sampler(0))
    lonely.ask()
    assert "No trial is finished and feasible yet." in markdown_report(lonely)
    assert html_report(lonely)


def test_one_objective_has_a_best_value_and_no_front() -> None:
    past = past_study(n=20, directions=ONE)
    study = new_study(MetaTPESampler([past], seed=0), ("maximize",))
    evaluate(study, 12)
    text = markdown_report(study, [past])
    best = study.best_trial
    assert f"The best value is {best.values[0]:.5g} (trial {best.number})." in text
    assert "## Best value" in text
    assert "front" not in text.lower()
    assert 'id="progress"' in html_report(study, [past])
    assert 'id="front"' not in html_report(study, [past])


def test_the_front_of_the_largest_and_smallest_numbers_is_drawn() -> None:
    study = new_study(random_sampler(0))
    ends = iter([(1e-300, 1.7e308), (1.7e308, 1e-300)])
    evaluate(study, 2, losses=lambda p: list(next(ends)))
    with np.errstate(all="raise"):
        assert 'id="front"' in html_report(study)


def test_three_objectives_have_a_front_too() -> None:
    study = new_study(random_sampler(0), ("minimize", "maximize", "minimize"))
    evaluate(study, 15, losses=lambda p: [p["x"], p["lr"], p["x"] * p["lr"]])
    assert 'id="front"' in html_report(study)


@pytest.mark.parametrize(
    "trials",
    [
        [frozen({"x": 0.5}, state=TrialState.FAIL)],
        [frozen({"x": 0.5}, state=TrialState.PRUNED)] * 3,
        [frozen({"x": 0.5}, [INF, 1.0]), frozen({"x": 0.2}, [INF, 2.0])],
        [frozen({"x": 0.5}, [1.0, 1.0], constraint=1.0)] * 2,
        [frozen({}, [1.0, 1.0])] * 3,
        [frozen({"x": 0.5}, [1.0, 1.0])],
    ],
    ids=["failed", "pruned", "infinite", "infeasible", "without parameters", "one"],
)
def test_trials_in_every_state_can_be_reported(trials: list[optuna.trial.FrozenTrial]) -> None:
    study = new_study(random_sampler(0), TWO, trials=trials)
    assert "In short" in markdown_report(study, [past_study()])
    assert html_report(study, [past_study()])


def test_many_parameters_share_a_column() -> None:
    space = {f"p{i}": FloatDistribution(0, 1) for i in range(20)}
    study = past_study(n=5, space=space)
    assert "| configuration |" in markdown_report(study)


def test_the_note_of_a_trial_that_is_not_listed_adds_no_column() -> None:
    study = new_study(random_sampler(0))
    for i in range(150):
        trial = frozen({"x": 0.5, "y": 0.5}, [float(i), float(-i)])
        trial.user_attrs = {"note": "unlisted"} if i == 1 else {}
        study.add_trial(trial)
    text = markdown_report(study)
    assert "50 more are not listed" in text
    assert "unlisted" not in text
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    (head,) = (line for line in lines if line.startswith("| trial |"))
    assert all(line.count("|") == head.count("|") for line in lines[lines.index(head) :][:100])
    assert "<table>" in html_report(study)
