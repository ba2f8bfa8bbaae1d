"""A watched kind, and the rule that lets a server watch it."""

import pytest

from topodns.kube.informer.resources import Resource


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("nodes", 'apiGroups: [""], resources: ["nodes"], verbs: ["list", "watch"]'),
        (
            "endpointslices.discovery.k8s.io",
            'apiGroups: ["discovery.k8s.io"], resources: ["endpointslices"], verbs: ["list", "watch"]',
        ),
    ],
)
def test_the_rule_names_the_group_and_the_plural(name: str, rule: str) -> None:
    assert Resource("Node", name, ()).rule == rule
