"""Problems for the tests of the benchmarks."""

from collections.abc import Callable

import pytest

from metatpe.bench import Problem, get_problem


@pytest.fixture
def load() -> Callable[[str], Problem]:
    """`get_problem`, which skips the test where a table of others has not been fetched."""

    def load_or_skip(name: str) -> Problem:
        try:
            return get_problem(name)
        except FileNotFoundError as error:
            pytest.skip(f"set METATPE_DATA to run this: {error}")

    return load_or_skip
