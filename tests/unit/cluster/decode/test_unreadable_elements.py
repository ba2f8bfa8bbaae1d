"""Elements of lists that cannot be read cost no other element, in any list of any kind of object."""

import json
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topodns.cluster.decode.objects import decode_object, decode_whole
from topodns.cluster.model import EndpointSlice

Document = dict[str, Any]
NOT_A_TEXT: tuple[Any, ...] = (None, 7, True, {"ip": "10.0.0.1"}, ["10.0.0.1"], "\ud800")
NOT_AN_OBJECT: tuple[Any, ...] = (None, 7, False, "text", ["10.0.0.1"])
NOT_AN_ADDRESS = ("", "10.0.0", "10.0.0.256", "10.0.0.0400", "fe80::1%eth0", "db.example.com", "1:2", "None ")
NOT_A_PORT: tuple[Any, ...] = (-1, 65536, 2**64)
NOT_A_LABEL: tuple[Any, ...] = ("a" * 64, "\u00e4", "\u00e4" * 32)


@dataclass(frozen=True)
class ListField:
    """A list of an object: where it is, two valid elements, and elements that cannot be read."""

    kind: str
    path: tuple[str | int, ...]
    valid: tuple[Any, Any]
    bad: tuple[Any, ...]
    around: Document = field(default_factory=dict)

    def document(self, elements: list[Any]) -> Document:
        """The object with these elements in its list."""
        value: Any = elements
        for part in reversed(self.path):
            value = [value] if part == 0 else {part: value}
        found = {"metadata": {"name": "web", "namespace": "shop"}, **self.around}
        for name, inner in value.items():
            found[name] = {**found.get(name, {}), **inner} if isinstance(inner, dict) else inner
        return found


def ports(kind: str, *path: str | int, around: Document | None = None) -> ListField:
    bad = (
        *NOT_AN_OBJECT,
        *({"port": number} for number in (*NOT_A_PORT, "80", 80.5, [], True)),
        {"port": 1, "name": 5},
    )
    return ListField(kind, path, ({"name": "a", "port": 80}, {"name": "b", "port": 65535.0}), bad, around or {})


def addresses(kind: str, *path: str | int) -> ListField:
    return ListField(kind, path, ("10.0.010.1", "fd00::00001"), (*NOT_AN_ADDRESS, *NOT_A_TEXT))


def named_addresses(kind: str, *path: str | int) -> ListField:
    bad = tuple({"ip": text} for text in (*NOT_AN_ADDRESS, *NOT_A_TEXT[1:]))
    bad_names: tuple[Any, ...] = ({"ip": "10.0.0.9", "hostname": 7}, {"ip": "10.0.0.9", "hostname": []})
    more = bad_names if kind == "Endpoints" else ()
    return ListField(kind, path, ({"ip": "10.0.0.01"}, {"ip": "fd00::1"}), (*NOT_AN_OBJECT, *bad, *more))


ENDPOINTS = (
    {"addresses": ["10.0.0.1"], "hostname": "a", "conditions": {"ready": False}},
    {"addresses": ["10.0.0.02"], "targetRef": {"kind": "Pod", "name": "web-0"}, "hints": {"forZones": [{"name": "z"}]}},
)
BAD_ENDPOINTS = (
    {"addresses": ["10.0.0.3"], "hostname": 7},
    *({"addresses": value} for value in NOT_AN_OBJECT[1:-1]),
    *({"addresses": ["10.0.0.3"], name: 7} for name in ("conditions", "hints", "targetRef", "nodeName", "zone")),
    {"addresses": ["10.0.0.3"], "conditions": {"ready": "true"}},
    {"addresses": ["10.0.0.3"], "deprecatedTopology": {"zone": 1}},
    {"addresses": ["10.0.0.3"], "targetRef": {"name": []}},
    {"addresses": ["10.0.0.3"], "hints": {"forNodes": "n1"}},
    {"addresses": ["10.0.0.3"], "zone": "\udcff"},
)
IN_ENDPOINT = ("endpoints", 0)
NODE_IP = "InternalIP"
BAD_INGRESS: tuple[Any, ...] = (*NOT_AN_ADDRESS[1:], 7, [])
FIELDS = (
    addresses("EndpointSlice", *IN_ENDPOINT, "addresses"),
    ListField("EndpointSlice", ("endpoints",), ENDPOINTS, (*NOT_AN_OBJECT, *BAD_ENDPOINTS)),
    ports("EndpointSlice", "ports"),
    named_addresses("Endpoints", "subsets", 0, "addresses"),
    named_addresses("Endpoints", "subsets", 0, "notReadyAddresses"),
    ListField(
        "Endpoints", ("subsets",), ({"addresses": [{"ip": "10.0.0.1"}]}, {"addresses": [{"ip": "::1"}]}), NOT_AN_OBJECT
    ),
    addresses("Service", "spec", "clusterIPs"),
    addresses("Service", "spec", "externalIPs"),
    ports("Service", "spec", "ports"),
    ListField(
        "Service",
        ("status", "loadBalancer", "ingress"),
        ({"ip": "10.0.0.01"}, {"hostname": "lb.example.com"}),
        (*NOT_AN_OBJECT, *({"ip": value} for value in BAD_INGRESS)),
    ),
    addresses("ServiceImport", "spec", "ips"),
    ports("ServiceImport", "spec", "ports"),
    named_addresses("Pod", "status", "podIPs"),
    ListField(
        "Node",
        ("status", "addresses"),
        ({"type": NODE_IP, "address": "10.0.0.01"}, {"type": "Hostname", "address": "n1"}),
        (*NOT_AN_OBJECT, *({"type": NODE_IP, "address": text} for text in (*NOT_AN_ADDRESS[1:], *NOT_A_TEXT[1:]))),
    ),
    ListField(
        "Node",
        ("status", "conditions"),
        ({"type": "Ready", "status": "True"}, {"type": "Other", "status": "False"}),
        (*NOT_AN_OBJECT, {"type": "Ready", "status": False}, {"type": 7}),
    ),
    ListField("Node", ("spec", "podCIDRs"), ("10.0.010.0/024", "fd00::/64"), ("10.0.0.0/33", "x", *NOT_A_TEXT)),
    addresses("NodeLocator", "spec", "podIPs"),
    addresses("NodeLocator", "spec", "addresses"),
    ListField(
        "PodLocator", ("spec", "addresses"), ("10.0.0.01", "fd00::1"), NOT_A_TEXT, around={"spec": {"nodeName": "n1"}}
    ),
)


@given(
    st.sampled_from(FIELDS).flatmap(
        lambda found: st.tuples(
            st.just(found), st.lists(st.sampled_from(found.bad), max_size=4), st.randoms(use_true_random=False)
        )
    )
)
def test_an_object_reads_as_without_its_unreadable_elements(drawn: tuple[ListField, list[Any], Any]) -> None:
    found, bad, chance = drawn
    elements = [*((value, True) for value in found.valid), *((value, False) for value in bad)]
    chance.shuffle(elements)
    whole = found.document([value for value, valid in elements if valid])
    mixed = found.document([value for value, _ in elements])
    expected = decode_object(found.kind, whole)
    assert expected
    for form in (mixed, json.dumps(mixed).encode()):
        decoded = decode_whole(found.kind, form)
        assert decoded is not None
        assert [without_refusals(value) for value in decoded.objects] == [without_refusals(value) for value in expected]
        assert bool(decoded.left_out) == bool(countable(found, bad))


def without_refusals(value: Any) -> Any:
    """The value of a locator reports its unreadable addresses itself."""
    return {name: getattr(value, name) for name in value.__slots__ if name not in ("refused", "version")}


def countable(found: ListField, bad: list[Any]) -> list[Any]:
    """The elements that must be said to be left out: not an empty text, and not what a locator reports itself."""
    if found.kind == "NodeLocator":
        return [value for value in bad if not isinstance(value, str) or value == "\ud800"]
    empty = "" if found.kind in ("Service", "Node") else {"ip": ""} if found.kind == "Pod" else ()
    return [value for value in bad if value != empty]


def left_out(kind: str, **fields: Any) -> str:
    decoded = decode_whole(kind, {"metadata": {"name": "web", "namespace": "shop"}, **fields})
    assert decoded is not None
    return decoded.left_out


@pytest.mark.parametrize("text", NOT_A_LABEL)
def test_an_endpoint_whose_hostname_is_no_label_keeps_its_address(text: str) -> None:
    """CoreDNS answers with the address as well; its name is the dashed address."""
    for kind, fields in (
        ("EndpointSlice", {"endpoints": [{"addresses": ["10.0.0.1"], "hostname": text}]}),
        ("Endpoints", {"subsets": [{"addresses": [{"ip": "10.0.0.1", "hostname": text}]}]}),
    ):
        (one,) = decode_object(kind, {"metadata": {"name": "web", "namespace": "shop"}, **fields})
        assert isinstance(one, EndpointSlice)
        assert [(each.address, each.hostname) for each in one.endpoints] == [(bytes((10, 0, 0, 1)), "")]
        assert ".hostname: " in left_out(kind, **fields)


def test_the_first_three_are_named_by_their_paths_and_the_others_are_counted() -> None:
    bad = [{"addresses": ["10.0.0.1", "10.0.0"]}, {"hostname": "a" * 64}, {"hostname": "b" * 64}, "x"]
    assert left_out("EndpointSlice", endpoints=bad) == (
        "left out endpoints[3]: expected an object, found text; "
        "endpoints[0].addresses[1]: '10.0.0' does not appear to be an IPv4 or IPv6 address; "
        "endpoints[1].hostname: longer than 63 octets; and 1 more"
    )
    assert left_out("EndpointSlice", endpoints=bad[:1]) == (
        "left out endpoints[0].addresses[1]: '10.0.0' does not appear to be an IPv4 or IPv6 address"
    )


@pytest.mark.parametrize("problem", ["x" * 5000, "10.0.0." + "1" * 5000])
def test_a_long_text_is_shortened(problem: str) -> None:
    assert len(left_out("EndpointSlice", endpoints=[{"addresses": [problem]}])) < 300


def test_a_text_is_not_shown_where_no_text_is_expected() -> None:
    assert "secret" not in left_out("Service", spec={"ports": ["secret", {"port": "secret"}]})


def test_an_annotation_of_a_network_plugin_that_is_no_address_is_named() -> None:
    metadata = {"name": "n1", "annotations": {"projectcalico.org/IPv4VXLANTunnelAddr": "?"}}
    decoded = decode_whole("Node", {"metadata": metadata})
    assert decoded is not None
    assert decoded.left_out.startswith("left out metadata.annotations.projectcalico.org/IPv4VXLANTunnelAddr: '?' ")


def test_a_tunnel_address_may_have_leading_zeros() -> None:
    for spelling in ("10.42.1.0", "010.42.001.0/032"):
        metadata = {"name": "n1", "annotations": {"flannel.alpha.coreos.com/public-ip": spelling}}
        (node,) = decode_object("Node", {"metadata": metadata})
        assert node.tunnel_addresses == (bytes((10, 42, 1, 0)),)  # type: ignore[union-attr]
