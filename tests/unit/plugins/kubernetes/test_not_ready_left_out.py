"""SERVFAIL for names of which objects are left out, as their namespace has too many octets."""

import pytest

from tests.support.cluster_dig import ClusterDig, settings
from tests.support.model_builders import endpoint, endpoint_slice, namespace, service
from topodns.cluster.left_out import further, placeholder
from topodns.cluster.model import ClusterObject, Deleted, ObjectKey
from topodns.dns.message import EdeCode

SERVFAIL = "SERVFAIL cluster.local. 5"


def cluster() -> list[ClusterObject]:
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
    """The cluster with placeholders of these objects."""
    dig = ClusterDig(cluster(), settings())
    for value in cluster():
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
    assert resolution is not None
    assert resolution.response.ede is not None
    assert resolution.response.ede.code == EdeCode.NOT_READY


def test_cluster_ips_and_names_of_others_are_answered() -> None:
    dig = without("wide", "db-2", "web-1")
    assert dig("web.tenant.svc.cluster.local. A").endswith("10.96.0.1")
    assert dig("nothing.tenant.svc.cluster.local. A") == "NXDOMAIN cluster.local. 5"
    assert dig("cache.other.svc.cluster.local. A").endswith("10.0.0.4")


def test_where_nothing_stands_for_some_objects_of_a_namespace_no_name_of_it_is_denied() -> None:
    dig = ClusterDig(cluster(), settings())
    dig.apply(further("tenant"))
    assert dig("nothing.tenant.svc.cluster.local. A") == SERVFAIL
    assert dig("db.tenant.svc.cluster.local. A") == SERVFAIL
    assert dig("web.tenant.svc.cluster.local. A").endswith("10.96.0.1")
    assert dig("nothing.other.svc.cluster.local. A") == "NXDOMAIN cluster.local. 5"
    dig.apply(Deleted("Service", ObjectKey("tenant", "*")))
    assert dig("nothing.tenant.svc.cluster.local. A") == "NXDOMAIN cluster.local. 5"
