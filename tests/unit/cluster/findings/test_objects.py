"""Services whose other objects are missing, and what several Nodes have."""

import pytest

from tests.support.model_builders import endpoint, endpoint_slice, namespace, node, service
from tests.unit.cluster.findings.scene import KINDS, state_of
from topodns.cluster.findings.finding import Finding, Severity
from topodns.cluster.findings.objects import object_findings
from topodns.cluster.model import ClusterObject, EndpointSlice
from topodns.cluster.slices import MOST_COUNTED
from topodns.cluster.state import ClusterState

DB = service("db", annotation="kubernetes.io/hostname,*")
SLICE = endpoint_slice("db", endpoint("10.0.0.1", "worker-1"))
HERE = namespace("default")
NODES = (node("worker-1"), node("worker-2"))


def found(state: ClusterState) -> list[Finding]:
    return [each for each in object_findings(state) if each is not None]


def lines(*objects: ClusterObject) -> list[str]:
    return list(map(str, found(state_of(*objects))))


def test_there_is_nothing_to_say_about_objects_that_fit_together() -> None:
    assert lines(HERE, *NODES, DB, SLICE) == []


def test_an_endpoint_on_a_node_that_does_not_exist_is_named_with_the_node_that_may_be_meant() -> None:
    wrong = endpoint_slice("db", endpoint("10.0.0.1", "wroker-1"), endpoint("10.0.0.2", "wroker-1"))
    line = "Service default/db: there is no Node wroker-1 (worker-1?), which is the nodeName of ready endpoints"
    assert lines(HERE, *NODES, DB, wrong) == [line]
    assert lines(HERE, *NODES, service("db"), wrong) == [], "without keys the Node of an endpoint has no effect"
    assert lines(HERE, DB, wrong) == [], "without any Node an audit says that none is known"


def test_an_endpoint_that_is_not_ready_is_no_mistake() -> None:
    gone = endpoint_slice("db", endpoint("10.0.0.1", "gone", ready=False), endpoint("10.0.0.2", "worker-1"))
    assert lines(HERE, *NODES, DB, gone) == []


def test_endpoints_without_a_node_are_named() -> None:
    some = endpoint_slice("db", endpoint("10.0.0.1", "worker-1"), endpoint("10.0.0.2"), endpoint("10.0.0.3"))
    assert lines(HERE, *NODES, DB, some) == [
        "Service default/db: ready endpoints have no nodeName: keys match them at most by their zone"
    ]


def test_a_service_without_any_slice_is_named_with_the_label_that_one_would_have() -> None:
    assert lines(HERE, *NODES, DB) == [
        "Service default/db: it has no EndpointSlice, which would have the label kubernetes.io/service-name=db"
    ]
    assert lines(HERE, *NODES, DB, endpoint_slice("db")) == [], "one without endpoints is there"


DUAL = ("IPv4", "IPv6")
OTHER_FAMILY = (
    "Service default/db: it has no EndpointSlice of addressType {}, though spec.ipFamilies has it; one would have the "
    "label kubernetes.io/service-name=db"
)
IN_IPV6 = endpoint_slice("db", endpoint("fd00::1", "worker-1"), name="db-v6")


@pytest.mark.parametrize(
    ("families", "slices", "missing"),
    [
        (DUAL, [SLICE, IN_IPV6], ""),
        (DUAL, [SLICE], "IPv6"),
        (DUAL, [IN_IPV6], "IPv4"),
        (("IPv6",), [SLICE], "IPv6"),
        (("IPv4",), [SLICE], ""),
        ((), [SLICE], ""),  # the Service says nothing of families
        (DUAL, [SLICE, endpoint_slice("db", name="db-v6", address_type="IPv6")], ""),  # one without endpoints is there
        (DUAL, [endpoint_slice("db", address_type="FQDN")], ""),  # host names have addresses of any family
    ],
)
def test_a_service_without_a_slice_of_one_of_its_families_is_named(
    families: tuple[str, ...], slices: list[EndpointSlice], missing: str
) -> None:
    db = service("db", annotation="kubernetes.io/hostname,*", ip_families=families)
    assert lines(HERE, *NODES, db, *slices) == ([OTHER_FAMILY.format(missing)] if missing else [])


def test_a_service_without_any_slice_is_named_once_for_all_families() -> None:
    (one,) = found(state_of(HERE, *NODES, service("db", annotation="*", ip_families=DUAL)))
    assert (one.kind, one.family, one.may_pass) == ("no_slice", 0, True)


def test_the_finding_about_the_slices_of_a_family_names_the_family_and_may_pass() -> None:
    """Of a rollout the slices of one family may arrive a moment later than the Service."""
    (one,) = found(state_of(HERE, *NODES, service("db", annotation="*", ip_families=DUAL), SLICE))
    assert (one.kind, one.family, one.severity, one.may_pass) == ("no_slice", 6, Severity.WARNING, True)


def test_slices_beyond_those_that_count_may_be_of_the_other_family() -> None:
    many = [endpoint_slice("db", name=f"db-{at:04}") for at in range(MOST_COUNTED)]
    db = service("db", annotation="*", ip_families=DUAL)
    assert lines(HERE, *NODES, db, *many, endpoint_slice("db", name="last", address_type="IPv6")) == []
    assert lines(HERE, *NODES, db, *many[1:]) == [OTHER_FAMILY.format("IPv6")]


def test_a_service_in_a_namespace_that_does_not_exist_is_named() -> None:
    (one,) = found(state_of(*NODES, DB, SLICE))
    assert one.severity is Severity.WARNING
    assert str(one) == "Service default/db: no namespace 'default': its names are NXDOMAIN"


def test_an_address_and_a_pod_cidr_that_several_nodes_have_are_named() -> None:
    def worker(at: int, ready: bool = True) -> ClusterObject:
        return node(f"worker-{at}", addresses=["10.9.9.9", f"10.9.9.{at}"], pod_cidrs=["10.244.1.0/24"], ready=ready)

    address = "all Services: several Nodes have the address 10.9.9.9, so it is of none: worker-1, worker-2"
    cidr = "all Services: several Nodes have the podCIDR 10.244.1.0/24, so it is of none: worker-1, worker-2"
    assert lines(HERE, worker(1), worker(2)) == [address, cidr]
    assert lines(HERE, worker(1), worker(2, ready=False)) == [cidr], "the address is of the Node that is ready"


def test_each_family_has_its_pod_cidrs() -> None:
    nodes = [node(f"worker-{at}", pod_cidrs=[f"10.244.{at}.0/24", "fd00:1::/64"]) for at in range(7)]
    assert lines(HERE, *nodes) == [
        "all Services: several Nodes have the podCIDR fd00:1::/64, so it is of none: "
        "worker-0, worker-1, worker-2, worker-3, worker-4 and 2 more"
    ]


def test_nothing_is_said_before_every_kind_is_listed() -> None:
    for missing in KINDS:
        state = state_of(*NODES, DB, kinds=tuple(kind for kind in KINDS if kind != missing))
        assert found(state) == []


def test_nothing_is_said_of_kinds_that_cannot_be_read() -> None:
    state = state_of(DB, kinds=("Service",))
    for kind in ("Namespace", "Node", "EndpointSlice"):
        state.do_without(kind)
    assert found(state) == []
