"""The options of `push`, and its metrics."""

import pytest

from tests.support.corefile_settings import block_problem, only_block
from topodns.plugins.push import PLUGIN, PushCounts, PushRefusal, SessionEnd
from topodns.plugins.setup import MetricsSource, Shared
from topodns.query.session import PushLimits

KUBERNETES = "kubernetes cluster.local {\n manifests .\n}"


@pytest.mark.parametrize(
    ("directive", "limits"),
    [
        ("push", PushLimits()),
        ("push {\nsessions 1000\nsubscriptions 10000\nmemory 64\n}", PushLimits()),
        ("push {\nsessions 3\n}", PushLimits(sessions=3)),
        ("push {\nsubscriptions 1\nmemory 1\n}", PushLimits(subscriptions=1, memory=1 << 20)),
    ],
)
def test_the_limits_of_push(directive: str, limits: PushLimits) -> None:
    assert only_block(f"{KUBERNETES}\n{directive}").settings["push"] == limits


@pytest.mark.parametrize(
    ("directive", "problem"),
    [
        ("push on", "Corefile:5: 'push' has the arguments 'on', expected none"),
        ("push {\nsessions\n}", "Corefile:6: 'sessions' has no argument, expected a number from 1 to 1000000"),
        ("push {\nsessions 0\n}", "Corefile:6: 'sessions' has '0', expected a whole number from 1 to 1000000"),
        ("push {\nmemory 64MB\n}", "Corefile:6: 'memory' has '64MB', expected a whole number from 1 to 4096"),
        ("push {\nsession 3\n}", "Corefile:6: unknown option 'session' of 'push', did you mean 'sessions'?"),
        ("push {\nsessions 3\nsessions 4\n}", "Corefile:7: found 'sessions' again, first at Corefile:6"),
        ("push\npush", "Corefile:6: "),
    ],
)
def test_what_is_no_limit_is_refused_with_its_line(directive: str, problem: str) -> None:
    assert block_problem(f"{KUBERNETES}\n{directive}").startswith(problem)


def test_it_needs_kubernetes_in_its_block() -> None:
    assert "'push'" in block_problem("push")
    assert "kubernetes" in block_problem("push")


def test_every_reason_has_a_sample_from_the_start() -> None:
    shared = Shared()
    counts = shared.get(PushCounts)
    counts.sessions, counts.refused[PushRefusal.NAME], counts.ended[SessionEnd.SLOW] = 3, 2, 1
    assert PLUGIN.metrics is not None
    metrics = PLUGIN.metrics(MetricsSource(shared, tuple, tuple))
    samples = {(reading.name, *labels): value for reading in metrics for labels, value in reading.read()}
    assert samples[("topodns_push_sessions",)] == 3
    assert samples[("topodns_push_refused", "name")] == 2
    assert samples[("topodns_push_sessions_ended", "slow")] == 1
    assert sum(key[0] == "topodns_push_refused" for key in samples) == len(PushRefusal)
    assert sum(key[0] == "topodns_push_sessions_ended" for key in samples) == len(SessionEnd)
