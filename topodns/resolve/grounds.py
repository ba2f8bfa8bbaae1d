"""What a resolution rests on where more than one answer went into it."""

from topodns.cluster.facts import Fact
from topodns.resolve.step import Resolution, Scope


def rest_on(
    resolution: Resolution, facts: tuple[Fact, ...], scope: Scope = Scope.EVERYONE, valid_until: float | None = None
) -> None:
    """`resolution` came to be by way of something else: it is true no longer, and for no more clients, than that."""
    resolution.facts = (*resolution.facts, *facts)
    resolution.scope = max(resolution.scope, scope)
    if valid_until is not None:
        own = resolution.valid_until
        resolution.valid_until = valid_until if own is None else min(own, valid_until)
