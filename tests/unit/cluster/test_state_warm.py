"""The backends that a state builds before the first query: which, how many at a time, and the same answers."""

from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from tests.support.model_builders import endpoint, endpoint_slice, node, packed, service, state_of
from topodns.cluster.model import ClusterObject, ObjectKey, Upserted
from topodns.cluster.state import ClusterState
from topodns.dependency import service_fact

RACK = "example.com/rack"
NODES = [node(f"n{number}", {RACK: f"r{number % 2}"}) for number in range(4)]


def slice_of(name: str, size: int) -> ClusterObject:
    return endpoint_slice(name, *(endpoint(f"10.0.{at // 250}.{at % 250}", f"n{at % 4}") for at in range(size)))


def built(state: ClusterState) -> int:
    """How many Services are built by steps of their own."""
    with patch.object(state, "backends", wraps=state.backends) as used:
        assert len(list(state.warm_steps())) >= used.call_count
    return used.call_count


def test_a_service_is_built_with_each_step() -> None:
    names = ["db", "cache", "queue"]
    state = state_of(
        *NODES, *(service(name, annotation=RACK) for name in names), *(slice_of(name, 3) for name in names)
    )
    assert built(state) == 3


def test_backends_built_already_are_not_built_again() -> None:
    state = state_of(*NODES, service("db", annotation=RACK), slice_of("db", 3))
    built(state)
    assert built(state) == 0


def test_no_matter_whether_the_service_or_its_slices_came_first() -> None:
    assert built(state_of(*NODES, slice_of("db", 3), service("db", annotation=RACK))) == 1


def test_services_without_policy_without_endpoints_and_large_ones_wait_for_a_question() -> None:
    state = state_of(
        *NODES,
        *(service("plain"), slice_of("plain", 3)),
        *(service("invalid", annotation="no key!"), slice_of("invalid", 3)),
        service("empty", annotation=RACK),
        *(service("large", annotation=RACK), slice_of("large", 101)),
    )
    assert built(state) == 0


def test_a_changed_slice_and_a_moved_node_make_a_service_due_again() -> None:
    state = state_of(*NODES, service("db", annotation=RACK), slice_of("db", 3))
    built(state)
    state.apply(Upserted(slice_of("db", 4)), 0)
    assert built(state) == 1
    touched = state.apply(Upserted(node("n1", {RACK: "elsewhere"})), 0)
    assert service_fact("default", "db") in touched
    assert built(state) == 1


def test_a_service_changed_between_two_steps_is_built_too() -> None:
    state = state_of(*NODES, service("db", annotation=RACK), slice_of("db", 3))
    steps = state.warm_steps()
    next(steps)
    state.apply(Upserted(slice_of("db", 4)), 0)
    assert len(list(steps)) == 1


@given(st.lists(st.booleans(), max_size=12))
def test_answers_are_those_of_a_state_that_was_never_warmed(warmings: list[bool]) -> None:
    warmed, other = state_of(*NODES, service("db", annotation=RACK)), state_of(*NODES, service("db", annotation=RACK))
    key = ObjectKey("default", "db")
    for size, warm in enumerate(warmings):
        for state in (warmed, other):
            state.apply(Upserted(slice_of("db", size)), 0)
        if warm:
            built(warmed)
        for rack in ("r0", "r1"):
            expected = [packed(f"10.0.0.{at}") for at in range(size) if f"r{at % 2}" == rack]
            for state in (warmed, other):
                assert list(state.backends(key).pools[4].matching(RACK, rack).addresses) == expected
