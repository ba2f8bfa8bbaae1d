"""The decisions of the self-check, with fixed results of the probes and a fake of the node's network."""

import asyncio
from collections.abc import Sequence
from ipaddress import ip_address
from types import SimpleNamespace
from typing import Any

import pytest

from topodns.nodecache import self_probe
from topodns.nodecache.self_probe import ROUNDS, TRIES, ProbeResult, SelfCheck

NO_REPLY, OTHER, OWN = ProbeResult
ADDRESSES = [ip_address("169.254.20.10"), ip_address("10.96.0.10")]


class Probe:
    """Has the given results at the first addresses, at each round; counts the rounds by their tries."""

    def __init__(self, *results: set[ProbeResult]) -> None:
        self.results = [frozenset(each) for each in results]
        self.tries: list[int] = []

    async def send(self, addresses: Sequence[object], patience: float, tries: int) -> list[frozenset[ProbeResult]]:
        assert len(addresses) == len(self.results)
        self.tries.append(tries)
        return self.results


def self_check(probe: Any, is_on: bool = False, others: bool = True, successor: int | None = None) -> SelfCheck:
    registry = SimpleNamespace(others=lambda: others, successor=lambda: successor)
    network: Any = SimpleNamespace(instance_registry=registry, is_redirecting=lambda: is_on)
    return SelfCheck(probe, ADDRESSES[: len(probe.results)], network)


def answers(check: SelfCheck, times: int = 5) -> list[bool]:
    async def ask() -> list[bool]:
        return [await check.answered() for _ in range(times)]

    return asyncio.run(ask())


CASES = {
    "this instance": ([{OWN}], 5),
    "this instance at an address of its own, the cluster DNS at the other": ([{OWN}, {OTHER}], 5),
    "another instance as well": ([{OWN, OTHER}], 5),
    "another instance that hangs": ([{OWN, NO_REPLY}], 0),
    "the cluster DNS alone, since all addresses are ClusterIPs": ([{OTHER}, {OTHER}], 1),
    "no server": ([{NO_REPLY}], 1),
}


@pytest.mark.parametrize(("results", "times"), CASES.values(), ids=CASES)
def test_dns_is_redirected_while_probes_are_answered_and_no_other_instance_is_silent(
    results: list[set[ProbeResult]], times: int
) -> None:
    """Five checks, with the redirect off before each. Where probes cannot arrive while it is off, one trial is due."""
    assert sum(answers(self_check(Probe(*results)))) == times


def test_the_first_check_is_the_trial() -> None:
    assert answers(self_check(Probe({NO_REPLY}))) == [True, False, False, False, False]


def test_a_trial_is_due_again_after_its_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(now=1000.0)
    monkeypatch.setattr(self_probe, "time", SimpleNamespace(monotonic=lambda: clock.now))
    check = self_check(Probe({OTHER}))
    assert answers(check, 2) == [True, False]
    clock.now += self_probe.TRIAL_INTERVAL - 0.1
    assert answers(check, 1) == [False]
    clock.now += 0.1
    assert answers(check, 2) == [True, False]


def test_probes_that_arrive_only_while_the_redirect_is_on_leave_trials_possible() -> None:
    probe = Probe({OWN})
    check = self_check(probe, is_on=True)
    assert answers(check, 1) == [True]
    probe.results = [frozenset({OTHER})]
    assert answers(check, 2) == [True, False]


def test_no_trial_follows_a_probe_that_arrived_while_the_redirect_was_off() -> None:
    probe = Probe({OWN})
    check = self_check(probe)
    assert answers(check, 1) == [True]
    probe.results = [frozenset({NO_REPLY})]
    assert answers(check, 2) == [False, False]


@pytest.mark.parametrize(("others", "tries"), [(False, 1), (True, TRIES)])
def test_more_probes_are_sent_while_there_is_another_instance(others: bool, tries: int) -> None:
    probe = Probe({OWN})
    answers(self_check(probe, others=others), 1)
    assert probe.tries == [tries]


@pytest.mark.parametrize(
    ("successor", "results", "expected", "rounds"),
    [
        (None, [{OWN, OTHER}], False, 0),
        (1, [{OWN, OTHER}], True, 1),
        (1, [{OWN}, {OTHER}], False, ROUNDS),  # the replies at the other address are the cluster DNS's
        (1, [{OWN, NO_REPLY}], False, ROUNDS),
    ],
)
def test_a_successor_is_an_instance_that_answers_at_an_address_where_this_one_does(
    successor: int | None, results: list[set[ProbeResult]], expected: bool, rounds: int
) -> None:
    probe = Probe(*results)
    assert asyncio.run(self_check(probe, successor=successor).has_successor()) is expected
    assert probe.tries == [TRIES] * rounds
