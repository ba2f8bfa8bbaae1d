"""What the admin side tells, and whom."""

import pytest

from tests.support.demo import Demo
from topodns.admin import explain_route, unready
from topodns.edge.admin_http import Request

QUESTION = {"name": "cache.shop.svc.cluster.local", "node": "node-a1"}


@pytest.fixture(scope="module")
def demo() -> Demo:
    return Demo()


@pytest.mark.parametrize(
    ("peer", "status"),
    [("127.0.0.1", 200), ("127.9.9.9", 200), ("::1", 200), ("10.0.0.9", 403), ("2001:db8::1", 403), ("", 403)],
)
def test_explain_tells_where_pods_run_to_loopback_only(demo: Demo, peer: str, status: int) -> None:
    assert explain_route(demo.generation)(Request("/explain", QUESTION, peer)).status == status


def test_a_question_that_cannot_be_explained_is_a_bad_request(demo: Demo) -> None:
    reply = explain_route(demo.generation)(Request("/explain", {"name": "example.org", "node": "node-a1"}, "127.0.0.1"))
    assert (reply.status, b"is below no origin" in reply.body) == (400, True)


def test_a_cluster_that_was_read_is_waited_for_no_longer(demo: Demo) -> None:
    assert unready(demo.generation.clusters) == []
