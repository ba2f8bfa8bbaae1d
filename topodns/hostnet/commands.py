"""Runs nft and the iptables programs: found once, by absolute path, called with argument lists and a time limit.

Calls block, so the reconciler makes them in its worker thread.
"""

import os
import subprocess
from enum import StrEnum
from functools import cache
from typing import Final, NamedTuple


class ErrorKind(StrEnum):
    """Values of the label `errortype` of coredns_nodecache_setup_errors_total. The first four are those that NodeLocal
    DNSCache has, too.
    """

    IPTABLES = "iptables"
    IPTABLES_LOCK = "iptables_lock"  # another process held the xtables lock for too long
    INTERFACE_ADD = "interface_add"
    INTERFACE_CHECK = "interface_check"
    NFTABLES = "nftables"
    FIREWALL = "firewall"  # neither nftables nor iptables works here
    PERMISSION = "permission"  # CAP_NET_ADMIN is missing


class HostNetworkError(Exception):
    """A failed change or check of the node's network: its `kind`, and a log line (`text`) with the operation and the
    reason.
    """

    def __init__(self, kind: ErrorKind, text: str) -> None:
        super().__init__(text)
        self.kind = kind
        self.text = text


def not_permitted(what: str) -> HostNetworkError:
    """The error of an operation that the kernel refuses to this process."""
    return HostNetworkError(ErrorKind.PERMISSION, f"{what}: CAP_NET_ADMIN is missing")


DIRECTORIES: Final = ("/usr/sbin", "/sbin", "/usr/bin", "/bin", "/usr/local/sbin")
PATIENCE: Final = 2.0  # seconds

_ENVIRONMENT: Final = {"PATH": ":".join(DIRECTORIES), "LC_ALL": "C"}
_TIMED_OUT: Final = -1


class ProgramResult(NamedTuple):
    """Result of a program: exit status (-1: timeout or not started), stdout, and a line for an error message.

    The line is the first one of stderr that is no comment, else the exit status or why there is none; never empty.
    """

    status: int
    output: str
    error: str


@cache
def find_program(name: str) -> str | None:
    """The absolute path of a program; None if it is not installed."""
    paths = (f"{directory}/{name}" for directory in DIRECTORIES)
    return next((path for path in paths if os.access(path, os.X_OK)), None)


def run(
    arguments: tuple[str, ...], text: str = "", patience: float = PATIENCE, extra: dict[str, str] | None = None
) -> ProgramResult:
    """Run a program with `text` as stdin, killed after `patience` seconds; its environment is PATH, LC_ALL and `extra`.
    Failures are in the result, none is raised.
    """
    try:
        done = subprocess.run(
            arguments,
            input=text,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=patience,
            env=_ENVIRONMENT | (extra or {}),
            check=False,
        )
    except subprocess.TimeoutExpired:
        return ProgramResult(_TIMED_OUT, "", f"no end within {patience:g} s")
    except OSError as problem:
        return ProgramResult(_TIMED_OUT, "", problem.strerror or str(problem))
    return ProgramResult(done.returncode, done.stdout, _one_line(done.stderr) or f"exit status {done.returncode}")


def _one_line(text: str) -> str:
    lines = (line.strip() for line in text.splitlines())
    return next((line for line in lines if line and not line.startswith("#")), "")[:300]
