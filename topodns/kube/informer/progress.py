"""Progress of one kind at an API server: its age, its counters, its last failure, and the log lines about it.

A program may have `Reports` of its own.
"""

import logging
from dataclasses import dataclass, field, replace
from typing import Final

from topodns.kube.client.contract import ApiError
from topodns.kube.informer.resources import Resource, Verb

log = logging.getLogger(__name__)

_FORBIDDEN: Final = 403


class Reports:
    """Logs the lines of the reflectors of one API server, after a prefix."""

    def __init__(self, prefix: str = "plugin/kubernetes") -> None:
        self._prefix = prefix

    def say(self, text: str, level: int = logging.WARNING) -> None:
        """Log a line."""
        log.log(level, "%s: %s", self._prefix, text, stacklevel=2)  # so that the caller's lines count together

    async def failed(self, resource: Resource, verb: str, error: ApiError, first: bool) -> None:
        """Report a failed list or watch. `first`: the request before it succeeded, or failed in another way."""
        if first:
            log.warning("plugin/kubernetes: cannot %s %s: %s", verb, resource.name, error)
            if error.status == _FORBIDDEN:
                log.warning("plugin/kubernetes: the ClusterRole needs %s", resource.rule)

    def recovered(self, resource: Resource) -> None:
        """Report the first success after a failure."""
        self.say(f"{resource.name}: the API server answers again", logging.INFO)

    def implausible(self, resource: Resource, problem: str) -> None:
        """Report a complete list that another one must confirm: a clause of `ListCheck.problem`."""
        self.say(f"list of {resource.name}: {problem}; asking again")

    def rolled_back(self, resource: Resource, version: str, seen: str) -> None:
        """Report that the API server is at an older resourceVersion than was seen before."""
        self.say(f"the API server's {resource.name}: {lag(version, seen)}")


def lag(version: str, seen: str) -> str:
    """A clause of a log line, on a resourceVersion that is older than another one."""
    return f"its resourceVersion {version} is older than {seen}, which was seen before"


@dataclass(frozen=True, slots=True)
class Trouble:
    """The failure of the last list or watch, with no proof of health since."""

    verb: Verb
    status: int  # HTTP status; 0 where no response came
    problem: str
    also_denied: Verb | None = None  # the other verb, where RBAC denies it too


@dataclass(slots=True)
class Progress:
    """Health and counters of one kind, with the log that its reflector writes to."""

    resource: Resource
    last_received: float  # when data for it last arrived, in seconds of the loop's clock
    reports: Reports = field(default_factory=Reports)
    listed: bool = False  # whether a complete list was applied at least once
    trouble: Trouble | None = None
    lists: int = 0
    repairs: int = 0  # objects that differed from a verifying list
    decode_errors: int = 0
    events: int = 0

    @property
    def relists(self) -> int:
        return max(0, self.lists - 1)

    def failed(self, verb: Verb, error: ApiError) -> bool:
        """Record a failed request. Returns whether to log it: the last one succeeded or had another verb or status."""
        before, self.trouble = self.trouble, Trouble(verb, error.status, str(error))
        if before is None or (before.verb, before.status) != (verb, error.status):
            return True
        self.trouble = replace(self.trouble, also_denied=before.also_denied)
        return False

    def tried_other(self, verb: Verb, denied: bool) -> bool:
        """Record whether RBAC denies `verb` too, which the failed request did not use. Returns whether that is new."""
        if self.trouble is None:
            return False
        before, now = self.trouble.also_denied, verb if denied else None
        self.trouble = replace(self.trouble, also_denied=now)
        return denied and before is None

    def succeeded(self, now: float) -> bool:
        """Record a proof of health at `now` (loop seconds). Returns whether it ends a failure."""
        self.last_received = now
        before, self.trouble = self.trouble, None
        return before is not None

    def describe(self) -> str:
        """The kind and why it is not in sync, for the log and /ready."""
        name = self.resource.name
        if self.trouble is None:
            return f"{self.resource.kind} ({name}: no complete list yet)"
        more = f"; {self.trouble.also_denied} is denied too" if self.trouble.also_denied else ""
        return f"{self.resource.kind} (cannot {self.trouble.verb} {name}: {self.trouble.problem}{more})"
