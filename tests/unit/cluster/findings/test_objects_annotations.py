"""The findings about annotations of Services and Pods."""

from collections.abc import Sequence

import pytest

from tests.support.model_builders import endpoint, endpoint_slice, service
from tests.unit.cluster.findings.scene import SOURCES, findings, misannotated
from topodns.cluster.annotations import SUPEREDGE, TOPOLOGY_KEYS, TTL, BadAnnotation
from topodns.cluster.findings.finding import MAX_NAMED, Finding
from topodns.cluster.findings.objects import SERVICES, annotation_findings
from topodns.cluster.model import ClusterObject, KeySource, Service, Upserted
from topodns.cluster.state import ClusterState
from topodns.topology.keys import key_reader

MISPLACED = "Service default/web: topology keys have no effect here: the Service is not headless"


def test_a_wish_where_it_has_no_effect_is_reported() -> None:
    web = service("web", cluster_ips=["10.96.0.1"], annotation="kubernetes.io/hostname")
    assert findings(web) == [("misplaced", MISPLACED)]


def test_two_annotations_with_keys_are_reported_with_the_one_that_wins() -> None:
    both = service("db", annotation="none", openyurt="kubernetes.io/hostname")
    [(kind, line)] = findings(both)
    assert kind == "overridden"
    assert line == (
        "Service default/db: both topodns.io/topology-keys and openyurt.io/topologyKeys are set; "
        "`annotation` is first in `keys`, and wins"
    )


UNKNOWN = "Service default/db: annotation 'topodns.io/topologykeys' is unknown and has no effect, "


@pytest.mark.parametrize(
    ("bad", "line"),
    [
        (BadAnnotation("topodns.io/topologykeys", TOPOLOGY_KEYS), f"{UNKNOWN}did you mean 'topodns.io/topology-keys'?"),
        (
            BadAnnotation("topodns.io/topologykeys", ""),
            f"{UNKNOWN}expected 'topodns.io/topology-keys', 'topodns.io/ttl', 'topodns.io/min-endpoints', "
            "'topodns.io/max-load', 'topodns.io/max-endpoints' or 'topodns.io/apply-to'",
        ),
        (
            BadAnnotation(TTL, TTL, "30"),
            "Service default/db: annotation 'topodns.io/ttl': expected text, found 30: put it in quotes; "
            "it has no effect",
        ),
        (
            BadAnnotation(TOPOLOGY_KEYS, TOPOLOGY_KEYS, '["rack", "hall"]'),
            'Service default/db: annotation \'topodns.io/topology-keys\': expected text, found ["rack", "hall"]: '
            "write its items as one text, such as 'a,b'; it has no effect",
        ),
    ],
)
def test_an_annotation_that_has_no_effect_is_reported_with_the_one_that_is_meant(bad: BadAnnotation, line: str) -> None:
    assert findings(service("db", bad=(bad,))) == [("annotation", line)]


@pytest.mark.parametrize(
    ("one", "sources", "text"),
    [
        (service("db", ttl="30"), SOURCES, "annotation 'topodns.io/ttl' has no effect without topology keys"),
        (
            service("db", cluster_ips=["10.96.0.1"], max_endpoints="2"),
            SOURCES,
            "annotation 'topodns.io/max-endpoints' has no effect: the Service is not headless",
        ),
        (
            service("db", min_endpoints="2"),
            SOURCES,
            "annotation 'topodns.io/min-endpoints' has no effect without topology keys",
        ),
        (service("db", max_load="2"), SOURCES, "annotation 'topodns.io/max-load' has no effect without topology keys"),
        (
            service("db", apply_to="near"),
            SOURCES,
            "annotation 'topodns.io/apply-to' has no effect without topology keys",
        ),
        (service("db", max_load="2"), (KeySource.HINTS,), "annotation 'topodns.io/max-load' has no effect on hints"),
        (
            service("db", min_endpoints="2"),
            (KeySource.HINTS,),
            "annotation 'topodns.io/min-endpoints' has no effect on hints",
        ),
        (
            service("db", superedge='["zone"]'),
            SOURCES,
            f"annotation {SUPEREDGE!r} has no effect: `superedge` is not in `keys` of the Corefile",
        ),
        (
            service("db", annotation="zone"),
            (KeySource.FIELD,),
            f"annotation {TOPOLOGY_KEYS!r} has no effect: `annotation` is not in `keys` of the Corefile",
        ),
        (
            service("db", openyurt="zone"),
            SOURCES,
            "annotation 'openyurt.io/topologyKeys' has no effect: expected kubernetes.io/hostname, "
            "openyurt.io/nodepool or kubernetes.io/zone, found 'zone'",
        ),
    ],
)
def test_an_annotation_that_is_not_read_here_is_reported(one: Service, sources: Sequence[KeySource], text: str) -> None:
    assert findings(one, sources=sources) == [("annotation", f"Service default/db: {text}")]


def test_annotations_of_pods_are_reported_once_for_each_headless_service_of_theirs() -> None:
    pods = [misannotated(f"db-{at}", f"10.0.0.{at}") for at in range(1, 4)]
    slices = [endpoint_slice(name, *(endpoint(f"10.0.0.{at}", "n1") for at in range(1, 4))) for name in ("db", "web")]
    web = service("web", cluster_ips=["10.96.0.1"])
    effect = "its Pods have the annotation 'topodns.io/topology-keys', which has no effect on a Pod"
    line = f"{effect}: put 'topodns.io/topology-keys' on the Service"
    assert findings(service("db"), web, *slices, *pods) == [("annotation", f"Service default/db: {line}")]
    assert findings(web, *slices, *pods) == [("annotation", f"Service default/web: {line}")]


def test_a_pod_of_very_many_services_is_judged_in_steps() -> None:
    some = [f"s{at:03}" for at in range(4 * SERVICES)]
    slices = [endpoint_slice(name, endpoint("10.0.0.1", "n1")) for name in some]
    state = ClusterState(frozenset(), key_reader(SOURCES))
    objects: list[ClusterObject] = [*map(service, some), *slices, misannotated("db", "10.0.0.1")]
    for each in objects:
        state.apply(Upserted(each), 0)
    steps = list(annotation_findings(state))
    named = [found.service.name for found in steps if found is not None]
    assert named == some
    assert len(steps) - len(named) >= 4 + 4  # to look at the Services, and to write the findings


def test_the_first_pods_are_named_beside_the_text_which_stays_while_pods_come_and_go() -> None:
    state = ClusterState(frozenset(), key_reader(SOURCES))
    numbers = range(1, MAX_NAMED + 5)
    slices = endpoint_slice("db", *(endpoint(f"10.0.0.{at}", "n1") for at in numbers))
    pods = [misannotated(f"db-{at:02}", f"10.0.0.{at}") for at in reversed(numbers)]
    objects: list[ClusterObject] = [service("db"), slices, pods[-1]]

    def found_after(*some: ClusterObject) -> Finding:
        for each in some:
            state.apply(Upserted(each), 0)
        (found,) = (each for each in annotation_findings(state) if each is not None)
        return found

    one, many = found_after(*objects), found_after(*pods)
    assert one == many, "so the log has no new line"
    assert one.text_with_names == f"{one.text} (Pod db-01)"
    assert many.text_with_names == f"{one.text} (Pods db-01, db-02, db-03, db-04, db-05, ...)"
    assert many.names == tuple(f"db-{at:02}" for at in range(1, MAX_NAMED + 1))


def test_annotations_of_pods_without_a_service_are_reported_once_for_a_namespace() -> None:
    pods = [misannotated(f"db-{at}", f"10.0.0.{at}", "topology-keys") for at in range(1, 4)]
    elsewhere = service("db", "shop"), endpoint_slice("db", endpoint("10.0.0.1", "n1"), namespace="shop")
    [(kind, line)] = findings(*pods, *elsewhere)
    assert kind == "annotation_of_pods"
    assert line == (
        "all Services: Pods of namespace 'default' that no Service has as endpoints have the annotation "
        "'topology-keys', which has no effect on a Pod: put 'topodns.io/topology-keys' on a headless Service"
    )
