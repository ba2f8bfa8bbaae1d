"""All places for questions that wait are taken: which flights and queries go on, whichever way a question came."""

import pytest

from tests.support.dns_messages import query
from tests.support.forward_with_upstreams import ForwardScene
from tests.support.in_memory_server import counted
from tests.support.query_builders import ask, client
from tests.support.scripted_upstream import silent, whatever
from tests.unit.dnsserver.fast_forward.scene import Resolver
from topodns.dns.rrtype import RCODE_NAMES
from topodns.plugins.forward.limits import InFlight
from topodns.plugins.forward.single_flight import LoneFlight
from topodns.query.deferred import Outcome, pursue
from topodns.query.plugin import Dropped, Resolution

HEAVY, OTHER, LATE = client("10.240.0.1"), client("10.240.0.2"), client("10.240.0.3")


class Scene:
    """A `forward` with four places, and one upstream that takes 0.3 s."""

    def __init__(self, behave: object = whatever, **settings: object) -> None:
        places = InFlight(max_total=4, max_per_client=4)
        self.forward = ForwardScene(behave, in_flight=places, **settings)  # type: ignore[arg-type]  # a behaviour
        self.forward.upstreams[0].delay = 0.3
        self.got: dict[str, str] = {}

    def ask(self, name: str, asker: object) -> None:
        """`got` has the rcode by name and last octet of the client, or that the question was dropped."""
        pursue(self._asked(name, asker), lambda _: None)

    async def _asked(self, name: str, asker: object) -> None:
        got = f"{name} {asker.address[-1]}"  # type: ignore[attr-defined]  # a client
        try:
            course = self.forward.forwarding(ask(f"{name}.example.org"), asker)  # type: ignore[arg-type]
            resolution = await course  # type: ignore[misc]  # a course
        except Dropped as dropped:
            self.got[got] = f"dropped by {dropped.plugin}"
        else:
            assert isinstance(resolution, Resolution)
            self.got[got] = RCODE_NAMES[resolution.response.rcode]


def test_the_newest_question_of_the_client_with_most_is_dropped_and_all_others_are_answered() -> None:
    scene = Scene()
    for name in ("a", "b", "c"):
        scene.ask(name, HEAVY)
    scene.ask("d", OTHER)
    scene.ask("late", LATE)
    assert scene.got == {"c 1": "dropped by forward"}
    scene.forward.timers.advance(0.3)
    assert scene.got == {
        **{"a 1": "NOERROR", "b 1": "NOERROR", "c 1": "dropped by forward"},
        **{"d 2": "NOERROR", "late 3": "NOERROR"},
    }
    assert scene.forward.in_flight.total == 0


def test_the_query_of_a_dropped_question_is_cancelled() -> None:
    scene = Scene(silent)
    for name in ("a", "b", "c", "d"):
        scene.ask(name, HEAVY)
    assert scene.forward.timers.pending == 4  # each a query to the upstream
    scene.ask("late", LATE)
    assert scene.forward.timers.pending == 4
    assert scene.forward.asked == [5]
    scene.forward.timers.advance(10)
    assert scene.forward.asked == [5 + 4]  # those that wait are asked a second time, the dropped one is not
    assert scene.got["d 1"] == "dropped by forward"


def test_a_dropped_question_that_waited_for_the_next_round_is_not_asked_again() -> None:
    scene = Scene(silent, max_connect_attempts=0, read_timeout=0.2)
    for name in ("a", "b", "c", "d"):
        scene.ask(name, HEAVY)
    scene.forward.timers.advance(0.25)  # the first round is over
    scene.ask("late", LATE)
    before = scene.forward.asked[0]
    scene.forward.timers.advance(0.2)
    assert scene.forward.asked[0] - before == 3


def test_others_that_wait_for_the_same_flight_get_its_answer() -> None:
    scene = Scene()
    for name in ("a", "b", "same"):
        scene.ask(name, HEAVY)
    scene.ask("same", OTHER)
    scene.ask("late", LATE)
    assert scene.got == {"same 1": "dropped by forward"}
    scene.forward.timers.advance(0.3)
    assert scene.got["same 2"] == "NOERROR"
    assert (scene.forward.asked, scene.forward.in_flight.total) == ([4], 0)


def test_a_name_whose_flight_was_cancelled_is_asked_anew() -> None:
    scene = Scene()
    for name in ("a", "b", "c"):
        scene.ask(name, HEAVY)
    scene.ask("d", OTHER)
    scene.ask("c", LATE)
    scene.forward.timers.advance(0.3)
    assert (scene.got["c 1"], scene.got["c 3"]) == ("dropped by forward", "NOERROR")


def test_max_concurrent_counts_a_dropped_question_no_more() -> None:
    scene = Scene(max_concurrent=4)
    for name in ("a", "b", "c"):
        scene.ask(name, HEAVY)
    scene.ask("d", OTHER)
    scene.forward.timers.advance(0.3)
    for name in ("e", "f", "g"):
        scene.ask(name, HEAVY)
    scene.ask("h", OTHER)
    scene.forward.timers.advance(0.3)
    assert set(scene.got.values()) == {"NOERROR"}


@pytest.mark.parametrize("fast", [True, False], ids=["fast path", "chain"])
def test_a_dropped_question_gets_no_reply_and_is_counted_by_fast_path_and_chain(fast: bool) -> None:
    resolver = Resolver(fast, whatever, "cache 30")
    resolver.upstream.delay = 0.1
    replies = {}
    for name, asker in [(f"n{n}", HEAVY) for n in range(2)] + [(f"o{n}", OTHER) for n in range(2)]:
        replies[name] = resolver.handler.answer(query(f"{name}.example. A"), asker.address, 1000)
    for n in range(2):
        replies[f"p{n}"] = resolver.handler.answer(query(f"p{n}.example. A"), LATE.address, 1000)
    dropped: list[bytes | None] = []
    assert resolver.in_flight.total == 6
    replies["late"] = resolver.handler.answer(query("late.example. A"), bytes((10, 240, 0, 4)), 1000)
    assert resolver.in_flight.preempted == 1
    for reply in replies.values():
        assert isinstance(reply, (Outcome, LoneFlight))
        reply.deliver_to(lambda place, result: dropped.append(result), None)
    assert dropped == [None]
    resolver.timers.advance(0.2)
    assert len([reply for reply in dropped if reply is not None]) == 6
    assert [(kind.plugin, kind.rcode) for kind, times in counted(resolver.handler).items() if not kind.rcode] == [
        ("forward", "")
    ]
