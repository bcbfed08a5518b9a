"""HPOlib: what its tables hold, and what the authors published of them."""

import pytest

from metatpe.bench import get_problem, problem_names

NAMES = problem_names("hpolib")


@pytest.mark.parametrize("name", NAMES)
def test_a_table_holds_four_repeats_of_all_configurations(name: str) -> None:
    problem = get_problem(name)
    assert problem.table is not None
    assert problem.table.shape == (62208, 4, 2)
    assert (problem.table > 0.0).all()
    assert problem.objective_names == ("val_loss", "train_time")
    assert problem.directions == ("minimize", "minimize")
    assert problem.log_objectives == (True, False)


# As the authors of the paper published them with their code.
def test_naval_propulsion_has_the_published_extremes_and_front() -> None:
    problem = get_problem("hpolib/naval_propulsion")
    assert problem.worst.tolist() == [28107.0625, 1154.7017822265625]
    assert problem.best.tolist() == [2.47925563598983e-05, 14.241203308105469]
    assert problem.front is not None
    assert problem.front.shape == (24, 2)
    assert problem.front[0].tolist() == [2.47925563598983e-05, 149.3936767578125]
    assert problem.front[-1].tolist() == [0.09975892305374146, 14.241203308105469]
