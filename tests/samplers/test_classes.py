"""How the samplers are built: one base with one abstract method, and siblings on it."""

from __future__ import annotations

import inspect

from optuna.samplers import BaseSampler

from metatpe.samplers.base import PastSampler
from samplers.five import Make


def is_concrete(kind: type) -> bool:
    return not inspect.isabstract(kind)


def test_what_a_sampler_has_to_add_is_how_it_chooses() -> None:
    assert PastSampler.__abstractmethods__ == {"propose"}


def test_a_sampler_is_a_sampler_of_optuna_on_the_common_base(make: Make) -> None:
    assert issubclass(make.kind, PastSampler)
    assert issubclass(make.kind, BaseSampler)
    assert is_concrete(make.kind)


def test_no_sampler_inherits_from_another_concrete_sampler(make: Make) -> None:
    parents = make.kind.__mro__[1:]
    assert [p for p in parents if issubclass(p, PastSampler) and is_concrete(p)] == []
