"""The first process's side of one worker: starts and kills its process, sends it messages, reads its answers.

With the memory and CPU of each process, from /proc.
"""

import asyncio
import json
import logging
import os
import signal
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from topodns.app.workers.messages import MessageType, WorkerMessage, WorkerMessageReader, message
from topodns.app.workers.metric_sums import Families

log = logging.getLogger(__name__)


MAX_BEHIND: Final = 64 << 20  # octets that wait for a worker; beyond, it is replaced
HIGH_WATER: Final = 1 << 20  # octets that wait for a worker, above which a snapshot pauses
PATIENCE: Final = 5  # checks, one a second, without an acknowledgement that is due
START_PATIENCE: Final = 60  # the same before the first acknowledgement: the modules are loaded in this time

_BOOTSTRAP: Final = (
    "import json,sys; sys.path[:]=json.loads(sys.argv.pop(1)); from topodns.app.signals import ignore_signals; "
    "ignore_signals(); from topodns.app.workers.worker import main; main()"
)

_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_TICKS: Final = os.sysconf("SC_CLK_TCK")
_PAGES_RESIDENT: Final = 1  # index of the field in /proc/PID/statm, proc_pid_statm(5)
_USER_TICKS: Final = 11  # index of utime behind the name in /proc/PID/stat, proc_pid_stat(5); stime is next


class WorkerLink(asyncio.Protocol):
    """A worker process and its socket. `acknowledged` is called after each of its messages that may change a wait.

    `number` is the worker's in logs and metrics: 2 is the first one, as 1 is the process that watches.
    """

    def __init__(self, number: int, acknowledged: Callable[[], object]) -> None:
        self.number = number
        self.sent = 0  # messages
        self.acknowledged = 0
        self.silent = 0  # checks since the last acknowledgement while one is due: about as many seconds
        self._sent_at_checks: deque[int] = deque()  # `sent` at each check, from that of the oldest message that is due
        self.serving = 0  # the number of the generation that it serves; 0 none yet
        self.activation = 0  # the number of the first message that lets it open its sockets; 0 before that is sent
        self.metrics = Families()  # as of its last report
        self.why_ended = "exited"
        self.ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()  # the exit status
        self._acknowledged = acknowledged
        self._reader = WorkerMessageReader()
        self._report = Families()
        self._reported: asyncio.Future[None] | None = None
        self._room = asyncio.Event()
        self._room.set()
        self._transport: asyncio.Transport | None = None
        self._status: int | None = None  # None while the process runs

    async def start(self) -> None:
        """Start the process. Raises OSError."""
        loop = asyncio.get_running_loop()
        ours, self._process = _spawn()
        self._pidfd = os.pidfd_open(self._process.pid)
        loop.add_reader(self._pidfd, self._exited)
        transport, _ = await loop.create_unix_connection(lambda: self, sock=ours)
        transport.set_write_buffer_limits(high=HIGH_WATER)
        self._transport = transport

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def behind(self) -> int:
        """For how many checks, about as many seconds, the oldest message that is due has waited for acknowledgement.

        More than `silent` for a worker that acknowledges, and takes changes more slowly than they come.
        """
        return max(self.silent, len(self._sent_at_checks) - 1)

    @property
    def has_sockets(self) -> bool:
        """Whether it may have opened its sockets, and so have queries to answer."""
        return 0 < self.activation <= self.acknowledged

    def send(self, octets: bytes) -> None:
        """Send one message. A worker that does not read them is killed beyond MAX_BEHIND."""
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        self.sent += 1
        transport.write(octets)
        if transport.get_write_buffer_size() > MAX_BEHIND:
            self.kill("behind")

    async def room(self) -> None:
        """Return once few octets wait for the worker, or it has ended."""
        await self._room.wait()

    def check(self) -> None:
        """Ask for an acknowledgement, or kill a worker that owes one since PATIENCE checks. To be called every second.

        Before the first acknowledgement START_PATIENCE counts. Checks are counted, not seconds: after a pause of all
        processes (a frozen cgroup) each gets its time again.
        """
        is_idle = self.sent == self.acknowledged
        if is_idle:
            self.send(message(MessageType.PING))
        self._sent_at_checks.append(self.sent)
        if is_idle:
            return
        self.silent += 1
        if self.silent > (PATIENCE if self.acknowledged else START_PATIENCE):
            self.kill("stuck")

    def kill(self, why: str) -> None:
        """End the process at once. `why`: the reason in the metric, `stuck` or `behind`."""
        if not self.ended.done():
            self.why_ended = why
            self._process.send_signal(signal.SIGKILL)

    def ask_for_metrics(self) -> asyncio.Future[None]:
        """Ask for a report in `metrics`; the future is done once it is there, or the worker has ended."""
        if self._reported is None:
            self._reported = asyncio.get_running_loop().create_future()
            self._report = Families()
            self.send(message(MessageType.METRICS))
        return self._reported

    def data_received(self, data: bytes) -> None:
        for found in self._reader.feed(data):
            self._take(found)

    def pause_writing(self) -> None:
        self._room.clear()

    def resume_writing(self) -> None:
        self._room.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._room.set()
        self._end()

    def _take(self, found: WorkerMessage) -> None:
        match found.kind:
            case MessageType.ACKNOWLEDGED:
                self.acknowledged = found.value
                self.silent = 0
                while self._sent_at_checks and self._sent_at_checks[0] <= self.acknowledged:
                    self._sent_at_checks.popleft()
                self._acknowledged()
            case MessageType.SERVING:
                self.serving = found.value
                self._acknowledged()
            case MessageType.FAMILY:
                self._report.take(found.value)
            case MessageType.FAMILIES_END:
                self.metrics = self._report
                self._report_done()
            case MessageType.FAILED:
                log.error("plugin/multisocket: process %d: %s", self.number, found.value)
            case _:
                raise ValueError(f"a worker sent {found.kind.name}")

    def _report_done(self) -> None:
        if self._reported is not None and not self._reported.done():
            self._reported.set_result(None)
        self._reported = None

    def _exited(self) -> None:
        loop = asyncio.get_running_loop()
        loop.remove_reader(self._pidfd)
        os.close(self._pidfd)
        self._status = self._process.wait()
        self._end()

    def _end(self) -> None:
        """The end, once the process has ended and all that it had sent is read."""
        if self._status is None or self._transport is not None or self.ended.done():
            return
        self._report_done()
        self.ended.set_result(self._status)
        self._acknowledged()


def _spawn() -> tuple[socket.socket, subprocess.Popen[bytes]]:
    """A worker process with the import path of this one, in a process group of its own, and the socket to it."""
    ours, theirs = socket.socketpair()
    with theirs:
        command = [sys.executable, "-P", "-c", _BOOTSTRAP, json.dumps(sys.path), str(theirs.fileno())]
        try:
            return ours, subprocess.Popen(
                command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, process_group=0
            )
        except BaseException:
            ours.close()
            raise


def resident_bytes(pid: int) -> float:
    """Raises OSError for a process that has ended."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[_PAGES_RESIDENT]) * _PAGE


def cpu_seconds(pid: int) -> float:
    """User and system time. Raises OSError for a process that has ended."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[_USER_TICKS]) + int(fields[_USER_TICKS + 1])) / _TICKS


def of_each_process(
    links: Iterable[WorkerLink], value: Callable[[int], float]
) -> Iterator[tuple[tuple[str, ...], float]]:
    """(label values, value) of this process, which is number 1, and of those of the links that have not ended."""
    for number, pid in (("1", os.getpid()), *((str(link.number), link.pid) for link in links if not link.ended.done())):
        with suppress(OSError):
            yield (number,), value(pid)
