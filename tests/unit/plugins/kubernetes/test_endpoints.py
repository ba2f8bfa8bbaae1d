"""Names of endpoints."""

from dataclasses import replace
from ipaddress import ip_address

import pytest

from tests.support.cluster_dig import ClusterDig, expected, settings
from tests.support.model_builders import endpoint, endpoint_slice, namespace, node, packed, service
from topodns.cluster.model import HOSTNAME_LABEL, ClusterObject, Endpoint, Upserted
from topodns.dependency import address_fact
from topodns.dns.name import name_text, reverse_name
from topodns.plugins.topology.settings import TopologySettings
from topodns.topology.client_locator import Method

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


def test_pods_that_share_an_address_are_endpoints_of_their_own() -> None:
    """As Pods in their node's network do: with names of their own by `endpoint_pod_names`, else with one for all."""
    objects: list[ClusterObject] = [
        namespace(NS),
        service("db", NS),
        endpoint_slice(
            "db", endpoint("172.0.0.1", pod="db-a"), endpoint("172.0.0.1", pod="db-b"), namespace=NS, ports=["80"]
        ),
    ]
    assert ClusterDig(objects, settings(endpoint_pod_names=True))("db.testns.svc.cluster.local. SRV") == expected(
        """
        db.testns.svc.cluster.local. 5 IN SRV 0 50 80 db-a.db.testns.svc.cluster.local.
        db.testns.svc.cluster.local. 5 IN SRV 0 50 80 db-b.db.testns.svc.cluster.local.
        + db-a.db.testns.svc.cluster.local. 5 IN A 172.0.0.1
        + db-b.db.testns.svc.cluster.local. 5 IN A 172.0.0.1
        """
    )
    assert ClusterDig(objects, settings())("db.testns.svc.cluster.local. SRV") == expected(
        """
        db.testns.svc.cluster.local. 5 IN SRV 0 50 80 172-0-0-1.db.testns.svc.cluster.local.
        + 172-0-0-1.db.testns.svc.cluster.local. 5 IN A 172.0.0.1
        """
    )


def rollout(port: str, *later: Endpoint, keys: str | None = None) -> list[ClusterObject]:
    """Two Pods with one address, in their node's network: one is ready at 8080, the other is not at `port`."""
    ready = endpoint("172.0.0.1", "n1", pod="agent-old", topology_zone="a")
    return [
        namespace(NS),
        node("n1", {HOSTNAME_LABEL: "n1"}, addresses=["172.0.0.1"]),
        service("db", NS, annotation=keys),
        endpoint_slice("db", ready, name="db-1", namespace=NS, ports=["http:8080"]),
        endpoint_slice(
            "db", replace(ready, ready=False, pod_name="agent-new"), *later, name="db-2", namespace=NS, ports=[port]
        ),
    ]


def test_an_address_has_srv_records_of_the_ports_at_which_it_is_ready() -> None:
    dig = ClusterDig(rollout("http:8081"), settings())
    for name in ("db", "_http._tcp.db", "172-0-0-1.db"):
        answer = dig(f"{name}.testns.svc.cluster.local. SRV")
        assert " SRV 0 100 8080 172-0-0-1.db.testns.svc.cluster.local." in answer
        assert " 8081 " not in answer
    other = ClusterDig(rollout("adm:81"), settings())
    assert other("_adm._tcp.db.testns.svc.cluster.local. SRV") == "NXDOMAIN cluster.local. 5"
    assert other("_adm._tcp.db.testns.svc.cluster.local. A") == "NXDOMAIN cluster.local. 5"


def test_keys_select_among_the_endpoints_that_are_ready_at_the_port() -> None:
    """The Pod of the client's node is ready at 8080 only, so that at 8081 the next key decides."""
    far = endpoint("172.0.0.2", "n2", pod="far")
    dig = ClusterDig(rollout("http:8081", far, keys=f"{HOSTNAME_LABEL},*"), settings(), TopologySettings())
    answer = dig("_http._tcp.db.testns.svc.cluster.local. SRV", source="172.0.0.1")
    assert " 8080 172-0-0-1.db." in answer
    assert " 8081 172-0-0-2.db." in answer
    assert " 8081 172-0-0-1.db." not in answer


LABELS = {
    "of a static Pod on a Node with dots in its name": (endpoint("10.1.0.1", pod="etcd-a.example.net"), "10-1-0-1"),
    "of a Node": (endpoint("10.1.0.2", "n1", target="n1"), "n1"),
    "of a Node with dots": (endpoint("10.1.0.3", "n1", target="n1.example.net"), "10-1-0-3"),
    "with a hostname that is no label": (endpoint("10.1.0.4", hostname="a.b", pod="pod-4"), "pod-4"),
    "with neither": (endpoint("fd00::4", hostname="a.b", pod="c.d"), "fd00--4"),
    "in capitals": (endpoint("10.1.0.5", target="VM-5"), "VM-5"),
}


@pytest.mark.parametrize(("one", "label"), LABELS.values(), ids=LABELS)
def test_an_endpoint_has_the_same_one_label_in_srv_ptr_and_its_own_name(one: Endpoint, label: str) -> None:
    one_slice = endpoint_slice("db", one, namespace=NS, ports=["sql:5432"])
    objects: list[ClusterObject] = [namespace(NS), service("db", NS), one_slice]
    dig = ClusterDig(objects, settings(endpoint_pod_names=True))
    name, qtype = f"{label}.db.{NS}.svc.cluster.local.", "A" if len(one.address) == 4 else "AAAA"
    address = f"{name} 5 IN {qtype} {ip_address(one.address)}"
    assert dig(f"{name} {qtype}") == address
    srv = dig(f"_sql._tcp.db.{NS}.svc.cluster.local. SRV")
    assert srv == f"_sql._tcp.db.{NS}.svc.cluster.local. 5 IN SRV 0 100 5432 {name}\n+ {address}"
    reverse = name_text(reverse_name(one.address))
    assert dig(f"{reverse} PTR") == f"{reverse} 5 IN PTR {name}"


def test_what_is_no_pod_of_its_namespace_locates_no_client() -> None:
    """A Node or a custom object in a targetRef names an endpoint, which must not move the Pods of others."""
    keyed = service("web", NS, annotation="kubernetes.io/hostname")
    objects: list[ClusterObject] = [
        *(namespace(NS), node("n1"), node("n2"), keyed),
        endpoint_slice("web", endpoint("10.2.0.1", "n1"), endpoint("10.2.0.2", "n2"), namespace=NS),
        endpoint_slice("db", endpoint("10.1.0.1", "n1", target="n1"), endpoint("10.1.0.2", "n2"), namespace=NS),
    ]
    dig = ClusterDig(objects, settings(endpoint_pod_names=True), TopologySettings(locate=(Method.SLICES,)))
    assert dig(f"web.{NS}.svc.cluster.local. A", "10.1.0.1") == "NODATA cluster.local. 5"
    assert dig(f"web.{NS}.svc.cluster.local. A", "10.1.0.2").endswith("IN A 10.2.0.2")


def test_a_change_of_the_target_alone_is_in_the_next_ptr() -> None:
    before, after = (endpoint_slice("db", endpoint("10.1.0.1", target=name), namespace=NS) for name in ("vm-a", "vm-b"))
    dig = ClusterDig([namespace(NS), service("db", NS), before], settings(endpoint_pod_names=True))
    assert address_fact(packed("10.1.0.1")) in dig.state.apply(Upserted(after), 0)
    assert dig("1.0.1.10.in-addr.arpa. PTR").endswith(f"IN PTR vm-b.db.{NS}.svc.cluster.local.")
