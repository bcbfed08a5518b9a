"""What the tests of all samplers share."""

import pytest

from samplers.five import EVERY, Make


@pytest.fixture(params=EVERY, ids=str)
def make(request: pytest.FixtureRequest) -> Make:
    """Makes samplers of one kind; a test that asks for it runs for each of the five."""
    made: Make = request.param
    return made
