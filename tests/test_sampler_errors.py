"""Bad input, and the private parts of Optuna that the sampler stands on."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import optuna
import pytest
from optuna.distributions import FloatDistribution
from optuna.storages import InMemoryStorage, RDBStorage
from optuna.trial import TrialState
from studies import ONE, SPACE, SQUARE, TWO, evaluate, new_study, past_study

from metatpe import MetaTPESampler, Space, Task

NAN, INF = float("nan"), float("inf")

# Settings ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("setting", "value", "wanted"),
    [
        ("n_startup_trials", -1, "0 or more"),
        ("n_ei_candidates", 0, "1 or more"),
        ("n_ei_candidates", -3, "1 or more"),
        ("n_mc_samples", 0, "1 or more"),
        ("gamma", 0.0, "between 0 and 1"),
        ("gamma", 1.0, "between 0 and 1"),
        ("gamma", -0.1, "between 0 and 1"),
        ("gamma", NAN, "between 0 and 1"),
        ("eta", 1.0, "more than 1"),
        ("eta", 0.5, "more than 1"),
        ("eta", NAN, "more than 1"),
        ("eta", INF, "more than 1"),
        ("epsilon", -0.01, "from 0 to 1"),
        ("epsilon", 1.01, "from 0 to 1"),
        ("epsilon", NAN, "from 0 to 1"),
        ("weights", "equal", '"similarity" or "uniform"'),
        ("weights", None, '"similarity" or "uniform"'),
    ],
)
def test_a_setting_out_of_its_range_is_refused_by_name_and_value(
    setting: str, value: Any, wanted: str
) -> None:
    with pytest.raises(ValueError, match=f"^{setting} must be {wanted}, but is ") as error:
        MetaTPESampler(**{setting: value})
    assert repr(value) in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("n_startup_trials", 2.5),
        ("n_ei_candidates", 10.5),
        ("n_mc_samples", 99.5),
        ("seed", -1),
        ("seed", 1.5),
        ("seed", "one"),
        ("search_space", {"x": (0, 1)}),
        ("search_space", [("x", FloatDistribution(0, 1))]),
    ],
)
def test_a_setting_of_another_kind_is_refused_by_name(setting: str, value: Any) -> None:
    with pytest.raises((ValueError, TypeError), match=setting):
        MetaTPESampler(**{setting: value})


@pytest.mark.parametrize(
    "settings",
    [
        {"n_startup_trials": 0, "n_ei_candidates": 1, "n_mc_samples": 1},
        {"gamma": 1e-6, "eta": 1.0001, "epsilon": 0.0},
        {"gamma": 1 - 1e-6, "eta": 1e6, "epsilon": 1.0},
        {"n_startup_trials": np.int64(3), "seed": np.int64(3), "gamma": np.float32(0.2)},
        {"seed": 2**70},
        {"seed": 0, "search_space": {}},
    ],
)
@pytest.mark.parametrize("n_sources", [0, 1])
def test_settings_at_the_ends_of_their_ranges_work(
    settings: dict[str, Any], n_sources: int
) -> None:
    study = new_study(MetaTPESampler([past_study()] * n_sources, **settings))
    assert len(evaluate(study, 10)) == 10


def test_the_settings_are_named() -> None:
    with pytest.raises(TypeError, match="positional"):
        MetaTPESampler([], 5)  # type: ignore[call-arg]


# Sources -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("as_task", [False, True])
def test_a_source_with_one_observation_is_refused_by_name(as_task: bool) -> None:
    study = past_study(n=1, name="tiny")
    with pytest.raises(ValueError, match=r"'tiny' has one observation.*leave it out"):
        MetaTPESampler([Task.from_study(study) if as_task else study])


def test_a_task_without_an_observation_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match=r"'empty'.*no observation.*leave"):
        Task("empty", Space(SQUARE), np.empty((0, 2)), np.empty((0, 2)))


def test_a_study_whose_trials_have_no_parameter_is_skipped_and_said(
    caplog: pytest.LogCaptureFixture,
) -> None:
    study = new_study(optuna.samplers.RandomSampler(), ONE, name="bare")
    evaluate(study, 3, space={}, losses=lambda _: [1.0])
    MetaTPESampler([study])
    assert "'bare' is skipped: it has no finished trial with a parameter" in caplog.text


@pytest.mark.parametrize("as_task", [False, True])
def test_one_source_outside_of_a_list_is_refused_with_a_way_out(as_task: bool) -> None:
    study = past_study()
    with pytest.raises(ValueError, match=r"must be a list.*write \[study\]"):
        MetaTPESampler(Task.from_study(study) if as_task else study)  # type: ignore[arg-type]


@pytest.mark.parametrize("source", [None, 3, {"x": 1}, "sqlite:///studies.db"])
def test_a_source_that_is_no_study_and_no_task_is_refused_with_its_value(source: Any) -> None:
    with pytest.raises(ValueError, match="must be a Study or a Task, but is") as error:
        MetaTPESampler([past_study(), source])
    assert ("a string" if isinstance(source, str) else repr(source)) in str(error.value)


@pytest.mark.parametrize("sources", ["sqlite:///studies.db", None])
def test_sources_that_are_no_list_are_refused(sources: Any) -> None:
    with pytest.raises(ValueError, match="sources must be a list"):
        MetaTPESampler(sources)


@pytest.mark.parametrize("is_in_list", [True, False])
def test_a_password_in_a_url_that_was_given_as_a_source_is_not_printed(is_in_list: bool) -> None:
    url: Any = "postgresql://me:secret@host/studies"
    with pytest.raises(ValueError, match="must be a") as error:
        MetaTPESampler([url] if is_in_list else url)
    assert "secret" not in str(error.value)


@pytest.mark.parametrize("state", [None, TrialState.RUNNING, TrialState.FAIL])
def test_a_study_without_a_finished_trial_is_skipped_and_that_is_said(
    state: TrialState | None, caplog: pytest.LogCaptureFixture
) -> None:
    unfinished = new_study(optuna.samplers.RandomSampler(), name="unfinished")
    if state is not None:
        trial = unfinished.ask(SPACE)
        if state == TrialState.FAIL:
            unfinished.tell(trial, state=state)
    with caplog.at_level(logging.WARNING):
        sampler = MetaTPESampler([unfinished, past_study()], seed=0)
    assert caplog.text.count("source 'unfinished' is skipped: it has no finished trial") == 1
    assert evaluate(new_study(sampler), 8) == evaluate(
        new_study(MetaTPESampler([past_study()], seed=0)), 8
    )


def test_a_sampler_whose_sources_are_all_skipped_works_like_one_without() -> None:
    unfinished = new_study(optuna.samplers.RandomSampler())
    skipped = evaluate(new_study(MetaTPESampler([unfinished], seed=0)), 8)
    assert skipped == evaluate(new_study(MetaTPESampler(seed=0)), 8)


@pytest.mark.parametrize("directions", [ONE, ("minimize", "maximize", "minimize")])
@pytest.mark.parametrize("storage", [InMemoryStorage, lambda: RDBStorage("sqlite:///:memory:")])
def test_another_number_of_objectives_raises_at_the_first_suggestion_and_leaves_nothing_running(
    directions: tuple[str, ...], storage: Any
) -> None:
    sampler = MetaTPESampler([past_study(directions=TWO)], seed=0)
    study = new_study(sampler, directions, storage=storage())
    message = f"'past' has 2 objectives, but this study has {len(directions)}; leave it out"
    with pytest.raises(ValueError, match=message):
        study.optimize(lambda t: [t.suggest_float("x", 0, 1)] * len(directions), n_trials=3)
    assert [t.state for t in study.trials] == [TrialState.FAIL]


def test_another_number_of_objectives_is_refused_in_a_study_that_has_trials_already() -> None:
    study = new_study(MetaTPESampler(seed=0), ONE)
    evaluate(study, 5)
    study.sampler = MetaTPESampler([past_study(directions=TWO)], seed=0)
    with pytest.raises(ValueError, match="has 2 objectives, but this study has 1"):
        study.optimize(lambda t: t.suggest_float("x", 0, 1), n_trials=1)
    assert study.trials[-1].state == TrialState.FAIL


def test_a_sampler_with_sources_goes_on_after_a_study_that_it_refused() -> None:
    sampler = MetaTPESampler([past_study()], seed=0)
    with pytest.raises(ValueError, match="objectives"):
        evaluate(new_study(sampler, ONE), 1)
    fresh = MetaTPESampler([past_study()], seed=0)
    assert evaluate(new_study(sampler), 8) == evaluate(new_study(fresh), 8)


# What the sampler needs of Optuna and Optuna does not promise ------------------------------------

storages = pytest.mark.parametrize(
    "storage",
    [InMemoryStorage(), RDBStorage("sqlite:///:memory:")],
    ids=["in memory", "relational"],
)


@storages
def test_optuna_still_lets_a_sampler_write_attributes_of_a_trial(storage: Any) -> None:
    moved = "Optuna has moved this; change MetaTPESampler._choose and _read in sampler.py"
    study = optuna.create_study(storage=storage)
    assert isinstance(getattr(study, "_study_id", None), int), moved
    assert hasattr(getattr(study, "_storage", None), "set_trial_system_attr"), moved
    assert hasattr(study._storage, "set_trial_user_attr"), moved
    trial = study.ask()
    frozen = study.trials[0]
    assert frozen._trial_id == trial._trial_id, moved
    study._storage.set_trial_system_attr(frozen._trial_id, "metatpe:plan:0", {"a": [1, None]})
    study._storage.set_trial_user_attr(frozen._trial_id, "metatpe", {"b": 0.1})
    written = study.get_trials(deepcopy=False)[0]
    assert written.system_attrs["metatpe:plan:0"] == {"a": [1, None]}, moved
    assert written.user_attrs["metatpe"] == {"b": 0.1}, moved
    hash(study._storage)  # what is remembered of a study is kept by its storage


@storages
def test_optuna_still_shows_a_sampler_the_attributes_that_it_has_just_written(
    storage: Any,
) -> None:
    class Writing(optuna.samplers.RandomSampler):
        seen: Any = None

        def sample_relative(self, study: Any, trial: Any, search_space: Any) -> dict[str, Any]:
            study._storage.set_trial_system_attr(trial._trial_id, "metatpe:plan:0", 7)
            return {}

        def sample_independent(self, study: Any, trial: Any, *args: Any) -> Any:
            self.seen = trial.system_attrs.get("metatpe:plan:0")
            return super().sample_independent(study, trial, *args)

    sampler = Writing()
    optuna.create_study(storage=storage, sampler=sampler).ask(SQUARE)
    assert sampler.seen == 7, "sample_independent in sampler.py reads the plan from the trial"


@storages
def test_optuna_still_marks_an_enqueued_trial_by_its_fixed_parameters(storage: Any) -> None:
    study = optuna.create_study(storage=storage)
    study.enqueue_trial({"x": 0.25})
    study.enqueue_trial({})
    study.ask()
    assert [t.system_attrs.get("fixed_params") for t in study.trials] == [{"x": 0.25}, {}], (
        "_history.py tells enqueued trials by the system attribute fixed_params"
    )


@storages
def test_optuna_still_keeps_the_trials_of_a_study_sorted_by_number(storage: Any) -> None:
    study = optuna.create_study(storage=storage)
    evaluate(study, 12, space={}, losses=lambda _: [0.0])
    numbers = [t.number for t in study.get_trials(deepcopy=False)]
    assert numbers == list(range(12)), "_history.py takes a trial's position for its number"
