"""Lists without a limit in the API: of each only as many elements are read and held as answers can have."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from topodns.cluster.decode.objects import decode_object
from topodns.cluster.decode.structs import WIDE
from topodns.cluster.model import MAX_PORTS, EndpointSlice, Service

Document = dict[str, Any]

PORTS = [{"name": f"p{number}", "port": number % 65535 + 1} for number in range(30_000)]


def made(**parts: Document | list[Document]) -> Document:
    return {"metadata": {"name": "wide", "namespace": "tenant"}, **parts}


def both_forms(kind: str, source: Document) -> list[Any]:
    """The value as read from an API server's JSON, and from a manifest."""
    octets = json.dumps(source).encode()
    assert len(octets) > WIDE
    return [decode_object(kind, form)[0] for form in (octets, source)]


@pytest.mark.parametrize("kind", ["Service", "ServiceImport"])
def test_the_first_thousand_ports_of_a_service_are_held(kind: str) -> None:
    for value in both_forms(kind, made(spec={"ports": PORTS})):
        assert isinstance(value, Service)
        assert [port.name for port in value.ports] == [f"p{number}" for number in range(MAX_PORTS)]


def test_the_first_thousand_ports_of_a_slice_are_held() -> None:
    for value in both_forms("EndpointSlice", made(ports=PORTS, endpoints=[{"addresses": ["10.0.0.1"]}])):
        assert isinstance(value, EndpointSlice)
        assert [port.name for port in value.ports] == [f"p{number}" for number in range(MAX_PORTS)]
        assert len(value.endpoints) == 1


@pytest.mark.parametrize(("kind", "field"), [("Service", "externalIPs"), ("ServiceImport", "ips")])
def test_the_first_thousand_addresses_of_a_service_are_held(kind: str, field: str) -> None:
    addresses = [f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}" for number in range(30_000)]
    for value in both_forms(kind, made(spec={field: addresses})):
        assert isinstance(value, Service)
        assert len(value.external_ips or value.cluster_ips) == 1000


def test_an_unreadable_element_behind_those_that_count_costs_nothing() -> None:
    (value,) = decode_object("Service", json.dumps(made(spec={"ports": [*PORTS, "port"]})).encode())
    assert isinstance(value, Service)
    assert len(value.ports) == MAX_PORTS


def test_of_an_endpoint_so_many_hints_and_topology_labels_are_held_as_the_api_allows() -> None:
    endpoint = {
        "addresses": ["10.0.0.1"],
        "deprecatedTopology": {f"k{number}": "v" for number in range(100)},
        "hints": {"forZones": [{"name": f"z{number}"} for number in range(100)]},
    }
    (value,) = decode_object("EndpointSlice", made(endpoints=[endpoint]))
    assert isinstance(value, EndpointSlice)
    assert (len(value.endpoints[0].topology), len(value.endpoints[0].zone_hints)) == (16, 8)


port_lists = st.lists(
    st.fixed_dictionaries(
        {}, optional={"name": st.text("ab", max_size=3), "port": st.integers(1, 65535), "other": st.text(max_size=5)}
    ),
    max_size=20,
)


@given(ports=port_lists, addresses=st.lists(st.ip_addresses(v=4).map(str), max_size=20), none=st.booleans())
@settings(max_examples=50)
def test_a_wide_object_is_read_like_a_narrow_one(ports: list[Document], addresses: list[str], none: bool) -> None:
    spec: Document = {"type": "LoadBalancer", "ports": None if none else ports, "externalIPs": addresses}
    status = {"loadBalancer": None if none else {"ingress": [{"ip": each} for each in addresses]}}
    padding = {"annotations": {"padding": "x" * WIDE}}
    narrow = {"metadata": {"name": "web"}, "spec": spec, "status": status}
    wide = {**narrow, "metadata": {"name": "web", **padding}}
    assert decode_object("Service", json.dumps(narrow).encode()) == decode_object("Service", json.dumps(wide).encode())
