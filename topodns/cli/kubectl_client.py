"""The program kubectl, run with the flags of its user: objects as JSON, and a port of a Pod on loopback.

Each call has a deadline. kubectl writes its errors, and the prompts of a login, to this program's standard error.
"""

import json
import os
import re
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final

REQUEST_TIMEOUT: Final = 10  # seconds for one request to the API server
CALL_TIMEOUT: Final = 120.0  # seconds for one call of kubectl, which may have its user log in
FORWARD_TIMEOUT: Final = 30.0  # seconds until a forwarded port is open
STOP_TIMEOUT: Final = 2.0  # seconds between SIGTERM and SIGKILL

_FORWARDING: Final = re.compile(rb"^Forwarding from 127\.0\.0\.1:(\d+) -> ", re.MULTILINE)
_LONGEST_OUTPUT: Final = 65_536  # octets without that line
_ENDING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class KubectlError(Exception):
    """kubectl is missing, failed, or was too slow; the text says which. What kubectl wrote itself is not in it."""


class Kubectl:
    """kubectl with these flags, such as `--context`, in each call."""

    def __init__(self, flags: Sequence[str] = ()) -> None:
        program = shutil.which("kubectl")
        if program is None:
            raise KubectlError("found no program kubectl in PATH")
        self._program = program
        self._flags = tuple(flags)

    def get(self, *arguments: str) -> dict[str, Any]:
        """The object, or the list of objects, that `kubectl get` prints for these arguments. Raises KubectlError."""
        words = ("get", *arguments)
        ended = self._run(*words, "--output=json", f"--request-timeout={REQUEST_TIMEOUT}s")
        try:
            found = json.loads(ended.stdout) if ended.returncode == 0 else None
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise KubectlError(f"`kubectl {' '.join(words)}` failed with status {ended.returncode}")
        return found

    def is_allowed(self, verb: str, resource: str, *scope: str) -> bool:
        """Whether RBAC lets the user do this; True also if that cannot be found out.

        `scope`: further flags of `kubectl auth can-i`, such as `--namespace=NAME`.
        """
        words = ("auth", "can-i", verb, resource, *scope, f"--request-timeout={REQUEST_TIMEOUT}s")
        try:
            # Where the API server cannot be reached, kubectl has just said so.
            return self._run(*words, errors=subprocess.DEVNULL).stdout.strip() != b"no"
        except KubectlError:
            return True

    @contextmanager
    def port_forward(self, namespace: str, pod: str, port: int) -> Iterator[str]:
        """Within the context, HOST:PORT on loopback leads to this port of the Pod. Raises KubectlError.

        The process ends with the context, however that ends: by an error, or by an exception of a signal's handler.
        """
        words = ("port-forward", f"--namespace={namespace}", "--address=127.0.0.1", f"pod/{pod}", f":{port}")
        process = None
        try:
            with _signals_later():  # or one could arrive when the process runs, and is not known yet
                process = self._start(*words)
            yield f"127.0.0.1:{_forwarded_port(process)}"
        finally:
            if process is not None:
                _stop(process)

    def _start(self, *words: str, errors: int | None = None) -> subprocess.Popen[bytes]:
        try:
            return subprocess.Popen([self._program, *self._flags, *words], stdout=subprocess.PIPE, stderr=errors)
        except OSError as problem:
            raise KubectlError(f"kubectl cannot be run: {problem}") from None

    def _run(self, *words: str, errors: int | None = None) -> subprocess.CompletedProcess[bytes]:
        """`errors`: where its standard error goes; None: to that of this program."""
        process = self._start(*words, errors=errors)
        try:
            output, _ = process.communicate(timeout=CALL_TIMEOUT)
        except subprocess.TimeoutExpired:
            raise KubectlError(f"`kubectl {words[0]}` took more than {CALL_TIMEOUT:.0f} s") from None
        finally:
            if process.returncode is None:
                _kill(process)
                _close(process)
        return subprocess.CompletedProcess(process.args, process.returncode, output)


def _forwarded_port(process: subprocess.Popen[bytes]) -> int:
    """The local port that `kubectl port-forward` prints as soon as it listens."""
    assert process.stdout is not None
    output, end = b"", time.monotonic() + FORWARD_TIMEOUT
    while (remaining := end - time.monotonic()) > 0 and len(output) <= _LONGEST_OUTPUT:
        if not select.select([process.stdout], [], [], remaining)[0]:
            break
        piece = os.read(process.stdout.fileno(), 4096)
        if not piece:
            raise KubectlError(f"`kubectl port-forward` {_end(process)}")
        output += piece
        if found := _FORWARDING.search(output):
            return int(found[1])
    raise KubectlError(f"`kubectl port-forward` opened no port within {FORWARD_TIMEOUT:.0f} s")


def _end(process: subprocess.Popen[bytes]) -> str:
    """How a process ended whose output did."""
    try:
        return f"ended with status {process.wait(STOP_TIMEOUT)}"
    except subprocess.TimeoutExpired:
        return "closed its output before it opened a port"


def _stop(process: subprocess.Popen[bytes]) -> None:
    with _signals_later():
        started = _descendants(process.pid)
        process.terminate()
        try:
            process.wait(STOP_TIMEOUT)
        except subprocess.TimeoutExpired:
            _kill(process)
        _kill_all(started)
        _close(process)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill kubectl and the processes that it started, such as the credential plugin of a kubeconfig.

    They are no process group of their own: in one in the background, a plugin could not read a password from the
    terminal.
    """
    with suppress(ProcessLookupError):
        os.kill(process.pid, signal.SIGSTOP)  # it starts no other one meanwhile
    started = _descendants(process.pid)
    process.kill()
    process.wait()
    _kill_all(started)


def _kill_all(started: Iterable[tuple[int, str]]) -> None:
    """Kill these processes, unless the number is another one's by now."""
    for pid, since in started:
        if _parent_and_start(str(pid))[1] == since:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def _close(process: subprocess.Popen[bytes]) -> None:
    if process.stdout is not None:
        process.stdout.close()


def _descendants(pid: int) -> list[tuple[int, str]]:
    """(number, time of its start) of each process that this one and its descendants have started, by Linux's /proc."""
    try:
        entries = {int(name): _parent_and_start(name) for name in os.listdir("/proc") if name.isdecimal()}
    except OSError:  # another system
        return []
    found: list[tuple[int, str]] = []
    parents = {pid}
    while parents:
        children = [(number, since) for number, (parent, since) in entries.items() if parent in parents]
        found += children
        parents = {number for number, _ in children}
    return found


def _parent_and_start(pid: str) -> tuple[int, str]:
    """The parent of a process, and the time of its start in ticks; (0, "") if it is gone. See proc_pid_stat(5)."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()  # a name may have blanks and parentheses
    except OSError:
        return 0, ""
    return int(fields[1]), fields[19].decode()


@contextmanager
def _signals_later() -> Iterator[None]:
    """Within the context, the signals that end this program wait; the first of them is raised at the end."""
    waiting: list[int] = []
    handlers = {number: signal.signal(number, lambda found, _: waiting.append(found)) for number in _ENDING}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        if waiting:
            signal.raise_signal(waiting[0])
