"""What each method says of an address, why, and what contradicts the location."""

from collections.abc import Sequence

import pytest

from tests.support.model_builders import endpoint, endpoint_slice, node, node_locator, packed, pod, pod_locator
from topodns.cluster.model import ClusterObject, KeyReader, KeySource, Policy, Replaced, Service, ServiceKeys, Upserted
from topodns.cluster.state import ClusterState
from topodns.inspect import who
from topodns.inspect.who import MAX_CONTRADICTIONS, MAX_LACKING, Evidence, gather_evidence, labels_in_use
from topodns.topology.client_locator import ClientLocator, Method

METHODS = (Method.NODES, Method.PODCIDR, Method.PODS, Method.SLICES)
N1 = node("n1", {"rack": "1"}, ["192.0.2.1"], pod_cidrs=["10.1.0.0/16"])
N2 = node("n2", {"rack": "2"}, ["192.0.2.2"], pod_cidrs=["10.2.0.0/16"])
PROOF = endpoint_slice("many", *(endpoint(f"10.1.200.{at}", "n1") for at in range(250)))
PODS = tuple(pod(f"p-{at}", [f"10.1.200.{at}"], f"shop-{at % 2}", "n1") for at in range(250))
ASTRAY = tuple(pod(f"q-{at}", [f"10.1.201.{at}"], "shop", "n2") for at in range(250))
POD = pod("web-1", ["10.1.0.9"], "shop", "n1")


def state_of(*objects: ClusterObject, all_pods: bool = True) -> ClusterState:
    """A state that knows these objects, and with `all_pods` that there are no other Pods."""
    state = ClusterState(frozenset({"Pod"}) if all_pods else frozenset(), all_pods=all_pods)
    if all_pods:
        state.apply(Replaced("Pod", ()), 0)
    for each in objects:
        state.apply(Upserted(each), 0)
    return state


def evidence(state: ClusterState, address: str, methods: Sequence[Method] = METHODS) -> Evidence:
    locator, source = ClientLocator(state, methods), packed(address)
    return gather_evidence(state, locator, locator.locate(source), source)


def says(state: ClusterState, address: str) -> dict[str, tuple[str, str]]:
    """By method: the Node and the reason."""
    return {each.method: (each.node_name, each.text) for each in evidence(state, address).methods}


def contradicting(state: ClusterState, address: str) -> list[str]:
    return list(evidence(state, address).contradictions)


def test_the_methods_of_locate_come_first_in_their_order_then_the_others() -> None:
    state = state_of(N1)
    found = evidence(state, "10.1.0.9", (Method.PODS, Method.NODES)).methods
    assert [each.method for each in found if each.used] == ["pods", "nodes"]
    assert {each.method for each in found} == {method.value for method in Method}


CASES = [
    ("nodes", "192.0.2.1", (N1,), ("n1", "an address of that Node")),
    ("nodes", "192.0.2.9", (N1,), ("", "no Node has it")),
    ("nodes", "192.0.2.1", (N1, node("n3", {}, ["192.0.2.1"])), ("", "several Nodes have it: n1, n3")),
    ("pods", "10.1.0.9", (N1, POD), ("n1", "Pod shop/web-1 on n1")),
    (
        "pods",
        "192.0.2.1",
        (N1, pod("proxy", ["192.0.2.1"], "sys", "n1", host_network=True, terminating=True)),
        ("n1", "Pod sys/proxy of the host network terminating on n1"),
    ),
    (
        "pods",
        "10.1.0.9",
        (POD, pod("web-2", ["10.1.0.9"], "shop", "n2")),
        ("", "Pods on different nodes have it: Pod shop/web-1 on n1, Pod shop/web-2 on n2"),
    ),
    ("pods", "10.1.0.8", (POD,), ("", "no Pod has it")),
    ("nodelocator", "10.1.0.9", (node_locator("n1", ["10.1.0.9"]),), ("n1", "NodeLocator n1 on n1")),
    (
        "nodelocator",
        "10.1.0.9",
        (POD, node_locator("n2", ["10.1.0.9"])),
        ("", "not believed: NodeLocator n2 on n2"),
    ),
    ("podlocator", "10.1.0.9", (pod_locator("p", ["10.1.0.9"], "n2"),), ("n2", "PodLocator default/p on n2")),
    ("podlocator", "10.1.0.9", (N1,), ("", "PodLocators are not watched")),
    ("slices", "10.1.0.8", (N1,), ("", "no EndpointSlice has it")),
    (
        "slices",
        "10.1.0.9",
        (POD, endpoint_slice("web", endpoint("10.1.0.9", "n1", pod="web-1"), namespace="shop")),
        ("n1", "endpoint of Service shop/web on n1"),
    ),
    (
        "slices",
        "10.1.0.9",
        (POD, endpoint_slice("web", endpoint("10.1.0.9", "n2", pod="web-1"), namespace="shop")),
        ("", "endpoint of Service shop/web, without a Pod and its node, or contradicted"),
    ),
    (
        "slices",
        "10.1.0.7",
        (endpoint_slice("web", endpoint("10.1.0.7", "n2")),),
        ("", "endpoint of Service default/web, without a Pod and its node, or contradicted"),
    ),
    ("podcidr", "10.3.0.9", (N1, N2), ("", "in no Node's pod CIDR")),
    (
        "podcidr",
        "10.1.0.9",
        (N1, node("n3", pod_cidrs=["10.1.0.0/16"])),
        ("", "in a pod CIDR that several Nodes have: n1, n3"),
    ),
    (
        "podcidr",
        "10.1.0.9",
        (N1, N2, PROOF),
        ("n1", "in its pod CIDR; the addresses of known Pods prove that Pods get theirs from pod CIDRs"),
    ),
    (
        "podcidr",
        "10.1.0.8",
        (N1, N2, *PODS, pod("web-2", ["10.1.0.8"], "astray", "n2")),
        ("", "in the pod CIDR of n1, but its Pods are on other nodes"),
    ),
    ("podcidr", "10.1.0.1", (N1, N2, POD, *ASTRAY), ("n1", "its Pods' bridge")),
    (
        "podcidr",
        "10.1.0.9",
        (N1, N2),
        ("", "in the pod CIDR of n1, but nothing proves that Pods get their addresses from pod CIDRs"),
    ),
    ("podcidr-unverified", "10.1.0.9", (N1,), ("n1", "in its pod CIDR, proven or not")),
    ("podcidr-unverified", "10.9.0.9", (N1,), ("", "in no Node's pod CIDR")),
]


@pytest.mark.parametrize(("method", "address", "objects", "expected"), CASES)
def test_a_method_gives_the_node_and_the_reason(
    method: str, address: str, objects: tuple[ClusterObject, ...], expected: tuple[str, str]
) -> None:
    assert says(state_of(*objects, all_pods=PROOF not in objects), address)[method] == expected


def test_pods_that_are_not_watched_are_said_to_be() -> None:
    assert says(state_of(N1, all_pods=False), "10.1.0.9")["pods"] == ("", "Pods are not watched")
    denied = ClusterState(frozenset({"Pod"}), all_pods=True)
    denied.do_without("Pod")
    assert says(denied, "10.1.0.9")["pods"] == ("", "RBAC denies Pods")
    some = ClusterState(frozenset({"Pod"}))
    some.apply(Replaced("Pod", ()), 0)
    assert says(some, "10.1.0.9")["pods"] == ("", "no Pod that is known has it")


def test_slices_that_disagree_are_named_without_pods() -> None:
    objects = [endpoint_slice("web", endpoint("10.9.0.9", f"n{at}"), namespace=f"shop-{at}") for at in range(8)]
    node_name, text = says(state_of(*objects, all_pods=False), "10.9.0.9")["slices"]
    assert node_name == ""
    assert text.startswith("EndpointSlices disagree: Service shop-0/web on n0, Service shop-1/web on n1")
    assert text.endswith(" and 3 more")


def test_a_location_that_nothing_contradicts_has_no_contradictions() -> None:
    state = state_of(N1, POD, endpoint_slice("web", endpoint("10.1.0.9", "n1", pod="web-1"), namespace="shop"))
    assert contradicting(state, "10.1.0.9") == []
    assert contradicting(state, "10.7.7.7") == []


def test_a_method_with_another_node_contradicts() -> None:
    state = state_of(N1, N2, pod("web-2", ["10.1.0.9"], "shop", "n2"))
    assert contradicting(state, "10.1.0.9") == ["podcidr-unverified says n1: in its pod CIDR, proven or not"]


def test_an_endpoint_that_other_objects_contradict_is_named_with_them() -> None:
    state = state_of(N1, POD, endpoint_slice("lie", endpoint("10.1.0.9", "n2", pod="web-1"), namespace="shop"))
    assert contradicting(state, "10.1.0.9") == [
        "an EndpointSlice of Service shop/lie says that it is on node n2, but Pod shop/web-1 has its address on node n1"
    ]


def test_a_node_without_an_object_is_a_contradiction() -> None:
    assert contradicting(state_of(POD), "10.1.0.9") == ["no Node object is named n1: its labels are unknown"]


def test_the_contradictions_of_a_flood_of_slices_are_bounded() -> None:
    lies = [
        endpoint_slice("lie", endpoint("10.1.0.9", "n2", pod="web-1"), namespace=f"ns-{at}")
        for at in range(MAX_CONTRADICTIONS + 5)
    ]
    found = contradicting(state_of(N1, POD, *lies), "10.1.0.9")
    assert len(found) == MAX_CONTRADICTIONS + 1
    assert found[-1] == "there are more contradictions"


def keyed(*lists: tuple[str, ...]) -> ClusterState:
    """A state with a Service for each list of topology keys."""
    policies = {f"s{at}": Policy(keys, KeySource.ANNOTATION) for at, keys in enumerate(lists)}
    reader = KeyReader(lambda service: ServiceKeys(policies[service.name], ()), lambda *_: None, lambda _: "")
    state = ClusterState(frozenset(), reader)
    for name in policies:
        state.apply(Upserted(Service("shop", name, headless=True)), 0)
    return state


def test_labels_are_those_that_some_services_keys_name() -> None:
    state = keyed(("rack", "*"), ("kubernetes.io/hostname", "zone"), ("rack", "hall"))
    found = labels_in_use(state, {"rack": "1", "zone": "a", "other": "x"})
    assert found == ({"rack": "1", "zone": "a"}, ("hall",))


def test_the_keys_of_very_many_services_are_not_all_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    state = keyed(*((f"key-{at}",) for at in range(30)))
    labels = {f"key-{at}": "x" for at in range(30)}
    monkeypatch.setattr(who, "MAX_SERVICES", 20)
    assert len(labels_in_use(state, labels)[0]) == 20
    monkeypatch.setattr(who, "MAX_LISTS", 10)
    assert len(labels_in_use(state, labels)[0]) == 10


def test_keys_that_a_node_lacks_are_bounded() -> None:
    state = keyed(*((f"key-{at:03}",) for at in range(100)))
    labels, lacking = labels_in_use(state, {})
    assert labels == {}
    assert lacking == tuple(f"key-{at:03}" for at in range(MAX_LACKING))


def test_a_locator_that_is_not_believed_is_a_contradiction() -> None:
    assert contradicting(state_of(N1, POD, node_locator("n2", ["10.1.0.9"])), "10.1.0.9") == [
        "NodeLocator n2 says that 10.1.0.9 is on node n2, but Pod shop/web-1 has its address on node n1"
    ]


def test_locators_that_are_denied_or_lack_the_address_say_so() -> None:
    state = ClusterState(frozenset({"NodeLocator", "PodLocator"}))
    state.do_without("NodeLocator")
    state.apply(Replaced("PodLocator", ()), 0)
    found = says(state, "10.1.0.9")
    assert found["nodelocator"] == ("", "RBAC denies NodeLocators")
    assert found["podlocator"] == ("", "no PodLocator has it")
