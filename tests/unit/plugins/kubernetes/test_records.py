"""Records of endpoints: their number and their weight."""

from collections.abc import Sequence
from struct import pack

import pytest
from hypothesis import given
from hypothesis import settings as tries
from hypothesis import strategies as st

from tests.support.cluster_dig import ClusterDig, settings
from tests.support.model_builders import endpoint, endpoint_slice, namespace, service
from topodns.cluster.endpoint_names import endpoint_label
from topodns.cluster.endpoints import group_of
from topodns.cluster.model import ClusterObject
from topodns.dns.name import label_wire
from topodns.plugins.kubernetes.label_cache import KeptLabels
from topodns.plugins.kubernetes.records import GroupOffer, endpoint_srv_records
from topodns.query.plugin import ANY_SIZE

NS = "testns"


def cluster() -> list[ClusterObject]:
    """The Services of CoreDNS's own tests, and a few more."""
    return [
        namespace(NS),
        service("svc1", NS, ["10.0.0.1"], ["http:80"]),
        service("svcempty", NS, ["10.0.0.9"], ["http:80"]),
        service("svc6", NS, ["1234:abcd::1"], ["http:80"]),
        service("dual", NS, ["10.0.0.3", "10::3"], ["http:80"]),
        service("ports", NS, ["10.0.0.4"], ["http:80", "https:443", "dns:53/UDP", "9000"]),
        service("portless", NS, ["10.0.0.5"]),
        service("hdls1", NS),
        service("hdlsprtls", NS),
        service("notready", NS),
        service("nobody", NS),
        service("external", NS, external_name="ext.interwebs.test"),
        service("external-to-service", NS, external_name="svc1.testns.svc.cluster.local"),
        service("external-to-nothing", NS, external_name="svc0.testns.svc.cluster.local"),
        service("external-to-itself", NS, external_name="external-to-itself.testns.svc.cluster.local"),
        service("external-a", NS, external_name="external-b.testns.svc.cluster.local"),
        service("external-b", NS, external_name="external-a.testns.svc.cluster.local"),
        service("external-ip", NS, external_name="1.2.3.4"),
        service("external-long", NS, external_name="x" * 64),
        endpoint_slice("svc1", endpoint("172.0.0.1", hostname="ep1a"), namespace=NS, ports=["http:80"]),
        endpoint_slice(
            "hdls1",
            endpoint("172.0.0.2"),
            endpoint("172.0.0.3"),
            endpoint("172.0.0.4", hostname="dup-name"),
            endpoint("172.0.0.5", hostname="dup-name"),
            endpoint("172.0.0.6", ready=False),
            namespace=NS,
            ports=["http:80"],
        ),
        endpoint_slice(
            "hdls1",
            endpoint("5678:abcd::1"),
            endpoint("5678:abcd::2"),
            name="hdls1-v6",
            namespace=NS,
            ports=["http:80"],
        ),
        endpoint_slice("hdlsprtls", endpoint("172.0.0.20"), namespace=NS),
        endpoint_slice("notready", endpoint("172.0.0.30", ready=False), namespace=NS, ports=["http:80"]),
    ]


@pytest.fixture(scope="module")
def dig() -> ClusterDig:
    return ClusterDig(cluster(), settings())


def test_a_weight_is_never_less_than_one() -> None:
    endpoints = [endpoint(f"172.1.{i // 200}.{i % 200}") for i in range(300)]
    dig = ClusterDig(
        [namespace(NS), service("big", NS), endpoint_slice("big", *endpoints, namespace=NS, ports=["80"])], settings()
    )
    assert " SRV 0 1 80 172-1-0-0.big." in dig("big.testns.svc.cluster.local. SRV")


def test_an_endpoint_of_two_slices_is_one_record() -> None:
    dig = ClusterDig(
        [
            namespace(NS),
            service("moving", NS),
            endpoint_slice("moving", endpoint("172.0.0.1"), namespace=NS, ports=["http:80"]),
            endpoint_slice("moving", endpoint("172.0.0.1"), name="moving-2", namespace=NS, ports=["http:80"]),
        ],
        settings(),
    )
    assert dig("moving.testns.svc.cluster.local. A") == "moving.testns.svc.cluster.local. 5 IN A 172.0.0.1"
    assert dig("moving.testns.svc.cluster.local. SRV").count(" SRV 0 100 80 ") == 1


SHORT, LONG = b"\x02db\0", b"".join(label_wire(letter * 60) for letter in "abcd") + b"\x05local\0"
SHAPES = st.lists(st.sampled_from(("", "", "w0", "w1", "a-long-one")), max_size=40)


@tries(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(SHAPES, st.sampled_from((80, 81, None)), st.sampled_from((SHORT, LONG))), max_size=3),
    st.sampled_from((512, ANY_SIZE)),
)
def test_what_has_no_record_still_counts_in_the_weight(
    shapes: Sequence[tuple[Sequence[str], int | None, bytes]], limit: int
) -> None:
    """As CoreDNS's plugin.SRV counts endpoints of ports without a number, for which it makes no record."""
    offers = [
        GroupOffer(group_of(endpoint(f"10.0.0.{at}", hostname=name) for at, name in enumerate(names)), port, suffix)
        for names, port, suffix in shapes
    ]
    weight = max(1, 100 // max(1, sum(len(names) for names, _, _ in shapes)))
    targets = [
        (port, label_wire(endpoint_label(each, False)) + suffix, each.address)
        for group, port, suffix in offers
        for each in group.endpoints
        if port is not None
    ]
    fitting = [target for target in targets if len(target[1]) <= 255]
    made = list(dict.fromkeys(pack("!HHH", 0, weight, port) + name for port, name, _ in fitting))
    answer, additional = endpoint_srv_records(offers, KeptLabels(pod_names=False), 5, limit)
    found = [rdata for rrset in answer for rdata in rrset.rdatas]
    assert all(rrset.rdatas for rrset in answer)
    if sum(12 + len(rdata) for rdata in made) <= limit:
        assert found == made
        assert {(rrset.owner, rdata) for rrset in additional for rdata in rrset.rdatas} == {
            each[1:] for each in fitting
        }
    else:
        assert found == made[: len(found)]
        assert sum(12 + len(rdata) for rdata in found) > limit or found == made
