"""A list taken in little by little, and changes older than the held objects."""

from dataclasses import replace

import pytest

from tests.support.model_builders import endpoint, endpoint_slice, namespace, node, service
from topodns.cluster.list_diff import COMPARED_AT_ONCE, IDLE, SLICES_AT_ONCE, DiffStep
from topodns.cluster.model import Change, ClusterObject, Deleted, EndpointSlice, Kind, ObjectKey, Replaced, Upserted
from topodns.cluster.state import ClusterState
from topodns.dependency import EVERYTHING, service_fact

WEB = ObjectKey("default", "web")


def state_of(*changes: Change, needed: frozenset[Kind] = frozenset()) -> ClusterState:
    state = ClusterState(needed)
    for change in changes:
        state.apply(change, 0)
    return state


def steps(state: ClusterState, kind: Kind, *objects: ClusterObject) -> list[DiffStep]:
    """Those in which anything happens."""
    return [step for step in state.replace_steps(Replaced(kind, objects), 0) if step != IDLE]


def slices(*addresses: str) -> tuple[EndpointSlice, ...]:
    """One slice of web for each address."""
    made = enumerate(addresses)
    return tuple(endpoint_slice("web", endpoint(address), name=f"web-{at}") for at, address in made)


class TestSteps:
    def test_each_object_that_differs_is_a_step_and_the_others_are_none(self) -> None:
        state = state_of(Replaced("Service", (service("same"), service("changed"), service("gone"))))
        changed = service("changed", cluster_ips=["10.96.0.1"])
        found = steps(state, "Service", service("same"), changed, service("new"))
        assert [step.differing for step in found] == [1, 1, 1]
        touched = [{fact.name for fact in step.facts if fact.kind == "service"} for step in found]
        assert touched == [{"gone"}, {"changed"}, {"new"}]

    def test_all_slices_of_a_service_change_in_one_step(self) -> None:
        state = state_of(Replaced("EndpointSlice", slices("10.0.0.1", "10.0.0.2")))
        other = endpoint_slice("other", endpoint("10.0.0.9"))
        found = steps(state, "EndpointSlice", *slices("10.0.0.3", "10.0.0.4", "10.0.0.5"), other)
        assert [step.differing for step in found] == [3, 1]
        assert service_fact(*WEB) in found[0].facts

    def test_very_many_slices_of_a_service_change_in_several_steps_and_the_removals_come_last(self) -> None:
        before = [f"10.0.0.{number}" for number in range(SLICES_AT_ONCE)]
        state = state_of(Replaced("EndpointSlice", slices(*before)))
        renamed = [replace(one, name=f"new-{at}") for at, one in enumerate(slices(*before))]
        ready = []
        for step in state.replace_steps(Replaced("EndpointSlice", tuple(renamed)), 0):
            if step.differing:
                ready.append((step.differing, len(state.backends(WEB).pools[4].everyone.addresses)))
        assert ready == [(SLICES_AT_ONCE, SLICES_AT_ONCE)] * 2

    def test_large_slices_change_ten_thousand_endpoints_at_once(self) -> None:
        large = tuple(
            endpoint_slice("web", *(endpoint(f"10.{each}.{at >> 8}.{at & 255}") for at in range(1000)), name=f"w{each}")
            for each in range(12)
        )
        assert [step.differing for step in steps(state_of(), "EndpointSlice", *large)] == [10, 2]

    def test_no_step_compares_more_than_some_objects(self) -> None:
        many = tuple(namespace(f"n{number}") for number in range(10 * COMPARED_AT_ONCE))
        state = state_of(Replaced("Namespace", many))
        found = list(state.replace_steps(Replaced("Namespace", many), 0))
        assert found == [IDLE] * 30

    def test_of_a_first_list_only_the_last_step_has_facts_and_makes_the_kind_synced(self) -> None:
        state = state_of(needed=frozenset({"Service"}))
        found = []
        for step in state.replace_steps(Replaced("Service", (service("a"), service("b"))), 0):
            found.append((step.facts, state.synced))
        assert found[-1] == (frozenset({EVERYTHING}), True)
        assert set(found[:-1]) == {(frozenset(), False)}

    def test_a_change_between_two_steps_is_newer_than_the_list(self) -> None:
        state = state_of(Replaced("Service", (service("a"), service("b"))))
        taking = state.replace_steps(Replaced("Service", (service("c"),)), 0)
        while next(taking) == IDLE:
            pass
        newer = service("b", cluster_ips=["10.96.0.1"])
        state.apply(Upserted(newer), 0)
        assert [step.differing for step in taking] == [0, 1]
        assert state.service(newer.key) is newer

    def test_an_object_changed_since_the_list_is_left_alone(self) -> None:
        state = state_of(Replaced("Service", (service("kept"), service("gone"))))
        newer = {ObjectKey("default", name) for name in ("kept", "deleted")}
        for _ in state.replace_steps(Replaced("Service", (service("deleted"),)), 0, newer):
            pass
        names = [name for name in ("kept", "gone", "deleted") if state.service(ObjectKey("default", name))]
        assert names == ["kept"]

    def test_an_object_that_came_and_went_while_the_list_was_taken_in_does_not_come_back(self) -> None:
        state = state_of(Replaced("Service", (service("changed"),)))
        newer: set[ObjectKey] = set()
        listed = service("changed", cluster_ips=["10.96.0.1"]), service("gone")
        taking = state.replace_steps(Replaced("Service", listed), 0, newer)
        while next(taking) == IDLE:
            pass
        gone = ObjectKey("default", "gone")
        for change in (Upserted(service("gone")), Deleted("Service", gone)):
            newer.add(gone)
            state.apply(change, 0)
        assert sum(step.differing for step in taking) == 0
        assert state.service(gone) is None

    def test_of_an_object_that_is_listed_twice_the_later_one_counts(self) -> None:
        state = state_of()
        later = service("web", cluster_ips=["10.96.0.1"])
        assert [step.differing for step in steps(state, "Service", service("web"), later)] == [1]
        assert state.service(WEB) is later


class TestVersions:
    @pytest.mark.parametrize(
        ("held", "version", "taken"),
        [(10, 9, False), (10, 10, True), (10, 11, True), (10, 0, True), (0, 5, True)],
        ids=["older", "the same", "newer", "without an order", "where what is held has none"],
    )
    def test_a_change_older_than_the_held_object_is_ignored(self, held: int, version: int, taken: bool) -> None:
        state = state_of(Upserted(replace(service("web"), version=held)))
        changed = replace(service("web", cluster_ips=["10.96.0.1"]), version=version)
        assert bool(state.apply(Upserted(changed), 0)) is taken
        assert (state.service(WEB) is changed) is taken
        state = state_of(Upserted(replace(service("web"), version=held)))
        assert bool(state.apply(Deleted("Service", WEB, version), 0)) is taken

    def test_objects_that_differ_in_their_version_alone_are_equal(self) -> None:
        state = state_of(Upserted(replace(node("n1"), version=5)))
        assert state.apply(Upserted(replace(node("n1"), version=6)), 0) == frozenset()

    def test_a_list_counts_whatever_its_versions_and_so_do_later_changes(self) -> None:
        """A restored etcd begins again where its backup was."""
        state = state_of(Upserted(replace(service("web"), version=100)))
        state.apply(Replaced("Service", (replace(service("web"), version=40),)), 0)
        changed = replace(service("web", cluster_ips=["10.96.0.1"]), version=41)
        assert state.apply(Upserted(changed), 0)

    def test_an_equal_object_is_held_once(self) -> None:
        held = replace(service("web"), version=10)
        state = state_of(Upserted(held))
        assert state.interned(replace(service("web"), version=12)) is held
        for other in (replace(service("web"), version=9), service("web", cluster_ips=["10.96.0.1"]), service("new")):
            assert state.interned(other) is other
