"""Health and counters of one kind of objects, for /ready, the log and metrics."""

from dataclasses import dataclass, field, replace
from typing import Literal

from topodns.kube.client.contract import ApiError
from topodns.kube.informer.reports import Reports
from topodns.kube.informer.resources import Resource

Verb = Literal["list", "watch"]


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
