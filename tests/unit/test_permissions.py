"""The permissions in config/kubernetes: to list and watch the objects that answers are made of, and nothing else.

And to write Events, where an operator wants them.
"""

from pathlib import Path
from typing import Any

import pytest
import yaml

from topodns.kube.events import LEASE_NAME
from topodns.kube.lease import LEASE_NAMESPACE

FOLDER = Path(__file__).parents[2] / "config/kubernetes"
NEEDED = {
    "rbac.yaml": {"/services", "/namespaces", "/nodes", "/pods", "discovery.k8s.io/endpointslices"},
    "rbac-locators.yaml": {"topodns.io/nodelocators", "topodns.io/podlocators"},
    "rbac-multicluster.yaml": {"multicluster.x-k8s.io/serviceimports", "about.k8s.io/clusterproperties"},
}
EVENTS = "rbac-events.yaml"


def objects(file: str) -> dict[str, dict[str, Any]]:
    """By kind; there is at most one of each."""
    found = list(yaml.safe_load_all((FOLDER / file).read_text(encoding="utf-8")))
    by_kind = {each["kind"]: each for each in found}
    assert len(by_kind) == len(found)
    return by_kind


def test_every_file_is_tried_here() -> None:
    assert {path.name for path in FOLDER.glob("*.yaml")} == {*NEEDED, EVENTS}


@pytest.mark.parametrize("file", NEEDED)
def test_a_role_lists_and_watches_exactly_the_needed_kinds(file: str) -> None:
    rules = objects(file)["ClusterRole"]["rules"]
    allowed = {
        f"{group}/{resource}": rule["verbs"]
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    assert allowed == {resource: ["list", "watch"] for resource in NEEDED[file]}
    assert all(rule.keys() == {"apiGroups", "resources", "verbs"} for rule in rules)


def test_events_may_be_made_anywhere_and_one_lease_of_our_own_namespace_be_held() -> None:
    found = objects(EVENTS)
    assert found["ClusterRole"]["rules"] == [{"apiGroups": [""], "resources": ["events"], "verbs": ["create"]}]
    leases = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"]}
    assert found["Role"]["rules"] == [
        {**leases, "verbs": ["create"]},
        {**leases, "resourceNames": [LEASE_NAME], "verbs": ["get", "update"]},
    ]
    account = objects("rbac.yaml")["ServiceAccount"]["metadata"]
    assert found["Role"]["metadata"]["namespace"] == account["namespace"] == LEASE_NAMESPACE


@pytest.mark.parametrize(("file", "kind"), [*((file, "ClusterRole") for file in (*NEEDED, EVENTS)), (EVENTS, "Role")])
def test_a_role_is_bound_to_the_account(file: str, kind: str) -> None:
    account = objects("rbac.yaml")["ServiceAccount"]["metadata"]
    role, binding = objects(file)[kind], objects(file)[f"{kind}Binding"]
    assert binding["roleRef"] == {
        "apiGroup": "rbac.authorization.k8s.io",
        "kind": kind,
        "name": role["metadata"]["name"],
    }
    assert binding["metadata"].get("namespace") == role["metadata"].get("namespace")
    assert binding["subjects"] == [{"kind": "ServiceAccount", **account}]
