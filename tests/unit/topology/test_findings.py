"""The findings about key lists of Services."""

import pytest

from tests.support.model_builders import service, stateful_set
from topodns.cluster.model import KeySource, Service, StatefulSet, Upserted
from topodns.cluster.state import ClusterState
from topodns.topology.findings import policy_findings
from topodns.topology.keys import key_reader

SOURCES = (KeySource.ANNOTATION, KeySource.FIELD, KeySource.OPENYURT)
GOVERNING = (
    "Service default/db: topology keys on the governing Service of a StatefulSet hide its members from each other when "
    "they look up the Service's name; give clients a headless Service of their own"
)
MISPLACED = "Service default/web: topology keys have no effect here: the Service is not headless"


def findings(*objects: Service | StatefulSet, ignored: bool = True) -> list[tuple[str, str]]:
    """(kind, line) of each finding, sorted."""
    state = ClusterState(frozenset(), key_reader(SOURCES))
    for each in objects:
        state.apply(Upserted(each), 0)
    return sorted((finding.kind, str(finding)) for finding in policy_findings(state, ignored) if finding is not None)


@pytest.mark.parametrize(
    "objects",
    [
        pytest.param((), id="an empty cluster"),
        pytest.param((service("db"), service("web", cluster_ips=["10.96.0.1"])), id="no wishes"),
        pytest.param((service("db", annotation="kubernetes.io/hostname,*"),), id="a valid wish"),
        pytest.param((service("db"), stateful_set("db", "db")), id="a governing Service without a wish"),
        pytest.param((service("db", annotation="none"), stateful_set("db", "db")), id="one that wishes for nothing"),
        pytest.param(
            (service("db", annotation="kubernetes.io/hostname"), stateful_set("db", "db", "prod")),
            id="a namesake that governs elsewhere",
        ),
        pytest.param(
            (service("db", annotation="kubernetes.io/hostname"), stateful_set("db", "db-peers")),
            id="a Service beside the governing one",
        ),
        pytest.param(
            (service("web", cluster_ips=["10.96.0.1"], annotation="none"),), id="off where it is not headless"
        ),
        pytest.param(
            (service("web", cluster_ips=["10.96.0.1"], field=("*",)),), id="kube-proxy's field where it works"
        ),
    ],
)
def test_there_is_nothing_to_say_about(objects: tuple[Service | StatefulSet, ...]) -> None:
    assert findings(*objects) == []


@pytest.mark.parametrize(
    ("ignored", "effect"),
    [
        (True, "the Service stays unfiltered"),
        (False, "no client gets an endpoint (on_invalid deny)"),
    ],
)
def test_an_invalid_wish_is_reported_with_its_rule_and_its_effect(ignored: bool, effect: str) -> None:
    [(kind, line)] = findings(service("db", annotation="not a label key"), ignored=ignored)
    assert kind == "invalid"
    assert line.startswith("Service default/db: topology annotation: ")
    assert "not a label key" in line
    assert line.endswith(f"; {effect}")


def test_the_source_of_an_invalid_wish_is_named() -> None:
    [(_, line)] = findings(service("db", field=("*", "kubernetes.io/hostname")))
    assert line.startswith("Service default/db: topology field: ")


def test_a_value_that_was_mended_is_reported() -> None:
    [(kind, line)] = findings(service("db", annotation="kubernetes.io/hostname", ttl="soon"))
    assert kind == "mended"
    assert line.startswith("Service default/db: topology annotation: ")
    assert "soon" in line


def test_a_wish_on_a_governing_service_is_reported() -> None:
    keys = "kubernetes.io/hostname"
    assert findings(service("db", annotation=keys), stateful_set("db", "db")) == [("governing", GOVERNING)]


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


def test_all_findings_are_reported_at_once() -> None:
    found = findings(
        service("a", annotation="not a label key"),
        service("db", annotation="kubernetes.io/hostname", ttl="soon"),
        service("web", cluster_ips=["10.96.0.1"], annotation="kubernetes.io/hostname"),
        stateful_set("db", "db"),
    )
    assert [kind for kind, _ in found] == ["governing", "invalid", "mended", "misplaced"]
