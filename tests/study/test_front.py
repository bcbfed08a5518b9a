"""The front of a study: what an infeasible trial is never part of."""

import pytest
from studies import SQUARE, frozen, new_study, random_sampler

from metatpe.study.trials import front_of


@pytest.mark.parametrize("directions", [["minimize"], ["minimize", "maximize"]])
def test_infeasible_trials_are_not_on_the_front(directions: list[str]) -> None:
    study = new_study(random_sampler(0), directions)
    best = [-1.0, 1.0][: len(directions)]
    study.add_trial(frozen({"x": 0.1}, best, space=SQUARE, constraint=0.1))
    assert front_of(study) == []
    for x in (0.2, 0.3):
        study.add_trial(frozen({"x": x}, [0.0] * len(directions), constraint=-1.0))
    study.add_trial(frozen({"x": 0.4}, [5.0, -5.0][: len(directions)]))
    assert [t.number for t in front_of(study)] == [1, 2]
    assert [t.number for t in front_of(study)] == [t.number for t in study.best_trials]
