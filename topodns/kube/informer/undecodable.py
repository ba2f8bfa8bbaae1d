"""Objects from the API server that cannot be decoded, wholly or in part: each is counted, and logged once.

One that is undecodable as a whole is skipped, and its last version stays; of one with undecodable elements the others
count (`cluster.decode.unreadable_elements`). So one bad object costs neither the others their updates, nor its own
clients the answers from the version before it.
"""

import logging

from topodns.cluster.decode.stream import Undecodable
from topodns.cluster.model import ClusterObject, Kind, ObjectKey
from topodns.cluster.state import ClusterState
from topodns.kube.informer.progress import Progress
from topodns.logs import one_line

log = logging.getLogger(__name__)


class UndecodableObjects:
    """The undecodable objects of one kind. `problems`: the problem logged last of each, by key."""

    def __init__(self, progress: Progress) -> None:
        self.problems: dict[ObjectKey | None, str] = {}
        self._progress = progress

    def skip(self, item: Undecodable) -> None:
        """Report an object that cannot be decoded."""
        self._report(item.key, f"skipped {item.problem}")

    def note(self, key: ObjectKey, left_out: str) -> None:
        """Report the elements left out of an object that was decoded.

        Without any, or where it was deleted, forget its problem, so that a problem with it is logged again.
        """
        if left_out:
            self._report(key, left_out)
        else:
            self.problems.pop(key, None)

    def _report(self, key: ObjectKey | None, found: str) -> None:
        """Count the object, and log its problem unless that was the last one logged of it."""
        self._progress.decode_errors += 1
        problem = one_line(found)
        if self.problems.get(key) != problem:
            self.problems[key] = problem
            log.warning("plugin/kubernetes: %s", problem)


def last_version(item: Undecodable, kind: Kind, state: ClusterState) -> ClusterObject | None:
    """The version of an undecodable object that the state holds; None if it holds none, or the key is unreadable.

    A list keeps it: the object is in the list, so it has not been deleted.
    """
    return state.held(kind, item.key) if item.key is not None else None
