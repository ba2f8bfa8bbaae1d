"""Which annotations look like one of topodns, and which one is meant."""

import pytest

from topodns.cluster.annotations import (
    MAX_BAD,
    OPENYURT,
    READ,
    SUPEREDGE,
    TOPOLOGY_KEYS,
    TTL,
    BadAnnotation,
    bad_on_pod,
    bad_on_service,
    meant_by,
)

MEANT = {
    "topodns.io/topologykeys": TOPOLOGY_KEYS,
    "topodns.io/topology-key": TOPOLOGY_KEYS,
    "topodns.io/topologyKeys": TOPOLOGY_KEYS,
    "topodns.io/Topology-Keys": TOPOLOGY_KEYS,
    "Topodns.io/topology-keys": TOPOLOGY_KEYS,
    "topodns.io/toplogy": TOPOLOGY_KEYS,
    "topodns.io/keys": TOPOLOGY_KEYS,
    "topodns.com/topology-keys": TOPOLOGY_KEYS,
    "topodns/topology-keys": TOPOLOGY_KEYS,
    "topdns.io/topology-keys": TOPOLOGY_KEYS,
    "topology-keys": TOPOLOGY_KEYS,
    "topologykeys": TOPOLOGY_KEYS,
    "topolgy-keys": TOPOLOGY_KEYS,
    "toplogy-keys": TOPOLOGY_KEYS,
    "topology-kyes": TOPOLOGY_KEYS,
    "topologys-keys": TOPOLOGY_KEYS,
    "service.kubernetes.io/topology-keys": TOPOLOGY_KEYS,
    "service.kubernetes.io/topologyKeys": TOPOLOGY_KEYS,
    "openyurt.io/topology-keys": OPENYURT,
    "openyurt.io/topologykeys": OPENYURT,
    "topodns.io/tll": TTL,
    "topodns.io/TTL": TTL,
    "topodns.io/ttl-seconds": TTL,
    "topodns.com/ttl": TTL,
    "topodns.io/whatever": "",
    "topodns.io/": "",
}
NOT_OURS = (
    "",
    "ttl",
    "external-dns.alpha.kubernetes.io/ttl",
    "service.kubernetes.io/topology-mode",
    "service.kubernetes.io/topology-aware-hints",
    "topology.kubernetes.io/zone",
    "topodns.example.com/owner",
    "kubectl.kubernetes.io/last-applied-configuration",
    "example.com/topology",
    "example.com/keys",
    "a" * 400 + "/topology-keys",
)


@pytest.mark.parametrize(("name", "meant"), MEANT.items())
def test_a_name_like_one_of_ours_is_known_with_the_one_that_is_meant(name: str, meant: str) -> None:
    assert meant_by(name) == meant
    assert bad_on_service({name: "zone"}) == (BadAnnotation(name, meant),)


@pytest.mark.parametrize("name", NOT_OURS)
def test_any_other_name_is_no_business_of_topodns(name: str) -> None:
    assert meant_by(name) is None
    assert bad_on_service({name: "zone"}) == ()
    assert bad_on_pod({name: "zone"}) == ()


@pytest.mark.parametrize("name", READ)
def test_what_is_read_is_no_mistake_on_a_service(name: str) -> None:
    assert meant_by(name) == name
    assert bad_on_service({name: "zone"}) == ()


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (30, "30"),
        (True, "true"),
        (None, "null"),
        (["zone", "*"], '["zone", "*"]'),
        ({"a": "b" * 90}, '{"a": "' + "b" * 33),
    ],
)
def test_a_value_that_is_no_text_is_a_mistake(value: object, shown: str) -> None:
    assert bad_on_service({"example.com/other": value, TTL: value}) == (BadAnnotation(TTL, TTL, shown),)


@pytest.mark.parametrize("name", [TOPOLOGY_KEYS, TTL, "topodns.io/topologykeys", "topology-keys"])
def test_what_only_a_service_can_have_is_a_mistake_on_a_pod(name: str) -> None:
    assert [bad.name for bad in bad_on_pod({"example.com/other": "", name: "zone"})] == [name]


@pytest.mark.parametrize("name", [OPENYURT, SUPEREDGE, "topodns.io/whatever"])
def test_what_others_read_is_no_mistake_on_a_pod(name: str) -> None:
    assert bad_on_pod({name: "zone"}) == ()


def test_pods_of_one_workload_share_the_record_of_their_annotations() -> None:
    assert bad_on_pod({TOPOLOGY_KEYS: "a"}) is bad_on_pod({TOPOLOGY_KEYS: "b"})


def test_of_many_mistakes_the_first_few_are_kept() -> None:
    many = {f"topodns.io/key-{at}": "" for at in range(1000)}
    assert [bad.name for bad in bad_on_service(many)] == list(many)[:MAX_BAD]
    assert len(bad_on_pod(many)) == MAX_BAD
