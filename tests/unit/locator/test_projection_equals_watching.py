"""A server with locators alone answers as one that watches Pods and Nodes, over random clusters.

Each Node has a hostNetwork Pod, as the network plugin's or kube-proxy's: so the Node's address and labels are in a
PodLocator, too.
"""

import json
from collections.abc import Iterable, Iterator
from ipaddress import ip_address
from typing import Final, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.cluster_dig import ClusterDig, settings
from tests.support.model_builders import endpoint, endpoint_slice, namespace, node, pod, service
from topodns.cluster.decode.objects import decode_object
from topodns.cluster.model import (
    HOSTNAME_LABEL,
    ZONE_LABEL,
    ClusterObject,
    Endpoint,
    KeySource,
    Node,
    Pod,
    Policy,
    Service,
)
from topodns.locator.objects import NODE_LOCATORS, POD_LOCATORS, LocatorKind, locator_object
from topodns.locator.projection import PlacedNode, PlacedPod, Projection
from topodns.plugins.topology.settings import TopologySettings
from topodns.topology.client_locator import Method
from topodns.topology.keys import policy_of
from topodns.topology.select import UnknownClient

RACK: Final = "example.com/rack"
NAMES: Final = ("n0", "n1", "n2")
POLICIES: Final = (
    HOSTNAME_LABEL,
    ZONE_LABEL,
    RACK,
    f"{RACK},{ZONE_LABEL},*",
    f"{HOSTNAME_LABEL},!{ZONE_LABEL}",
    f"!{RACK},*",
)
NOWHERE: Final = "192.0.2.9"


class World(NamedTuple):
    nodes: list[Node]
    pods: list[Pod]
    rest: list[ClusterObject]  # namespaces, Services, slices

    def clients(self, kind: LocatorKind) -> list[str]:
        """Addresses of Pods, and one of none. A NodeLocator has those on a Node that exists."""
        placed = [each for each in self.pods if kind.namespaced or each.node_name in NAMES]
        return [str(ip_address(ip)) for each in placed for ip in each.ips] + [NOWHERE]


@st.composite
def nodes(draw: st.DrawFn, number: int) -> Node:
    labels = {HOSTNAME_LABEL: draw(st.sampled_from((NAMES[number], "other"))), "unused": draw(st.sampled_from("xy"))}
    others = {name: draw(st.sampled_from(("1", "2", ""))) for name in (ZONE_LABEL, RACK)}
    return node(NAMES[number], labels | {name: value for name, value in others.items() if value}, (of_node(number),))


def of_node(number: int) -> str:
    return f"192.0.2.{number}"


def of_pod(number: int) -> str:
    return f"10.244.0.{number}"


@st.composite
def worlds(draw: st.DrawFn) -> World:
    there = [draw(nodes(number)) for number in range(len(NAMES))]
    of_host = [pod(f"proxy-{number}", (of_node(number),), node=name) for number, name in enumerate(NAMES)]
    placed = draw(st.lists(st.sampled_from((*NAMES, *NAMES, "gone")), min_size=1, max_size=8))
    pods = [pod(f"p{at}", (of_pod(at),), node=name, terminating=draw(st.booleans())) for at, name in enumerate(placed)]
    services: list[Service] = [
        service(f"s{at}", annotation=keys, ports=("http:80",)) for at, keys in enumerate(draw(st.lists(_keys)))
    ]
    endpoints = [draw(_endpoints(of_pod(at), name)) for at, name in enumerate(placed)]
    slices = [endpoint_slice(each.name, *endpoints, ports=("http:80",)) for each in services]
    return World(there, [*of_host, *pods], [namespace("default"), *services, *slices])


_keys = st.sampled_from(POLICIES)


def _endpoints(address: str, name: str) -> st.SearchStrategy[Endpoint]:
    return st.builds(endpoint, st.just(address), st.just(name), ready=st.booleans())


def locators(kind: LocatorKind, world: World) -> Iterator[ClusterObject]:
    """The locators of this kind, as `topodns locator` writes them and a server reads them."""
    projection = Projection(kind)
    for each in world.nodes:
        projection.set_node(each.key, PlacedNode(f"uid-{each.name}", each.addresses, each.labels))
    for one in world.pods:
        if kind.namespaced or not one.name.startswith("proxy"):
            rank = (not one.terminating, one.started)
            projection.set_pod(one.key, PlacedPod(f"uid-{one.name}", one.node_name, one.ips, rank))
    for value in world.rest:
        if isinstance(value, Service):
            policy = policy_of(value, (KeySource.ANNOTATION,))
            assert isinstance(policy, Policy)
            projection.set_keyed("Service", value.key, projection.admitted(value.namespace, policy.labels))
    for key in (*projection.nodes, *projection.pods):
        content = projection.locator(key)
        if content is not None:
            yield from decode_object(kind.kind, json.dumps(locator_object(kind, content, None)).encode())


def server(method: Method, objects: Iterable[ClusterObject], unknown: UnknownClient) -> ClusterDig:
    return ClusterDig(objects, settings(), TopologySettings(locate=(method,), unknown_client=unknown))


@pytest.mark.parametrize("kind", [POD_LOCATORS, NODE_LOCATORS], ids=["PodLocators", "NodeLocators"])
@given(world=worlds(), unknown=st.sampled_from((UnknownClient.STRICT, UnknownClient.ALL)))
def test_a_server_with_locators_alone_answers_as_one_that_watches_pods_and_nodes(
    kind: LocatorKind, world: World, unknown: UnknownClient
) -> None:
    watching = server(Method.PODS, [*world.rest, *world.nodes, *world.pods], unknown)
    alone = server(Method(kind.word), [*world.rest, *locators(kind, world)], unknown)
    for one in world.rest:
        for rtype in ("A", "SRV") if isinstance(one, Service) else ():
            question = f"{one.key.name}.default.svc.cluster.local. {rtype}"
            for client in world.clients(kind):
                assert alone(question, client) == watching(question, client), (question, client)
