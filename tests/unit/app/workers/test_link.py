"""A worker as the first process sees it: what it owes, when it is given up, and its memory and CPU."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from topodns.app.workers.link import (
    MAX_BEHIND,
    PATIENCE,
    START_PATIENCE,
    WorkerLink,
    cpu_seconds,
    of_each_process,
    resident_bytes,
)
from topodns.app.workers.messages import FamilySamples, MessageType, message


class Process:
    """A process that notes the signals it gets."""

    def __init__(self) -> None:
        self.signals: list[int] = []

    def send_signal(self, number: int) -> None:
        self.signals.append(number)


class Transport:
    """A connection that nothing is read from."""

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.waiting = 0

    def is_closing(self) -> bool:
        return False

    def write(self, data: bytes) -> None:
        self.written.append(data)

    def get_write_buffer_size(self) -> int:
        return self.waiting


class Story:
    """A link with a process and a connection that do what a test says."""

    def __init__(self) -> None:
        self.acknowledgements: list[int] = []
        self.link: WorkerLink = WorkerLink(2, lambda: self.acknowledgements.append(self.link.acknowledged))
        self.process, self.transport = Process(), Transport()
        inner: Any = self.link
        inner._process, inner._transport = self.process, self.transport

    def check(self, times: int) -> None:
        for _ in range(times):
            self.link.check()

    def acknowledge(self, number: int) -> None:
        self.link.data_received(message(MessageType.ACKNOWLEDGED, number))


def run(story: Callable[[Story], None]) -> None:
    async def main() -> None:
        story(Story())

    asyncio.run(main())


def test_a_worker_that_owes_nothing_is_asked_for_a_sign_of_life() -> None:
    def story(given: Story) -> None:
        for number in range(1, 4):
            given.check(1)
            assert given.transport.written[-1] == message(MessageType.PING)
            given.acknowledge(number)
        assert (given.process.signals, given.acknowledgements) == ([], [1, 2, 3])

    run(story)


def test_a_worker_that_owes_an_acknowledgement_for_too_many_checks_is_killed() -> None:
    def story(given: Story) -> None:
        given.check(1)
        given.acknowledge(1)
        given.link.send(b"change")
        given.check(PATIENCE)
        assert (given.process.signals, given.link.silent) == ([], PATIENCE)
        given.check(1)
        assert (given.process.signals, given.link.why_ended) == ([signal.SIGKILL], "stuck")

    run(story)


def test_a_slow_worker_that_goes_on_acknowledging_lives() -> None:
    def story(given: Story) -> None:
        for _ in range(100):
            given.link.send(b"change")
        for number in range(1, 100):
            given.check(PATIENCE)
            given.acknowledge(number)
        assert given.process.signals == []

    run(story)


def test_a_worker_that_acknowledges_more_slowly_than_it_is_sent_changes_is_behind() -> None:
    def story(given: Story) -> None:
        assert given.link.behind == 0
        for second in range(10):
            for _ in range(2):
                given.link.send(b"change")
            given.check(1)
            given.acknowledge(second + 1)
        assert (given.link.silent, given.link.behind) == (0, 4)
        given.check(1)
        assert given.link.behind == 5
        given.acknowledge(given.link.sent)
        assert given.link.behind == 0
        given.check(1)
        assert given.link.behind == 0, "it owes the last check only"

    run(story)


def test_a_worker_that_has_stopped_is_behind_for_as_long_as_it_is_silent() -> None:
    def story(given: Story) -> None:
        for number in range(1, 4):
            given.check(1)
            given.acknowledge(number)
        given.link.send(b"change")
        for seconds in range(1, 4):
            given.check(1)
            assert given.link.silent == given.link.behind == seconds

    run(story)


def test_a_worker_that_starts_has_more_time() -> None:
    def story(given: Story) -> None:
        given.link.send(b"generation")
        given.check(START_PATIENCE)
        assert given.process.signals == []
        given.check(1)
        assert given.process.signals == [signal.SIGKILL]

    run(story)


def test_a_worker_that_does_not_read_is_killed_before_changes_fill_the_memory() -> None:
    def story(given: Story) -> None:
        given.transport.waiting = MAX_BEHIND
        given.link.send(b"change")
        assert given.process.signals == []
        given.transport.waiting += 1
        given.link.send(b"change")
        assert (given.process.signals, given.link.why_ended) == ([signal.SIGKILL], "behind")

    run(story)


def test_reports_of_metrics_are_asked_for_one_at_a_time() -> None:
    def story(given: Story) -> None:
        first = given.link.ask_for_metrics()
        assert given.link.ask_for_metrics() is first
        assert given.transport.written == [message(MessageType.METRICS)]
        given.link.data_received(message(MessageType.FAMILY, FamilySamples("asked", False, [(("a",), 3)])))
        assert (given.link.metrics.samples, first.done()) == ({}, False)
        given.link.data_received(message(MessageType.FAMILIES_END))
        assert (given.link.metrics.samples, first.done()) == ({"asked": {("a",): 3}}, True)

    run(story)


def test_memory_and_cpu_are_those_of_the_process() -> None:
    assert resident_bytes(os.getpid()) > 1e6
    used = os.times()
    assert abs(cpu_seconds(os.getpid()) - used.user - used.system) < 1


def test_a_process_that_has_ended_has_no_samples() -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()

    def story(given: Story) -> None:
        inner: Any = given.link
        inner._process = ended
        for value in (resident_bytes, cpu_seconds):
            assert [labels for labels, _ in of_each_process([given.link], value)] == [("1",)]

    run(story)
