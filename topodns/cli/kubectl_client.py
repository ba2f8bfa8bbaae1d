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
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
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
            return self._run(*words).stdout.strip() != b"no"
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

    def _start(self, *words: str) -> subprocess.Popen[bytes]:
        try:
            return subprocess.Popen([self._program, *self._flags, *words], stdout=subprocess.PIPE)
        except OSError as problem:
            raise KubectlError(f"kubectl cannot be run: {problem}") from None

    def _run(self, *words: str) -> subprocess.CompletedProcess[bytes]:
        try:
            return subprocess.run(
                [self._program, *self._flags, *words], stdout=subprocess.PIPE, timeout=CALL_TIMEOUT, check=False
            )
        except subprocess.TimeoutExpired:
            raise KubectlError(f"`kubectl {words[0]}` took more than {CALL_TIMEOUT:.0f} s") from None
        except OSError as problem:
            raise KubectlError(f"kubectl cannot be run: {problem}") from None


def _forwarded_port(process: subprocess.Popen[bytes]) -> int:
    """The local port that `kubectl port-forward` prints as soon as it listens."""
    assert process.stdout is not None
    output, end = b"", time.monotonic() + FORWARD_TIMEOUT
    while (remaining := end - time.monotonic()) > 0 and len(output) <= _LONGEST_OUTPUT:
        if not select.select([process.stdout], [], [], remaining)[0]:
            break
        piece = os.read(process.stdout.fileno(), 4096)
        if not piece:
            raise KubectlError(f"`kubectl port-forward` ended with status {process.wait(STOP_TIMEOUT)}")
        output += piece
        if found := _FORWARDING.search(output):
            return int(found[1])
    raise KubectlError(f"`kubectl port-forward` opened no port within {FORWARD_TIMEOUT:.0f} s")


def _stop(process: subprocess.Popen[bytes]) -> None:
    with _signals_later():
        process.terminate()
        try:
            process.wait(STOP_TIMEOUT)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()


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
