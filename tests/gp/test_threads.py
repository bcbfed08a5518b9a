"""One thread of linear algebra while a sampler chooses, and as many as before afterwards."""

import threading
from collections.abc import Iterator

import pytest
from threadpoolctl import ThreadpoolController

from metatpe.gp.threads import one_thread


def n_threads() -> set[int]:
    libraries = ThreadpoolController().select(user_api="blas").lib_controllers
    return {library.num_threads for library in libraries}


@pytest.fixture
def two_threads() -> Iterator[None]:
    with ThreadpoolController().limit(limits=2, user_api="blas"):
        if n_threads() != {2}:
            pytest.skip("this BLAS has one thread only")
        yield


@pytest.mark.usefixtures("two_threads")
def test_there_is_one_thread_inside_and_as_many_as_before_outside() -> None:
    with one_thread():
        assert n_threads() == {1}
        with one_thread():
            assert n_threads() == {1}
        assert n_threads() == {1}
    assert n_threads() == {2}


@pytest.mark.usefixtures("two_threads")
def test_two_samplers_whose_choices_overlap_leave_the_number_of_threads_as_it_was() -> None:
    is_inside, may_leave = threading.Event(), threading.Event()

    def choose() -> None:
        with one_thread():
            is_inside.set()
            may_leave.wait(10)

    other = threading.Thread(target=choose)
    with one_thread():
        other.start()
        assert is_inside.wait(10)
    may_leave.set()
    other.join()
    assert n_threads() == {2}
