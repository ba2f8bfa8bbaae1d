"""Kubernetes' own specs that rest on cluster DNS pass with topodns as the cluster DNS."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conformance.specs import GROUPS, LEFT_OUT, OF_CLUSTER_DNS
from tests.kubelab.lab import Lab
from tests.support.kube.kubernetes_tests import run_specs, spec_names

RUN = {name for names in GROUPS.values() for name in names}


def test_every_spec_about_dns_is_run_or_left_out_with_a_reason() -> None:
    """A new version of Kubernetes may have more of them."""
    specs = set(spec_names())
    of_dns = {name for name in specs if OF_CLUSTER_DNS.search(name)}
    assert {name for name in of_dns - RUN if not any(part in name for part in LEFT_OUT)} == set()
    assert RUN - specs == set()


@pytest.mark.parametrize("part", LEFT_OUT)
def test_a_reason_to_leave_specs_out_is_about_specs_that_exist_and_are_not_run(part: str) -> None:
    assert [name for name in spec_names() if part in name]
    assert [name for name in RUN if part in name] == []


@pytest.mark.parametrize("group", list(GROUPS))
def test_all_specs_of_a_group_pass(
    group: str, setup: str, lab: Lab, tmp_path: Path, say: Callable[[str], None]
) -> None:
    results = run_specs(lab, tmp_path, GROUPS[group])
    passed = [name for name in GROUPS[group] if name in results and results[name].state == "passed"]
    seconds = sum(result.seconds for result in results.values())
    say(f"{setup}: {group}: {len(passed)} of {len(GROUPS[group])} passed, {seconds:.0f} s of specs")
    not_passed = {name: results.get(name, "did not run") for name in GROUPS[group] if name not in passed}
    problems = [f"{name}: {result}" for name, result in not_passed.items()]
    assert not problems, "\n\n".join([*problems, f"the output is in {tmp_path}"])
