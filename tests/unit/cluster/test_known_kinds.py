"""Which of the needed kinds are known, and how."""

import pytest

from topodns.cluster.known_kinds import KnownKinds, Restored
from topodns.cluster.model import Kind, Replaced
from topodns.cluster.state import ClusterState

NEEDED = frozenset[Kind](("Service", "Pod"))


def restored(*kinds: Kind) -> ClusterState:
    state = ClusterState(NEEDED)
    state.restore(Restored(frozenset(kinds), 1_764_244_800))
    return state


def test_without_needed_kinds_all_is_known() -> None:
    kinds = KnownKinds(frozenset())
    assert (kinds.synced, kinds.is_covered, kinds.known, kinds.unsynced) == (True, True, frozenset(), ())


@pytest.mark.parametrize(
    ("kinds", "is_covered"), [(("Service", "Pod"), True), (("Pod",), False), (("Service", "Pod", "Node"), True)]
)
def test_a_snapshot_covers_the_kinds_that_it_has(kinds: tuple[Kind, ...], is_covered: bool) -> None:
    state = restored(*kinds)
    assert (state.synced, state.unsynced, state.is_covered) == (False, ("Pod", "Service"), is_covered)
    assert state.known == NEEDED & set(kinds)
    assert [state.is_restored(kind) for kind in kinds] == [True] * len(kinds)


def test_a_list_takes_its_kind_out_of_the_snapshot_and_the_last_one_ends_it() -> None:
    state = restored("Service", "Pod")
    state.apply(Replaced("Pod", ()), 0)
    assert state.restored == Restored(frozenset[Kind](("Service",)), 1_764_244_800)
    state.apply(Replaced("Service", ()), 0)
    assert state.synced
    assert not state.is_restored("Service")


def test_a_kind_that_is_denied_is_of_no_snapshot_any_more() -> None:
    state = restored("Service", "Pod")
    state.do_without("Pod")
    assert (state.is_restored("Pod"), state.denied, state.is_covered) == (False, {"Pod"}, True)


def test_the_time_of_a_snapshot_is_written_in_utc() -> None:
    assert Restored(frozenset(), 1_764_244_800).since == "2025-11-27T12:00:00Z"
