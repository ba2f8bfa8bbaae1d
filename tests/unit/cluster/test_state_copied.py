"""What a copy of a state takes of the original's changes."""

from tests.support.model_builders import service
from topodns.cluster.model import ClusterObject, Kind, ObjectKey, Upserted
from topodns.cluster.state import ClusterState
from topodns.dependency import Fact, service_fact

DB = service("db", "shop")


def copied(state: ClusterState, *upserted: ClusterObject, deleted: tuple[ObjectKey, ...] = ()) -> frozenset[Fact]:
    return state.take_copied("Service", upserted, deleted, 7, listing=False)


def test_objects_and_deletions_are_taken_and_touch_their_dependencies() -> None:
    state = ClusterState(frozenset())
    assert service_fact("shop", "db") in copied(state, DB)
    assert state.service(DB.key) == DB
    assert service_fact("shop", "db") in copied(state, deleted=(DB.key,))
    assert state.service(DB.key) is None


def test_what_the_copy_has_already_touches_nothing() -> None:
    state = ClusterState(frozenset())
    copied(state, DB)
    revision = state.revision
    assert copied(state, DB) == copied(state, deleted=(ObjectKey("shop", "gone"),)) == frozenset()
    assert state.revision == revision


def test_the_time_of_a_change_is_the_original_s() -> None:
    state = ClusterState(frozenset())
    copied(state, DB)
    assert state.serial == 7


class Notes:
    """A journal that notes what it is given."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def taken(self, kind: Kind, changes: object, wall_seconds: int) -> None:
        self.lines.append(f"{kind} at {wall_seconds}")

    def synced(self, kind: Kind, denied: bool) -> None:
        self.lines.append(f"{kind} {'denied' if denied else 'complete'}")

    def when_copied(self, action: object) -> None:
        """Not used by a state."""


def test_a_journal_has_all_changes_in_order_and_nothing_that_changed_nothing() -> None:
    state = ClusterState(frozenset[Kind]({"Service", "Pod"}))
    notes = state.journal = Notes()
    for _ in range(2):
        state.apply(Upserted(DB), 7)
    state.do_without("Pod")
    state.do_without("Pod")
    state.complete("Service")
    assert notes.lines == ["Service at 7", "Pod denied", "Service complete"]
