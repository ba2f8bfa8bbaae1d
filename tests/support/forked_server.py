"""Processes of topodns that are forks of one that has imported it: a start without half a second of imports.

`python -m tests.support.forked_server DESCRIPTOR MODULE ...` is that process. It reads requests from a socket, one a
packet: the directory and the arguments as JSON, with the descriptors of the fork's stdin, stdout and stderr and of a
socket on which it says the fork's process id and, in the end, its status. At the end of the requests it kills the forks
that are left and ends. A fork is no child of the test, which has a `ForkedProcess` in place of a `Popen`.
"""

import atexit
import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import IO, Final

from tests.support.event_loops import PATIENCE
from topodns.cli.main import main as run

_LONGEST: Final = 1 << 16  # octets of a packet
_SERVER: Final = ("topodns.app.server", "topodns.cli.serve", "topodns.inspect.routes", "topodns.kube.client.http")
_LOCATOR: Final = ("topodns.cli.serve", "topodns.locator.process")
_INSPECT: Final = ("topodns.cli.inspect", "topodns.cli.serve")


class ForkedProcess:
    """A fork that runs topodns with these arguments, with the methods and exit statuses of `subprocess.Popen`."""

    def __init__(self, arguments: Sequence[str], directory: Path, streams: Sequence[IO[bytes]]) -> None:
        """`streams`: stdin, stdout and stderr."""
        self.returncode: int | None = None
        self._words, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            descriptors = [*(each.fileno() for each in streams), theirs.fileno()]
            request = json.dumps([str(directory), *arguments]).encode()
            socket.send_fds(_requests(_modules_of(arguments)), [request], descriptors)
        self.pid = self._next(PATIENCE)

    def poll(self) -> int | None:
        with suppress(BlockingIOError):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float = PATIENCE) -> int:
        """The exit status. Raises TimeoutError."""
        if self.returncode is None:
            self.returncode = self._next(timeout)
            self._words.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _next(self, timeout: float) -> int:
        self._words.settimeout(timeout)
        return int(self._words.recv(_LONGEST))


_NETWORK: Final = os.readlink("/proc/self/ns/net")


def is_at_home() -> bool:
    """Whether the calling thread is in the network namespace of forks, that in which the tests began."""
    return os.readlink("/proc/thread-self/ns/net") == _NETWORK


def environment() -> dict[str, str]:
    """The variables of a process: as few as in a container, and the tree under test."""
    return {"PATH": os.environ.get("PATH", ""), "PYTHONPATH": str(Path(__file__).parents[2])}


def _modules_of(arguments: Sequence[str]) -> tuple[str, ...]:
    """What a process with these arguments imports in any case, or where it has an API server."""
    if not arguments or arguments[0].startswith("-"):
        return _SERVER
    return _LOCATOR if arguments[0] == "locator" else _INSPECT


@cache
def _requests(modules: tuple[str, ...]) -> socket.socket:
    """The socket for requests to a process that has imported these modules; it ends when the socket is closed."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-m", __name__, str(theirs.fileno()), *modules],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
            env=environment(),
        )
    atexit.register(process.wait, PATIENCE)
    atexit.register(ours.close)  # first
    return ours


class _Forks:
    """In the process that forks: the running forks by their pidfd, each with the socket on which its end is said."""

    def __init__(self, requests: socket.socket) -> None:
        self._requests = requests
        self._running: dict[int, tuple[int, socket.socket]] = {}

    def serve(self) -> list[str] | None:
        """Fork for each request. Returns the arguments in the fork, and None when there are no more requests."""
        while True:
            ready, _, _ = select.select([self._requests.fileno(), *self._running], [], [])
            for descriptor in ready:
                if descriptor in self._running:
                    self._say_end(descriptor)
                    continue
                request, descriptors, _, _ = socket.recv_fds(self._requests, _LONGEST, 4)
                if not request:
                    self._kill_all()
                    return None
                if self._fork(descriptors) == 0:
                    directory, *arguments = json.loads(request)
                    os.chdir(directory)
                    return list(arguments)

    def _fork(self, descriptors: Sequence[int]) -> int:
        """The process id, 0 in the fork, which has the first three of the descriptors as its streams and no other."""
        *streams, said = descriptors
        pid = os.fork()
        if pid == 0:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            for number, descriptor in enumerate(streams):
                os.dup2(descriptor, number)
            for each in (*streams, said, *self._running):
                os.close(each)
            for _, other in self._running.values():
                other.close()
            self._requests.close()
            return 0
        for descriptor in streams:
            os.close(descriptor)
        end = socket.socket(fileno=said)
        end.send(b"%d" % pid)
        self._running[os.pidfd_open(pid)] = (pid, end)
        return pid

    def _say_end(self, descriptor: int) -> None:
        pid, end = self._running.pop(descriptor)
        os.close(descriptor)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        with end, suppress(BrokenPipeError):  # a test that does not wait for the end
            end.send(b"%d" % status)

    def _kill_all(self) -> None:
        for pid, _ in self._running.values():
            os.kill(pid, signal.SIGKILL)


def main(descriptor: int, modules: Sequence[str]) -> int:
    """Fork until there are no more requests, and run topodns in each fork. The exit status."""
    for name in modules:
        import_module(name)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of a terminal: it ends the tests, and so this
    with socket.socket(fileno=descriptor) as requests:
        arguments = _Forks(requests).serve()
    return 0 if arguments is None else run(arguments)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
