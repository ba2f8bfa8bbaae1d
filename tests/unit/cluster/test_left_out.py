"""Placeholders of objects that are left out, and the record of such objects."""

from tests.support.model_builders import endpoint, endpoint_slice, pod, service
from topodns.cluster.left_out import LeftOut, further, octets_left_out, placeholder
from topodns.cluster.model import EndpointSlice, ObjectKey, kind_of


def test_a_placeholder_has_the_key_of_the_object_and_its_service_and_nothing_else() -> None:
    one = endpoint_slice("db", endpoint("10.0.0.1"), namespace="tenant", ports=["http:80"])
    other = placeholder(one, 5000)
    assert other == EndpointSlice("tenant", "db-1", "db", "IPv4", left_out=5000)
    wide = placeholder(service("web", "tenant", ["10.96.0.1"], ["http:80"]), 6000)
    assert wide is not None
    assert (kind_of(wide), wide.key, octets_left_out(wide)) == ("Service", ObjectKey("tenant", "web"), 6000)
    assert kind_of(placeholder(service("web", "tenant", imported=True), 6000) or wide) == "ServiceImport"


def test_nothing_stands_for_a_pod_or_for_what_stands_for_others() -> None:
    assert placeholder(pod("p", ["10.0.0.1"]), 5000) is None
    assert placeholder(further("tenant"), 5000) is None


def test_objects_that_are_left_out_are_counted_by_namespace() -> None:
    left_out = LeftOut()
    one, two = service("a", "tenant"), service("b", "tenant")
    others = [placeholder(each, 5000) for each in (one, two)]
    left_out.take("Service", [(each.key, each, other) for each, other in zip((one, two), others, strict=True)])
    assert left_out.namespaces == {"tenant": 2}
    assert left_out.may_have("Service", one.key)
    left_out.take("Service", [(one.key, others[0], one), (two.key, others[1], None)])
    assert (left_out.namespaces, left_out.octets) == ({}, {})
    assert not left_out.may_have("Service", one.key)


def test_where_nothing_stands_for_some_each_object_of_the_namespace_may_be_left_out() -> None:
    left_out, other = LeftOut(), further("tenant")
    left_out.take("Service", [(other.key, None, other)])
    assert left_out.may_have("EndpointSlice", ObjectKey("tenant", "x"))
    assert not left_out.may_have("EndpointSlice", ObjectKey("other", "x"))
