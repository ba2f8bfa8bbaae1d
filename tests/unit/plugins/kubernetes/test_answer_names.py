"""Names below an origin, read as CoreDNS's kubernetes plugin reads them (schema 1.1.0)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topodns.dns.name import parse_name
from topodns.plugins.kubernetes.answer import parse
from topodns.plugins.kubernetes.question import Fixed, NamespaceNode, PodName, SchemaName, ServiceName, ZonalName

NAMES = [
    ("", Fixed.APEX),
    ("svc", Fixed.SVC),
    ("pod", Fixed.POD),
    ("ns.dns", Fixed.NS_DNS),
    ("dns-version", Fixed.DNS_VERSION),
    ("dns", Fixed.DNS),
    ("foo", None),
    ("example.org", None),
    ("a.ns.dns", None),
    ("a.dns-version", None),
    ("ns1.svc", NamespaceNode("ns1", pods=False)),
    ("ns1.pod", NamespaceNode("ns1", pods=True)),
    ("db.ns1.svc", ServiceName("ns1", "db")),
    ("pod-0.db.ns1.svc", ServiceName("ns1", "db", endpoint="pod-0")),
    ("_tcp.db.ns1.svc", ServiceName("ns1", "db", endpoint="_tcp")),
    ("_http._tcp.db.ns1.svc", ServiceName("ns1", "db", port="http", protocol="tcp")),
    ("http.tcp.db.ns1.svc", ServiceName("ns1", "db", port="http", protocol="tcp")),
    ("_http.tcp.db.ns1.svc", ServiceName("ns1", "db", port="http", protocol="tcp")),
    ("__http._tcp.db.ns1.svc", ServiceName("ns1", "db", port="_http", protocol="tcp")),
    ("_._tcp.db.ns1.svc", ServiceName("ns1", "db", port="", protocol="tcp")),
    ("a.b.c.db.ns1.svc", None),
    ("a.pin._zone.db.ns1.svc", None),
    ("10-0-0-1.ns1.pod", PodName("ns1", "10-0-0-1")),
    ("x.10-0-0-1.ns1.pod", PodName("ns1", "10-0-0-1")),
    ("y.x.10-0-0-1.ns1.pod", PodName("ns1", "10-0-0-1")),
    ("z.y.x.10-0-0-1.ns1.pod", None),
]


@pytest.mark.parametrize(("name", "meaning"), NAMES, ids=[name or "(apex)" for name, _ in NAMES])
def test_labels_below_the_origin_have_coredns_s_meaning(name: str, meaning: SchemaName | None) -> None:
    assert parse(parse_name(name)) == meaning


MULTICLUSTER = [
    ("pod-0.east.db.ns1.svc", ServiceName("ns1", "db", endpoint="pod-0", cluster="east")),
    ("_http.tcp.db.ns1.svc", ServiceName("ns1", "db", port="http", protocol="tcp")),
    ("http._tcp.db.ns1.svc", ServiceName("ns1", "db", port="http", protocol="tcp")),
    ("pod-0.db.ns1.svc", ServiceName("ns1", "db", endpoint="pod-0")),
    ("pod-0.c1.eu.db.ns1.svc", ServiceName("ns1", "db", endpoint="pod-0", cluster="c1.eu")),
    ("a.pin._zone.db.ns1.svc", ServiceName("ns1", "db", endpoint="a", cluster="pin._zone")),
    (r"pod-0.c1\.eu.db.ns1.svc", None),
]


@pytest.mark.parametrize(("name", "meaning"), MULTICLUSTER)
def test_under_a_multicluster_origin_plain_labels_are_an_endpoint_and_its_cluster(
    name: str, meaning: SchemaName | None
) -> None:
    assert parse(parse_name(name), multicluster=True, zonal=True) == meaning


ZONAL = [
    ("us-west-2a.pin._zone.db.ns1.svc", ZonalName("ns1", "db", "us-west-2a", prefer=False)),
    ("us-west-2a.prefer._zone.db.ns1.svc", ZonalName("ns1", "db", "us-west-2a", prefer=True)),
    ("rack.7.pin._zone.db.ns1.svc", ZonalName("ns1", "db", "rack.7", prefer=False)),
    (r"rack\.7.pin._zone.db.ns1.svc", ZonalName("ns1", "db", r"rack\.7", prefer=False)),
    ("us-west-2a.florp._zone.db.ns1.svc", None),
    ("us-west-2a.pin.zone.db.ns1.svc", None),
    ("us-west-2a.pin._zone.db.ns1.pod", None),
    ("pin._zone.db.ns1.svc", ServiceName("ns1", "db", port="pin", protocol="zone")),
]


@pytest.mark.parametrize(("name", "meaning"), ZONAL)
def test_zone_scoped_names_exist_where_they_are_switched_on(name: str, meaning: SchemaName | None) -> None:
    assert parse(parse_name(name), zonal=True) == meaning


@given(st.lists(st.text(max_size=8), max_size=10).map(tuple), st.booleans(), st.booleans())
def test_any_labels_are_read_or_refused_without_an_error(
    labels: tuple[str, ...], multicluster: bool, zonal: bool
) -> None:
    meaning = parse((*labels, "svc"), multicluster, zonal)
    assert meaning is None or isinstance(meaning, Fixed | NamespaceNode | ServiceName | ZonalName)
