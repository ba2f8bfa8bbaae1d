"""Pods ask all the time, and the node cache dies, hangs, or loses its link or its rules (N6, N7, N9, N18)."""

import os
import signal
import time
from pathlib import Path

import pytest

from tests.support.namespaced_cluster import LISTENED, NodeScene
from tests.support.namespaced_node import CLUSTER_DNS
from tests.support.node_processes import NOISE, SLOW_START, NodeCache, node_cache
from tests.support.server_process import until
from tests.support.stub_resolver_load import Outcome, asking

pytestmark = pytest.mark.usefixtures("servers")
FIREWALLS = pytest.mark.parametrize("firewall", ["nftables", "iptables"])
RATE = 500.0  # questions per second, for names that are in no cache
OUTAGE = 2.0  # seconds until a pod is answered again (issue 6)
ADOPTED = 1.0  # seconds until a restart in the same place serves (N9)
REPAIRED = 0.2  # seconds, where the kernel reports the damage
TICK = 5.0  # seconds, where it does not
REPAIRS = "topodns_nodecache_repairs_total"
BOTH = list(CLUSTER_DNS.values())


def hurt(cache: NodeCache, number: signal.Signals) -> float:
    """When it happened."""
    moment = time.monotonic()
    os.kill(cache.pid, number)
    return moment


def assert_lost_no_longer_than(outcome: Outcome, moment: float, seconds: float) -> None:
    """No answer was wrong, and all questions that were sent later than this have their answers."""
    print(outcome, f"; answered again after {outcome.first_right_after(moment):.2f} s")
    assert outcome.wrong == []
    unanswered = [round(each.sent - moment, 3) for each in outcome.lost]
    assert [sent for sent in unanswered if not 0 <= sent + 0.05 <= seconds + NOISE] == [], outcome
    for address in BOTH:
        assert outcome.of(address).first_right_after(moment) <= seconds + NOISE, (address, str(outcome))


@FIREWALLS
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "hung"])
def test_n09_killed_or_hung_under_load_it_lets_go_of_the_traffic_within_two_seconds(
    cluster: NodeScene, tmp_path: Path, firewall: str, number: signal.Signals
) -> None:
    with node_cache(cluster.node, tmp_path, firewall) as cache:
        with asking(cluster.pod, BOTH, RATE, tcp_every=20) as outcome:
            until(lambda: len(outcome.asked) > RATE / 2, "some answers")
            moment = hurt(cache, number)
            until(lambda: all(outcome.of(each).right_after(moment + 0.5) for each in BOTH), "an answer after it")
        assert_lost_no_longer_than(outcome, moment, OUTAGE)


def test_n09_hung_and_awake_again_it_takes_the_traffic_back_without_a_wrong_answer(
    cluster: NodeScene, tmp_path: Path
) -> None:
    with node_cache(cluster.node, tmp_path) as cache:
        with asking(cluster.pod, BOTH, RATE) as outcome:
            moment = hurt(cache, signal.SIGSTOP)
            until(lambda: all(outcome.of(each).right_after(moment + 0.5) for each in BOTH), "an answer after it")
            os.kill(cache.pid, signal.SIGCONT)
            until(lambda: cache.metrics()["topodns_nodecache_switched_on"] == 1.0, "the traffic is back")
        assert_lost_no_longer_than(outcome, moment, OUTAGE)


@FIREWALLS
def test_n09_an_instance_killed_and_started_in_the_same_place_adopts_the_existing_rules(
    cluster: NodeScene, tmp_path: Path, firewall: str
) -> None:
    with node_cache(cluster.node, tmp_path, firewall) as dead:
        os.kill(dead.pid, signal.SIGKILL)
        dead.process.wait()
    before = cluster.node.namespace.run("ip", "-o link show nodelocaldns").split()[0]
    with asking(cluster.pod, LISTENED, 200) as outcome:
        moment = time.monotonic()
        with node_cache(cluster.node, tmp_path, firewall) as cache:
            until(lambda: all(outcome.of(each).right_after(moment) for each in LISTENED), "answers at all addresses")
            assert cluster.node.namespace.run("ip", "-o link show nodelocaldns").split()[0] == before
            assert {cache.metrics()[f"{REPAIRS}{{{what}}}"] for what in ("link", "rules")} == {0.0}
            served = outcome.of(LISTENED[0]).first_right_after(moment)  # link-local: no other server answers there
        print(f"served {served:.2f} s after the restart")
        assert served <= ADOPTED + SLOW_START
    assert outcome.wrong == []


@pytest.mark.parametrize("damage", ["link del nodelocaldns", "addr flush dev nodelocaldns"])
def test_n06_without_link_or_addresses_under_load_both_are_back_at_once(
    cluster: NodeScene, tmp_path: Path, damage: str
) -> None:
    with node_cache(cluster.node, tmp_path) as cache:
        with asking(cluster.pod, LISTENED, RATE) as outcome:
            until(lambda: len(outcome.asked) > RATE / 2, "some answers")
            moment = time.monotonic()
            cluster.node.namespace.run("ip", damage)
            until(lambda: all(outcome.of(each).right_after(moment) for each in LISTENED), "answers at all addresses")
        assert cache.metrics()["topodns_nodecache_link_present"] == 1.0
        until(cache.switched_on, "the traffic is back")
    print(outcome, outcome.of(LISTENED[0]).first_right_after(moment))
    assert outcome.wrong == []
    assert [each for each in outcome.lost if each.sent - moment > REPAIRED + NOISE] == [], outcome


@FIREWALLS
def test_n07_rules_that_are_flushed_under_load_come_back_and_no_question_is_lost_for_it(
    cluster: NodeScene, tmp_path: Path, firewall: str
) -> None:
    where = cluster.node.namespace

    def flush() -> None:
        if firewall == "nftables":
            where.run("nft", "delete table inet topodns")
        else:
            for program in ("iptables", "ip6tables"):
                where.run(program, "-t raw -F")

    with node_cache(cluster.node, tmp_path, firewall) as cache:
        with asking(cluster.pod, BOTH, RATE) as outcome:
            until(lambda: len(outcome.asked) > RATE / 2, "some answers")
            flush()
            until(lambda: cache.metrics()[f"{REPAIRS}{{rules}}"] > 0, "mended", TICK + NOISE)
        until(cache.switched_on, "the traffic is back")
    print(outcome)
    assert (outcome.lost, outcome.wrong) == ([], []), outcome  # meanwhile kube-proxy leads to the cluster DNS


@FIREWALLS
def test_n07_flushed_rules_of_another_program_are_not_restored(
    cluster: NodeScene, tmp_path: Path, firewall: str
) -> None:
    where = cluster.node.namespace

    def flush() -> None:
        if firewall == "nftables":
            for program in ("iptables", "ip6tables"):
                for table in ("raw", "filter", "mangle"):
                    where.run(program, f"-t {table} -F")
        else:
            where.run("nft", "add table inet somebody; add chain inet somebody rules; flush table inet somebody")

    with node_cache(cluster.node, tmp_path, firewall) as cache:
        with asking(cluster.pod, BOTH, RATE / 5) as outcome:
            moment = time.monotonic()
            flush()
            until(lambda: outcome.right_after(moment + TICK + NOISE), "another look", TICK + 5 * NOISE)
        assert cache.metrics()[f"{REPAIRS}{{rules}}"] == 0.0
        assert cache.switched_on()
    assert (outcome.lost, outcome.wrong) == ([], []), outcome


@FIREWALLS
def test_n18_rules_that_were_doubled_by_hand_are_single_again_and_leave_with_the_rest(
    cluster: NodeScene, tmp_path: Path, firewall: str
) -> None:
    where = cluster.node.namespace
    rule = ["-d", BOTH[0], "-p", "udp", "--dport", "53", "-m", "comment", "--comment"]

    def raw() -> list[str]:
        return [line for line in where.run("iptables-save", "-t raw").splitlines() if line.startswith("-A")]

    with node_cache(cluster.node, tmp_path, firewall) as cache:
        before = sorted(raw())
        for _ in range(3):
            where.run(
                "iptables",
                ["-t", "raw", "-I", "PREROUTING", *rule, "NodeLocal DNS Cache: skip conntrack", "-j", "NOTRACK"],
            )
        assert len(raw()) == len(before) + 3
        until(lambda: sorted(raw()) == before, "as before", TICK + NOISE)
        assert cache.stop() == 0
    assert cluster.node.leftovers() == []
