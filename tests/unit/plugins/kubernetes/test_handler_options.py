"""The options of the `kubernetes` directive that change answers: CoreDNS's, case by case."""

import pytest

from tests.support.cluster_dig import ClusterDig, expected, settings
from tests.support.model_builders import endpoint, endpoint_slice, namespace, service
from topodns.cluster.model import ClusterObject, Replaced

NS = "testns"


def half_empty() -> list[ClusterObject]:
    return [
        namespace(NS),
        service("empty", NS, ["10.0.0.1"], ["http:80"]),
        service("starting", NS, ["10.0.0.2"], ["http:80"]),
        service("full", NS, ["10.0.0.3"], ["http:80"]),
        service("hdls", NS),
        service("external", NS, external_name="example.org"),
        endpoint_slice("starting", endpoint("172.0.0.2", ready=False), namespace=NS, ports=["http:80"]),
        endpoint_slice("full", endpoint("172.0.0.3"), namespace=NS, ports=["http:80"]),
        endpoint_slice("hdls", endpoint("172.0.0.4"), namespace=NS, ports=["http:80"]),
    ]


def test_ignore_empty_service_denies_cluster_ips_without_ready_endpoints() -> None:
    dig = ClusterDig(half_empty(), settings(ignore_empty_service=True))
    assert dig("empty.testns.svc.cluster.local. A") == "NXDOMAIN cluster.local. 5"
    assert dig("empty.testns.svc.cluster.local. AAAA") == "NXDOMAIN cluster.local. 5"
    assert dig("starting.testns.svc.cluster.local. SRV") == "NXDOMAIN cluster.local. 5"
    assert dig("full.testns.svc.cluster.local. A").endswith("10.0.0.3")
    assert dig("external.testns.svc.cluster.local. CNAME").endswith("example.org.")


def test_noendpoints_leaves_cluster_ips_and_external_names() -> None:
    dig = ClusterDig(half_empty(), settings(noendpoints=True))
    assert dig("full.testns.svc.cluster.local. A").endswith("10.0.0.3")
    assert dig("external.testns.svc.cluster.local. CNAME").endswith("example.org.")
    assert dig("hdls.testns.svc.cluster.local. A") == "NXDOMAIN cluster.local. 5"
    assert dig("172-0-0-3.full.testns.svc.cluster.local. A") == "NXDOMAIN cluster.local. 5"
    assert dig("3.0.0.172.in-addr.arpa. PTR") == "NXDOMAIN in-addr.arpa. 5"
    assert dig("3.0.0.10.in-addr.arpa. PTR").endswith("PTR full.testns.svc.cluster.local.")


def imports() -> list[ClusterObject]:
    return [
        namespace(NS),
        service("vip", NS, ["10.9.0.1"], ["http:80"], imported=True),
        service("db", NS, imported=True),
        service("local-only", NS, ["10.0.0.1"], ["http:80"]),
        endpoint_slice(
            "db", endpoint("172.0.0.2"), name="e", namespace=NS, ports=["http:80"], imported=True, cluster_id="east"
        ),
        endpoint_slice(
            "db",
            endpoint("172.0.0.3", hostname="db-0"),
            name="w",
            namespace=NS,
            ports=["http:80"],
            imported=True,
            cluster_id="west",
        ),
    ]


IMPORTED = {
    "vip.testns.svc.clusterset.local. A": "vip.testns.svc.clusterset.local. 5 IN A 10.9.0.1",
    "vip.testns.svc.cluster.local. A": "NXDOMAIN cluster.local. 5",
    "local-only.testns.svc.clusterset.local. A": "NXDOMAIN clusterset.local. 5",
    "local-only.testns.svc.cluster.local. A": "local-only.testns.svc.cluster.local. 5 IN A 10.0.0.1",
    "db.testns.svc.clusterset.local. A": """
        db.testns.svc.clusterset.local. 5 IN A 172.0.0.2
        db.testns.svc.clusterset.local. 5 IN A 172.0.0.3
        """,
    "db-0.west.db.testns.svc.clusterset.local. A": "db-0.west.db.testns.svc.clusterset.local. 5 IN A 172.0.0.3",
    "db-0.east.db.testns.svc.clusterset.local. A": "NXDOMAIN clusterset.local. 5",
    "db-0.db.testns.svc.clusterset.local. A": "NXDOMAIN clusterset.local. 5",
    "_http._tcp.db.testns.svc.clusterset.local. SRV": """
        _http._tcp.db.testns.svc.clusterset.local. 5 IN SRV 0 50 80 172-0-0-2.east.db.testns.svc.clusterset.local.
        _http._tcp.db.testns.svc.clusterset.local. 5 IN SRV 0 50 80 db-0.west.db.testns.svc.clusterset.local.
        + 172-0-0-2.east.db.testns.svc.clusterset.local. 5 IN A 172.0.0.2
        + db-0.west.db.testns.svc.clusterset.local. 5 IN A 172.0.0.3
        """,
    "db-0.west.db.testns.svc.clusterset.local. SRV": """
        db-0.west.db.testns.svc.clusterset.local. 5 IN SRV 0 100 80 db-0.west.db.testns.svc.clusterset.local.
        + db-0.west.db.testns.svc.clusterset.local. 5 IN A 172.0.0.3
        """,
}


@pytest.mark.parametrize(("question", "answer"), IMPORTED.items(), ids=IMPORTED.keys())
def test_a_multicluster_origin_serves_service_imports(question: str, answer: str) -> None:
    origins = ("cluster.local", "clusterset.local")
    dig = ClusterDig(imports(), settings(*origins, multicluster=["clusterset.local"], zonal=True))
    assert dig(question) == expected(answer)


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


def zones() -> list[ClusterObject]:
    return [
        namespace(NS),
        service("hdls", NS),
        service("drained", NS),
        service("clstr", NS, ["10.0.0.10"], ["http:80"]),
        service("ext", NS, external_name="example.org"),
        endpoint_slice(
            "hdls",
            endpoint("172.0.0.1", topology_zone="us-west-2a"),
            endpoint("172.0.0.2", topology_zone="US-west-2b"),
            endpoint("172.0.0.3", topology_zone="US-west-2b"),
            endpoint("172.0.0.4", topology_zone="rack.7"),
            namespace=NS,
            ports=["http:80"],
        ),
        endpoint_slice("hdls", endpoint("fd00::1", topology_zone="v6"), name="hdls-6", namespace=NS, ports=["http:80"]),
    ]


ZONAL = {
    "us-west-2a.pin._zone.hdls.testns.svc.cluster.local. A": """
        us-west-2a.pin._zone.hdls.testns.svc.cluster.local. 5 IN A 172.0.0.1
        """,
    "us-west-2b.pin._zone.hdls.testns.svc.cluster.local. A": """
        us-west-2b.pin._zone.hdls.testns.svc.cluster.local. 5 IN A 172.0.0.2
        us-west-2b.pin._zone.hdls.testns.svc.cluster.local. 5 IN A 172.0.0.3
        """,
    "rack.7.pin._zone.hdls.testns.svc.cluster.local. A": """
        rack.7.pin._zone.hdls.testns.svc.cluster.local. 5 IN A 172.0.0.4
        """,
    "us-west-2c.pin._zone.hdls.testns.svc.cluster.local. A": "NODATA cluster.local. 5",
    "us-west-2c.pin._zone.hdls.testns.svc.cluster.local. TXT": "NODATA cluster.local. 5",
    "us-west-2c.pin._zone.drained.testns.svc.cluster.local. A": "NODATA cluster.local. 5",
    "us-west-2a.prefer._zone.hdls.testns.svc.cluster.local. A": """
        us-west-2a.prefer._zone.hdls.testns.svc.cluster.local. 5 IN A 172.0.0.1
        """,
    "none.prefer._zone.hdls.testns.svc.cluster.local. AAAA": """
        none.prefer._zone.hdls.testns.svc.cluster.local. 5 IN AAAA fd00::1
        """,
    "v6.prefer._zone.hdls.testns.svc.cluster.local. A": "NODATA cluster.local. 5",
    "us-west-2a.prefer._zone.hdls.testns.svc.cluster.local. TXT": "NODATA cluster.local. 5",
    "us-west-2b.pin._zone.hdls.testns.svc.cluster.local. SRV": """
        us-west-2b.pin._zone.hdls.testns.svc.cluster.local. 5 IN SRV 0 50 80 172-0-0-2.hdls.testns.svc.cluster.local.
        us-west-2b.pin._zone.hdls.testns.svc.cluster.local. 5 IN SRV 0 50 80 172-0-0-3.hdls.testns.svc.cluster.local.
        + 172-0-0-2.hdls.testns.svc.cluster.local. 5 IN A 172.0.0.2
        + 172-0-0-3.hdls.testns.svc.cluster.local. 5 IN A 172.0.0.3
        """,
    "us-west-2a.pin._zone.ghost.testns.svc.cluster.local. A": "NXDOMAIN cluster.local. 5",
    "us-west-2a.florp._zone.hdls.testns.svc.cluster.local. A": "NXDOMAIN cluster.local. 5",
    "us-west-2a.pin._zone.clstr.testns.svc.cluster.local. A": "NXDOMAIN cluster.local. 5",
    "us-west-2a.pin._zone.ext.testns.svc.cluster.local. A": "NXDOMAIN cluster.local. 5",
}


@pytest.mark.parametrize(("question", "answer"), ZONAL.items(), ids=ZONAL.keys())
def test_zonal_answers_names_that_say_a_topology_zone(question: str, answer: str) -> None:
    assert ClusterDig(zones(), settings(zonal=True))(question) == expected(answer)


def test_without_zonal_such_names_do_not_exist() -> None:
    dig = ClusterDig(zones(), settings())
    assert dig("us-west-2a.pin._zone.hdls.testns.svc.cluster.local. A") == "NXDOMAIN cluster.local. 5"
