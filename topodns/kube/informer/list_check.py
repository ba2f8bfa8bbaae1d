"""Decides whether a complete list of one kind is plausible, so that it may replace what the store holds.

Implausible are a list with far fewer objects than there were, and one with an older resourceVersion than was seen
before: a replica of the API server may lag, and a proxy may cut. The list after an implausible one is always accepted.
"""

from collections.abc import Sized
from typing import Final

from topodns.cluster.model import Kind
from topodns.kube.informer.store import Store
from topodns.kube.informer.sync_state import SyncState

SMALL: Final = 100  # objects held: with no more than these, any shorter list is plausible
LEAST_SHARE: Final = 0.1  # of the objects held: a list with fewer is implausible


class ListCheck:
    """The check of the lists of one kind. `sync` has the last resourceVersion seen."""

    def __init__(self, kind: Kind, store: Store, sync: SyncState) -> None:
        self._kind = kind
        self._store = store
        self._sync = sync
        self._confirming = False  # the last list was implausible, so the next one is accepted

    def problem(self, listed: Sized, version: str) -> str:
        """Why a list of these objects and this resourceVersion is implausible, for the log; "" if it is accepted.

        After an implausible list, the next one is requested as the newest there is, and accepted.
        """
        problem = "" if self._confirming else self._shrinkage(len(listed)) or self._sync.lag(version)
        self._confirming = bool(problem)
        if problem:
            self._sync.request_newest()
        return problem

    def _shrinkage(self, listed: int) -> str:
        held = self._store.count(self._kind)
        if held <= SMALL or listed >= held * LEAST_SHARE:
            return ""
        return f"it has {listed} objects where there were {held}"
