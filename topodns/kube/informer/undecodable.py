"""Objects from the API server that cannot be decoded: each is skipped, counted and logged, and its last version stays.

One bad object must not cost the others their updates, nor its own clients the answers from the version before it.
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
        """Count an object that cannot be decoded, and log its problem unless that was the last one logged of it."""
        self._progress.decode_errors += 1
        problem = one_line(item.problem)
        if self.problems.get(item.key) != problem:
            self.problems[item.key] = problem
            log.warning("plugin/kubernetes: skipped %s", problem)

    def forget(self, key: ObjectKey) -> None:
        """Forget the problem of an object that was decoded or deleted, so that a problem with it is logged again."""
        if self.problems:
            self.problems.pop(key, None)


def last_version(item: Undecodable, kind: Kind, state: ClusterState) -> ClusterObject | None:
    """The version of an undecodable object that the state holds; None if it holds none, or the key is unreadable.

    A list keeps it: the object is in the list, so it has not been deleted.
    """
    return state.held(kind, item.key) if item.key is not None else None
