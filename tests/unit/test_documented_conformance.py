"""docs/develop/conformance.md has the specs that tests/conformance runs, and the pinned version of Kubernetes."""

import re

import pytest

from tests.conformance.specs import GROUPS, LEFT_OUT
from tests.kubelab.programs import BUILDS, KUBERNETES, KUBERNETES_TESTS
from tests.support.documents import DOCUMENTS

DOCUMENT = DOCUMENTS["docs/develop/conformance.md"]
CONFORMANCE = "[Conformance]"


@pytest.mark.parametrize("group", GROUPS)
def test_a_group_has_a_row_with_the_numbers_of_its_specs(group: str) -> None:
    names = GROUPS[group]
    required = sum(CONFORMANCE in name for name in names)
    (row,) = re.findall(rf"^\| {re.escape(group)} \|.*$", DOCUMENT, re.MULTILINE)
    assert row.endswith(f"| {len(names)} | {required} | {len(names)} | {len(names)} |")


@pytest.mark.parametrize("part", LEFT_OUT)
def test_specs_that_are_left_out_have_a_row_with_the_reason(part: str) -> None:
    assert f"| `{part}` | {LEFT_OUT[part]} |" in DOCUMENT


def test_no_spec_is_in_two_groups() -> None:
    names = [name for names in GROUPS.values() for name in names]
    assert len(set(names)) == len(names)
    required = sum(CONFORMANCE in name for name in names)
    assert f"All {len(names)} specs, of which {required} are" in " ".join(DOCUMENT.split())


def test_the_tests_are_of_the_version_of_the_lab() -> None:
    assert KUBERNETES_TESTS.version == KUBERNETES.version
    assert f"Kubernetes {KUBERNETES.version}" in DOCUMENT
    pinned = [
        re.findall(r"k8s\.io/\S+ => (\S+ v\S+)", (build.source / "go.mod").read_text())
        for build in (KUBERNETES, KUBERNETES_TESTS)
    ]
    assert pinned[0] == pinned[1]


def test_a_lab_does_not_need_them() -> None:
    assert KUBERNETES_TESTS not in BUILDS
