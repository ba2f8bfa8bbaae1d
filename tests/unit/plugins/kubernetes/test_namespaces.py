"""Namespaces that a `kubernetes` directive exposes."""

from tests.support.cluster_dig import ClusterDig, settings
from tests.support.model_builders import namespace, service
from topodns.cluster.label_selector import parse_selector
from topodns.cluster.model import ClusterObject


def two_tenants() -> list[ClusterObject]:
    return [
        namespace("red", {"tenant": "red"}),
        namespace("blue", {"tenant": "blue"}),
        service("web", "red", ["10.0.0.1"]),
        service("web", "blue", ["10.0.0.2"]),
        service("web", "ghost", ["10.0.0.3"]),
    ]


def test_namespaces_lists_the_only_ones_that_exist() -> None:
    dig = ClusterDig(two_tenants(), settings(namespaces=frozenset({"red", "ghost"})))
    assert dig("web.red.svc.cluster.local. A").endswith("10.0.0.1")
    assert dig("web.blue.svc.cluster.local. A") == "NXDOMAIN cluster.local. 5"
    assert dig("blue.svc.cluster.local. A") == "NXDOMAIN cluster.local. 5"


def test_a_listed_namespace_needs_its_object_all_the_same() -> None:
    dig = ClusterDig(two_tenants(), settings(namespaces=frozenset({"ghost"})))
    assert dig("web.ghost.svc.cluster.local. A") == "NXDOMAIN cluster.local. 5"


def test_namespace_labels_selects_namespaces() -> None:
    dig = ClusterDig(two_tenants(), settings(namespace_labels=parse_selector("tenant=red")))
    assert dig("web.red.svc.cluster.local. A").endswith("10.0.0.1")
    assert dig("web.blue.svc.cluster.local. A") == "NXDOMAIN cluster.local. 5"
    dig.apply(namespace("blue", {"tenant": "red"}))
    assert dig("web.blue.svc.cluster.local. A").endswith("10.0.0.2")


def test_ptr_is_hidden_by_namespaces_and_not_by_namespace_labels() -> None:
    listed = ClusterDig(two_tenants(), settings(namespaces=frozenset({"red"})))
    assert listed("1.0.0.10.in-addr.arpa. PTR").endswith("PTR web.red.svc.cluster.local.")
    assert listed("2.0.0.10.in-addr.arpa. PTR") == "NXDOMAIN in-addr.arpa. 5"
    selected = ClusterDig(two_tenants(), settings(namespace_labels=parse_selector("tenant=red")))
    assert selected("2.0.0.10.in-addr.arpa. PTR").endswith("PTR web.blue.svc.cluster.local.")
