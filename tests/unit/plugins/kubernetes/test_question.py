"""SERVFAIL in place of NXDOMAIN: watches are incomplete or denied, or objects of the name are left out."""

import pytest

from tests.support.cluster_dig import ClusterDig, settings
from tests.support.model_builders import endpoint, endpoint_slice, namespace, service
from tests.unit.plugins.kubernetes.scene import NS, few_services
from topodns.cluster.model import ClusterObject, Deleted, ObjectKey, Replaced
from topodns.cluster.namespace_budget import further, placeholder
from topodns.dns.message import EdeCode, Flag
from topodns.dns.rrtype import Rcode


@pytest.mark.parametrize("fallthrough", [[], ["."]])
def test_while_watches_are_incomplete_a_name_that_seems_missing_is_servfail(fallthrough: list[str]) -> None:
    dig = ClusterDig(few_services(), settings(fallthrough=fallthrough), synced=False)
    for name in ("svc0.testns.svc", "svc1.nons.svc", "foo", "9.9.9.9.in-addr.arpa"):
        question = f"{name} PTR" if name.endswith("arpa") else f"{name}.cluster.local. A"
        resolution = dig.resolve(question)
        assert resolution.response.rcode == Rcode.SERVFAIL
        assert resolution.response.ede is not None
        assert resolution.response.ede.code == EdeCode.NOT_READY
        assert resolution.response.authority != ()
        assert resolution.response.flags == Flag.AA


def test_while_watches_are_incomplete_known_names_are_served() -> None:
    dig = ClusterDig(few_services(), settings(), synced=False)
    assert dig("svc1.testns.svc.cluster.local. A").endswith("10.0.0.1")
    assert dig("hdls1.testns.svc.cluster.local. A").endswith("172.0.0.2")
    assert dig("svc1.testns.svc.cluster.local. AAAA") == "NODATA cluster.local. 5"


def test_while_watches_are_incomplete_an_external_name_to_a_missing_service_is_servfail() -> None:
    objects: list[ClusterObject] = [namespace(NS), service("ext", NS, external_name="svc1.testns.svc.cluster.local")]
    assert ClusterDig(objects, settings(), synced=False)("ext.testns.svc.cluster.local. A") == (
        "SERVFAIL cluster.local. 5"
    )


def test_while_service_imports_are_denied_a_missing_import_is_unknown_and_not_nxdomain() -> None:
    origins = settings("cluster.local", "clusterset.local", multicluster=["clusterset.local"])
    dig = ClusterDig([], origins, synced=False)
    for kind in sorted(dig.state.needed - {"ServiceImport", "Namespace"}):
        dig.apply(Replaced(kind, ()))
    dig.apply(Replaced("Namespace", (namespace(NS),)))
    dig.state.do_without("ServiceImport")
    assert dig("vip.testns.svc.clusterset.local. A") == "SERVFAIL clusterset.local. 5"
    assert dig("no.port.vip.testns.svc.clusterset.local. SRV") == "SERVFAIL clusterset.local. 5"
    assert dig("vip.no-such-namespace.svc.clusterset.local. A") == "NXDOMAIN clusterset.local. 5"
    assert dig("testns.svc.clusterset.local. A") == "NODATA clusterset.local. 5"
    assert dig("vip.testns.svc.cluster.local. A") == "NXDOMAIN cluster.local. 5"
    dig.apply(Replaced("ServiceImport", ()))
    assert dig("vip.testns.svc.clusterset.local. A") == "NXDOMAIN clusterset.local. 5"


SERVFAIL = "SERVFAIL cluster.local. 5"


def tenants() -> list[ClusterObject]:
    return [
        namespace("tenant"),
        namespace("other"),
        service("web", "tenant", ["10.96.0.1"], ["http:80"]),
        service("wide", "tenant", ports=["http:80"]),
        service("db", "tenant"),
        endpoint_slice("db", endpoint("10.0.0.1"), namespace="tenant", name="db-1"),
        endpoint_slice("db", endpoint("10.0.0.2"), namespace="tenant", name="db-2"),
        endpoint_slice("web", endpoint("10.0.0.3"), namespace="tenant", name="web-1"),
        service("cache", "other"),
        endpoint_slice("cache", endpoint("10.0.0.4"), namespace="other"),
    ]


def without(*names: str) -> ClusterDig:
    """The tenants with placeholders of these objects."""
    dig = ClusterDig(tenants(), settings())
    for value in tenants():
        if value.key.name in names:
            other = placeholder(value, 5000)
            assert other is not None
            dig.apply(other)
    return dig


@pytest.mark.parametrize(
    ("name", "missing"),
    [("wide", "wide"), ("db", "db-2"), ("10-0-0-2.db", "db-2"), ("10-0-0-1.db", "db-2"), ("10-0-0-3.web", "web-1")],
)
def test_a_name_of_which_objects_are_left_out_is_servfail(name: str, missing: str) -> None:
    dig = without(missing)
    assert dig(f"{name}.tenant.svc.cluster.local. A") == SERVFAIL
    resolution = dig.resolve(f"{name}.tenant.svc.cluster.local. A")
    assert resolution.response.ede is not None
    assert resolution.response.ede.code == EdeCode.NOT_READY


def test_cluster_ips_and_names_of_others_are_answered() -> None:
    dig = without("wide", "db-2", "web-1")
    assert dig("web.tenant.svc.cluster.local. A").endswith("10.96.0.1")
    assert dig("nothing.tenant.svc.cluster.local. A") == "NXDOMAIN cluster.local. 5"
    assert dig("cache.other.svc.cluster.local. A").endswith("10.0.0.4")


def test_where_nothing_stands_for_some_objects_of_a_namespace_no_name_of_it_is_denied() -> None:
    dig = ClusterDig(tenants(), settings())
    dig.apply(further("tenant"))
    assert dig("nothing.tenant.svc.cluster.local. A") == SERVFAIL
    assert dig("db.tenant.svc.cluster.local. A") == SERVFAIL
    assert dig("web.tenant.svc.cluster.local. A").endswith("10.96.0.1")
    assert dig("nothing.other.svc.cluster.local. A") == "NXDOMAIN cluster.local. 5"
    dig.apply(Deleted("Service", ObjectKey("tenant", "*")))
    assert dig("nothing.tenant.svc.cluster.local. A") == "NXDOMAIN cluster.local. 5"
