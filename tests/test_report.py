"""What a report says: facts, words, Markdown, and that HTML escapes all of it."""

import re
from html.parser import HTMLParser
from typing import Any, Literal

import numpy as np
import optuna
import pytest
from markdown_it import MarkdownIt
from optuna.distributions import FloatDistribution
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
from transferred import ODD, large_study, odd_study, transferred, weighed_study

from metatpe import MetaTPESampler, Task, TransferSampler, transfer_history
from metatpe.report import html_report, markdown_report, note
from metatpe.report.facts import facts_of
from metatpe.report.html import Html, element
from metatpe.report.markdown import plain
from metatpe.report.saved import AgainstRuns, against_runs, by_turns

INF = float("inf")


def column(*values: float) -> np.ndarray[Any, Any]:
    return np.array(values, dtype=float)[:, None]


# How many trials were saved


def test_the_trials_saved_are_those_by_which_the_other_run_was_later() -> None:
    saved = against_runs(column(5, 1, 3, 2), [column(6, 5, 4, 3, 2, 1)])
    assert saved == AgainstRuns(here=[2], there=[6])
    assert saved.n == 4


def test_runs_are_compared_at_the_best_that_both_have_reached() -> None:
    saved = against_runs(column(5, 2, 1), [column(5, 4, 3)])
    assert saved == AgainstRuns(here=[2], there=[3])
    lost = against_runs(column(5, 4, 3), [column(5, 2, 1)])
    assert lost == AgainstRuns(here=[3], there=[2])
    assert lost.n == -1


def test_of_several_runs_the_middle_counts() -> None:
    here = column(1)
    saved = against_runs(here, [column(1), column(2, 2, 1), column(2, 2, 2, 2, 2, 1)])
    assert saved is not None
    assert saved.each == [0, 2, 5]
    assert saved.n == 2


def test_the_scale_of_an_objective_does_not_matter(rng: np.random.Generator) -> None:
    here, there = rng.random((30, 2)), rng.random((40, 2)) + 0.1
    scaled = [np.stack([np.exp(9 * run[:, 0]), run[:, 1] ** 3], axis=1) for run in (here, there)]
    assert against_runs(here, [there]) == against_runs(scaled[0], [scaled[1]])


def test_trials_that_do_not_count_reach_nothing() -> None:
    saved = against_runs(
        np.array([[INF, INF], [1.0, 1.0]]), [np.array([[2.0, 2.0], [INF, INF], [1.0, 1.0]])]
    )
    assert saved == AgainstRuns(here=[2], there=[3])
    assert against_runs(column(INF), [column(1)]) is None


def hits(which: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return losses that fall at every hit and rise elsewhere."""
    steps = np.arange(len(which), dtype=float)
    return np.where(which, -steps, steps + 1)[:, None]


def test_the_pasts_turns_save_what_own_turns_would_have_taken() -> None:
    turns = np.tile([1.0, -1.0], 60)
    which = np.zeros(120, dtype=bool)
    which[0::4] = True  # every second of the past's turns
    which[1::12] = True  # every sixth of the study's own
    saved = by_turns(hits(which), turns)
    assert saved is not None
    assert (saved.n_past, saved.n_past_hits, saved.n_own, saved.n_own_hits) == (60, 30, 60, 10)
    assert saved.n == pytest.approx(60 * (3 - 1), abs=1)
    assert 0 < saved.low < saved.n < saved.high


def test_turns_that_found_too_little_say_nothing() -> None:
    turns = np.tile([1.0, -1.0], 60)
    which = np.zeros(120, dtype=bool)
    which[0::4] = True
    which[[1, 41, 81]] = True  # three hits are too few to divide by
    assert by_turns(hits(which), turns) is None
    assert by_turns(hits(which), np.ones(120)) is None
    assert by_turns(hits(which), np.zeros(120)) is None


def test_an_early_share_of_the_turns_is_not_taken_for_a_gain(rng: np.random.Generator) -> None:
    """Hits are frequent early, and so are the turns of the past, for no common reason."""
    is_early = np.arange(200) < 60
    claims, ratios = 0, []
    for _ in range(100):
        which = rng.random(200) < np.where(is_early, 0.6, 0.1)
        turns = np.where(rng.random(200) < np.where(is_early, 0.8, 0.3), 1.0, -1.0)
        claims += by_turns(hits(which), turns) is not None
        ratios.append(which[turns > 0].mean() / which[turns < 0].mean())
    assert np.mean(ratios) > 1.7
    assert claims <= 12


def test_where_nothing_is_saved_that_is_rarely_claimed(rng: np.random.Generator) -> None:
    claims = 0
    for _ in range(200):
        which = rng.random(150) < 0.3
        turns = np.where(rng.random(150) < 0.6, 1.0, -1.0)
        claims += by_turns(hits(which), turns) is not None
    assert claims <= 20  # 5 % by the interval; 10 % leaves room for chance


# What the past gave


def test_warm_starts_are_told_by_the_task_and_its_place() -> None:
    study, past = transferred(8)
    (source,) = facts_of(study, [past]).sources
    task = Task.from_study(past)
    warm = [r.number for r in transfer_history(study) if r.origin == "warm_start"]
    assert [w.number for w in source.warm_starts] == warm
    assert sorted(w.place for w in source.warm_starts) == [1, 2, 3, 4, 5]
    best = next(w for w in source.warm_starts if w.place == 1)
    at = [i for i in range(len(task)) if task.configuration(i) == study.trials[best.number].params]
    assert len(at) == 1


def test_a_source_is_ignored_from_the_trial_on_where_it_weighs_next_to_nothing() -> None:
    study = weighed_study(
        {"target": 0.7, "a": 0.3, "b": 0.0},
        {"target": 0.99, "a": 0.01, "b": 0.0},
        {"target": 0.7, "a": 0.3, "b": 0.0},
        {"target": 0.99, "a": 0.01, "b": 0.0},
        {"target": 0.99, "a": 0.01, "b": 0.0},
    )
    a, b = facts_of(study).sources
    assert (a.name, a.until, a.is_used, list(a.say)) == ("a", 3, True, [0, 2])
    assert (b.name, b.is_used) == ("b", False)
    text = markdown_report(study)
    assert "| a | trial 3 on | dissimilar" in text
    assert "| b | all along | it never had a weight worth mentioning" in text


def test_what_is_said_of_weights_and_turns_is_true_of_models_too() -> None:
    """They weigh by what past studies predict, not by similarity, and give no turns."""
    past = [past_study(n=30, name="alike"), past_study(n=30, name="constant", losses=constant)]
    study = new_study(TransferSampler(past, seed=0))
    evaluate(study, 10)
    text = markdown_report(study, past)
    assert re.search(r"\| alike \| 30 \|.*\| \d trials \|", text)
    assert re.search(r"\| constant \| trial \d on \| what it predicts does not go with", text)
    assert "is its share in what the model predicts" in text
    assert not re.search("turn |turns |overlap|dissimilar|similarity", text)


def test_trials_that_a_model_chose_without_the_past_are_told_as_the_studys_own_turns() -> None:
    past, done = past_study(n=30, space=SQUARE), [frozen(p, two_losses(p)) for p in spread(55)]
    study = new_study(TransferSampler([past], seed=0), trials=done)
    evaluate(study, 8, space=SQUARE)
    is_own = [not record.weights for record in transfer_history(study)]
    assert {True, False} == set(is_own)
    text = markdown_report(study, [past])
    assert f"| own turn | {sum(is_own)} |" in text
    assert "chosen without the past, and so without weights" in text
    own = frozen({"x": 0.5, "y": 0.5}, [0.5, 0.5])
    own.user_attrs["metatpe"] = {"origin": "acquisition", "weights": {}, "kept": []}
    text = markdown_report(new_study(TransferSampler([past]), trials=[*done, own]), [past])
    assert "no trial so far was chosen with weights" in text


@pytest.mark.parametrize("weights", ["similarity", "uniform"])
def test_what_is_said_of_models_is_not_said_of_densities(
    weights: Literal["similarity", "uniform"],
) -> None:
    past = past_study(n=30)
    sampler = MetaTPESampler([past], weights=weights, warm_start=False, seed=0)
    study = new_study(sampler)
    evaluate(study, 10)
    text = markdown_report(study, [past])
    assert "what the model predicts" not in text
    assert ("the past's turn, where all studies" in text) == (weights == "similarity")


def constant(params: dict[str, Any]) -> list[float]:
    return [1.0, 1.0]


def test_a_source_that_still_weighs_is_not_ignored() -> None:
    study = weighed_study({"target": 0.7, "a": 0.3}, {"target": 0.7, "a": 0.3})
    (a,) = facts_of(study).sources
    assert a.until is None
    assert "None of the past studies: all of them had a weight to the end." in markdown_report(
        study
    )


def test_what_was_ignored_is_told_with_the_reason() -> None:
    study, past = transferred(12)
    single = past_study(name="single", directions=ONE)
    elsewhere = past_study(name="elsewhere", space={"other": FloatDistribution(0, 1)})
    wider = past_study(name="wider", space={"x": FloatDistribution(0.0, 2.0)})
    text = markdown_report(study, [past, single, elsewhere, wider])
    assert "| single | all along | it has 1 objectives, but the new study has 2. |" in text
    assert "| elsewhere | all along | it has no parameter in common with the new study. |" in text
    assert "| wider | all along | it was not among the sampler's sources" in text


def test_what_of_a_source_lies_outside_is_told() -> None:
    wide = past_study(n=30, name="wide", space={"x": FloatDistribution(0.0, 2.0)})
    study = new_study(MetaTPESampler([wide], seed=0))
    evaluate(study, 10)
    n = sum(t.params["x"] > 1.0 for t in wide.trials)
    text = markdown_report(study, [wide])
    assert f"| wide | in part | space: {n} values of x are outside of the range; it lacks" in text


def test_the_front_is_listed_with_where_it_came_from() -> None:
    study, past = transferred(15)
    text, records = markdown_report(study, [past]), transfer_history(study)
    for trial in study.best_trials:
        row = next(line for line in text.splitlines() if line.startswith(f"| {trial.number} |"))
        assert f"{trial.values[0]:.5g}" in row
        assert f"{trial.values[1]:.5g}" in row
        is_warm = records[trial.number].origin == "warm_start"
        assert row.endswith("| warm start of past |") == is_warm
    assert f"The front has {len(study.best_trials)} points." in text


def test_what_is_measured_against_runs_without_the_past_is_said_with_the_way() -> None:
    study = new_study(random_sampler(0), ONE, trials=[frozen({"x": 0.5}, v) for v in (3, 1)])
    other = new_study(
        random_sampler(0), ONE, trials=[frozen({"x": 0.5}, v) for v in (3, 2, 2, 1)], name="plain"
    )
    text = markdown_report(study, without=[other])
    assert "Without transfer you would have needed about 2 more trials." in text
    assert "Measured against 1 run of the same problem without the past (plain)." in text
    assert "it took 4 trials, and this study 2" in text
    turned = markdown_report(other, without=[study])
    assert "Without transfer you would not have needed more trials." in turned
    assert "needed" not in markdown_report(study)
    with pytest.raises(ValueError, match="its objectives are others"):
        markdown_report(study, without=[past_study()])


# Studies of every kind


def test_a_study_of_another_sampler_gets_what_can_be_said() -> None:
    study = past_study(n=25)
    text = markdown_report(study)
    assert "No record of a transfer" in text
    assert "The front has" in text
    assert "Which parameters matter" in text
    assert "What the past gave" not in text
    assert "What was ignored" not in text
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
    assert "It is still running." in text
    assert "| trials | 1 running, 7 complete |" in text
    lonely = new_study(random_sampler(0))
    lonely.ask()
    assert "None of them is finished and feasible yet." in markdown_report(lonely)
    assert html_report(lonely)


def test_one_objective_has_a_best_value_and_no_front() -> None:
    past = past_study(n=20, directions=ONE)
    study = new_study(MetaTPESampler([past], seed=0), ("maximize",))
    evaluate(study, 12)
    text = markdown_report(study, [past])
    best = study.best_trial
    assert f"The best value, {best.values[0]:.5g}, is that of trial {best.number}." in text
    assert "## The best value" in text
    assert "front" not in text.lower()
    assert 'id="progress"' in html_report(study, [past])
    assert 'id="front"' not in html_report(study, [past])


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


# Text stays text


@pytest.mark.parametrize(
    "text",
    [
        ODD,
        "*a* _b_ **c** __d__ ~~e~~ `f`",
        "[link](http://x) ![image](y) <http://z>",
        "# no heading",
        "- no list",
        "1. no number",
        "> no quotation",
        "a | b",
        "&lt; &amp; \\* \\",
        "snake_case_name",
    ],
)
def test_markdown_shows_text_as_it_is(text: str) -> None:
    rendered = MarkdownIt("commonmark", {"html": True}).enable("table").render(f"x {plain(text)}")
    assert text_of(rendered).strip() == f"x {text}"
    rendered = MarkdownIt("commonmark").enable("table").render(f"| a |\n|---|\n| {plain(text)} |")
    assert text_of(rendered).split(maxsplit=1)[1].strip() == text


def test_lines_of_a_name_become_one() -> None:
    assert plain("a\n\n# b\r\nc") == "a # b c"


def test_elements_escape_what_is_not_html() -> None:
    assert element("p", "<b>", Html("<i>x</i>"), title='"') == (
        '<p title="&quot;">&lt;b&gt;<i>x</i></p>'
    )


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.text: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def read(html: str) -> _Reader:
    reader = _Reader()
    reader.feed(html)
    return reader


def text_of(html: str) -> str:
    return "".join(read(html).text)


def test_the_page_has_nothing_but_its_own_elements() -> None:
    study, past = odd_study()
    page = read(html_report(study, [past]))
    assert "".join(page.text).count(ODD) > 10  # name, objective, parameter, choices, attributes
    assert {tag for tag, _ in page.tags} <= {
        *("html", "head", "meta", "title", "style", "body", "header", "main", "section", "script"),
        *("h1", "h2", "h3", "small", "p", "ul", "li", "div", "figure", "figcaption"),
        *("table", "thead", "tbody", "tr", "th", "td"),
    }
    names = {name for _, attributes in page.tags for name in attributes}
    assert not {name for name in names if name.startswith("on") or name in ("src", "href")}


def test_passwords_appear_nowhere() -> None:
    study, past = transferred(8)
    study.set_user_attr("storage", "mysql://me:geheim@host/studies")
    trial = study.ask()
    trial.set_user_attr("where", "postgresql://me:geheim@host/x")
    study.tell(trial, [-1.0, -1.0])
    assert "where = postgresql" in markdown_report(study)
    for text in (markdown_report(study, [past]), html_report(study, [past]), note(study)):
        assert "geheim" not in text
    assert "mysql://me:\\*\\*\\*@host/studies" in markdown_report(study)


def test_the_page_is_small_enough_to_be_mailed(rng: np.random.Generator) -> None:
    study, past = large_study(1000, 50, rng)
    page = html_report(study, past)
    assert len(page.encode()) < 3_000_000
