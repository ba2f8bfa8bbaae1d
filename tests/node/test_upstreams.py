"""The cluster DNS behind a node cache is restarted, dies, or is out of reach (N1, N4, N5, N12)."""

import signal
from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path
from subprocess import CalledProcessError
from typing import Final

import pytest

from tests.support import upstream_faults
from tests.support.faulty_upstream import ANSWER, bad_upstream
from tests.support.namespaced_cluster import LISTENED, UPSTREAM_SERVICE, NodeScene
from tests.support.namespaced_node import CLUSTER_DNS, namespace
from tests.support.node_cache_template import node_template
from tests.support.node_processes import NOISE, ClusterServer, dig, node_cache
from tests.support.server_process import serving, until
from tests.support.stub_resolver_load import Question, asking, fresh_names

Servers = tuple[ClusterServer, ClusterServer]
Ending = Callable[[NodeScene, Servers], None]
RATE = 1000.0  # questions per second (issue 6)
SLOWEST = 1.0  # seconds, while one server of two is away
KEPT = 60  # names
PORTS = 60_000  # that distinguish entries of conntrack
STALE = 2.0  # seconds in which a name that was kept is answered (issue 6)
GIVEN_UP = 4.0  # seconds until SERVFAIL (N1): a stub waits for 5
# Kept for a second, so that a test need not wait for old age.
STALE_TEMPLATE = node_template().replace("success 9984 30", "success 9984 1 1\n        serve_stale")


def crash(scene: NodeScene, servers: Servers) -> None:
    """Both: their ports refuse. kube-proxy has not heard of it."""
    for server in servers:
        server.stop(signal.SIGKILL)


def vanish(scene: NodeScene, servers: Servers) -> None:
    """Both, with their machines: nothing comes back."""
    for number in range(len(servers)):
        scene.take_address(number)


def withdraw(scene: NodeScene, servers: Servers) -> None:
    """Both, and kube-proxy knows."""
    scene.follow(())
    crash(scene, servers)


ENDINGS = pytest.mark.parametrize("end", [crash, vanish, withdraw], ids=["crashed", "vanished", "withdrawn"])


@ENDINGS
def test_n01_with_no_upstream_left_a_new_name_is_servfail_before_a_stub_gives_up(
    cluster: NodeScene, servers: Servers, tmp_path: Path, end: Ending
) -> None:
    with node_cache(cluster.node, tmp_path):
        end(cluster, servers)
        for number, address in enumerate(LISTENED):
            name = f"10-99-0-{number}.shop.pod.cluster.local."
            got = cluster.pod.run("dig", f"+time=5 +tries=1 @{address} {name}")
            assert "status: SERVFAIL" in got
            (seconds,) = [int(line.split()[3]) / 1000 for line in got.splitlines() if line.startswith(";; Query time")]
            assert seconds <= GIVEN_UP + NOISE


@ENDINGS
def test_n04_with_no_upstream_left_all_that_was_known_is_answered(
    cluster: NodeScene, servers: Servers, tmp_path: Path, end: Ending
) -> None:
    names = [question for question, _ in zip(fresh_names(), range(KEPT), strict=False)]

    def known() -> Iterator[Question]:
        return cycle(names)

    def age() -> int:
        """The TTL in the answer."""
        (record,) = cluster.pod.run("dig", f"+noall +answer @{CLUSTER_DNS[4]} {names[0].name}.").splitlines()
        return int(record.split()[1])

    with node_cache(cluster.node, tmp_path, template=STALE_TEMPLATE):
        with asking(cluster.pod, LISTENED, RATE, known) as learning:
            until(lambda: len(learning.asked) > 4 * KEPT, "all is known")
        assert (learning.lost, learning.wrong) == ([], [])
        end(cluster, servers)
        until(lambda: age() > 1, "the answer is stale")
        with asking(cluster.pod, LISTENED, RATE / 4, known) as outcome:
            until(lambda: len(outcome.asked) > 4 * KEPT, "all was asked")
    print(outcome)
    assert (outcome.lost, outcome.wrong, outcome.late(STALE)) == ([], [], []), outcome
    assert {each.question for each in outcome.asked} == set(names)


def roll(scene: NodeScene, servers: Servers, number: int) -> None:
    """A Pod of a Deployment is replaced: first it is no endpoint any more, then it ends."""
    scene.follow([1 - number])
    servers[number].stop()
    servers[number].start()
    servers[number].wait()
    scene.follow([0, 1])


def kill(scene: NodeScene, servers: Servers, number: int) -> None:
    """It dies, and kube-proxy hears of it when it has been started again."""
    servers[number].stop(signal.SIGKILL)
    scene.follow([1 - number])
    servers[number].start()
    servers[number].wait()
    scene.follow([0, 1])


@pytest.mark.parametrize("restart", [roll, kill], ids=["rolled", "killed"])
def test_n05_upstreams_restarted_one_after_the_other_under_load_cost_no_answer(
    cluster: NodeScene, servers: Servers, tmp_path: Path, restart: Callable[[NodeScene, Servers, int], None]
) -> None:
    with node_cache(cluster.node, tmp_path), asking(cluster.pod, LISTENED, RATE, tcp_every=50) as outcome:
        for number in range(len(servers)):
            restart(cluster, servers, number)
            seen = len(outcome.asked)
            until(lambda: len(outcome.asked) > seen + RATE / 2, "both are asked again")  # noqa: B023
    print(outcome)
    assert (outcome.lost, outcome.wrong) == ([], []), outcome
    assert outcome.late(SLOWEST + NOISE) == [], outcome


def test_n12_with_a_full_conntrack_table_pods_are_answered_all_the_same(
    cluster: NodeScene, servers: Servers, tmp_path: Path
) -> None:
    """`nf_conntrack_max` cannot be lowered in a namespace, so the table is filled: no entry of it may be dropped."""
    with node_cache(cluster.node, tmp_path):
        with asking(cluster.pod, LISTENED, RATE / 5, tcp_every=10) as before:
            until(lambda: before.right_after(0.0), "the cluster DNS is connected to")
            fill_conntrack(cluster)
            assert dig(cluster.pod, UPSTREAM_SERVICE[4], "web.shop.svc.cluster.local") == []  # by conntrack: no way
        with asking(cluster.pod, LISTENED, RATE / 5, tcp_every=10) as outcome:
            until(lambda: len(outcome.asked) > RATE / 5, "some answers")
    print(before, outcome)
    assert (outcome.lost, outcome.wrong) == ([], []), outcome


def fill_conntrack(scene: NodeScene) -> None:
    """Until the kernel takes no more: with entries that it does not drop for newer ones."""
    node = scene.node.namespace
    most = int(node.run("sysctl", "-n net.netfilter.nf_conntrack_max"))
    for part in range(most // PORTS + 1):
        entry = f"-I -s 192.0.2.{part + 1} -d 198.51.100.1 -p udp --dport 9 -t 300 -u SEEN_REPLY,ASSURED --sport "
        try:
            node.run("conntrack", "-R -", "".join(f"{entry}{port + 1}\n" for port in range(PORTS)))
        except CalledProcessError:
            break
    assert int(node.run("conntrack", "-C")) >= most


# A resolver behind NAT at a loopback address, as Docker has at 127.0.0.11, and a server on all addresses.

PORT: Final = 5353
COREFILE: Final = f"""
.:{PORT} {{
    loop
    forward . 127.0.0.11:{PORT}
}}
"""
NAT: Final = """
table ip resolver {{
    chain out {{
        type nat hook output priority -100
        ip daddr 127.0.0.11 udp dport 5353 dnat to 127.0.0.11:{port}
        ip daddr 127.0.0.11 tcp dport 5353 dnat to 127.0.0.11:{port}
    }}
}}
"""


def test_it_is_asked_and_a_warning_says_that_it_looks_like_the_server(tmp_path: Path) -> None:
    with (
        namespace("nat") as machine,
        machine.entered(),
        bad_upstream(upstream_faults.answers, "127.0.0.11") as resolver,
    ):
        machine.run("nft", "-f -", NAT.format(port=resolver.port))
        with serving(tmp_path, COREFILE, address="127.0.0.1", port=PORT) as server:
            line = server.wait_for_line("127.0.0.11:5353 may be this server block itself, a loop")
            assert line.startswith("[WARNING] plugin/forward: ")
            assert server.ask("other.test A").data == [ANSWER]
