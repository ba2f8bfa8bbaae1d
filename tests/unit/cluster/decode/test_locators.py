"""NodeLocators and PodLocators, as the API server sends them, to the model."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.model_builders import packed
from topodns.cluster.decode import locators
from topodns.cluster.decode.objects import DecodeError, decode_object
from topodns.cluster.decode.stream import Event, read_watch_line
from topodns.cluster.model import Deleted, NodeLocator, ObjectKey, PodLocator, RefusedAddresses

CRDS = Path(__file__).parents[4] / "config/kubernetes/locator/crds.yaml"


def document(kind: str, **spec: Any) -> dict[str, Any]:
    metadata = {"name": "a", "resourceVersion": "7", **({"namespace": "shop"} if kind == "PodLocator" else {})}
    return {"apiVersion": "topodns.io/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec}


def node_locator(**spec: Any) -> NodeLocator:
    source = document("NodeLocator", **spec)
    (value,) = decode_object("NodeLocator", source)
    assert decode_object("NodeLocator", json.dumps(source).encode()) == (value,)
    assert isinstance(value, NodeLocator)
    return value


def pod_locator(**spec: Any) -> PodLocator:
    (value,) = decode_object("PodLocator", document("PodLocator", **spec))
    assert isinstance(value, PodLocator)
    return value


def test_a_node_locator_has_addresses_of_pods_and_of_the_node_and_labels() -> None:
    locator = node_locator(
        podIPs=["10.0.0.1", "fd00::1", "10.0.0.1"], addresses=["192.0.2.1"], labels={"topology.kubernetes.io/zone": "z"}
    )
    assert locator == NodeLocator(
        "a",
        (packed("10.0.0.1"), packed("fd00::1")),
        (packed("192.0.2.1"),),
        {"topology.kubernetes.io/zone": "z"},
    )
    assert (locator.key, locator.version) == (ObjectKey("", "a"), 7)
    assert node_locator() == NodeLocator("a")


def test_a_pod_locator_has_the_node_of_its_pods_addresses() -> None:
    locator = pod_locator(addresses=["10.0.0.1", "fd00::1"], nodeName="n1")
    assert locator == PodLocator("shop", "a", (packed("10.0.0.1"), packed("fd00::1")), "n1")
    assert (locator.key, locator.version) == (ObjectKey("shop", "a"), 7)


@pytest.mark.parametrize("spec", [{"addresses": ["10.0.0.1"]}, {"addresses": ["10.0.0.1"], "nodeName": ""}, {}])
def test_a_pod_locator_without_a_node_is_unreadable(spec: dict[str, Any]) -> None:
    with pytest.raises(DecodeError, match=r"PodLocator shop/a: spec.nodeName: missing, expected the name of a Node"):
        decode_object("PodLocator", document("PodLocator", **spec))


REFUSED = {
    "127.0.0.1": "loopback",
    "127.255.255.255": "loopback",
    "::1": "loopback",
    "::ffff:127.0.0.1": "loopback",
    "169.254.20.10": "link_local",
    "fe80::1": "link_local",
    "febf::1": "link_local",
    "224.0.0.1": "multicast",
    "239.255.255.255": "multicast",
    "ff02::1": "multicast",
    "0.0.0.0": "unspecified",
    "::": "unspecified",
    "255.255.255.255": "broadcast",
    "fe80::1%eth0": "malformed",
    "10.0.0": "malformed",
    "10.0.0.0/24": "malformed",
    "node-a": "malformed",
    "": "malformed",
}


@pytest.mark.parametrize(("text", "reason"), REFUSED.items(), ids=REFUSED)
def test_an_address_that_no_pod_can_have_is_refused_and_costs_no_other(text: str, reason: str) -> None:
    locator = node_locator(podIPs=["10.0.0.1", text, "10.0.0.2"], addresses=[text])
    assert locator.pod_ips == (packed("10.0.0.1"), packed("10.0.0.2"))
    assert locator.addresses == ()
    assert locator.refused == (
        RefusedAddresses(reason, 1, f"spec.podIPs[1] '{text}'"),
        RefusedAddresses(reason, 1, f"spec.addresses[0] '{text}'"),
    )


@pytest.mark.parametrize("text", ["10.0.0.1", "100.64.0.1", "169.253.1.1", "223.255.255.255", "fec0::1", "2001:db8::1"])
def test_an_address_that_a_pod_can_have_is_taken(text: str) -> None:
    assert pod_locator(addresses=[text], nodeName="n1").addresses == (packed(text),)


def test_refusals_for_one_reason_are_counted_together_and_long_texts_shortened() -> None:
    (refused,) = pod_locator(addresses=["x" * 400, "y", "z"], nodeName="n1").refused
    assert refused == RefusedAddresses("malformed", 3, f"spec.addresses[0] '{'x' * 50}'")


def test_of_too_many_addresses_the_first_count() -> None:
    many = [f"10.{at >> 8}.{at & 255}.1" for at in range(1100)]
    locator = node_locator(podIPs=many, addresses=many, labels={f"l{at}": "v" for at in range(100)})
    assert locator.pod_ips == tuple(map(packed, many[:1024]))
    assert locator.addresses == tuple(map(packed, many[:32]))
    assert len(locator.labels) == 64
    assert locator.refused == (
        RefusedAddresses("too_many", 76, "spec.podIPs[1024]"),
        RefusedAddresses("too_many", 1068, "spec.addresses[32]"),
    )
    assert len(pod_locator(addresses=many, nodeName="n1").addresses) == 8


def test_the_limits_are_those_of_the_schemas() -> None:
    node_schema, pod_schema = (
        crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
        for crd in yaml.safe_load_all(CRDS.read_text(encoding="utf-8"))
    )
    assert node_schema["podIPs"]["maxItems"] == locators.MAX_POD_IPS
    assert node_schema["addresses"]["maxItems"] == locators.MAX_ADDRESSES
    assert node_schema["labels"]["maxProperties"] == locators.MAX_LABELS
    assert pod_schema["addresses"]["maxItems"] == locators.MAX_ADDRESSES_OF_POD
    assert pod_schema["nodeLabels"]["maxProperties"] == locators.MAX_LABELS


@pytest.mark.parametrize("kind", ["NodeLocator", "PodLocator"])
def test_another_version_of_the_api_is_no_locator(kind: str) -> None:
    assert decode_object(kind, {**document(kind, addresses=["10.0.0.1"]), "apiVersion": "topodns.io/v1beta1"}) == ()


def test_a_node_locator_belongs_to_no_namespace() -> None:
    line = json.dumps({"type": "DELETED", "object": document("NodeLocator")}).encode()
    assert read_watch_line("NodeLocator", line) == Event(Deleted("NodeLocator", ObjectKey("", "a"), 7), "7")


# Labels of a PodLocator


def test_a_pod_locator_has_labels_of_its_node_in_order_and_one_without_has_none() -> None:
    labels = {"topology.kubernetes.io/zone": "z", "kubernetes.io/hostname": "n1"}
    locator = pod_locator(addresses=["10.0.0.1"], nodeName="n1", nodeLabels=labels)
    assert locator.node_labels == (("kubernetes.io/hostname", "n1"), ("topology.kubernetes.io/zone", "z"))
    assert pod_locator(addresses=["10.0.0.1"], nodeName="n1").node_labels == ()
    assert pod_locator(addresses=["10.0.0.1"], nodeName="n1", nodeLabels=None).node_labels == ()


def test_the_field_of_addresses_that_older_objects_have_is_not_read() -> None:
    assert pod_locator(ips=["10.0.0.1"], nodeName="n1").addresses == ()


def test_pod_locators_of_one_node_share_its_labels() -> None:
    one, other = (pod_locator(nodeName="n1", nodeLabels={"zone": "a", "rack": "r"}) for _ in range(2))
    assert one.node_labels is other.node_labels


@pytest.mark.parametrize("field", ["labels", "nodeLabels"])
def test_too_many_and_too_long_labels_are_left_out(field: str) -> None:
    def labels_of(**labels: str) -> dict[str, str]:
        if field == "labels":
            return dict(node_locator(labels=labels).labels)
        return dict(pod_locator(nodeName="n1", nodeLabels=labels).node_labels)

    long = f"{'p' * 253}/{'n' * 63}"
    assert labels_of(**{long: "v" * 63, f"{long}n": "v", "a": "v" * 64}) == {long: "v" * 63}
    assert len(labels_of(**{f"l{at}": "v" for at in range(100)})) == 64
