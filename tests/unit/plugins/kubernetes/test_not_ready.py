"""SERVFAIL in place of NXDOMAIN while the watches are incomplete or denied."""

import pytest

from tests.support.cluster_dig import ClusterDig, settings
from tests.support.model_builders import endpoint, endpoint_slice, namespace, service
from topodns.cluster.model import ClusterObject, Replaced
from topodns.dns.message import EdeCode, Flag
from topodns.dns.rrtype import Rcode

NS = "testns"


def cluster() -> list[ClusterObject]:
    return [
        namespace(NS),
        service("svc1", NS, ["10.0.0.1"], ["http:80"]),
        service("hdls1", NS),
        endpoint_slice("hdls1", endpoint("172.0.0.2"), namespace=NS, ports=["http:80"]),
    ]


@pytest.mark.parametrize("fallthrough", [[], ["."]])
def test_while_watches_are_incomplete_a_name_that_seems_missing_is_servfail(fallthrough: list[str]) -> None:
    dig = ClusterDig(cluster(), settings(fallthrough=fallthrough), synced=False)
    for name in ("svc0.testns.svc", "svc1.nons.svc", "foo", "9.9.9.9.in-addr.arpa"):
        question = f"{name} PTR" if name.endswith("arpa") else f"{name}.cluster.local. A"
        resolution = dig.resolve(question)
        assert resolution is not None
        assert resolution.response.rcode == Rcode.SERVFAIL
        assert resolution.response.ede is not None
        assert resolution.response.ede.code == EdeCode.NOT_READY
        assert resolution.response.authority != ()
        assert resolution.response.flags == Flag.AA


def test_while_watches_are_incomplete_known_names_are_served() -> None:
    dig = ClusterDig(cluster(), settings(), synced=False)
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
