"""The objectives that past studies have, and those that they share."""

import pytest
from optuna.storages import InMemoryStorage
from studies import TWO, past_study

from metatpe.past.read.summary import Objectives, agreed_objectives, summarise

NAMED = Objectives(("minimize", "maximize"), ("loss", "accuracy"))
UNNAMED = Objectives(("minimize", "maximize"), ())


def test_objectives_without_a_name_are_numbered_in_a_summary_and_have_none_again() -> None:
    storage = InMemoryStorage()
    past_study(n=1, name="a", storage=storage)
    past_study(n=1, name="b", storage=storage).set_metric_names(["loss", "time"])
    a, b = summarise(storage, ["a", "b"])
    assert (a.objectives, b.objectives) == (["0", "1"], ["loss", "time"])
    assert Objectives.of(a) == Objectives(tuple(TWO), ())
    assert Objectives.of(b) == Objectives(tuple(TWO), ("loss", "time"))


def test_names_are_agreed_on_where_all_that_have_some_have_the_same() -> None:
    other = NAMED._replace(names=("loss", "recall"))
    assert agreed_objectives({"a": UNNAMED, "b": NAMED, "c": NAMED}, "") == NAMED
    assert agreed_objectives({"a": NAMED, "b": other}, "") == UNNAMED
    assert agreed_objectives({"a": UNNAMED}, "") == UNNAMED


def test_directions_that_differ_are_said_with_the_first_study_of_each() -> None:
    turned = Objectives(("maximize", "maximize"), ())
    with pytest.raises(ValueError, match="have the directions") as info:
        agreed_objectives({"a": NAMED, "b": turned, "c": UNNAMED, "d": turned}, "give them.")
    assert str(info.value) == (
        "the past studies have the directions ['minimize', 'maximize'] (such as 'a') and "
        "['maximize', 'maximize'] (such as 'b'); give them."
    )
