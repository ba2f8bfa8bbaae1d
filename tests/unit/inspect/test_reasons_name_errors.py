"""Why a name of the cluster is NXDOMAIN: the reason names the missing object, or the option that leaves it out."""

from collections.abc import Sequence
from typing import Any

import pytest

from tests.support.cluster_dig import ClusterDig, query_of, settings
from tests.support.model_builders import endpoint, endpoint_slice, namespace, pod, service
from topodns.cluster.label_selector import parse_selector
from topodns.cluster.model import ClusterObject
from topodns.inspect.reasons import name_error_text, name_offer
from topodns.plugins.kubernetes.settings import KubernetesSettings, PodMode
from topodns.plugins.kubernetes.zone import KubernetesZone

VERIFIED: dict[str, Any] = {"pods": PodMode.VERIFIED}
LABELLED: dict[str, Any] = {"labels": parse_selector("team=blue")}
NOENDPOINTS: dict[str, Any] = {"noendpoints": True}


def cluster() -> Sequence[ClusterObject]:
    return [
        namespace("shop"),
        namespace("hidden"),
        service("web", "shop", ["10.0.0.1"], ["http:80"]),
        service("db", "shop"),
        service("empty", "shop"),
        service("bare", "shop"),
        service("idle", "shop", ["10.0.0.2"], ["http:80"]),
        service("many", "shop", ["10.0.0.4"], [f"p{at}:{at}" for at in range(1, 9)]),
        service("nameless", "shop", ["10.0.0.5"], [":80"]),
        service("outside", "shop", external_name="example.org"),
        service("address", "shop", external_name="192.0.2.1"),
        service("secret", "hidden", ["10.0.0.3"]),
        endpoint_slice("web", endpoint("10.1.0.1"), namespace="shop", ports=["http:80"]),
        endpoint_slice("db", endpoint("10.1.0.2"), namespace="shop", ports=["sql:5432"]),
        endpoint_slice("empty", endpoint("10.1.0.3", ready=False), namespace="shop", ports=["http:80"]),
        pod("web-0", ["10.1.0.1"], namespace="shop"),
    ]


CASES: dict[str, tuple[str, dict[str, Any], str]] = {
    "a Service": ("nil.shop.svc.cluster.local. A", {}, "no Service 'nil' in namespace 'shop'"),
    "a namespace": ("web.nil.svc.cluster.local. A", {}, "no namespace 'nil'"),
    "the name of a namespace": ("nil.svc.cluster.local. A", {}, "no namespace 'nil'"),
    "a Service that `labels` may leave out": (
        "nil.shop.svc.cluster.local. A",
        LABELLED,
        "no Service 'nil' in namespace 'shop' with the labels of `labels`",
    ),
    "a namespace that is not listed": (
        "secret.hidden.svc.cluster.local. A",
        {"namespaces": frozenset({"shop"})},
        "`namespaces` does not list namespace 'hidden'",
    ),
    "a namespace without the labels": (
        "web.shop.svc.cluster.local. A",
        {"namespace_labels": parse_selector("team=blue")},
        "namespace 'shop' does not have the labels of `namespace_labels`",
    ),
    "a name without svc": (
        "web.shop.cluster.local. A",
        {},
        "not a name of the Kubernetes DNS schema, such as SERVICE.NAMESPACE.svc.cluster.local.",
    ),
    "a headless Service without a ready endpoint": (
        "empty.shop.svc.cluster.local. A",
        {},
        "Service 'empty' in namespace 'shop' is headless and has no ready endpoint",
    ),
    "one without an EndpointSlice, whose label may be misspelt": (
        "bare.shop.svc.cluster.local. A",
        {},
        "Service 'bare' in namespace 'shop' is headless and has no EndpointSlice, "
        "which would have the label kubernetes.io/service-name=bare",
    ),
    "one whose endpoints are not read": (
        "db.shop.svc.cluster.local. A",
        NOENDPOINTS,
        "Service 'db' in namespace 'shop' is headless and has no ready endpoint (`noendpoints` is set)",
    ),
    "a ClusterIP without endpoints, which is not to be served": (
        "idle.shop.svc.cluster.local. A",
        {"ignore_empty_service": True},
        "Service 'idle' in namespace 'shop' has no ready endpoint, and `ignore empty_service` is set",
    ),
    "an endpoint": (
        "db-7.db.shop.svc.cluster.local. A",
        {},
        "Service 'db' in namespace 'shop' has no ready endpoint named 'db-7'",
    ),
    "a port of a ClusterIP": (
        "_dns._udp.web.shop.svc.cluster.local. SRV",
        {},
        "Service 'web' in namespace 'shop' has no port named 'dns' of protocol 'udp'; it has _http._tcp",
    ),
    "a port of a headless Service": (
        "_http._tcp.db.shop.svc.cluster.local. SRV",
        {},
        "Service 'db' in namespace 'shop' has no ready endpoint with a port named 'http' of protocol 'tcp'; "
        "they have _sql._tcp",
    ),
    "a port that is misspelt in the Service or the slice": (
        "_sqll._tcp.db.shop.svc.cluster.local. SRV",
        {},
        "Service 'db' in namespace 'shop' has no ready endpoint with a port named 'sqll' of protocol 'tcp'; "
        "they have _sql._tcp, did you mean 'sql'?",
    ),
    "a port of another protocol": (
        "_sql._udp.db.shop.svc.cluster.local. SRV",
        {},
        "Service 'db' in namespace 'shop' has no ready endpoint with a port named 'sql' of protocol 'udp'; "
        "they have _sql._tcp",
    ),
    "a port where there are many": (
        "_p._tcp.many.shop.svc.cluster.local. SRV",
        {},
        "Service 'many' in namespace 'shop' has no port named 'p' of protocol 'tcp'; "
        "it has _p1._tcp, _p2._tcp, _p3._tcp, _p4._tcp, _p5._tcp and 3 more, did you mean 'p8'?",
    ),
    "a port where there is none with a name": (
        "_p._tcp.nameless.shop.svc.cluster.local. SRV",
        {},
        "Service 'nameless' in namespace 'shop' has no port named 'p' of protocol 'tcp'",
    ),
    "a name below an ExternalName": (
        "a.outside.shop.svc.cluster.local. A",
        {},
        "Service 'outside' in namespace 'shop' is of type ExternalName: no names exist below it",
    ),
    "an ExternalName that is an address": (
        "address.shop.svc.cluster.local. A",
        {},
        "Service 'address' in namespace 'shop' has an externalName that is not a DNS name: '192.0.2.1'",
    ),
    "a topology zone of a ClusterIP": (
        "eu-1a.pin._zone.web.shop.svc.cluster.local. A",
        {"zonal": True},
        "Service 'web' in namespace 'shop' is not headless: it has no zone-scoped names",
    ),
    "a Pod where none has a name": (
        "10-1-0-1.shop.pod.cluster.local. A",
        {},
        "names of Pods do not exist with `pods disabled`",
    ),
    "the namespace of Pods where none has a name": (
        "shop.pod.cluster.local. A",
        {},
        "names of Pods do not exist with `pods disabled`",
    ),
    "a Pod": (
        "10-1-0-9.shop.pod.cluster.local. A",
        VERIFIED,
        "no Pod in namespace 'shop' has the address 10.1.0.9",
    ),
    "a Pod that `labels` may leave out": (
        "10-1-0-9.shop.pod.cluster.local. A",
        VERIFIED | LABELLED,
        "no Pod in namespace 'shop' with the labels of `labels` has the address 10.1.0.9",
    ),
    "a Pod by its name": (
        "web-0.shop.pod.cluster.local. A",
        VERIFIED,
        "'web-0' is not an IP address with dashes",
    ),
    "a Pod of a namespace that does not exist": ("10-1-0-1.nil.pod.cluster.local. A", VERIFIED, "no namespace 'nil'"),
    "an address": (
        "9.0.1.10.in-addr.arpa. PTR",
        {},
        "no Service and no ready endpoint has the address 10.1.0.9",
    ),
    "an address of IPv6": (
        "9.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.d.f.ip6.arpa. PTR",
        {},
        "no Service and no ready endpoint has the address fd00::9",
    ),
    "an address in a namespace that is not listed": (
        "3.0.0.10.in-addr.arpa. PTR",
        {"namespaces": frozenset({"shop"})},
        "no Service and no ready endpoint in the namespaces that `namespaces` lists has the address 10.0.0.3",
    ),
    "no address": ("web.in-addr.arpa. PTR", {}, "the name is not the reverse name of an address"),
}


def explained(dig: ClusterDig, kubernetes: KubernetesSettings, question: str) -> str:
    return name_error_text(KubernetesZone(kubernetes, None, dig.state, None), query_of(question))


@pytest.mark.parametrize(("question", "options", "reason"), CASES.values(), ids=CASES.keys())
def test_the_reason_names_the_missing_object(question: str, options: dict[str, Any], reason: str) -> None:
    dig = ClusterDig(cluster(), settings(**options))
    assert dig(question).startswith("NXDOMAIN")
    assert explained(dig, settings(**options), question) == reason


@pytest.mark.parametrize(
    ("question", "meant"),
    [
        ("wbe.shop.svc.cluster.local. A", "web"),
        ("web.shpo.svc.cluster.local. A", "shop"),
        ("shpo.svc.cluster.local. A", "shop"),
        ("near.db.shop.svc.cluster.local. A", "_near"),
        ("_naer.db.shop.svc.cluster.local. A", "_near"),
        ("all.db.shop.svc.cluster.local. A", "_all"),
        ("db-0.db.shop.svc.cluster.local. A", ""),
        ("near.shop.cluster.local. A", ""),
        ("nothing-like-it.shop.svc.cluster.local. A", ""),
        ("web.nothing-like-it.svc.cluster.local. A", ""),
    ],
)
def test_the_name_that_may_be_meant_is_offered(question: str, meant: str) -> None:
    dig = ClusterDig(cluster(), settings())
    assert dig(question).startswith("NXDOMAIN")
    offered = name_offer(KubernetesZone(settings(), None, dig.state, None), query_of(question))
    assert offered == (f", did you mean {meant!r}?" if meant else "")


def test_of_an_origin_of_several_clusters_the_serviceimport_is_named() -> None:
    several = settings("cluster.local.", "clusterset.local.", multicluster=["clusterset.local."])
    objects: Sequence[ClusterObject] = [
        namespace("shop"),
        service("db", "shop", imported=True),
        endpoint_slice("db", endpoint("10.1.0.2"), namespace="shop", imported=True, cluster_id="east"),
    ]
    dig = ClusterDig(objects, several)
    for question, reason in (
        ("web.shop.svc.clusterset.local. A", "no ServiceImport 'web' in namespace 'shop'"),
        (
            "db-7.east.db.shop.svc.clusterset.local. A",
            "ServiceImport 'db' in namespace 'shop' has no ready endpoint of cluster 'east' named 'db-7'",
        ),
    ):
        assert dig(question).startswith("NXDOMAIN")
        assert explained(dig, several, question) == reason


def reason_of(question: str, options: dict[str, Any]) -> str:
    """The reason for an NXDOMAIN of `cluster`."""
    dig = ClusterDig(cluster(), settings(**options))
    assert dig(question).startswith("NXDOMAIN")
    return explained(dig, settings(**options), question)


def test_the_reason_for_an_endpoint_address_names_noendpoints() -> None:
    expected = "no Service and no ready endpoint has the address 10.1.0.2 (`noendpoints` is set)"
    assert reason_of("2.0.1.10.in-addr.arpa. PTR", NOENDPOINTS) == expected


def test_the_reason_for_an_imported_endpoint_without_its_cluster_says_where_the_cluster_belongs() -> None:
    several = settings("cluster.local.", "clusterset.local.", multicluster=["clusterset.local."])
    objects: Sequence[ClusterObject] = [
        namespace("shop"),
        service("db", "shop", imported=True),
        endpoint_slice("db", endpoint("10.1.0.2"), namespace="shop", imported=True, cluster_id="east"),
    ]
    dig = ClusterDig(objects, several)
    question = "db-0.db.shop.svc.clusterset.local. A"
    assert dig(question).startswith("NXDOMAIN")
    assert explained(dig, several, question) == (
        "ServiceImport 'db' in namespace 'shop' is imported: names of its endpoints have the cluster's id before the "
        "Service, as in 'db-0.CLUSTER.db'"
    )
