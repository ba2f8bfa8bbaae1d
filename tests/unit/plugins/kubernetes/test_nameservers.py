"""The name servers of an origin, and their addresses."""

import pytest

from tests.support.cluster_dig import ClusterDig, expected, settings
from tests.support.model_builders import endpoint, endpoint_slice, namespace, service
from tests.unit.plugins.kubernetes.scene import few_services
from topodns.cluster.model import ClusterObject


def test_the_apex_names_the_services_that_this_server_is_behind() -> None:
    dns: list[ClusterObject] = [
        service("kube-dns", "kube-system", ["10.96.0.10", "fd00::a"], ["dns:53/UDP"]),
        service("dns-headless", "kube-system"),
        endpoint_slice("kube-dns", endpoint("10.1.2.3"), endpoint("10.1.2.4"), namespace="kube-system"),
        endpoint_slice("dns-headless", endpoint("10.1.2.3"), endpoint("10.1.2.4"), namespace="kube-system"),
        service("elsewhere", "kube-system", ["10.96.0.11"]),
        endpoint_slice("elsewhere", endpoint("10.9.9.9"), namespace="kube-system"),
    ]
    dig = ClusterDig([namespace("kube-system"), *dns], settings(), own_addresses=["10.1.2.3"])
    assert dig("cluster.local. NS") == expected(
        """
        cluster.local. 5 IN NS 10-1-2-3.dns-headless.kube-system.svc.cluster.local.
        cluster.local. 5 IN NS 10-1-2-4.dns-headless.kube-system.svc.cluster.local.
        cluster.local. 5 IN NS kube-dns.kube-system.svc.cluster.local.
        + 10-1-2-3.dns-headless.kube-system.svc.cluster.local. 5 IN A 10.1.2.3
        + 10-1-2-4.dns-headless.kube-system.svc.cluster.local. 5 IN A 10.1.2.4
        + kube-dns.kube-system.svc.cluster.local. 5 IN A 10.96.0.10
        + kube-dns.kube-system.svc.cluster.local. 5 IN AAAA fd00::a
        """
    )
    assert dig("ns.dns.cluster.local. AAAA") == "ns.dns.cluster.local. 5 IN AAAA fd00::a"
    assert dig("cluster.local. NS") == dig("CLUSTER.local. NS").replace("CLUSTER", "cluster")


def test_without_any_address_of_its_own_the_apex_has_no_name_servers() -> None:
    assert ClusterDig(few_services(), settings())("cluster.local. NS") == "NODATA cluster.local. 5"


def zone_of(octets: int) -> str:
    """A zone whose name has so many octets in a message."""
    labels = ["a" * 61, "b" * 61, "c" * 61]
    return ".".join([*labels, "d" * (octets - sum(len(label) + 1 for label in labels) - 2)]) + "."


@pytest.mark.parametrize(("octets", "primary", "mailbox"), [(244, True, True), (245, True, False), (249, False, False)])
def test_a_name_that_does_not_fit_before_a_long_zone_is_left_out(octets: int, primary: bool, mailbox: bool) -> None:
    zone, own = zone_of(octets), "10.1.2.3"
    dig = ClusterDig(few_services(), settings(zone), own_addresses=[own])
    found = dig(f"{zone} SOA").split()[4:6]
    assert found == [f"ns.dns.{zone}" if primary else zone, f"hostmaster.{zone}" if mailbox else zone]
    server = f"{zone} 5 IN NS ns.dns.{zone}\n+ ns.dns.{zone} 5 IN A {own}"
    assert dig(f"{zone} NS") == (server if primary else f"NODATA {zone} 5")


def test_a_service_in_front_of_this_server_whose_name_is_too_long_is_no_name_server() -> None:
    long, short = "s" * 63, "dns"
    objects: list[ClusterObject] = [namespace("kube-system")]
    for name, address in ((long, "10.96.0.10"), (short, "10.96.0.11")):
        objects += [
            service(name, "kube-system", [address], ["dns:53/UDP"]),
            endpoint_slice(name, endpoint("10.1.2.3"), namespace="kube-system"),
        ]
    zone = zone_of(200)
    dig = ClusterDig(objects, settings(zone), own_addresses=["10.1.2.3"])
    server = f"{short}.kube-system.svc.{zone}"
    assert dig(f"{zone} NS") == f"{zone} 5 IN NS {server}\n+ {server} 5 IN A 10.96.0.11"
