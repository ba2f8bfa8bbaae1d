"""Which upstream is asked first."""

from collections import Counter

import pytest

from tests.support.forward_with_upstreams import ForwardScene
from tests.support.query_builders import ask
from tests.support.scripted_upstream import refuses, says
from topodns.plugins.forward.settings import UpstreamPolicy


def order(scene: ForwardScene, questions: int) -> list[str]:
    """The last part of the address of who answers each question."""
    return [
        scene.asked_and_answered(ask(f"n{n}.example.org"), within=0.0).resolution.upstream[-4] for n in range(questions)
    ]


def test_sequential_is_the_first_one_always() -> None:
    assert set(order(ForwardScene(says(), says(), says(), policy=UpstreamPolicy.SEQUENTIAL), 9)) == {"1"}


def test_round_robin_is_one_after_the_other() -> None:
    assert order(ForwardScene(says(), says(), says(), policy=UpstreamPolicy.ROUND_ROBIN), 7) == list("2312312")


def test_a_retry_takes_no_turn_of_round_robin() -> None:
    scene = ForwardScene(refuses, says(), says(), policy=UpstreamPolicy.ROUND_ROBIN, max_fails=0)
    assert order(scene, 7) == list("2322322")


@pytest.mark.parametrize("count", [2, 3, 5])
def test_random_is_each_as_often(count: int) -> None:
    found = Counter(order(ForwardScene(*[says()] * count, policy=UpstreamPolicy.RANDOM), 200 * count))
    assert len(found) == count
    assert min(found.values()) > 140


def test_where_one_fails_the_others_get_its_share_alike() -> None:
    found = Counter(order(ForwardScene(refuses, says(), says(), policy=UpstreamPolicy.RANDOM, max_fails=0), 600))
    assert set(found) == {"2", "3"}
    assert min(found.values()) > 240
