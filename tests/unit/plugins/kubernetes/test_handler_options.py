"""The options of the `kubernetes` directive that change answers: CoreDNS's, case by case."""

import pytest

from tests.support.cluster_dig import ClusterDig, expected, settings
from tests.support.model_builders import endpoint, endpoint_slice, namespace, service
from topodns.cluster.model import ClusterObject

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
        service("deep", NS, imported=True),
        *(
            endpoint_slice(
                "deep",
                endpoint(f"172.0.1.{at}", hostname="db-0"),
                name=f"deep-{at}",
                namespace=NS,
                ports=["http:80"],
                imported=True,
                cluster_id=cluster,
            )
            for at, cluster in enumerate(("C1.eu", "c1.EU", "eu", "a.b.c"))
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
    "deep.testns.svc.clusterset.local. SRV": """
        deep.testns.svc.clusterset.local. 5 IN SRV 0 25 80 db-0.C1.eu.deep.testns.svc.clusterset.local.
        deep.testns.svc.clusterset.local. 5 IN SRV 0 25 80 db-0.eu.deep.testns.svc.clusterset.local.
        deep.testns.svc.clusterset.local. 5 IN SRV 0 25 80 db-0.a.b.c.deep.testns.svc.clusterset.local.
        + db-0.C1.eu.deep.testns.svc.clusterset.local. 5 IN A 172.0.1.0
        + db-0.C1.eu.deep.testns.svc.clusterset.local. 5 IN A 172.0.1.1
        + db-0.eu.deep.testns.svc.clusterset.local. 5 IN A 172.0.1.2
        + db-0.a.b.c.deep.testns.svc.clusterset.local. 5 IN A 172.0.1.3
        """,
    "db-0.c1.eu.deep.testns.svc.clusterset.local. SRV": """
        db-0.c1.eu.deep.testns.svc.clusterset.local. 5 IN SRV 0 50 80 db-0.C1.eu.deep.testns.svc.clusterset.local.
        + db-0.C1.eu.deep.testns.svc.clusterset.local. 5 IN A 172.0.1.0
        + db-0.C1.eu.deep.testns.svc.clusterset.local. 5 IN A 172.0.1.1
        """,
    "db-0.C1.EU.deep.testns.svc.clusterset.local. A": """
        db-0.C1.EU.deep.testns.svc.clusterset.local. 5 IN A 172.0.1.0
        db-0.C1.EU.deep.testns.svc.clusterset.local. 5 IN A 172.0.1.1
        """,
    r"db-0.c1\.eu.deep.testns.svc.clusterset.local. A": "NXDOMAIN clusterset.local. 5",
    "c1.eu.deep.testns.svc.clusterset.local. A": "NODATA clusterset.local. 5",
    r"c1\.eu.deep.testns.svc.clusterset.local. A": "NXDOMAIN clusterset.local. 5",
    "eu.deep.testns.svc.clusterset.local. A": "NODATA clusterset.local. 5",
    "a.b.c.deep.testns.svc.clusterset.local. A": "NODATA clusterset.local. 5",
    "b.c.deep.testns.svc.clusterset.local. AAAA": "NODATA clusterset.local. 5",
    "c.deep.testns.svc.clusterset.local. TXT": "NODATA clusterset.local. 5",
    "b.deep.testns.svc.clusterset.local. A": "NXDOMAIN clusterset.local. 5",
    "d.b.c.deep.testns.svc.clusterset.local. A": "NXDOMAIN clusterset.local. 5",
    "_tcp.db.testns.svc.clusterset.local. A": "NODATA clusterset.local. 5",
    "tcp.west.db.testns.svc.clusterset.local. A": "NXDOMAIN clusterset.local. 5",
    "_tcp._http._tcp.db.testns.svc.clusterset.local. A": "NXDOMAIN clusterset.local. 5",
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
