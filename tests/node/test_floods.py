"""One Pod asks for more than its share: the answers of other Pods stay as they were (N2, N13, N14)."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count, cycle
from pathlib import Path

import pytest

from tests.support.faulty_upstream import Act, Asked, BadUpstream, bad_upstream
from tests.support.namespaced_cluster import LISTENED, OUTSIDE, NodeScene
from tests.support.namespaced_node import CLUSTER_DNS
from tests.support.node_cache_template import node_template
from tests.support.node_processes import NOISE, ClusterServer, node_cache
from tests.support.server_process import until
from tests.support.stub_resolver_load import Question, asking, fresh_names
from tests.support.upstream_faults import answers, slow

CAPACITY = 1024  # answers that a cache holds, the least there is
# TTLs of the cluster DNS are 5 s: with these, what a flood does not push out is there at the end of the story.
SMALL_TEMPLATE = node_template().replace("success 9984 30", f"success {CAPACITY} 3600 3600")
BOTH = list(CLUSTER_DNS.values())
RATE = 200.0


@contextmanager
def outside(scene: NodeScene, behaviour: Callable[[Asked], Sequence[Act]]) -> Iterator[BadUpstream]:
    """A resolver for names outside the cluster that does this."""
    with scene.cluster.entered():
        opened = bad_upstream(behaviour, OUTSIDE, 53)
        upstream = opened.__enter__()
    try:
        yield upstream
    finally:
        opened.__exit__(None, None, None)


@pytest.mark.usefixtures("servers")
def test_n02_many_pods_with_one_question_for_a_slow_upstream_make_one_query_and_others_do_not_wait(
    cluster: NodeScene, tmp_path: Path
) -> None:
    same = Question("slow.example", "192.0.2.1")
    with (
        outside(cluster, lambda asked: (slow(0.3) if b"slow" in asked.message else answers)(asked)) as upstream,
        node_cache(cluster.node, tmp_path),
        asking(cluster.pod, BOTH, RATE, lambda: cycle([same])) as waiting,
        asking(cluster.node.pods[1], BOTH, RATE) as others,
    ):
        until(lambda: waiting.right_after(0.0), "the slow one answers")
    assert (waiting.lost, waiting.wrong, others.lost, others.wrong) == ([], [], [], []), (waiting, others)
    assert sum(b"slow" in asked.message for asked in upstream.asked) == 1
    assert others.late(0.5 + NOISE) == []


def test_n13_junk_of_one_pod_does_not_evict_names_that_another_keeps_asking_for(
    cluster: NodeScene, servers: tuple[ClusterServer, ClusterServer], tmp_path: Path
) -> None:
    hot = [question for question, _ in zip(fresh_names(), range(50), strict=False)]

    with node_cache(cluster.node, tmp_path, template=SMALL_TEMPLATE):
        with asking(cluster.pod, BOTH, RATE, lambda: cycle(hot)) as before:
            until(lambda: len(before.asked) > 3 * len(hot), "these are asked for again and again")
        with asking(cluster.node.pods[1], BOTH, 1000) as junk:
            until(lambda: len(junk.asked) > 3 * CAPACITY, "the flood", 60.0)
        for server in servers:
            server.stop()
        with asking(cluster.pod, BOTH, RATE, lambda: cycle(hot)) as after:
            until(lambda: len(after.asked) > len(hot), "all are asked for")
    for outcome in (before, junk, after):
        assert (outcome.lost, outcome.wrong) == ([], []), outcome


def silent_names() -> Iterator[Question]:
    for number in count():
        yield Question(f"silent-{number}.example", "192.0.2.1")


def other_names() -> Iterator[Question]:
    for number in count():
        yield Question(f"other-{number}.example", "192.0.2.1")


@pytest.mark.usefixtures("servers")
def test_n14_a_pod_that_floods_leaves_the_others_their_share(cluster: NodeScene, tmp_path: Path) -> None:
    """Of all that may wait for upstreams: its questions are those that are never answered."""
    flood_rate = 2000.0  # in the two seconds that a try takes more than may wait for all together
    with (
        outside(cluster, lambda asked: [] if b"silent" in asked.message else answers(asked)),
        node_cache(cluster.node, tmp_path),
        asking(cluster.node.pods[1], BOTH, flood_rate, silent_names) as flood,
    ):
        until(lambda: len(flood.asked) > 2 * flood_rate, "the flood", 30.0)
        with (
            asking(cluster.pod, LISTENED, RATE, other_names) as outside_names,
            asking(cluster.node.namespace, LISTENED, RATE) as cluster_names,
        ):
            seen = len(flood.asked)
            until(lambda: len(flood.asked) > seen + 2 * flood_rate, "more of it", 30.0)
    print(flood, outside_names, cluster_names)
    for outcome in (outside_names, cluster_names):
        assert (outcome.lost, outcome.wrong, outcome.late(NOISE)) == ([], [], []), outcome
    assert not flood.right_after(0.0)
