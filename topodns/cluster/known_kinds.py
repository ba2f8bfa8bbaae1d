"""The kinds of objects that a cluster's answers need, and how each is known: by a list, by a snapshot, or not yet."""

from datetime import UTC, datetime
from typing import NamedTuple

from topodns.cluster.model import Kind

_NONE: frozenset[Kind] = frozenset()


class Restored(NamedTuple):
    """The kinds whose objects are of a snapshot and not yet replaced by a list, and the snapshot's Unix time."""

    kinds: frozenset[Kind]
    unix_time: int  # seconds, by the clock of the process that wrote it

    @property
    def since(self) -> str:
        """The time as text, in UTC (RFC 3339)."""
        return datetime.fromtimestamp(self.unix_time, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class KnownKinds:
    """`needed`: kinds that must each have had a complete list before `synced`, or be done without."""

    synced: bool  # whether every needed kind was listed, or is done without
    restored: Restored | None = None  # None: no kind is of a snapshot; never with `synced`

    def __init__(self, needed: frozenset[Kind]) -> None:
        self.needed, self._awaited = needed, set(needed)
        self.synced = not needed
        self.denied: set[Kind] = set()  # counted as synced and empty, because RBAC denies the list
        self.replacing: set[Kind] = set()  # those of which a list is being applied

    @property
    def known(self) -> frozenset[Kind]:
        """The needed kinds that were listed, or are of a snapshot; without the denied ones."""
        restored = _NONE if self.restored is None else self.restored.kinds
        return self.needed - (self._awaited - restored) - self.denied

    @property
    def unsynced(self) -> tuple[Kind, ...]:
        """The needed kinds that are not yet listed."""
        return tuple(sorted(self._awaited))

    @property
    def is_covered(self) -> bool:
        """Whether every needed kind was listed, is of a snapshot, or is done without."""
        return self.synced or (self.restored is not None and self.restored.kinds >= self._awaited)

    def is_restored(self, kind: Kind) -> bool:
        """Whether the objects of this kind are of a snapshot."""
        return self.restored is not None and kind in self.restored.kinds

    def _count_listed(self, kind: Kind) -> None:
        """Wait for this kind no longer; the objects of a snapshot are replaced, or gone."""
        self._awaited.discard(kind)
        if self.restored is not None:
            left = self.restored.kinds - {kind}
            self.restored = self.restored._replace(kinds=left) if left else None
        self.synced = not self._awaited
