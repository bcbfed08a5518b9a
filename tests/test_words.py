"""Numbers and names in sentences."""

import doctest

import optuna
from studies import past_study

from metatpe import MetaTPESampler, Task, words
from metatpe.baselines import RGPESampler


def test_the_examples_are_right() -> None:
    assert doctest.testmod(words).failed == 0


def test_thousands_are_grouped() -> None:
    assert words.counted(12345, "trial") == "12,345 trials"


def test_one_of_anything_is_singular() -> None:
    study = past_study(n=2, directions=["minimize"])
    for sampler in (MetaTPESampler([study]), RGPESampler([study])):
        assert "(1 source, " in repr(sampler)
    space = {"x": optuna.distributions.FloatDistribution(0, 1)}
    one = past_study(n=1, directions=["minimize"], space=space)
    assert "1 observation, 1 parameter, 1 objective)" in repr(Task.from_study(one))
