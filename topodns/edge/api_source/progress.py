"""How the watching of one kind goes: for /ready, metrics and the log."""

from dataclasses import dataclass, replace
from typing import Literal

from topodns.edge.api_source.resources import Resource
from topodns.edge.kube_api.contract import ApiError

Verb = Literal["list", "watch"]


@dataclass(frozen=True, slots=True)
class Trouble:
    """What went wrong with the last request."""

    verb: Verb
    status: int  # of HTTP; 0 where no response came
    problem: str
    also_denied: Verb | None = None  # the other verb, where RBAC refuses that too


@dataclass(slots=True)
class Progress:
    """Of one kind. `heard` is when the server last said anything of it, in seconds of the loop's clock."""

    resource: Resource
    heard: float
    listed: bool = False  # completely, at least once
    trouble: Trouble | None = None
    lists: int = 0
    repairs: int = 0  # objects that a verifying list found to be other than held
    decode_errors: int = 0
    events: int = 0

    @property
    def relists(self) -> int:
        return max(0, self.lists - 1)

    def failed(self, verb: Verb, error: ApiError) -> bool:
        """Note a failure; whether it is another one than before, and so worth a line in the log."""
        before, self.trouble = self.trouble, Trouble(verb, error.status, str(error))
        if before is None or (before.verb, before.status) != (verb, error.status):
            return True
        self.trouble = replace(self.trouble, also_denied=before.also_denied)
        return False

    def tried_other(self, verb: Verb, denied: bool) -> bool:
        """Note whether the verb that did not fail is refused by RBAC too; whether it is and that was not known."""
        if self.trouble is None:
            return False
        before, now = self.trouble.also_denied, verb if denied else None
        self.trouble = replace(self.trouble, also_denied=now)
        return denied and before is None

    def answered(self, now: float) -> bool:
        """Note that the server spoke; whether that ends a trouble."""
        self.heard = now
        before, self.trouble = self.trouble, None
        return before is not None

    def describe(self) -> str:
        """What is wanted and what is in the way of it."""
        name = self.resource.name
        if self.trouble is None:
            return f"{self.resource.kind} ({name}: no complete list yet)"
        more = f"; {self.trouble.also_denied} is denied too" if self.trouble.also_denied else ""
        return f"{self.resource.kind} (cannot {self.trouble.verb} {name}: {self.trouble.problem}{more})"
