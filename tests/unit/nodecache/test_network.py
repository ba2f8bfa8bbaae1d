"""The surroundings of a node cache's server, with a fake of the host's network."""

import asyncio
import re
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.support.node_cache_template import ENVIRONMENT, node_flags
from topodns.hostnet.firewall import Firewall
from topodns.hostnet.reconciler import HostNetworkCounts
from topodns.hostnet.rules import HostNetwork
from topodns.metrics.registry import Reading
from topodns.nodecache.corefile import NodeCorefile
from topodns.nodecache.network import NodeNetwork
from topodns.nodecache.self_probe import Heard
from topodns.plugins.setup import Shared

MANUAL = (Path(__file__).parents[3] / "docs/operate/node-cache.md").read_text(encoding="utf-8")
METRIC_ROW = re.compile(r"^\| `((?:coredns|topodns)_nodecache_\w+)` \| (\w+) \| ([^|]*)\|", re.MULTILINE)


class Probe:
    """Hears the given words, at each address in turn."""

    def __init__(self, *heard: set[Heard]) -> None:
        self.heard = [frozenset(each) for each in heard]

    async def hear(self, addresses: Sequence[object], patience: float, tries: int) -> list[frozenset[Heard]]:
        return self.heard


class Keeper(SimpleNamespace):
    """A switch that is on for `left` more questions."""

    def __init__(self, successor: int | None = None) -> None:
        super().__init__(counts=HostNetworkCounts(), has_begun=True, left=0, turned_on=0, succeeded=None)
        self.instance_registry = SimpleNamespace(
            others=lambda: True, successor=lambda: successor, announce=lambda: None
        )

    def switched_on(self) -> bool:
        return bool(self.left > 0)

    def renew(self) -> None:
        self.turned_on += 1
        self.left = 1

    async def release(self, succeeded: bool) -> None:
        self.succeeded = succeeded


def network(directory: Path, monkeypatch: pytest.MonkeyPatch, keeper: SimpleNamespace, *arguments: str) -> NodeNetwork:
    monkeypatch.setattr("topodns.nodecache.network.HostNetworkKeeper", lambda *_: keeper)
    flags = node_flags(directory, *arguments)
    made = NodeNetwork(flags, NodeCorefile(flags, ENVIRONMENT))
    made.keep(HostNetwork(flags.local_ips, 53, 8080, "nodelocaldns", True, Firewall.NONE))
    return made


def test_every_metric_of_a_node_is_in_the_manual_with_its_labels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keeper = SimpleNamespace(counts=HostNetworkCounts(), switched_on=lambda: False)
    published = {}
    for reading in network(tmp_path, monkeypatch, keeper).readings(Shared()):
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
def test_readiness_needs_link_rules_and_an_answer_to_the_probe(
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


NOBODY, ANOTHER, US = Heard
ADDRESSES = ("-localip=169.254.20.10", "-localip=169.254.20.10,10.96.0.10")  # for as many answers
CASES = {
    "itself": ([{US}], 5),
    "itself at an address of its own, the cluster DNS at the other": ([{US}, {ANOTHER}], 5),
    "another instance beside it": ([{US, ANOTHER}], 5),
    "another instance that hangs": ([{US, NOBODY}], 0),
    "the cluster DNS alone, since all addresses are Services'": ([{ANOTHER}, {ANOTHER}], 1),
    "nobody": ([{NOBODY}], 1),
}


@pytest.mark.parametrize(("heard", "times"), CASES.values(), ids=CASES)
def test_dns_is_redirected_while_the_probe_is_heard_and_no_other_instance_is_silent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, heard: list[set[Heard]], times: int
) -> None:
    """Five looks, with the switch off before each. Where it can never be heard while it is off, one try is due."""
    keeper = Keeper()
    monkeypatch.setattr("topodns.nodecache.network.SelfProbe", lambda *_: Probe(*heard))
    around = network(tmp_path, monkeypatch, keeper, ADDRESSES[len(heard) - 1])

    async def look() -> None:
        for _ in range(5):
            keeper.left = 0
            await around.renew()

    asyncio.run(look())
    assert keeper.turned_on == times


@pytest.mark.parametrize(
    ("successor", "heard", "succeeded"),
    [
        (None, [{US, ANOTHER}], False),
        (1, [{US, ANOTHER}], True),
        (1, [{US}, {ANOTHER}], False),  # who answers at the other address is the cluster DNS
        (1, [{US, NOBODY}], False),
    ],
)
def test_everything_is_left_to_an_instance_that_answers_beside_it_and_to_no_other(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    successor: int | None,
    heard: list[set[Heard]],
    succeeded: bool,
) -> None:
    keeper = Keeper(successor)
    monkeypatch.setattr("topodns.nodecache.network.SelfProbe", lambda *_: Probe(*heard))
    asyncio.run(network(tmp_path, monkeypatch, keeper, ADDRESSES[len(heard) - 1]).before_drain())
    assert keeper.succeeded is succeeded
