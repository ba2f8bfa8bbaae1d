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
from typing import Final, NamedTuple

from topodns.kube.client.contract import ApiError
from topodns.logs import one_line

_VERSIONS: Final = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")


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
    if spec.get("interactiveMode") == "Always" or spec.get("provideClusterInfo"):
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
    """The stdout of a program. Raises OSError if it cannot be started, ApiError if it fails or exceeds the deadline."""
    pipe, null = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(
        *command, stdin=null, stdout=pipe, stderr=pipe, env=environment, start_new_session=True
    )
    try:
        async with asyncio.timeout(deadline):
            printed, complaint = await process.communicate()
    except TimeoutError:
        raise ApiError(0, f"exec: {command[0]} took longer than {deadline:g} s") from None
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # the group: children hold the pipes open
            await process.wait()
    if process.returncode != 0:
        why = one_line(complaint.decode("utf-8", "replace"))
        raise ApiError(0, f"exec: {command[0]} ended with status {process.returncode}: {why or 'no word on stderr'}")
    return printed


def _credential(command: str, version: object, printed: bytes) -> Credential:
    try:
        content = json.loads(printed)
        if (content["kind"], content["apiVersion"]) != ("ExecCredential", version):
            raise ApiError(0, f"exec: {command} did not print an ExecCredential of {version}")
        status = content["status"]
        token, certificate, key = (
            status.get(name) or "" for name in ("token", "clientCertificateData", "clientKeyData")
        )
        until = status.get("expirationTimestamp")
        expires = datetime.fromisoformat(until).timestamp() if until else math.inf
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as problem:
        raise ApiError(0, f"exec: what {command} printed is no ExecCredential: {one_line(repr(problem))}") from None
    if not token and not (certificate and key):
        raise ApiError(0, f"exec: {command} printed neither a token nor a certificate with its key")
    return Credential(str(token), str(certificate), str(key), expires)
