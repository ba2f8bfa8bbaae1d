"""The store of the locator's reflectors: what it reads of objects, and how events and lists change it."""

import json
from collections.abc import Iterable
from typing import Any

import pytest

from topodns.cluster.decode.objects import DecodeError
from topodns.cluster.decode.stream import Event, Listed, read_listed, read_watch_line
from topodns.cluster.model import Kind, ObjectKey
from topodns.locator.objects import (
    NODE_LOCATORS,
    POD_LOCATORS,
    LocatorContent,
    LocatorKind,
    locator_object,
    read_locator,
)
from topodns.locator.pending import PendingWrites
from topodns.locator.projection import PlacedPod, Projection
from topodns.locator.store import LocatorStore

Json = dict[str, Any]
FIRST, SECOND = b"\x0a\x01\x00\x01", b"\x0a\x01\x00\x02"


def pod(name: str, ip: str, node: str = "n1", **spec: Any) -> Json:
    metadata = {"namespace": "shop", "name": name, "uid": f"uid-{name}", "resourceVersion": "5"}
    return {"metadata": metadata, "spec": {"nodeName": node, **spec}, "status": {"podIPs": [{"ip": ip}]}}


def node(name: str) -> Json:
    return {"metadata": {"name": name, "uid": f"uid-{name}", "resourceVersion": "5"}, "status": {"addresses": []}}


def service(name: str, keys: str, namespace: str = "shop") -> Json:
    annotations = {"topodns.io/topology-keys": keys} if keys else {}
    metadata = {"namespace": namespace, "name": name, "resourceVersion": "5", "annotations": annotations}
    return {"metadata": metadata, "spec": {"clusterIP": "None"}}


def locator(name: str, *ips: bytes, version: str = "5") -> Json:
    content = LocatorContent(ObjectKey("", name), f"uid-{name}", ips)
    value = locator_object(NODE_LOCATORS, content, None)
    value["metadata"] |= {"uid": f"uid-of-{name}", "resourceVersion": version}
    return value


class Setup:
    """A store, with a log of the lists that it took."""

    def __init__(self, kind: LocatorKind = NODE_LOCATORS) -> None:
        self.projection = Projection(kind)
        self.pending = PendingWrites(0.5, self.projection.locator)
        self.listed: list[tuple[Kind, int]] = []
        self.changes = 0

        def note(kind: Kind, objects: int) -> None:
            self.listed.append((kind, objects))

        self.store = LocatorStore(kind, self.projection, self.pending, lambda: 100.0, self._changed, note)

    def _changed(self) -> None:
        self.changes += 1

    def see(self, kind: Kind, value: Json, sort: str = "ADDED") -> None:
        line = json.dumps({"type": sort, "object": value}).encode()
        event = read_watch_line(kind, line, self.store.decode)
        assert isinstance(event, Event)
        self.store.apply(kind, event)

    def take_list(self, kind: Kind, values: Iterable[Json], version: str = "9", newer: Iterable[ObjectKey] = ()) -> int:
        """Take a list; returns how many values differed."""
        listing = self.store.new_listing(kind)
        for value in values:
            found = read_listed(kind, json.dumps(value).encode(), self.store.decode)
            if isinstance(found, Listed):
                listing.add(found.object)
        listing.version = version
        return sum(listing.replace_steps(frozenset(newer)))

    def labels(self, name: str = "n1") -> dict[str, str]:
        """The labels of the NodeLocator with this name, as it should be."""
        content = self.projection.locator(ObjectKey("", name))
        return dict(content.labels) if content is not None else {}

    def due(self) -> list[str]:
        """The names of the locators that are to be written."""
        names = []
        while (write := self.pending.take(100.0)) is not None:
            names.append(write.key.name)
        return sorted(names)


def test_of_a_pod_its_place_and_its_owner_are_held() -> None:
    setup = Setup()
    setup.see("Pod", pod("p", "10.1.0.1"))
    place = PlacedPod("uid-p", "n1", (FIRST,), (True, ""))
    assert setup.store.values("Pod") == {ObjectKey("shop", "p"): place}


def test_a_pod_that_no_locator_has_is_as_if_it_were_deleted() -> None:
    setup = Setup()
    setup.see("Pod", pod("p", "10.1.0.1"))
    setup.see("Pod", pod("p", "10.1.0.1", hostNetwork=True), "MODIFIED")
    assert not setup.store.values("Pod")
    assert setup.take_list("Pod", [pod("q", "10.1.0.1", hostNetwork=True)]) == 0


def test_a_change_makes_the_locators_due_that_it_affects_and_is_announced() -> None:
    setup = Setup()
    setup.see("Node", node("n1"))
    setup.see("Node", node("n2"))
    setup.see("Pod", pod("p", "10.1.0.1", "n3"))
    assert setup.due() == ["n1", "n2"], "n3 is no Node yet"
    assert setup.changes == 3


def test_the_locators_at_the_api_server_are_seen_as_they_are_stored() -> None:
    setup = Setup()
    setup.see("NodeLocator", locator("n7", FIRST))
    assert setup.store.values("NodeLocator") == {ObjectKey("", "n7"): read_locator(NODE_LOCATORS, locator("n7", FIRST))}
    assert setup.due() == ["n7"], "it has no Node"
    setup.see("NodeLocator", locator("n7", FIRST, version="6"), "DELETED")
    assert not setup.store.values("NodeLocator")


@pytest.mark.parametrize(
    ("kind", "text", "name"),
    [
        ("Pod", b'{"metadata":{"name":"p","namespace":"shop","uid":7}}', "shop/p"),
        ("Pod", b'{"metadata":{"name":"p","namespace":"shop"},"spec":{"nodeName":7}}', "shop/p"),
        ("NodeLocator", b'{"metadata":{"name":"n1","uid":[]}}', "n1"),
        ("NodeLocator", b'{"metadata":{}}', ""),
    ],
)
def test_an_object_that_cannot_be_decoded_is_named(kind: Kind, text: bytes, name: str) -> None:
    with pytest.raises(DecodeError) as raised:
        Setup().store.decode(kind, text)
    assert (raised.value.kind, raised.value.name) == (kind, name)


def test_a_list_replaces_what_was_seen() -> None:
    setup = Setup()
    for name in ("n1", "n2"):
        setup.see("Node", node(name))
    for name, ip in (("p", "10.1.0.1"), ("q", "10.1.0.2")):
        setup.see("Pod", pod(name, ip))
    assert setup.take_list("Pod", [pod("q", "10.1.0.2"), pod("r", "10.1.0.1", "n2")]) == 2
    contents = [setup.projection.locator(ObjectKey("", name)) for name in ("n1", "n2")]
    assert [content.ips for content in contents if content is not None] == [(SECOND,), (FIRST,)]
    assert setup.take_list("Node", [node("n2")]) == 1
    assert (len(setup.projection.nodes), len(setup.projection.pods)) == (1, 2)
    assert setup.listed == [("Pod", 2), ("Node", 1)]


def test_a_list_leaves_alone_what_changed_after_it() -> None:
    setup = Setup()
    setup.see("Pod", pod("p", "10.1.0.1"))
    newer = [ObjectKey("shop", "p"), ObjectKey("shop", "q")]
    assert setup.take_list("Pod", [pod("q", "10.1.0.2")], newer=newer) == 0
    assert list(setup.projection.pods) == [ObjectKey("shop", "p")]


def test_before_the_first_list_the_locators_show_how_many_objects_there_were() -> None:
    setup = Setup()
    setup.take_list("NodeLocator", [locator("n1", FIRST, SECOND), locator("n2", b"\x0a\x01\x00\x03")])
    assert [setup.store.count("NodeLocator"), setup.store.count("Pod"), setup.store.count("Node")] == [2, 3, 2]
    setup.take_list("Pod", [pod("p", "10.1.0.1")])
    assert setup.store.count("Pod") == 1
    of_pods = Setup(POD_LOCATORS)
    values = [
        locator_object(POD_LOCATORS, LocatorContent(ObjectKey("shop", name), "u", (ip,), "n1"), None)
        for name, ip in (("p", FIRST), ("q", SECOND))
    ]
    of_pods.take_list("PodLocator", values)
    assert [of_pods.store.count("Pod"), of_pods.store.count("Node"), of_pods.store.count("Service")] == [2, 1, 0]


def test_a_list_keeps_what_is_held_of_an_object_that_cannot_be_decoded() -> None:
    setup = Setup()
    setup.see("Pod", pod("p", "10.1.0.1"))
    listing = setup.store.new_listing("Pod")
    for name in ("p", "q"):
        listing.keep(ObjectKey("shop", name))
    assert len(listing) == 1
    assert sum(listing.replace_steps(frozenset())) == 0
    assert list(setup.store.values("Pod")) == [ObjectKey("shop", "p")]


RACK = "example.com/rack"


def racked(name: str) -> Json:
    value = node(name)
    value["metadata"]["labels"] = {RACK: "r1", "topology.kubernetes.io/zone": "a"}
    return value


def test_a_service_whose_keys_name_a_label_makes_locators_due_and_others_are_not_held() -> None:
    setup = Setup()
    setup.take_list("NodeLocator", [])
    setup.see("Node", racked("n1"))
    setup.due()
    setup.see("Service", service("plain", ""))
    assert not setup.store.values("Service")
    setup.see("Service", service("s", f"{RACK},*"))
    assert setup.labels() == {RACK: "r1", "topology.kubernetes.io/zone": "a"}
    setup.see("Service", service("s", ""), "MODIFIED")
    assert not setup.store.values("Service")
    assert setup.take_list("Service", [service("t", "zone"), service("plain", "")]) == 1


def test_keys_of_namespaces_and_service_imports_name_labels_too() -> None:
    setup = Setup()
    setup.take_list("NodeLocator", [])
    value = racked("n1")
    value["metadata"]["labels"] |= {"hall": "h1"}
    setup.see("Node", value)
    setup.due()
    annotations = {"topodns.io/topology-keys": f"!{RACK},*"}
    shop = {"metadata": {"name": "shop", "resourceVersion": "5", "annotations": annotations}}
    setup.see("Namespace", shop)
    assert setup.labels() == {RACK: "r1", "topology.kubernetes.io/zone": "a"}
    imported = service("far", "hall,*")
    imported["spec"] = {"type": "Headless"}
    setup.see("ServiceImport", imported)
    assert setup.labels() == {RACK: "r1", "topology.kubernetes.io/zone": "a", "hall": "h1"}
    setup.see("Namespace", {"metadata": {"name": "shop", "resourceVersion": "6"}}, "MODIFIED")
    assert (len(setup.store.values("Namespace")), len(setup.store.values("ServiceImport"))) == (0, 1)


def test_without_permission_for_service_imports_they_are_not_waited_for() -> None:
    setup = Setup()
    assert list(setup.store.do_without_steps("ServiceImport", 0.0)) == [None]
    assert setup.listed == [("ServiceImport", 0)]


def test_a_namespace_whose_keys_name_too_many_labels_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    setup = Setup()
    for at in range(9):
        setup.see("Service", service(f"s{at}", ",".join(f"a{at}-{key}" for key in range(16))))
    assert caplog.messages == ["locator: the keys in namespace shop name more than 100 labels"]


@pytest.mark.parametrize(("kind", "held"), [(NODE_LOCATORS, 0), (POD_LOCATORS, 1)])
def test_a_hostnetwork_pod_has_a_podlocator_and_is_in_no_nodelocator(kind: LocatorKind, held: int) -> None:
    setup = Setup(kind)
    setup.see("Pod", pod("p", "192.0.2.1", hostNetwork=True))
    assert len(setup.store.values("Pod")) == held
