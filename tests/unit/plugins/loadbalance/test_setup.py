"""`loadbalance`, its policy and its options."""

from ipaddress import ip_network
from pathlib import Path

import pytest

from tests.support.corefile_settings import block_problem, only_block
from topodns.plugins.loadbalance.settings import Loadbalance, LoadbalancePolicy


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("loadbalance", Loadbalance()),
        ("loadbalance round_robin", Loadbalance(LoadbalancePolicy.ROUND_ROBIN)),
        (
            "loadbalance {\n prefer 10.9.0.0/16 fd00::/8\n prefer 10.8.0.1\n}",
            Loadbalance(prefer=(ip_network("10.9.0.0/16"), ip_network("fd00::/8"), ip_network("10.8.0.1"))),
        ),
    ],
)
def test_loadbalance(lines: str, expected: Loadbalance) -> None:
    assert only_block(lines).settings.get("loadbalance") == expected


def test_loadbalance_by_weights(tmp_path: Path) -> None:
    (tmp_path / "weights").write_text("")
    path = str(tmp_path / "weights")
    found = only_block("loadbalance weighted weights {\n reload 0s\n prefer 10.0.0.0/8\n}", str(tmp_path)).settings.get(
        "loadbalance"
    )
    assert found == Loadbalance(LoadbalancePolicy.WEIGHTED, path, 0.0, (ip_network("10.0.0.0/8"),))
    assert only_block("loadbalance weighted weights", str(tmp_path)).settings.get("loadbalance") == Loadbalance(
        LoadbalancePolicy.WEIGHTED, path, 30.0
    )


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("loadbalance random", "2: 'loadbalance' has 'random', expected round_robin or weighted"),
        (
            "loadbalance round_robin x",
            "2: 'loadbalance' has the arguments 'round_robin x', expected round_robin, or weighted FILE",
        ),
        ("loadbalance weighted", "2: 'loadbalance' has the arguments 'weighted', expected weighted and one file"),
        ("loadbalance weighted /nowhere", "2: cannot read '/nowhere': No such file or directory"),
        ("loadbalance {\n reload 5s\n}", "3: unknown option 'reload' of 'loadbalance', expected prefer"),
        ("loadbalance {\n prefer ten\n}", "3: 'prefer' has 'ten', expected an address or ADDRESS/LENGTH"),
    ],
)
def test_a_wrong_line_is_refused(lines: str, expected: str) -> None:
    assert block_problem(lines) == f"Corefile:{expected}"
