"""Names of endpoints."""

from tests.support.cluster_dig import ClusterDig, settings
from tests.support.model_builders import endpoint, endpoint_slice, namespace, service
from topodns.cluster.model import ClusterObject

NS = "testns"


def test_endpoint_pod_names_names_endpoints_by_their_pods_unless_they_have_hostnames() -> None:
    objects: list[ClusterObject] = [
        namespace(NS),
        service("db", NS),
        endpoint_slice(
            "db",
            endpoint("172.0.0.1", pod="db-7c9-x1"),
            endpoint("172.0.0.2", pod="db-7c9-x2", hostname="db-0"),
            endpoint("172.0.0.3", pod="x" * 64),
            namespace=NS,
            ports=["80"],
        ),
    ]
    dig = ClusterDig(objects, settings(endpoint_pod_names=True))
    assert dig("db-7c9-x1.db.testns.svc.cluster.local. A").endswith("172.0.0.1")
    assert dig("172-0-0-1.db.testns.svc.cluster.local. A") == "NXDOMAIN cluster.local. 5"
    assert dig("db-0.db.testns.svc.cluster.local. A").endswith("172.0.0.2")
    assert dig("172-0-0-3.db.testns.svc.cluster.local. A").endswith("172.0.0.3")
    assert dig("1.0.0.172.in-addr.arpa. PTR").endswith("PTR db-7c9-x1.db.testns.svc.cluster.local.")
    assert " SRV 0 33 80 db-7c9-x1.db." in dig("db.testns.svc.cluster.local. SRV")
    plain = ClusterDig(objects, settings())
    assert plain("db-7c9-x1.db.testns.svc.cluster.local. A") == "NXDOMAIN cluster.local. 5"
    assert plain("172-0-0-1.db.testns.svc.cluster.local. A").endswith("172.0.0.1")
