"""Bad input: one sentence that names the thing, the value and a way out."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from optuna.distributions import FloatDistribution
from optuna.storages import BaseStorage, InMemoryStorage, RDBStorage
from optuna.trial import TrialState
from studies import (
    ONE,
    SPACE,
    TWO,
    evaluate,
    new_study,
    past_study,
    random_sampler,
    suggestions,
)

from metatpe import Task
from samplers.five import Make, learning

# Settings ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("setting", "value", "wanted"),
    [
        ("seed", -1, "0 or more"),
        ("seed", 1.5, "a whole number"),
        ("seed", "one", "a whole number"),
        ("search_space", {"x": (0, 1)}, "a dictionary of Optuna distributions"),
        ("search_space", ["x"], "a dictionary of Optuna distributions"),
        ("search_space", [("x", FloatDistribution(0, 1))], "a dictionary of Optuna distributions"),
    ],
)
def test_a_setting_that_all_samplers_have_is_refused_by_name_and_value(
    make: Make, setting: str, value: Any, wanted: str
) -> None:
    with pytest.raises(ValueError, match=f"^{setting} must be {wanted}, but is ") as error:
        make.kind(**{setting: value})
    assert repr(value) in str(error.value)
    assert "\n" not in str(error.value)


@learning
@pytest.mark.parametrize(
    ("setting", "value", "wanted"),
    [
        ("n_startup_trials", -1, "0 or more"),
        ("n_startup_trials", 2.5, "a whole number"),
        ("start", "best", '"portfolio" or "draw" or "random"'),
        ("start", False, '"portfolio" or "draw" or "random"'),
    ],
)
def test_a_start_that_there_is_not_is_refused_by_name_and_value(
    make: Make, setting: str, value: Any, wanted: str
) -> None:
    with pytest.raises(ValueError, match=f"^{setting} must be {wanted}, but is {value!r}"):
        make.kind(**{setting: value})


def test_the_settings_are_named(make: Make) -> None:
    with pytest.raises(TypeError, match="positional"):
        make.kind([], 5)  # type: ignore[call-arg]


def test_a_sampler_shows_its_name_its_sources_and_its_seed(make: Make) -> None:
    shown = str(make([past_study(), past_study()], seed=7))
    assert shown.startswith(f"{make.kind.__name__}(2 sources, ")
    assert shown.endswith("seed=7)")


# Sources -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("as_task", [False, True])
def test_a_source_with_one_observation_is_refused_by_name(make: Make, as_task: bool) -> None:
    study = past_study(n=1, name="tiny")
    with pytest.raises(ValueError, match=r"'tiny' has one observation.*leave it out"):
        make.kind([Task.from_study(study) if as_task else study])


@pytest.mark.parametrize("as_task", [False, True])
def test_one_source_outside_of_a_list_is_refused_with_a_way_out(make: Make, as_task: bool) -> None:
    study = past_study()
    with pytest.raises(ValueError, match=r"must be a list.*write \[study\]"):
        make.kind(Task.from_study(study) if as_task else study)  # type: ignore[arg-type]


@pytest.mark.parametrize("source", [None, 3, {"x": 1}, "sqlite:///studies.db"])
def test_a_source_that_is_no_study_and_no_task_is_refused_with_its_value(
    make: Make, source: Any
) -> None:
    with pytest.raises(ValueError, match="must be a Study or a Task, but is") as error:
        make.kind([past_study(), source])
    assert ("a string" if isinstance(source, str) else repr(source)) in str(error.value)


@pytest.mark.parametrize("sources", ["sqlite:///studies.db", None])
def test_sources_that_are_no_list_are_refused(make: Make, sources: Any) -> None:
    with pytest.raises(ValueError, match="sources must be a list of studies or tasks"):
        make.kind(sources)


@pytest.mark.parametrize("is_in_list", [True, False])
def test_a_password_in_a_url_that_was_given_as_a_source_is_not_printed(
    make: Make, is_in_list: bool
) -> None:
    url: Any = "postgresql://me:secret@host/studies"
    with pytest.raises(ValueError, match="must be a") as error:
        make.kind([url] if is_in_list else url)
    assert "secret" not in str(error.value)


@pytest.mark.parametrize("state", [None, TrialState.RUNNING, TrialState.FAIL])
def test_a_study_without_a_finished_trial_is_skipped_and_that_is_logged(
    make: Make, state: TrialState | None, caplog: pytest.LogCaptureFixture
) -> None:
    unfinished = new_study(random_sampler(0), name="unfinished")
    if state is not None:
        trial = unfinished.ask(SPACE)
        if state == TrialState.FAIL:
            unfinished.tell(trial, state=state)
    with caplog.at_level(logging.WARNING):
        sampler = make.kind([unfinished, past_study()], seed=0)
    assert caplog.text.count("source 'unfinished' is skipped: it has no finished trial") == 1
    assert suggestions(sampler, 6) == suggestions(make.kind([past_study()], seed=0), 6)


def test_a_study_whose_trials_have_no_parameter_is_skipped_and_that_is_logged(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    study = new_study(random_sampler(0), ONE, name="bare")
    evaluate(study, 3, space={}, losses=lambda _: [1.0])
    make.kind([study])
    assert "'bare' is skipped: it has no finished trial with a parameter" in caplog.text


def test_a_sampler_whose_sources_are_all_skipped_works_like_one_without(make: Make) -> None:
    skipped = make.kind([new_study(random_sampler(0))], seed=0)
    assert suggestions(skipped, 6) == suggestions(make.kind(seed=0), 6)


def test_studies_and_tasks_are_the_same_sources(make: Make) -> None:
    study = past_study()
    task = Task.from_study(study)
    of_study, of_task, of_iterator = (
        suggestions(make.kind(sources, seed=0), 7)  # type: ignore[arg-type]
        for sources in ([study], [task], iter([task]))
    )
    assert of_study == of_task == of_iterator


def test_later_trials_of_a_source_study_are_not_read(make: Make) -> None:
    source = past_study()
    sampler = make.kind([source], seed=0)
    evaluate(source, 10)
    assert suggestions(sampler, 7) == suggestions(make.kind([past_study()], seed=0), 7)


# Objectives --------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=[InMemoryStorage, lambda: RDBStorage("sqlite:///:memory:")])
def storage(request: pytest.FixtureRequest) -> BaseStorage:
    made: BaseStorage = request.param()
    return made


@pytest.mark.parametrize("directions", [ONE, ("minimize", "maximize", "minimize")])
def test_another_number_of_objectives_raises_at_the_first_suggestion_and_leaves_nothing_running(
    make: Make, directions: tuple[str, ...], storage: BaseStorage
) -> None:
    study = new_study(make([past_study(directions=TWO)]), directions, storage=storage)
    message = f"'past' has 2 objectives, but this study has {len(directions)}; leave it out"
    with pytest.raises(ValueError, match=message):
        study.optimize(lambda t: [t.suggest_float("x", 0, 1)] * len(directions), n_trials=3)
    assert [t.state for t in study.trials] == [TrialState.FAIL]


def test_another_number_of_objectives_is_refused_in_a_study_that_has_trials_already(
    make: Make,
) -> None:
    study = new_study(make(), ONE)
    evaluate(study, 3)
    study.sampler = make([past_study(directions=TWO)])
    with pytest.raises(ValueError, match="has 2 objectives, but this study has 1"):
        study.optimize(lambda t: t.suggest_float("x", 0, 1), n_trials=1)
    assert study.trials[-1].state == TrialState.FAIL


def test_a_sampler_with_sources_goes_on_after_a_study_that_it_refused(make: Make) -> None:
    sampler = make([past_study()])
    with pytest.raises(ValueError, match="objectives"):
        evaluate(new_study(sampler, ONE), 1)
    assert suggestions(sampler, 6) == suggestions(make([past_study()]), 6)


def test_who_comes_with_a_constraints_func_is_told_what_to_do(make: Make) -> None:
    with pytest.raises(TypeError, match=r"has no constraints_func.*call trial\.set_constraint"):
        make.kind((), constraints_func=lambda trial: [0.0])  # type: ignore[call-arg]
