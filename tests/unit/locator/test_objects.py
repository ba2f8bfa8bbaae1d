"""Locators as API objects, there and back."""

from typing import Any

import pytest

from topodns.cluster.model import ObjectKey
from topodns.locator.objects import (
    NODE_LOCATORS,
    POD_LOCATORS,
    LocatorContent,
    StoredLocator,
    is_newer,
    locator_object,
    ordered,
    read_locator,
)

TEN, SIX = b"\x0a\x01\x00\x01", b"\xfd" + bytes(14) + b"\x01"
OF_NODE = LocatorContent(ObjectKey("", "n1"), "u1", (TEN, SIX), "", (b"\xc0\x00\x02\x01",), (("a", "b"),))
OF_POD = LocatorContent(ObjectKey("shop", "p"), "u2", (TEN,), "n1", labels=(("a", "b"), ("c", "d")))
STORED = StoredLocator("u", "7", (), None)


def test_a_nodelocator_belongs_to_its_node() -> None:
    assert locator_object(NODE_LOCATORS, OF_NODE, None) == {
        "apiVersion": "topodns.io/v1alpha1",
        "kind": "NodeLocator",
        "metadata": {
            "name": "n1",
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "u1", "blockOwnerDeletion": False}
            ],
        },
        "spec": {"podIPs": ["10.1.0.1", "fd00::1"], "addresses": ["192.0.2.1"], "labels": {"a": "b"}},
    }


def test_a_podlocator_belongs_to_its_pod() -> None:
    found = locator_object(POD_LOCATORS, OF_POD, None)
    assert found["metadata"]["namespace"] == "shop"
    assert found["metadata"]["ownerReferences"][0]["kind"] == "Pod"
    assert found["spec"] == {"addresses": ["10.1.0.1"], "nodeName": "n1", "nodeLabels": {"a": "b", "c": "d"}}


def test_an_object_that_is_there_is_changed_only_as_it_was_seen() -> None:
    metadata = locator_object(NODE_LOCATORS, OF_NODE, STORED)["metadata"]
    assert (metadata["uid"], metadata["resourceVersion"]) == (STORED.uid, "7")
    assert not {"uid", "resourceVersion"} & locator_object(NODE_LOCATORS, OF_NODE, None)["metadata"].keys()


def test_all_owners_of_an_object_are_read() -> None:
    item = locator_object(NODE_LOCATORS, OF_NODE, STORED)
    item["metadata"]["ownerReferences"].append({"kind": "ConfigMap", "uid": "other"})
    stored = read_locator(NODE_LOCATORS, item)
    assert (stored.owner_uids, stored.content) == (frozenset({OF_NODE.owner_uid, "other"}), None)


def test_paths_are_those_of_the_api() -> None:
    assert NODE_LOCATORS.collection == "/apis/topodns.io/v1alpha1/nodelocators"
    assert NODE_LOCATORS.path(ObjectKey("", "n1")) == "/apis/topodns.io/v1alpha1/nodelocators/n1"
    assert POD_LOCATORS.collection_of(ObjectKey("shop", "p")) == "/apis/topodns.io/v1alpha1/namespaces/shop/podlocators"
    assert POD_LOCATORS.path(ObjectKey("shop", "p")) == "/apis/topodns.io/v1alpha1/namespaces/shop/podlocators/p"


@pytest.mark.parametrize(("kind", "locator"), [(NODE_LOCATORS, OF_NODE), (POD_LOCATORS, OF_POD)])
def test_what_was_written_is_read_back(kind: Any, locator: LocatorContent) -> None:
    item = locator_object(kind, locator, None)
    item["metadata"] |= {"uid": "u", "resourceVersion": "9", "managedFields": []}
    owners = frozenset({locator.owner_uid})
    assert read_locator(kind, item) == StoredLocator("u", "9", locator.ips, locator, owners)


@pytest.mark.parametrize(
    "spec",
    [
        None,
        {},
        {"podIPs": "10.1.0.1"},
        {"podIPs": ["10.1.0.1", "no address", 7], "addresses": None, "labels": []},
        {"podIPs": ["fd00::1", "10.1.0.1"], "addresses": ["192.0.2.1"], "labels": {"a": "b"}},
    ],
)
def test_what_others_wrote_is_read_as_far_as_it_can_be(spec: Any) -> None:
    item = locator_object(NODE_LOCATORS, OF_NODE, None)
    item["spec"] = spec
    stored = read_locator(NODE_LOCATORS, item)
    assert stored.content is None
    assert set(stored.ips) <= {TEN, SIX}


@pytest.mark.parametrize("absent", ["nodeLabels", "nodeName", "addresses"])
def test_a_podlocator_that_lacks_a_field_is_not_as_written(absent: str) -> None:
    item = locator_object(POD_LOCATORS, OF_POD, None)
    del item["spec"][absent]
    stored = read_locator(POD_LOCATORS, item)
    assert stored.content is None
    assert stored.ips == (() if absent == "addresses" else (TEN,))


def test_an_object_with_another_owner_is_not_as_written() -> None:
    item = locator_object(NODE_LOCATORS, OF_NODE, None)
    item["metadata"]["ownerReferences"].append({"kind": "Pod", "uid": "x"})
    assert read_locator(NODE_LOCATORS, item).content is None


def test_addresses_are_ordered_by_family_and_number() -> None:
    nine, ten = b"\x0a\x01\x00\x09", b"\x0a\x01\x00\x0a"
    assert ordered([SIX, ten, nine, SIX]) == (nine, ten, SIX)


@pytest.mark.parametrize(
    ("version", "known", "newer"),
    [("10", "9", True), ("9", "10", False), ("9", "9", False), ("x", "9", True), ("9", "", True)],
)
def test_a_resource_version_is_compared_as_a_number(version: str, known: str, newer: bool) -> None:
    assert is_newer(version, known) == newer
