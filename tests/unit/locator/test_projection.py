"""Pods and Nodes of the API to the locators that there should be."""

from ipaddress import ip_address
from typing import Any

import pytest

from topodns.cluster.decode.locators import MAX_ADDRESSES, MAX_LABELS, MAX_POD_IPS
from topodns.cluster.model import ObjectKey
from topodns.locator.objects import NODE_LOCATORS, POD_LOCATORS, LocatorContent
from topodns.locator.projection import (
    LABELS,
    MAX_NAMED,
    PlacedNode,
    PlacedPod,
    Projection,
    named_labels,
    placed_node,
    placed_pod,
)

Json = dict[str, Any]
RACK = "example.com/rack"


def pod(
    name: str,
    node: str = "n1",
    *ips: str,
    phase: str = "Running",
    terminating: bool = False,
    start: int = 1,
    **spec: Any,
) -> Json:
    metadata: Json = {"namespace": "shop", "name": name, "uid": f"uid-{name}"}
    if terminating:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return {
        "metadata": metadata,
        "spec": {"nodeName": node, **spec},
        "status": {
            "phase": phase,
            "podIPs": [{"ip": ip} for ip in ips],
            "startTime": f"2026-01-01T00:00:{start:02}Z",
        },
    }


def node(name: str, *ips: str, labels: dict[str, str] | None = None, annotations: dict[str, str] | None = None) -> Json:
    addresses = [{"type": "Hostname", "address": name}, *({"type": "InternalIP", "address": ip} for ip in ips)]
    return {
        "metadata": {"name": name, "uid": f"uid-{name}", "labels": labels or {}, "annotations": annotations or {}},
        "status": {"addresses": addresses},
    }


def texts(locator: LocatorContent | None) -> list[str]:
    assert locator is not None
    return [str(ip_address(ip)) for ip in locator.ips]


def place_of_pod(item: Json, host_network: bool = False) -> PlacedPod | None:
    return placed_pod(item["metadata"]["uid"], item, host_network)


def place_of_node(item: Json) -> PlacedNode | None:
    return placed_node(item["metadata"]["uid"], item)


def service(name: str, keys: str, namespace: str = "shop", **spec: Any) -> Json:
    annotations = {"topodns.io/topology-keys": keys} if keys else {}
    metadata = {"namespace": namespace, "name": name, "annotations": annotations}
    return {"metadata": metadata, "spec": {"clusterIP": "None", **spec}}


def key_of(item: Json) -> ObjectKey:
    return ObjectKey(item["metadata"].get("namespace", ""), item["metadata"]["name"])


class Cluster:
    """A projection that is changed in the objects of the API."""

    def __init__(self, kind: str = "nodelocator", labels: tuple[str, ...] = LABELS) -> None:
        self._of_pods = kind == "podlocator"
        self.projection = Projection(POD_LOCATORS if self._of_pods else NODE_LOCATORS, labels)

    def add(self, *items: Json) -> set[str]:
        """The names of the locators that may have changed."""
        touched: set[ObjectKey] = set()
        for item in items:
            key = key_of(item)
            if "clusterIP" in item.get("spec", {}):
                touched |= self.projection.set_keyed(
                    "Service", key, self.projection.admitted(key[0], named_labels("Service", item))
                )
            elif "spec" in item:
                touched |= self.projection.set_pod(key, place_of_pod(item, self._of_pods))
            else:
                touched |= self.projection.set_node(key_of(item), place_of_node(item))
        return {key.name for key in touched}

    def delete(self, item: Json) -> set[str]:
        if "spec" in item:
            return {key.name for key in self.projection.set_pod(key_of(item), None)}
        return {key.name for key in self.projection.set_node(key_of(item), None)}

    def node(self, name: str) -> LocatorContent | None:
        return self.projection.locator(ObjectKey("", name))

    def labels(self, kind: str = "nodelocator", name: str = "") -> dict[str, str]:
        found = self.pod(name or "p") if kind == "podlocator" else self.node(name or "n1")
        assert found is not None
        return dict(found.labels)

    def pod(self, name: str) -> LocatorContent | None:
        return self.projection.locator(ObjectKey("shop", name))


def test_a_nodelocator_has_the_addresses_of_its_pods_in_order_and_those_of_its_node() -> None:
    cluster = Cluster()
    labels = {"topology.kubernetes.io/zone": "a", RACK: "r1", "kubernetes.io/hostname": "n1"}
    cni = {"projectcalico.org/IPv4VXLANTunnelAddr": "10.1.0.0", "flannel.alpha.coreos.com/public-ip": "192.0.2.1"}
    cluster.add(node("n1", "192.0.2.1", "2001:db8::1", labels=labels, annotations=cni))
    cluster.add(pod("b", "n1", "10.1.0.10", "fd00::10"), pod("a", "n1", "10.1.0.9"), pod("c", "n2", "10.1.1.1"))
    found = cluster.node("n1")
    assert texts(found) == ["10.1.0.9", "10.1.0.10", "fd00::10"]
    assert found is not None
    assert [str(ip_address(each)) for each in found.addresses] == ["10.1.0.0", "192.0.2.1", "2001:db8::1"]
    assert dict(found.labels) == {"topology.kubernetes.io/zone": "a", "kubernetes.io/hostname": "n1"}
    assert found.owner_uid == "uid-n1"


@pytest.mark.parametrize("kind", ["nodelocator", "podlocator"])
def test_labels_named_by_the_operator_are_copied_too(kind: str) -> None:
    cluster = Cluster(kind, (RACK, "absent"))
    cluster.add(node("n1", labels={RACK: "r1", "other": "x"}), pod("p", "n1", "10.1.0.1"))
    assert cluster.labels(kind) == {RACK: "r1"}


# Topology keys

MANY = {"kubernetes.io/hostname": "n1", RACK: "r1", "pool": "p1", "apps.openyurt.io/nodepool": "o1", "other": "x"}


@pytest.mark.parametrize(
    ("keys", "named"),
    [
        (service("s", RACK), {RACK}),
        (service("s", f'["pool", "{RACK}", "*"]'), {RACK, "pool"}),
        (service("s", f"!{RACK},*"), {RACK}),
        (service("s", "", topologyKeys=["pool", "*"]), {"pool"}),
        (service("s", RACK, topologyKeys=["pool"]), {RACK, "pool"}),
        (service("s", "", trafficDistribution="PreferClose"), {"topology.kubernetes.io/zone"}),
        (service("s", "no key"), set()),
        (service("s", ",".join(f"k{number}" for number in range(17))), set()),
        (service("s", "none"), set()),
        (service("s", RACK, clusterIP="10.96.0.1"), set()),
    ],
    ids=[
        "a key", "a list", "another domain", "the field", "both, as a server may read either", "traffic distribution",
        "invalid", "too many", "none", "not headless",
    ],
)  # fmt: skip
def test_the_labels_that_keys_name_are_read_as_a_server_reads_keys(keys: Json, named: set[str]) -> None:
    assert named_labels("Service", keys) == named


def test_openyurts_keys_name_its_label_of_node_pools() -> None:
    value = service("s", "")
    value["metadata"]["annotations"]["openyurt.io/topologyKeys"] = "openyurt.io/nodepool"
    assert named_labels("Service", value) == {"apps.openyurt.io/nodepool", "kubernetes.io/hostname"}


@pytest.mark.parametrize(("kind", "name"), [("nodelocator", "n1"), ("podlocator", "p")])
def test_a_label_that_a_key_names_comes_to_the_locators_whose_node_has_it(kind: str, name: str) -> None:
    cluster = Cluster(kind)
    cluster.add(node("n1", labels=MANY), node("n2"), pod("p", "n1", "10.1.0.1"), pod("q", "n2", "10.1.0.2"))
    assert cluster.labels(kind) == {"kubernetes.io/hostname": "n1"}
    assert cluster.add(service("s", f"{RACK},*")) == {name}
    assert cluster.labels(kind) == {"kubernetes.io/hostname": "n1", RACK: "r1"}
    assert cluster.add(service("s", f"{RACK},absent")) == set()
    assert cluster.add(node("n1", labels={**MANY, "other": "y"})) == ({name} if kind == "nodelocator" else set())
    assert cluster.add(node("n1", labels={**MANY, RACK: "r2"})) == {name}
    assert cluster.labels(kind)[RACK] == "r2"


def test_keys_that_come_and_go_change_no_locator_again() -> None:
    cluster = Cluster()
    cluster.add(node("n1", labels=MANY), service("s", RACK))
    for _ in range(3):
        assert cluster.projection.set_keyed("Service", ObjectKey("shop", "s"), None) == set()
        assert cluster.add(service("s", RACK)) == set()
    assert cluster.labels() == {"kubernetes.io/hostname": "n1", RACK: "r1"}


def test_the_keys_of_one_namespace_name_at_most_100_labels_and_take_no_room_of_another() -> None:
    cluster = Cluster()
    cluster.add(node("n1", labels=MANY))
    cluster.add(*(service(f"s{at}", ",".join(f"a{at}-{key}" for key in range(16))) for at in range(7)))
    assert cluster.add(service("last", RACK)) == set()
    assert sum(map(len, cluster.projection.keyed["Service"].values())) == MAX_NAMED
    assert cluster.add(service("first", RACK, "bank")) == {"n1"}


def test_a_locator_has_at_most_64_labels_and_the_usual_ones_for_certain() -> None:
    cluster = Cluster()
    names = [f"a{number}" for number in range(80)]
    cluster.add(node("n1", labels={**dict.fromkeys(names, "x"), "topology.kubernetes.io/zone": "z"}))
    cluster.add(*(service(f"s{at}", ",".join(names[at : at + 16])) for at in range(0, 80, 16)))
    assert len(cluster.labels()) == MAX_LABELS
    assert cluster.labels()["topology.kubernetes.io/zone"] == "z"


def test_the_podlocators_of_a_node_change_with_its_labels_and_lose_them_with_it() -> None:
    cluster = Cluster("podlocator")
    cluster.add(*(pod(f"p{at}", "n1", f"10.1.0.{at}") for at in range(1, 4)), pod("q", "n2", "10.1.1.1"))
    assert cluster.labels("podlocator", "p1") == {}
    zones = [{"topology.kubernetes.io/zone": zone} for zone in "ab"]
    assert cluster.add(node("n1", labels=zones[0])) == {"p1", "p2", "p3"}
    assert cluster.add(node("n1", labels=zones[1])) == {"p1", "p2", "p3"}
    assert cluster.labels("podlocator", "p1") == zones[1]
    assert cluster.delete(node("n1")) == {"p1", "p2", "p3"}
    assert cluster.labels("podlocator", "p1") == {}


# Pods


@pytest.mark.parametrize(
    "unplaced",
    [
        pod("p", "n1", "192.0.2.1", hostNetwork=True),
        pod("p", "", "10.1.0.1"),
        pod("p", "n1"),
        pod("p", "n1", "10.1.0.1", phase="Succeeded"),
        pod("p", "n1", "10.1.0.1", phase="Failed"),
        pod("p", "n1", "no address"),
    ],
    ids=["hostNetwork", "unscheduled", "without an address", "succeeded", "failed", "unreadable"],
)
def test_a_pod_that_no_query_comes_from_is_in_no_locator(unplaced: Json) -> None:
    assert place_of_pod(unplaced) is None


@pytest.mark.parametrize(
    "address", ["127.0.0.1", "::1", "169.254.1.1", "fe80::1", "224.0.0.1", "ff02::1", "0.0.0.0", "::"]
)
def test_addresses_that_the_schema_refuses_are_left_out(address: str) -> None:
    assert place_of_pod(pod("p", "n1", address)) is None
    place = place_of_node(node("n1", address, "192.0.2.1"))
    assert place is not None
    assert len(place.addresses) == 1


def test_a_terminating_pod_counts_until_it_is_deleted() -> None:
    cluster = Cluster()
    cluster.add(node("n1"), pod("p", "n1", "10.1.0.1"))
    cluster.add(pod("p", "n1", "10.1.0.1", terminating=True))
    assert texts(cluster.node("n1")) == ["10.1.0.1"]
    assert cluster.delete(pod("p")) == {"n1"}
    assert texts(cluster.node("n1")) == []


def test_a_pod_that_ends_is_left_out_at_once() -> None:
    cluster = Cluster()
    cluster.add(node("n1"), pod("p", "n1", "10.1.0.1"))
    assert cluster.add(pod("p", "n1", "10.1.0.1", phase="Succeeded")) == {"n1"}
    assert texts(cluster.node("n1")) == []


def test_events_that_change_no_place_touch_no_locator() -> None:
    cluster = Cluster()
    cluster.add(node("n1"), pod("p", "n1", "10.1.0.1"))
    changed = pod("p", "n1", "10.1.0.1")
    changed["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    assert cluster.add(changed) == set()
    ready = node("n1")
    ready["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    assert cluster.add(ready) == set()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (pod("old", "n1", "10.1.0.1", terminating=True, start=9), pod("new", "n2", "10.1.0.1", start=1)),
        (pod("old", "n1", "10.1.0.1", start=1), pod("new", "n2", "10.1.0.1", start=2)),
    ],
    ids=["the one that does not terminate", "the one that started later"],
)
def test_an_address_that_two_pods_have_is_at_the_node_of_the_newer_one(old: Json, new: Json) -> None:
    for first, second in ((old, new), (new, old)):
        cluster = Cluster()
        cluster.add(node("n1"), node("n2"))
        cluster.add(first)
        assert cluster.add(second) == {"n1", "n2"}
        assert (texts(cluster.node("n1")), texts(cluster.node("n2"))) == ([], ["10.1.0.1"])
        assert cluster.delete(new) == {"n1", "n2"}
        assert texts(cluster.node("n1")) == ["10.1.0.1"]


def test_a_pod_whose_node_is_unknown_is_in_no_nodelocator_until_the_node_comes() -> None:
    cluster = Cluster()
    cluster.add(pod("p", "n1", "10.1.0.1"))
    assert cluster.node("n1") is None
    assert cluster.add(node("n1")) == {"n1"}
    assert texts(cluster.node("n1")) == ["10.1.0.1"]
    cluster.delete(node("n1"))
    assert cluster.node("n1") is None


def test_a_nodelocator_has_at_most_as_many_addresses_as_its_schema_allows() -> None:
    cluster = Cluster()
    cluster.add(node("n1", *(f"192.0.2.{number}" for number in range(1, 41))))
    cluster.add(*(pod(f"p{number}", "n1", f"10.1.{number // 250}.{number % 250}") for number in range(1, 1101)))
    found = cluster.node("n1")
    assert found is not None
    assert (len(found.ips), len(found.addresses)) == (MAX_POD_IPS, MAX_ADDRESSES)
    assert found.left_out == 1100 - MAX_POD_IPS + 40 - MAX_ADDRESSES


def test_a_podlocator_has_the_addresses_and_the_node_of_its_pod() -> None:
    cluster = Cluster("podlocator")
    assert cluster.add(pod("p", "n1", "fd00::1", "10.1.0.1")) == {"p"}
    found = cluster.pod("p")
    assert found is not None
    assert (texts(found), found.node, found.owner_uid) == (["10.1.0.1", "fd00::1"], "n1", "uid-p")


def test_of_two_pods_with_one_address_only_the_newer_one_has_a_podlocator_for_it() -> None:
    cluster = Cluster("podlocator")
    cluster.add(pod("old", "n1", "10.1.0.1", "fd00::1"))
    assert cluster.add(pod("new", "n2", "10.1.0.1", start=2)) == {"old", "new"}
    assert (texts(cluster.pod("old")), texts(cluster.pod("new"))) == (["fd00::1"], ["10.1.0.1"])
    cluster.add(pod("newest", "n2", "fd00::1", start=3))
    assert cluster.pod("old") is None


def test_of_the_hostnetwork_pods_of_a_node_one_has_a_podlocator_for_its_address_as_long_as_it_runs() -> None:
    cluster = Cluster("podlocator")

    def of_host(name: str, start: int, on: str = "n1", **more: Any) -> Json:
        return pod(name, on, "192.0.2.1", start=start, hostNetwork=True, **more)

    cluster.add(of_host("proxy", 2), of_host("agent", 1))
    assert (texts(cluster.pod("agent")), cluster.pod("proxy")) == (["192.0.2.1"], None)
    cluster.add(of_host("newest", 3))
    assert texts(cluster.pod("agent")) == ["192.0.2.1"]
    cluster.add(of_host("agent", 1, terminating=True))
    assert (cluster.pod("agent"), texts(cluster.pod("proxy"))) == (None, ["192.0.2.1"])
    cluster.add(of_host("replacement", 4, on="n2"))
    found = cluster.pod("replacement")
    assert (texts(found), found and found.node, cluster.pod("proxy")) == (["192.0.2.1"], "n2", None)
