"""Queries of Pods not yet in the watch: how long they wait, how many, and how often from one address."""

from collections.abc import Coroutine
from typing import Any

import pytest

from tests.support.cluster_dig import query_of, settings
from tests.support.model_builders import endpoint, endpoint_slice, namespace, node, packed, pod, service
from tests.support.virtual_timers import VirtualTimers
from topodns.cluster.model import HOSTNAME_LABEL, ClusterObject, KeySource, Kind, Replaced, Upserted
from topodns.cluster.state import ClusterState
from topodns.dependency import EVERYTHING, address_fact, service_fact
from topodns.plugins.kubernetes.handler import ClusterZone
from topodns.plugins.kubernetes.pod_wait import MAX_IN_VAIN, MAX_OF_ONE, MAX_WAITING, SECONDS, WAIT_AGAIN, PodWait
from topodns.plugins.kubernetes.zone import KubernetesZone
from topodns.plugins.topology.settings import TopologySettings
from topodns.query.deferred import pursue
from topodns.query.plugin import Client, Resolution
from topodns.topology.client_locator import ClientLocator
from topodns.topology.keys import key_reader

NEW, OTHER = packed("10.1.1.9"), packed("10.1.1.10")


def address(at: int) -> bytes:
    return packed(f"10.{at >> 16}.{at >> 8 & 255}.{at & 255}")


@pytest.fixture
def timers() -> VirtualTimers:
    return VirtualTimers()


@pytest.fixture
def waits(timers: VirtualTimers) -> PodWait:
    return PodWait(timers, lambda: True)


def test_news_of_the_address_end_the_wait_at_once(waits: PodWait) -> None:
    arrival = waits.wait(NEW)
    assert arrival is not None
    waits.wake({service_fact("a", "b"), address_fact(OTHER)})
    assert not arrival.settled
    waits.wake({address_fact(NEW)})
    assert arrival.settled
    assert waits.counts == {"arrived": 1, "expired": 0, "refused": 0}


def test_a_list_that_was_taken_in_ends_every_wait(waits: PodWait) -> None:
    arrivals = [waits.wait(NEW), waits.wait(OTHER)]
    waits.wake({EVERYTHING})
    assert all(arrival is not None and arrival.settled for arrival in arrivals)


def test_no_client_waits_for_longer_than_200_ms(waits: PodWait, timers: VirtualTimers) -> None:
    arrival = waits.wait(NEW)
    assert arrival is not None
    timers.advance(SECONDS - 0.01)
    assert not arrival.settled
    timers.advance(0.01)
    assert arrival.settled
    assert waits.counts["expired"] == 1


def test_an_address_that_waited_in_vain_does_not_wait_again_for_half_a_minute(
    waits: PodWait, timers: VirtualTimers
) -> None:
    assert waits.wait(NEW) is not None
    timers.advance(SECONDS)
    assert waits.wait(NEW) is None
    assert waits.wait(OTHER) is not None
    timers.advance(WAIT_AGAIN)
    assert waits.wait(NEW) is not None


def test_a_second_question_of_a_waiting_address_waits_with_the_first(waits: PodWait, timers: VirtualTimers) -> None:
    first = waits.wait(NEW)
    timers.advance(SECONDS / 2)
    assert waits.wait(NEW) is first
    timers.advance(SECONDS / 2)
    assert waits.counts["expired"] == 2


def test_the_waiting_are_bounded_in_all_and_of_one_address(waits: PodWait, timers: VirtualTimers) -> None:
    mine = [waits.wait(NEW) for _ in range(MAX_OF_ONE + 5)]
    assert sum(arrival is not None for arrival in mine) == MAX_OF_ONE
    others = [waits.wait(address(at)) for at in range(2 * MAX_WAITING)]
    assert sum(arrival is not None for arrival in others) == MAX_WAITING - MAX_OF_ONE
    assert waits.counts["refused"] == 5 + MAX_WAITING + MAX_OF_ONE
    timers.advance(SECONDS)
    assert waits.wait(address(3 * MAX_WAITING)) is not None


def test_the_number_of_remembered_strangers_is_bounded_and_those_beyond_do_not_wait(
    waits: PodWait, timers: VirtualTimers
) -> None:
    for at in range(MAX_IN_VAIN):
        assert waits.wait(address(at)) is not None
        if at % MAX_WAITING == MAX_WAITING - 1:
            timers.advance(SECONDS)
    assert waits.wait(address(MAX_IN_VAIN)) is None
    timers.advance(WAIT_AGAIN)
    assert waits.wait(address(MAX_IN_VAIN)) is not None


def test_without_pods_that_locate_clients_no_query_waits(timers: VirtualTimers) -> None:
    assert PodWait(timers, lambda: False).wait(NEW) is None


# In the step

NODES = [node("n1", addresses=["192.0.2.1"]), node("n2", addresses=["192.0.2.2"])]
ENDPOINTS = endpoint("10.1.1.2", "n1"), endpoint("10.1.2.2", "n2")
KINDS: tuple[Kind, ...] = ("Namespace", "Node", "Service", "EndpointSlice", "Pod")


class Cluster:
    """`hard` and `soft` by node, `plain` without keys; two Pods behind each, and clients that come."""

    def __init__(self) -> None:
        self.timers = VirtualTimers()
        self.state = ClusterState(frozenset(KINDS), key_reader((KeySource.ANNOTATION,)), all_pods=True)
        for kind in KINDS:
            self.state.apply(Replaced(kind, ()), 0)
        keys = {"hard": HOSTNAME_LABEL, "soft": f"{HOSTNAME_LABEL},*", "plain": None}
        services = [service(name, "ns", annotation=value) for name, value in keys.items()]
        slices = [endpoint_slice(name, *ENDPOINTS, namespace="ns") for name in keys]
        objects: list[ClusterObject] = [namespace("ns"), *NODES, *services, *slices]
        for each in objects:
            self.state.apply(Upserted(each), 0)
        self.waits = PodWait(self.timers, lambda: self.state.knows_all_pods)
        topology = TopologySettings()
        locator = ClientLocator(self.state, topology.locate)
        self.step = ClusterZone(
            KubernetesZone(settings("cluster.local"), topology, self.state, locator, pod_wait=self.waits)
        )

    def put(self, value: ClusterObject) -> None:
        self.waits.wake(self.state.apply(Upserted(value), 1))

    def ask(self, name: str) -> list[set[bytes]]:
        """The addresses in each answer to the new Pod, as it arrives."""
        answers: list[set[bytes]] = []

        def take(resolution: Any) -> None:
            assert isinstance(resolution, Resolution)
            answers.append({data for rrset in resolution.response.answer for data in rrset.rdatas})

        stepped = self.step(query_of(f"{name}.ns.svc.cluster.local A"), Client(NEW, 40_000, "udp"))
        if isinstance(stepped, Coroutine):
            pursue(stepped, take)
        else:
            take(stepped)
        return answers


EVERYBODY = {packed("10.1.1.2"), packed("10.1.2.2")}


@pytest.mark.parametrize("name", ["hard", "soft"])
def test_a_new_pod_is_answered_by_its_node_as_soon_as_it_is_known(name: str) -> None:
    cluster = Cluster()
    answers = cluster.ask(name)
    assert not answers
    cluster.put(pod("new", ["10.1.1.9"], "ns", "n1"))
    assert answers == [{packed("10.1.1.2")}]
    assert cluster.ask(name) == [{packed("10.1.1.2")}]


@pytest.mark.parametrize(("name", "got"), [("hard", set[bytes]()), ("soft", EVERYBODY)])
def test_a_client_that_no_pod_comes_for_is_answered_as_unknown(name: str, got: set[bytes]) -> None:
    cluster = Cluster()
    answers = cluster.ask(name)
    assert not answers
    cluster.timers.advance(SECONDS)
    assert answers == [got]
    assert cluster.ask(name) == [got]  # at once


def test_without_keys_no_query_waits() -> None:
    assert Cluster().ask("plain") == [EVERYBODY]
