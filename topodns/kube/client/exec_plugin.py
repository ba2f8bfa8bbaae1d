"""Runs the credential plugin of a kubeconfig (client.authentication.k8s.io, `exec`).

By hand, since the kubernetes package's provider has no deadline, waits for ever once a plugin has written some 200 KiB
to stderr (it reads stdout to its end first), and its caller turns every failure into a request without credentials.
"""

import asyncio
import json
import math
import os
import signal
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any, Final, NamedTuple

from topodns.kube.client.contract import ApiError
from topodns.kube.manifests.documents import parse_documents
from topodns.kube.manifests.value import BadManifest
from topodns.logs import one_line

MAX_PRINTED: Final = 1 << 20  # octets of stdout; a credential has some KiB
MAX_COMPLAINT: Final = 1 << 14  # octets of stderr that are kept for the error; the rest is read and discarded

_STDERR: Final = 2
_REAP: Final = 1.0  # seconds for the kernel to end a killed program
_VERSIONS: Final = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")

_MODES: Final = ("Never", "IfAvailable", "Always")


class Credential(NamedTuple):
    """A decoded ExecCredential: a token, or a certificate with its key, or all three; "" for a missing one."""

    token: str
    certificate: str  # PEM
    key: str  # PEM
    expires: float  # seconds since the epoch


def check_plugin(spec: Mapping[str, object]) -> tuple[str, str]:
    """The command and the apiVersion of an `exec` entry. Raises ApiError where it is invalid or not supported."""
    command, version = spec.get("command"), spec.get("apiVersion")
    if not isinstance(command, str) or not command or version not in _VERSIONS:
        raise ApiError(0, f"exec: command {command!r} with apiVersion {version!r}, expected one of {_VERSIONS}")
    mode = spec.get("interactiveMode") or "IfAvailable"
    if mode not in _MODES:
        raise ApiError(0, f"exec: interactiveMode {mode!r}, expected one of {_MODES}")
    if mode == "Always" or spec.get("provideClusterInfo"):
        raise ApiError(0, f"exec: {command} wants a terminal or the cluster's description, and gets neither here")
    return command, str(version)


async def run_plugin(spec: Mapping[str, object], directory: str, deadline: float) -> Credential:
    """Run the plugin of an `exec` entry, at most `deadline` seconds. Raises ApiError.

    `directory` is the kubeconfig's: a relative command path is resolved against it, a command without "/" by PATH.
    """
    command, version = check_plugin(spec)
    info = {"kind": "ExecCredential", "apiVersion": version, "spec": {"interactive": False}}
    environment = {**os.environ, **_variables(spec), "KUBERNETES_EXEC_INFO": json.dumps(info)}
    arguments = [str(argument) for argument in _list(spec, "args")]
    program = os.path.join(directory, command) if "/" in command else command  # as kubectl does
    try:
        printed = await _output([program, *arguments], environment, deadline)
    except OSError as problem:
        hint = one_line(str(spec.get("installHint", "")))
        raise ApiError(0, f"exec: cannot run {command}: {problem.strerror}. {hint}".removesuffix(". ")) from None
    return _credential(command, version, printed)


def _list(spec: Mapping[str, object], name: str) -> list[object]:
    found = spec.get(name) or []
    if not isinstance(found, list):
        raise ApiError(0, f"exec: {name} is {found!r}, expected a list")
    return found


def _variables(spec: Mapping[str, object]) -> dict[str, str]:
    pairs = (item for item in _list(spec, "env") if isinstance(item, dict))
    return {str(item.get("name")): str(item.get("value")) for item in pairs}


async def _output(command: list[str], environment: Mapping[str, str], deadline: float) -> bytes:
    """The stdout of a program. Raises OSError if it cannot be started, ApiError if it fails, prints more than
    MAX_PRINTED octets or exceeds the deadline, which holds for its children with its stdout or stderr, too.
    """
    pipe, null = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    transport, output = await asyncio.get_running_loop().subprocess_exec(
        _Output, *command, stdin=null, stdout=pipe, stderr=pipe, env=environment, start_new_session=True
    )
    try:
        async with asyncio.timeout(deadline):
            await output.ended
    except TimeoutError:
        raise ApiError(0, f"exec: {command[0]} took longer than {deadline:g} s") from None
    finally:
        if not output.is_complete:
            with suppress(ProcessLookupError):
                os.killpg(transport.get_pid(), signal.SIGKILL)  # the group: children hold the pipes open
            await asyncio.wait([output.exited], timeout=_REAP)
        transport.close()  # with the pipes: children in other sessions still hold them open
    if len(output.printed) > MAX_PRINTED:
        raise ApiError(0, f"exec: {command[0]} printed more than {MAX_PRINTED} octets, expected an ExecCredential")
    if (status := transport.get_returncode()) != 0:
        why = one_line(output.complaint.decode("utf-8", "replace"))
        raise ApiError(0, f"exec: {command[0]} ended with status {status}: {why or 'no word on stderr'}")
    return bytes(output.printed)


class _Output(asyncio.SubprocessProtocol):
    """What a program prints: at most one read more than MAX_PRINTED octets of stdout, and MAX_COMPLAINT of stderr.

    `ended` is done once the program has ended and closed its pipes, or has printed too much. No StreamReader: at its
    limit it stops reading, and asyncio's `Process.wait` then waits for ever for the end of the pipe.
    """

    def __init__(self) -> None:
        self.printed, self.complaint = bytearray(), bytearray()
        self.is_complete = False  # no process has the pipes any more
        loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[None] = loop.create_future()
        self.exited: asyncio.Future[None] = loop.create_future()  # the program alone

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == _STDERR:
            self.complaint += data[: MAX_COMPLAINT - len(self.complaint)]
        elif len(self.printed) <= MAX_PRINTED:
            self.printed += data
            if len(self.printed) > MAX_PRINTED:
                self._end()

    def process_exited(self) -> None:
        self.exited.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_complete = True
        self._end()

    def _end(self) -> None:
        if not self.ended.done():
            self.ended.set_result(None)


def _credential(command: str, version: object, printed: bytes) -> Credential:
    try:
        (content,) = (document.object for document in parse_documents(printed, command) if document is not None)
        if (content["kind"], content["apiVersion"]) != ("ExecCredential", version):
            raise ApiError(0, f"exec: {command} did not print an ExecCredential of {version}")
        status: Any = content["status"]
        token, certificate, key = (
            status.get(name) or "" for name in ("token", "clientCertificateData", "clientKeyData")
        )
        until = status.get("expirationTimestamp")
        expires = datetime.fromisoformat(until).timestamp() if until else math.inf
    except BadManifest as problem:
        # Without the problem, which may have a part of the credential.
        raise ApiError(
            0, f"exec: what {command} printed is no ExecCredential: line {problem.line} is no YAML"
        ) from None
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as problem:
        raise ApiError(0, f"exec: what {command} printed is no ExecCredential: {one_line(repr(problem))}") from None
    if not all(isinstance(text, str) for text in (token, certificate, key)):
        raise ApiError(0, f"exec: {command} printed a token, certificate or key that is no string")
    if not token and not (certificate and key):
        raise ApiError(0, f"exec: {command} printed neither a token nor a certificate with its key")
    return Credential(token, certificate, key, expires)
