"""Ports of a Service's slices, and the slices with each."""

from tests.support.model_builders import endpoint, endpoint_slice
from topodns.cluster.backends import EVERYWHERE, PortIndex
from topodns.cluster.model import MAX_PORTS, EndpointPort

HTTP, DNS = EndpointPort("http", "TCP", 80), EndpointPort("dns", "UDP", 53)


def test_a_port_of_all_slices_is_everywhere() -> None:
    found = PortIndex([endpoint_slice("a", ports=["http:80", "dns:53/UDP"]) for _ in range(2)])
    assert (found.ports, found.set_of(HTTP), found.set_of(DNS)) == ((HTTP, DNS), EVERYWHERE, EVERYWHERE)


def test_ports_of_the_same_slices_share_a_set() -> None:
    slices = [
        endpoint_slice("a", endpoint("10.0.0.1"), ports=["http:80"]),
        endpoint_slice("a", endpoint("10.0.0.2", hostname="b"), ports=["http:80", "dns:53/UDP", "a:1"]),
    ]
    found = PortIndex(slices)
    number = found.set_of(DNS)
    assert number is not None
    assert (found.set_of(HTTP), found.set_of(EndpointPort("a", "TCP", 1))) == (EVERYWHERE, number)
    assert found.places(number) == (1,)
    assert found.set_of(EndpointPort("http", "UDP", 80)) is None


def test_the_first_thousand_ports_count() -> None:
    slices = [endpoint_slice("a", ports=[f"p{first + at}:1" for at in range(600)]) for first in (0, 600)]
    found = PortIndex(slices)
    assert (len(found.ports), found.ports[-1].name) == (MAX_PORTS, f"p{MAX_PORTS - 1}")


def test_a_service_without_slices_has_no_ports() -> None:
    assert PortIndex([]).ports == ()


def test_a_slice_without_ports_is_in_a_set_of_its_own() -> None:
    nameless = EndpointPort("", "", None)
    found = PortIndex([endpoint_slice("a", ports=["http:80"]), endpoint_slice("a")])
    assert found.ports == (HTTP, nameless)
    numbers = [found.set_of(port) for port in found.ports]
    assert [found.places(number) for number in numbers if number is not None] == [(0,), (1,)]
    assert PortIndex([endpoint_slice("a"), endpoint_slice("a")]).set_of(nameless) == EVERYWHERE


def test_a_port_that_a_slice_has_twice_counts_once() -> None:
    found = PortIndex([endpoint_slice("a", ports=["http:80", "http:80"]), endpoint_slice("a", ports=["dns:53/UDP"])])
    numbers = [found.set_of(port) for port in (HTTP, DNS)]
    assert None not in numbers
    assert [found.places(number) for number in numbers if number is not None] == [(0,), (1,)]
