"""Memory that several tables share: what one of them does not need, another may use.

A table has a limit of its own and asks for more when it is reached, a portion at a time, so that being in company
costs an insertion nothing.
"""

from operator import attrgetter
from typing import Final, Protocol
from weakref import WeakSet

_PORTIONS: Final = 128  # and four for each table at least


class Holder(Protocol):
    """A table that has a part of a budget: it keeps to `limit`, in octets, which starts at 0 and is the budget's.

    `octets` are what it has used of it.
    """

    limit: int
    octets: int

    def lower(self, octets: int) -> None:
        """Give up so many octets of the limit, with what is in them."""


class Budget:
    """At most `octets`, whoever holds them. Tables that are gone hold nothing."""

    def __init__(self, octets: int) -> None:
        self.octets = octets
        self._holders: WeakSet[Holder] = WeakSet()

    def __repr__(self) -> str:
        return f"<Budget {self.given} of {self.octets} octets, {len(self._holders)} tables>"

    @property
    def given(self) -> int:
        """The limits of all tables together."""
        return sum(holder.limit for holder in self._holders)

    def enrol(self, holder: Holder) -> None:
        """One more table, with a limit of 0."""
        self._holders.add(holder)

    def grant(self, asker: Holder) -> bool:
        """Raise the asker's limit, if need be at the cost of a table that does not use its own, or that has the most.

        False where it has the most itself: then it has to make do with what it has.
        """
        portion = max(1, self.octets // max(_PORTIONS, 4 * len(self._holders)))
        if self.given + portion > self.octets:
            giver = self._giver(asker, portion)
            if giver is None:
                return False
            giver.lower(portion)
        asker.limit += portion
        return True

    def _giver(self, asker: Holder, portion: int) -> Holder | None:
        idlest = max(self._holders, key=_unused)
        if idlest is not asker and _unused(idlest) >= 2 * portion:  # it may need some again soon
            return idlest
        richest = max(self._holders, key=attrgetter("limit"))
        # Or the two would take it from each other for ever.
        return richest if richest.limit >= asker.limit + 2 * portion else None


def _unused(holder: Holder) -> int:
    return holder.limit - holder.octets
