"""What config/kubernetes allows topodns to do: to list and watch what its answers are made of, and nothing else."""

from pathlib import Path
from typing import Any

import pytest
import yaml

FOLDER = Path(__file__).parents[2] / "config/kubernetes"
NEEDED = {
    "rbac.yaml": {"/services", "/namespaces", "/nodes", "discovery.k8s.io/endpointslices"},
    "rbac-pods.yaml": {"/pods"},
}


def objects(file: str) -> dict[str, dict[str, Any]]:
    """By kind; there is at most one of each."""
    found = list(yaml.safe_load_all((FOLDER / file).read_text(encoding="utf-8")))
    by_kind = {each["kind"]: each for each in found}
    assert len(by_kind) == len(found)
    return by_kind


def test_every_file_is_tried_here() -> None:
    assert {path.name for path in FOLDER.iterdir()} == NEEDED.keys()


@pytest.mark.parametrize("file", NEEDED)
def test_a_role_lists_and_watches_exactly_what_is_needed(file: str) -> None:
    rules = objects(file)["ClusterRole"]["rules"]
    allowed = {
        f"{group}/{resource}": rule["verbs"]
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    assert allowed == {resource: ["list", "watch"] for resource in NEEDED[file]}
    assert all(rule.keys() == {"apiGroups", "resources", "verbs"} for rule in rules)


@pytest.mark.parametrize("file", NEEDED)
def test_a_role_is_bound_to_the_account(file: str) -> None:
    account = objects("rbac.yaml")["ServiceAccount"]["metadata"]
    binding = objects(file)["ClusterRoleBinding"]
    assert binding["roleRef"]["name"] == objects(file)["ClusterRole"]["metadata"]["name"]
    assert binding["subjects"] == [{"kind": "ServiceAccount", **account}]
