"""Objects of a cluster as values."""

from dataclasses import replace

import pytest

from tests.support.model_builders import endpoint_slice, namespace, node, pod, service, stateful_set
from topodns.cluster.model import ClusterObject, Kind, ObjectKey, kind_of


@pytest.mark.parametrize(
    ("value", "kind", "key"),
    [
        (namespace("a"), "Namespace", ObjectKey("", "a")),
        (node("a"), "Node", ObjectKey("", "a")),
        (service("a", "shop"), "Service", ObjectKey("shop", "a")),
        (service("a", "shop", imported=True), "ServiceImport", ObjectKey("shop", "a")),
        (endpoint_slice("a", namespace="shop"), "EndpointSlice", ObjectKey("shop", "a-1")),
        (pod("a", namespace="shop"), "Pod", ObjectKey("shop", "a")),
        (stateful_set("a", "db", "shop"), "StatefulSet", ObjectKey("shop", "a")),
    ],
)
def test_an_object_has_a_kind_and_a_key_and_is_equal_in_all_versions(
    value: ClusterObject, kind: Kind, key: ObjectKey
) -> None:
    assert (kind_of(value), value.key) == (kind, key)
    assert replace(value, version=7) == value
