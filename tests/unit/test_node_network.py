"""What is around a node cache's server, with the host's network played."""

import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.support.node_template import ENVIRONMENT, node_flags
from topodns.config.node_cache.corefile import NodeCorefile
from topodns.counted import Counted
from topodns.edge.host_network.keeper import HostNetworkCounts
from topodns.edge.host_network.plan import HostNetwork
from topodns.edge.metrics import Reading
from topodns.node_cache import NodeNetwork
from topodns.settings.node_cache import Firewall

MANUAL = (Path(__file__).parents[2] / "docs" / "node-cache.md").read_text(encoding="utf-8")
METRIC_ROW = re.compile(r"^\| `((?:coredns|topodns)_nodecache_\w+)` \| (\w+) \| ([^|]*)\|", re.MULTILINE)


def network(directory: Path, monkeypatch: pytest.MonkeyPatch, keeper: SimpleNamespace, *arguments: str) -> NodeNetwork:
    monkeypatch.setattr("topodns.node_cache.HostNetworkKeeper", lambda *_: keeper)
    flags = node_flags(directory, *arguments)
    made = NodeNetwork(flags, NodeCorefile(flags, ENVIRONMENT))
    made.keep(HostNetwork(flags.local_ips, 53, 8080, "nodelocaldns", True, Firewall.NONE))
    return made


def test_every_metric_of_a_node_is_in_the_manual_with_its_labels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keeper = SimpleNamespace(counts=HostNetworkCounts(), switched_on=lambda: False)
    published = {}
    for reading in network(tmp_path, monkeypatch, keeper).readings(Counted()):
        assert isinstance(reading, Reading)
        name = f"{reading.name}_total" if reading.kind == "counter" else reading.name
        published[name] = (reading.kind, list(reading.labels))
    assert {name: (kind, labels.split()) for name, kind, labels in METRIC_ROW.findall(MANUAL)} == published


@pytest.mark.parametrize(
    ("arguments", "link", "rules", "on", "waits_for"),
    [
        ([], False, False, False, ["the link", "the rules", "the answers to its own questions"]),
        ([], True, False, False, ["the rules", "the answers to its own questions"]),
        ([], True, True, False, ["the answers to its own questions"]),
        ([], True, True, True, []),
        ([], False, True, True, ["the link"]),
        (["-setupinterface=false"], False, True, True, []),
    ],
)
def test_it_is_not_ready_before_link_and_rules_stand_and_it_answers_itself(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    link: bool,
    rules: bool,
    on: bool,
    waits_for: list[str],
) -> None:
    keeper = SimpleNamespace(counts=HostNetworkCounts(link, rules), switched_on=lambda: on)
    waiting = network(tmp_path, monkeypatch, keeper, *arguments).waits_for()
    assert list(waiting) == [f"node-cache: waiting for {what}" for what in waits_for]
