"""NodeLocators and PodLocators at an API server: clients are where they say, from one answer to the next.

A client's address comes by Client Subnet from a trusted source: a locator has no loopback addresses.
"""

import time
from pathlib import Path

from tests.support.api_objects import node_locator, pod_locator
from tests.support.dns_messages import Opt, subnet
from tests.support.event_loops import SLOWNESS
from tests.support.fake_api.server import FakeApi
from tests.support.program_with_fake_api import ALWAYS, NEAR, Scene, scene
from tests.support.server_process import until

POD, IN_ZONE_A, IN_ZONE_B = "10.244.1.7", ["10.61.1.1"], ["10.61.2.1"]
SOON = 10.0 * SLOWNESS  # seconds: a watch brings a change at once; the next list would come minutes later
TRUSTED = "127.61.0.9"  # on no node
FAILING, CONTRADICTIONS = "topodns_watch_failing", "topodns_locator_contradictions"


def locating(*methods: str) -> str:
    """More methods of `locate`, and another option of `topology`."""
    return f"{' '.join(methods)}\n        trust {TRUSTED}"


def near(story: Scene, client: str = POD) -> list[str]:
    """The addresses of `near` for this client."""
    return story.server.ask(NEAR, TRUSTED, Opt(options=[subnet(f"{client}/32")])).data


def comes(story: Scene, expected: list[str]) -> None:
    """Wait for this answer, which a watch brings."""
    begun = time.monotonic()
    until(lambda: near(story) == expected, f"{expected}; there is {near(story)}\n{story.server.output()}")
    assert time.monotonic() - begun < SOON


def test_a_client_is_where_its_node_locator_says_and_moves_with_it(tmp_path: Path) -> None:
    there = (node_locator("n1"), node_locator("n2", ["10.244.2.9"]))
    with scene(tmp_path, *there, locate=locating("nodelocator")) as story:
        assert near(story) == []
        assert near(story, "10.244.2.9") == IN_ZONE_B
        story.api.put(node_locator("n1", [POD]))
        comes(story, IN_ZONE_A)
        story.api.put(node_locator("n1"), node_locator("n2", ["10.244.2.9", POD]))
        comes(story, IN_ZONE_B)
        story.api.delete(node_locator("n2"))
        comes(story, [])


def test_a_client_is_where_its_pod_locator_says_and_moves_with_it(tmp_path: Path) -> None:
    with scene(tmp_path, pod_locator("p", [POD], "n1"), locate=locating("podlocator")) as story:
        assert near(story) == IN_ZONE_A
        story.api.put(pod_locator("p", [POD], "n2"))
        comes(story, IN_ZONE_B)
        story.api.put(pod_locator("q", [POD], "n1"))
        comes(story, IN_ZONE_A)


def test_with_pod_locators_alone_clients_and_endpoints_have_the_labels_in_them(tmp_path: Path) -> None:
    """A server that may read neither Pods nor Nodes."""
    there = [pod_locator("p", [POD], "n1", topology_zone="a"), pod_locator("q", ["10.61.2.1"], "n2", topology_zone="b")]

    def prepare(api: FakeApi) -> None:
        api.deny("nodes")
        api.deny("pods")

    options = locating("podlocator")
    with scene(tmp_path, *there, promises=ALWAYS[:2], prepare=prepare, methods="", locate=options) as story:
        assert near(story) == IN_ZONE_A
        story.api.put(pod_locator("p", [POD], "n1", topology_zone="b"))
        comes(story, [*IN_ZONE_A, *IN_ZONE_B])
        story.api.put(pod_locator("q", ["10.61.2.1"], "n2", topology_zone="c"))
        comes(story, IN_ZONE_A)
        assert not story.api.requests.of("nodes")
        assert not story.api.requests.of("pods")


def test_a_locator_that_lies_moves_nobody_and_is_logged_and_counted(tmp_path: Path) -> None:
    honest, lie = node_locator("n1", [POD]), pod_locator("p", [POD], "n2", "evil")
    with scene(tmp_path, honest, node_locator("n2"), locate=locating("nodelocator", "podlocator")) as story:
        assert near(story) == IN_ZONE_A
        story.api.put(lie)
        comes(story, [])
        story.server.wait_for_line(
            f"NodeLocator n1 says that {POD} is on node n1, but PodLocator evil/p has its address on node n2; "
            "it locates no client with that address"
        )
        story.shows(CONTRADICTIONS, kind="PodLocator", reason="conflict")
        story.api.delete(lie)
        comes(story, IN_ZONE_A)
        until(lambda: story.metric(CONTRADICTIONS) == 0, story.server.output())
        story.api.put(node_locator("n1", [POD, "127.0.0.1", "fe80::1"]))
        story.server.wait_for_line("NodeLocator n1: spec.podIPs[1] '127.0.0.1' is loopback; ignored")
        assert story.metric("topodns_locator_refused_addresses", kind="NodeLocator") == 2
        assert near(story) == IN_ZONE_A


def test_a_server_is_ready_once_each_node_has_a_locator(tmp_path: Path) -> None:
    with scene(tmp_path, node_locator("n2"), locate=locating("nodelocator"), synced=False) as story:
        waiting = "kubernetes: waiting for NodeLocators: 1 of 2 Nodes have none"
        until(lambda: story.ready() == (503, waiting), story.server.output())
        story.api.put(node_locator("n1", [POD]))
        story.is_ready()
        story.server.wait_for_line(f"plugin/{waiting}")
        assert near(story) == IN_ZONE_A


def test_k16_without_the_custom_resource_definition_it_says_so_and_waits_for_locators(tmp_path: Path) -> None:
    methods = locating("nodelocator")
    with scene(tmp_path, locate=methods, prepare=lambda api: api.absent("nodelocators"), synced=False) as story:
        waiting = "kubernetes: waiting for NodeLocators: 2 of 2 Nodes have none"
        until(lambda: story.ready() == (503, waiting), story.server.output())
        assert near(story) == []
        assert story.metric(FAILING, kind="NodeLocator", status="404") == 1
        assert story.metric("topodns_state_objects", kind="NodeLocator") == 0
        story.server.wait_for_line("not installed: the cluster has no CustomResourceDefinition nodelocators.topodns.io")


def test_k16_a_custom_resource_definition_of_another_version_is_named(tmp_path: Path) -> None:
    methods = locating("podlocator")
    absent = ("podlocators", "v1beta1")
    with scene(tmp_path, locate=methods, prepare=lambda api: api.absent(*absent), synced=False) as story:
        waiting = "kubernetes: waiting for PodLocators: there is none"
        until(lambda: story.ready() == (503, waiting), story.server.output())
        assert story.metric(FAILING, kind="PodLocator", status="404") == 1
        story.server.wait_for_line("the cluster has topodns.io in version v1beta1, expected v1alpha1")


def test_k12_while_locators_are_denied_ready_names_the_rule_and_clients_get_every_endpoint(tmp_path: Path) -> None:
    with scene(
        tmp_path,
        node_locator("n1", [POD]),
        node_locator("n2"),
        locate=locating("nodelocator"),
        prepare=lambda api: api.deny("nodelocators"),
        synced=False,
    ) as story:
        until(lambda: near(story) == [*IN_ZONE_A, *IN_ZONE_B], story.server.output())
        status, why = story.ready()
        rule = 'apiGroups: ["topodns.io"], resources: ["nodelocators"], verbs: ["list", "watch"]'
        assert status == 503
        assert f"the ClusterRole needs {rule}, or `locate` goes without nodelocator" in why
        story.api.heal()
        until(lambda: near(story) == IN_ZONE_A, story.server.output())
        story.is_ready()
