"""Search spaces of every kind: what an objective asks for decides, whatever the past had."""

from __future__ import annotations

import numpy as np
import optuna
import pytest
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.samplers import PartialFixedSampler
from optuna.trial import TrialState
from studies import (
    ONE,
    SPACE,
    SQUARE,
    TWO,
    Params,
    evaluate,
    in_space,
    new_study,
    past_study,
    random_sampler,
    suggestions,
)

from metatpe import Space, Task, transfer_history
from samplers.five import META_TPE, Make, learning, pasts, with_and_without

UNIT = FloatDistribution(0.0, 1.0)


def fit(suggested: list[Params], space: dict[str, BaseDistribution]) -> bool:
    """Return whether configurations have all parameters of a space, and values that it knows."""
    return all(set(p) == set(space) and in_space(p, space) for p in suggested)


# Parameters that are fixed, late, conditional or moving ------------------------------------------


@pytest.mark.parametrize("directions", [ONE, TWO])
@with_and_without
def test_a_partial_fixed_sampler_fixes_its_parameters_and_the_rest_is_chosen(
    make: Make, directions: tuple[str, ...], n_sources: int
) -> None:
    fixed = {"depth": 2, "kind": "c"}
    sampler = PartialFixedSampler(fixed, make(pasts(n_sources, directions=directions)))
    suggested = suggestions(sampler, 8, directions=directions)
    assert all({name: p[name] for name in fixed} == fixed for p in suggested)
    assert fit(suggested, SPACE)
    assert len({(p["x"], p["lr"]) for p in suggested}) == 8


def test_a_partial_fixed_sampler_may_come_later(make: Make) -> None:
    study = new_study(make())
    evaluate(study, 6)
    study.sampler = PartialFixedSampler({"x": 0.25}, study.sampler)
    assert [p["x"] for p in evaluate(study, 4)] == [0.25] * 4


ONE_VALUE: dict[str, BaseDistribution] = {
    "float": FloatDistribution(1.5, 1.5),
    "log": FloatDistribution(1e-3, 1e-3, log=True),
    "int": IntDistribution(3, 3),
    "stepped": IntDistribution(3, 3, step=5),
    "choice": CategoricalDistribution(("only",)),
    "nothing": CategoricalDistribution((None,)),
}


@pytest.mark.parametrize("is_given", [False, True])
def test_a_parameter_of_a_single_value_is_no_part_of_what_is_chosen(
    make: Make, is_given: bool
) -> None:
    space = {**ONE_VALUE, "x": UNIT}
    sampler = make(search_space=space) if is_given else make()
    study = new_study(sampler)
    if not is_given:
        evaluate(study, 1, space=space, losses=lambda _: [0.0, 0.0])
    trial = study.ask()
    frozen = study.get_trials(deepcopy=False)[trial.number]
    assert sampler.infer_relative_search_space(study, frozen) == {"x": UNIT}


@pytest.mark.parametrize("others", [{}, SPACE], ids=["nothing else", "others"])
@with_and_without
def test_parameters_with_one_value_get_it(
    make: Make, n_sources: int, others: dict[str, BaseDistribution]
) -> None:
    space = {**ONE_VALUE, **others}
    suggested = suggestions(make(pasts(n_sources, space=space)), 7, space=space)
    value = {"float": 1.5, "log": 1e-3, "int": 3, "stepped": 3, "choice": "only", "nothing": None}
    assert all({name: p[name] for name in ONE_VALUE} == value for p in suggested)
    assert fit(suggested, space)


def test_a_parameter_that_gets_a_range_later_is_served(make: Make) -> None:
    study = new_study(make())
    evaluate(study, 6, space={**SQUARE, "n": IntDistribution(2, 2)})
    suggested = evaluate(study, 6, space={**SQUARE, "n": IntDistribution(2, 9)})
    assert all(2 <= p["n"] <= 9 for p in suggested)
    assert len({p["n"] for p in suggested}) > 1


@pytest.mark.filterwarnings("ignore:The distribution is specified by")
def test_a_fine_grid_far_from_zero_is_served(make: Make) -> None:
    space = {"x": FloatDistribution(-524288.9999999999, -524288.9715, step=0.001)}
    suggested = suggestions(make(), 10, space=space)
    assert all(-524289.0 < p["x"] < -524288.97 for p in suggested)


@pytest.mark.parametrize("late", ["lr", "depth"])
@with_and_without
def test_a_parameter_that_appears_late_is_served(make: Make, late: str, n_sources: int) -> None:
    early = {name: d for name, d in SPACE.items() if name != late}
    study = new_study(make(pasts(n_sources, space=early)))
    evaluate(study, 6, space=early)
    suggested = evaluate(study, 4)
    assert fit(suggested, SPACE)
    assert len({p[late] for p in suggested}) > 1


@learning
@pytest.mark.parametrize("n_sources", [0, 1])
def test_the_parameters_of_branches_are_learned(make: Make, n_sources: int) -> None:
    def objective(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", 0.0, 1.0)
        if trial.suggest_categorical("branch", ("left", "right")) == "left":
            return x + 1.0 + trial.suggest_float("left", 0.0, 1.0)
        return x + abs(trial.suggest_int("right", 1, 50) - 30) / 50

    past = optuna.create_study(study_name="past", sampler=random_sampler(0))
    past.optimize(objective, n_trials=30)
    study = new_study(make([past] * n_sources), ONE)
    study.optimize(objective, n_trials=25)
    assert all(t.state == TrialState.COMPLETE for t in study.trials)
    assert all((t.params["branch"] in t.params) for t in study.trials)
    assert sum(t.params["branch"] == "right" for t in study.trials[10:]) >= 10
    assert study.best_value < 0.35


@with_and_without
def test_ranges_that_move_with_every_trial_are_served(make: Make, n_sources: int) -> None:
    study = new_study(make(pasts(n_sources)))
    for i in range(10):
        space = {
            "x": FloatDistribution(-i, i + 1),
            "lr": FloatDistribution(1e-4 * (i + 1), 1.0 + i, log=True),
            "depth": IntDistribution(1 + i % 3, 4 + i % 5),
        }
        assert fit(evaluate(study, 1, space=space), space)


# A space that was given --------------------------------------------------------------------------


@learning
@pytest.mark.parametrize("space", [SPACE, {"x": UNIT}, {**SPACE, "never": IntDistribution(0, 3)}])
@with_and_without
def test_a_given_search_space_is_known_from_the_first_trial(
    make: Make, space: dict[str, BaseDistribution], n_sources: int
) -> None:
    sampler = make.at_once(pasts(n_sources), search_space=space, start="random")
    study = new_study(sampler)
    assert fit(evaluate(study, 3), SPACE)
    assert [r.origin for r in transfer_history(study)] == ["acquisition"] * 3


def test_what_is_asked_for_wins_over_the_given_range(make: Make) -> None:
    given = {"x": FloatDistribution(5.0, 6.0), "lr": SPACE["lr"]}
    assert fit(suggestions(make(search_space=given), 8), SPACE)


# Another space than the past had -----------------------------------------------------------------

KINDS: dict[str, BaseDistribution] = {
    "float": FloatDistribution(-1.0, 4.0),
    "narrow float": FloatDistribution(1.5, 2.5),
    "far float": FloatDistribution(100.0, 101.0),
    "log float": FloatDistribution(1e-3, 10.0, log=True),
    "stepped float": FloatDistribution(0.0, 3.0, step=0.25),
    "int": IntDistribution(-2, 5),
    "log int": IntDistribution(1, 1000, log=True),
    "stepped int": IntDistribution(0, 12, step=4),
    "large int": IntDistribution(0, 10**6),
    "one int": IntDistribution(2, 2),
    "numbers": CategoricalDistribution((1, 2, 4)),
    "other numbers": CategoricalDistribution((4, 2, 8, 16)),
    "words": CategoricalDistribution(("1", "2", "adam")),
    "mixed": CategoricalDistribution((None, True, 1.5, "adam", 2)),
    "one choice": CategoricalDistribution(("adam",)),
}
SOME = ("float", "log float", "stepped float", "log int", "one int", "other numbers", "mixed")


@pytest.fixture(scope="module")
def of_every_kind() -> list[Task]:
    studies = [past_study(space={"p": d, "x": UNIT}, n=4, name=k) for k, d in KINDS.items()]
    return [Task.from_study(study) for study in studies]


@pytest.mark.parametrize("asked_for", SOME)
def test_the_past_may_have_had_every_other_distribution(
    make: Make, asked_for: str, of_every_kind: list[Task]
) -> None:
    space = {"x": UNIT, "p": KINDS[asked_for]}
    study = new_study(make(of_every_kind, n_startup_trials=2))
    assert fit(evaluate(study, 4, space=space), space)
    assert [r.origin for r in transfer_history(study)][:2] == ["warm_start"] * 2


@pytest.mark.parametrize("asked_for", KINDS)
@pytest.mark.parametrize("in_past", KINDS)
def test_any_distribution_may_follow_on_any_other(in_past: str, asked_for: str) -> None:
    space = {"x": UNIT, "p": KINDS[asked_for]}
    sources = [
        past_study(space={"p": KINDS[in_past], "x": UNIT}, n=8),
        past_study(space={"p": KINDS[in_past]}, n=4, name="alone"),
    ]
    study = new_study(META_TPE(sources, n_startup_trials=2))
    assert fit(evaluate(study, 4, space=space), space)
    assert [r.origin for r in transfer_history(study)][:2] == ["warm_start"] * 2


@pytest.mark.parametrize("asked_for", ["narrow float", "stepped float", "int", "log int"])
def test_a_past_value_is_used_where_it_has_a_place(make: Make, asked_for: str) -> None:
    source = past_study(lambda p: [(p["p"] - 2.0) ** 2] * 2, space={"p": KINDS["float"]}, n=30)
    suggested = suggestions(make([source]), 1, space={"p": KINDS[asked_for]})
    assert 1.5 <= suggested[0]["p"] <= 2.5


@learning
def test_sources_that_disagree_about_the_only_parameter_are_used_together(make: Make) -> None:
    sources = [past_study(space={"p": d}, n=6, name=kind) for kind, d in KINDS.items()]
    space = {"p": KINDS["int"]}
    study = new_study(make.at_once(sources))
    assert fit(evaluate(study, 4, space=space), space)
    usable = {"float", "stepped float", "int", "numbers"}
    assert usable <= set(transfer_history(study)[-1].weights)


@pytest.mark.filterwarnings("ignore:Choices for a categorical distribution")
def test_choices_that_cannot_be_hashed_may_differ_between_sources(make: Make) -> None:
    spaces = [
        {"layers": CategoricalDistribution(c)} for c in ([[64], [64, 64]], [[64], [32]], [[7]])
    ]
    sources = [past_study(lambda p: [len(p["layers"]), 0.0], space=s, n=8) for s in spaces]
    sampler = make(sources, n_startup_trials=1)
    suggested = suggestions(sampler, 3, space=spaces[0], losses=lambda _: [0.0, 0.0])
    assert fit(suggested, spaces[0])


# A past that fits in part, or not at all ---------------------------------------------------------


def test_a_partial_overlap_is_used_without_a_warning(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    past = {"x": SPACE["x"], "kind": SPACE["kind"], "gone": IntDistribution(0, 5)}
    source = past_study(lambda p: [abs(p["x"] - 0.7)] * 2, space=past, n=60)
    study = new_study(make.drawing([source]))
    suggested = evaluate(study, 7, losses=lambda p: [abs(p["x"] - 0.7)] * 2)
    assert fit(suggested, SPACE)
    stored = [(t.params["x"], t.params["kind"]) for t in source.trials]
    assert all((p["x"], p["kind"]) in stored for p in suggested[:5])
    assert caplog.text == ""


STRANGERS = {
    "no parameter in common": {"other": UNIT},
    "outside of every range": {"x": FloatDistribution(7.0, 8.0)},
}


@pytest.mark.parametrize("past", STRANGERS.values(), ids=list(STRANGERS))
def test_a_source_with_nothing_in_common_is_skipped_and_that_is_logged_once(
    make: Make, past: dict[str, BaseDistribution], caplog: pytest.LogCaptureFixture
) -> None:
    source = past_study(space=past, name="stranger")
    study = new_study(make([source]))
    assert fit(evaluate(study, 8), SPACE)
    assert transfer_history(study)[-1].weights in ({"target": 1.0}, {})
    (message,) = [record.getMessage() for record in caplog.records]
    assert "source 'stranger' is skipped" in message
    assert ("no parameter in common" in message) == ("other" in past)


def test_a_late_parameter_that_the_past_lacks_is_no_reason_to_skip_it(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    source = past_study(space={"x": UNIT}, directions=ONE)
    study = new_study(make([source]), ONE)
    evaluate(study, 6, space={"x": UNIT})
    evaluate(study, 2, space=SQUARE)
    assert "skipped" not in caplog.text


def test_observations_that_lost_most_of_their_values_are_counted_in_the_log(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    source = past_study(space={"x": FloatDistribution(0.0, 2.0)}, n=30)
    n_outside = sum(t.params["x"] > 1.0 for t in source.trials)
    suggestions(make([source]), 7)
    (message,) = [record.getMessage() for record in caplog.records]
    assert f"{n_outside} of 30" in message


def test_values_of_the_past_that_lie_outside_of_a_range_are_counted_in_the_log(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    # Each observation keeps y, so that none is dropped.
    source = past_study(space={"x": FloatDistribution(0.0, 2.0), "y": SQUARE["y"]}, n=30)
    n_outside = sum(t.params["x"] > 1.0 for t in source.trials)
    suggestions(make([source]), 7, space=SQUARE)
    (message,) = [record.getMessage() for record in caplog.records]
    assert "'x'" in message
    assert f"{n_outside} of 30" in message


@with_and_without
def test_sorted_numbers_as_choices_are_suggested_like_their_indices(
    make: Make, n_sources: int
) -> None:
    sizes = (16, 32, 64, 128, 512)
    as_index: dict[str, BaseDistribution] = {"size": IntDistribution(0, 4), "x": UNIT}
    as_choice = {**as_index, "size": CategoricalDistribution(sizes)}

    def by_index(params: Params) -> list[float]:
        return [(params["size"] - 3) ** 2 + params["x"], params["size"] + (params["x"] - 0.5) ** 2]

    def by_choice(params: Params) -> list[float]:
        return by_index({**params, "size": sizes.index(params["size"])})

    found = []
    for space, losses in ((as_index, by_index), (as_choice, by_choice)):
        own = Space(space)
        X = own.columns.snap(np.random.default_rng(1).random((n_sources, 20, 2)).reshape(-1, 2))
        Y = np.array([losses(params) for params in own.decode(X)])
        rows = [slice(20 * i, 20 * (i + 1)) for i in range(n_sources)]
        past = [Task(f"{i}", own, X[part], Y[part]) for i, part in enumerate(rows)]
        study = new_study(make(past))
        found.append(evaluate(study, 14, space=space, losses=losses))
    indices = [{**params, "size": sizes.index(params["size"])} for params in found[1]]
    assert [list(p) for p in indices] == [list(p) for p in found[0]]
    for own, other in zip(found[0], indices, strict=True):
        assert own == pytest.approx(other)
