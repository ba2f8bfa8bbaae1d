"""A test of a real cluster ends, whoever of its helpers does not."""

from threading import Event, Thread

import pytest

from tests.support.kube.waiting import join_all


def test_threads_that_end_are_waited_for() -> None:
    threads = [Thread(target=Event().wait, args=(0.05,)) for _ in range(2)]
    for thread in threads:
        thread.start()
    join_all(threads)
    assert [thread.is_alive() for thread in threads] == [False, False]


def test_one_that_does_not_end_is_named_after_the_deadline() -> None:
    forever = Event()
    threads = [Thread(target=Event().wait, args=(0,), name="ended"), Thread(target=forever.wait, name="asking")]
    for thread in threads:
        thread.start()
    try:
        with pytest.raises(AssertionError, match=r"^still running after 0\.1 s: asking$"):
            join_all(threads, 0.1)
    finally:
        forever.set()
