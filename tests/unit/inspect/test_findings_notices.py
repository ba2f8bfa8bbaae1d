"""The findings about annotations and objects that the topology page has, by Service."""

from tests.support.model_builders import endpoint, endpoint_slice, namespace, node, service
from topodns.cluster.model import ClusterObject, KeySource, Kind, ObjectKey, Replaced, kind_of
from topodns.cluster.state import ClusterState
from topodns.inspect.findings import notice_steps
from topodns.time_slices import do_at_once
from topodns.topology.keys import key_reader

KINDS: tuple[Kind, ...] = ("Namespace", "Node", "Service", "EndpointSlice")


def test_annotations_and_objects_that_do_not_fit_are_listed_by_service() -> None:
    state = ClusterState(frozenset(KINDS), key_reader([KeySource.ANNOTATION]))
    objects: tuple[ClusterObject, ...] = (
        namespace("default"),
        *(node(f"worker-{at}", addresses=["10.9.9.9"]) for at in (1, 2)),
        service("db", annotation="kubernetes.io/hostname", openyurt="none", ttl="soon"),
        endpoint_slice("db", endpoint("10.0.0.1", "wroker-1")),
        service("web", cluster_ips=["10.96.0.1"], annotation="kubernetes.io/hostname"),
        service("new", annotation="kubernetes.io/hostname"),
        service("dual", annotation="kubernetes.io/hostname", ip_families=("IPv4", "IPv6")),
        endpoint_slice("dual", endpoint("10.0.0.2", "worker-1")),
    )
    for kind in KINDS:
        state.apply(Replaced(kind, tuple(each for each in objects if kind_of(each) == kind)), 0)
    assert do_at_once(notice_steps(state)) == {
        ObjectKey("default", "web"): ("topology keys have no effect here: the Service is not headless",),
        ObjectKey("default", "db"): (
            "there is no Node wroker-1 (worker-1?), which is the nodeName of ready endpoints",
        ),
        ObjectKey("default", "new"): (
            "it has no EndpointSlice, which would have the label kubernetes.io/service-name=new",
        ),
        ObjectKey("default", "dual"): (
            "it has no EndpointSlice of addressType IPv6, though spec.ipFamilies has it; one would have the label "
            "kubernetes.io/service-name=dual",
        ),
    }
