"""What all tests share: random numbers of their own, and a quiet Optuna."""

import os
import signal
import tempfile
import zlib

import numpy as np
import optuna
import pytest
from hypothesis import settings

optuna.logging.set_verbosity(optuna.logging.WARNING)

# Where `metatpe tune` keeps results that a storage did not take; not that of the user.
os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp(prefix="metatpe-tests-")

# In a shell's background job Ctrl-C is ignored, and would be by what the tests start and stop.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Two test processes on two busy cores: the time of one example says nothing.
settings.register_profile("metatpe", deadline=None, print_blob=True)
settings.load_profile("metatpe")


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    """A generator that a test gets alike in every run; its seed is shown when the test fails."""
    seed = zlib.crc32(request.node.nodeid.encode())
    print(f"rng = np.random.default_rng({seed})")
    return np.random.default_rng(seed)
