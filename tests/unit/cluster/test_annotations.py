"""Which annotations look like one of topodns, and which one is meant."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.annotation_cases import FOREIGN, MEANT
from topodns.cluster.annotations import (
    MAX_BAD,
    MIN_ENDPOINTS,
    NEAR_DOMAIN_KEYS,
    NEAR_DOMAIN_OTHERS,
    NEAR_DOMAIN_TTL,
    NEAR_KEYS,
    OPENYURT,
    OPENYURT_DOMAIN,
    OWN_DOMAIN,
    READ,
    SUPEREDGE,
    TOPOLOGY_KEYS,
    TTL,
    WORKLOADS,
    BadAnnotation,
    bad_elsewhere,
    bad_on_namespace,
    bad_on_service,
    meant_by,
)

NO_NAME = ("", "a" * 400 + "/topology-keys")  # an API server has no such names
ADMISSION = Path(__file__).parents[3] / "config/kubernetes/server/admission.yaml"


@pytest.mark.parametrize(("name", "meant"), MEANT.items())
def test_a_name_like_one_of_ours_is_known_with_the_one_that_is_meant(name: str, meant: str) -> None:
    assert meant_by(name) == meant
    assert bad_on_service({name: "zone"}) == (BadAnnotation(name, meant),)


@pytest.mark.parametrize("name", [*FOREIGN, *NO_NAME])
def test_any_other_name_is_no_business_of_topodns(name: str) -> None:
    assert meant_by(name) is None
    assert bad_on_service({name: "zone"}) == ()
    assert bad_elsewhere({name: "zone"}) == ()


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
        ({"a": "b" * 90}, '{"a": "' + "b" * 32 + "…"),
    ],
)
def test_a_value_that_is_no_text_is_a_mistake(value: object, shown: str) -> None:
    assert bad_on_service({"example.com/other": value, TTL: value}) == (BadAnnotation(TTL, TTL, shown),)


@pytest.mark.parametrize("name", [TOPOLOGY_KEYS, TTL, MIN_ENDPOINTS, "topodns.io/topologykeys", "topology-keys"])
def test_what_only_a_service_can_have_is_a_mistake_on_a_pod(name: str) -> None:
    assert [bad.name for bad in bad_elsewhere({"example.com/other": "", name: "zone"})] == [name]


@pytest.mark.parametrize("name", [OPENYURT, SUPEREDGE, "topodns.io/whatever"])
def test_what_others_read_is_no_mistake_on_a_pod(name: str) -> None:
    assert bad_elsewhere({name: "zone"}) == ()


@pytest.mark.parametrize(
    "name", [*READ[1:6], "topodns.io/topologykeys", "topodns.io/min-endpoint", "topodns.io/whatever"]
)
def test_a_namespace_can_have_keys_alone(name: str) -> None:
    annotations = {TOPOLOGY_KEYS: "zone", OPENYURT: "zone", "example.com/other": "", name: "2"}
    assert bad_on_namespace(annotations, {}) == (BadAnnotation(name, meant_by(name) or ""),)


@pytest.mark.parametrize("name", [*READ[:6], "topodns.io/topologykeys", "topology-keys"])
def test_a_label_in_the_place_of_an_annotation_is_a_mistake(name: str) -> None:
    labels = {"app": "web", SUPEREDGE: "a", "topology.kubernetes.io/zone": "a", name: "zone"}
    expected = (BadAnnotation(name, meant_by(name) or "", is_label=True),)
    assert bad_on_namespace({}, labels) == bad_on_service({}, labels) == expected


def test_pods_of_one_workload_share_the_record_of_their_annotations() -> None:
    assert bad_elsewhere({TOPOLOGY_KEYS: "a"}) is bad_elsewhere({TOPOLOGY_KEYS: "b"})


def test_of_many_mistakes_the_first_few_are_kept() -> None:
    many = {f"topodns.io/key-{at}": "" for at in range(1000)}
    assert [bad.name for bad in bad_on_service(many)] == list(many)[:MAX_BAD]
    assert len(bad_elsewhere(many)) == MAX_BAD


def admission_policies() -> Mapping[str, Any]:
    """The specifications of the policies, by name."""
    objects = yaml.safe_load_all(ADMISSION.read_text(encoding="utf-8"))
    return {each["metadata"]["name"]: each["spec"] for each in objects if each["kind"] == "ValidatingAdmissionPolicy"}


def test_the_admission_policies_look_at_service_imports_as_at_services() -> None:
    policies = admission_policies()
    assert policies.keys() == {"topodns-topology-keys", "topodns-annotations"}
    for policy in policies.values():
        rules = policy["matchConstraints"]["resourceRules"]
        looked_at = {(group, kind) for each in rules for group in each["apiGroups"] for kind in each["resources"]}
        assert looked_at >= {("", "services"), ("multicluster.x-k8s.io", "serviceimports")}
    of_keys, _ = policies["topodns-topology-keys"]["matchConditions"]
    assert "'serviceimports' ? object.?spec.?type.orValue('') == 'Headless'" in " ".join(of_keys["expression"].split())
    (kinds,) = (each for each in policies["topodns-annotations"]["variables"] if each["name"] == "service")
    assert kinds["expression"] == "request.resource.resource in ['services', 'serviceimports']"


def test_the_admission_policy_looks_at_all_kinds_whose_annotations_are_read_in_manifests() -> None:
    rules = admission_policies()["topodns-annotations"]["matchConstraints"]["resourceRules"]
    looked_at = {kind for each in rules for kind in each["resources"]}
    assert looked_at >= {f"{kind.lower()}s" for kind in (*WORKLOADS, "Namespace", "Node", "Pod", "Service")}


def test_the_admission_policy_has_the_same_rule() -> None:
    """tests/cluster/test_chart.py tries the table of cases on a real API server."""
    rule = {each["name"]: each["expression"] for each in admission_policies()["topodns-annotations"]["variables"]}
    keys, others = f"{NEAR_KEYS}|{NEAR_DOMAIN_KEYS}", "|".join(NEAR_DOMAIN_OTHERS.values())
    assert f"r'{keys}|{NEAR_DOMAIN_TTL}|{others}|{OWN_DOMAIN}'" in rule["bad"], "on a Service"
    assert f"r'{keys}|{NEAR_DOMAIN_TTL}|{others}'" in rule["bad"], "on a Pod"
    assert f"r'{keys}|{NEAR_DOMAIN_TTL}|{others}'" in rule["labels"]
    assert str(list(READ)) in rule["read"]
    assert [part.partition("'")[0] for part in rule["meant"].split("r'")[1:]] == [
        keys,
        OPENYURT_DOMAIN,
        NEAR_DOMAIN_TTL,
        *NEAR_DOMAIN_OTHERS.values(),
    ]
