"""How many questions wait for upstreams at a time, of all and of one client, and which gives way to another one.

N14: what one client may have under way at upstreams, whichever way its questions go there.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from random import Random

import pytest

from tests.support.cache_with_upstream import CLIENT
from tests.support.dns_messages import query
from tests.support.forward_with_upstreams import ForwardScene
from tests.support.in_memory_server import block, counted, dig, handler
from tests.support.query_builders import ask, client
from tests.support.scripted_upstream import refuses, silent, whatever
from tests.unit.dnsserver.fast_forward.scene import Resolver
from tests.unit.plugins.forward.scene import slow_scene
from topodns.dns.message import Query
from topodns.dns.name import parse_name
from topodns.dns.rrtype import RCODE_NAMES, Rcode, RRType
from topodns.nodecache.corefile import NODE_CACHE
from topodns.plugins.autopath.handler import SearchPath
from topodns.plugins.autopath.search_list import FixedSearch
from topodns.plugins.autopath.settings import Autopath
from topodns.plugins.cache.handler import ResponseCache
from topodns.plugins.dns64 import Dns64, Translator
from topodns.plugins.forward.single_flight import LoneFlight
from topodns.plugins.forward.waiting_limit import InFlight
from topodns.query.counters import CacheHit
from topodns.query.deferred import Outcome, pursue
from topodns.query.plugin import Answered, Around, Client, Dropped, Resolution, settled

QUERY = ask("www.example.org")


def test_max_concurrent_refuses_queries_beyond_it() -> None:
    scene = slow_scene(max_concurrent=2)
    waiting = [scene.ask(ask(f"n{n}.example.org")) for n in range(2)]
    refused = scene.ask(ask("n3.example.org"))
    assert (refused.rcode, refused.resolution.response.flags, refused.resolution.upstream) == (Rcode.REFUSED, 0, "")
    scene.timers.advance(0.3)
    assert [each.rcode for each in waiting] == [Rcode.NOERROR] * 2
    assert scene.asked_and_answered(ask("n3.example.org")).rcode == Rcode.NOERROR
    assert scene.counts.max_concurrent_rejects == 1


def test_a_client_with_too_many_questions_in_flight_is_dropped_and_others_are_not() -> None:
    scene = slow_scene(in_flight=InFlight(max_total=4, max_per_client=2))
    for n in range(2):
        scene.ask(ask(f"n{n}.example.org"))
    with pytest.raises(Dropped):
        scene.ask(ask("n3.example.org"))
    other = scene.ask(ask("n3.example.org"), client("10.240.0.2"))
    scene.timers.advance(0.3)
    assert other.rcode == Rcode.NOERROR
    assert (scene.in_flight.dropped_by_client, scene.in_flight.dropped_in_total) == (1, 0)


def test_too_many_questions_of_all_are_dropped() -> None:
    scene = slow_scene(in_flight=InFlight(max_total=2, max_per_client=2))
    for n in range(2):
        scene.ask(QUERY, client(f"10.240.0.{n}"))
    with pytest.raises(Dropped):
        scene.ask(QUERY, client("10.240.0.9"))
    assert (scene.in_flight.dropped_by_client, scene.in_flight.dropped_in_total) == (0, 1)


@pytest.mark.parametrize("behave", [whatever, silent, refuses], ids=["answered", "silent", "refused"])
def test_an_answered_query_is_no_longer_in_flight(behave: object) -> None:
    scene = ForwardScene(behave)  # type: ignore[arg-type]  # one of the three
    for n in range(5):
        scene.ask(QUERY, client(f"10.240.0.{n % 2}"))
    scene.timers.advance(4.0)
    assert scene.in_flight.total == 0


@dataclass
class Table:
    """The places, and the clients that ask for them."""

    in_flight: InFlight = field(default_factory=InFlight)
    waiting: list["Question"] = field(default_factory=list)
    preempted: list[str] = field(default_factory=list)

    def ask(self, client: str, name: str = "") -> bool:
        """Whether the question may wait."""
        question = Question(self, client.encode(), name)
        if not self.in_flight.enter(question):
            self.in_flight.note_drop(question.address)
            return False
        self.waiting.append(question)
        return True

    def answer(self, question: "Question") -> None:
        self.waiting.remove(question)
        self.in_flight.leave(question)

    def count(self) -> Counter[str]:
        return Counter(question.address.decode() for question in self.waiting)


@dataclass(eq=False)
class Question:
    table: Table
    address: bytes
    name: str

    def preempt(self) -> None:
        self.table.waiting.remove(self)
        self.table.preempted.append(self.name or self.address.decode())


def test_a_client_may_use_half_of_the_free_places() -> None:
    table = Table()
    asked = [table.ask("alone") for _ in range(2000)]
    assert sum(asked) == 1366  # as many as then are free, and a half of that
    assert asked.index(False) == 1366
    assert (table.in_flight.dropped_by_client, table.in_flight.dropped_in_total) == (2000 - 1366, 0)


def test_a_client_has_256_places_while_there_are_any() -> None:
    table = Table()
    for who in range(16):
        assert all(table.ask(f"client {who}") for _ in range(256))
    assert table.in_flight.total == 4096
    assert not table.ask("client 3")
    assert table.in_flight.dropped_by_client == 1


def test_a_client_beyond_256_gets_no_more_once_others_need_the_places() -> None:
    table = Table()
    while table.ask("first"):
        pass
    for who in range(10):
        for _ in range(256):
            table.ask(f"client {who}")
    count = table.count()
    assert [count[f"client {who}"] for who in range(10)] == [256] * 10
    assert not table.ask("first")


def test_when_all_places_are_taken_the_newest_of_the_client_with_most_gives_way() -> None:
    table = Table(InFlight(max_total=6, max_per_client=4))
    for who, name in (("a", "a1"), ("b", "b1"), ("b", "b2"), ("b", "b3"), ("a", "a2"), ("c", "c1")):
        assert table.ask(who, name)
    assert table.ask("d", "d1")
    assert table.preempted == ["b3"]
    assert table.in_flight.preempted == 1
    assert (table.in_flight.total, table.count()) == (6, {"a": 2, "b": 2, "c": 1, "d": 1})


def test_the_newest_of_the_client_with_most_may_be_the_one_that_has_just_come() -> None:
    table = Table(InFlight(max_total=4, max_per_client=4))
    for name in "aabb":
        assert table.ask(name)
    assert not table.ask("a")
    assert table.preempted == []
    assert (table.in_flight.dropped_in_total, table.in_flight.dropped_by_client) == (1, 0)


def test_two_clients_with_as_many_do_not_take_each_other_s_places() -> None:
    table = Table(InFlight(max_total=5, max_per_client=4))
    for name in "aaabb":
        assert table.ask(name)
    assert not table.ask("b")
    assert table.count() == {"a": 3, "b": 2}


def test_clients_with_one_question_each_are_dropped_when_no_client_has_more() -> None:
    table = Table(InFlight(max_total=2, max_per_client=2))
    assert [table.ask(who) for who in "abc"] == [True, True, False]
    assert table.in_flight.dropped_in_total == 1


def test_a_client_with_few_is_let_in_however_many_flood() -> None:
    table = Table()
    for number in range(300 * 20):
        table.ask(f"attacker {number % 20}")
    assert table.in_flight.total == 4096
    assert all(table.ask("victim", "victim's") for _ in range(100))
    assert "victim's" not in table.preempted
    assert max(table.count().values()) - min(Counter(table.count() - Counter(victim=100)).values()) <= 1


def test_fewer_may_wait_where_there_are_few_sockets_and_never_more() -> None:
    table = Table(InFlight(max_total=6, max_per_client=4))
    table.in_flight.bound(3)
    table.in_flight.bound(1000)
    assert [table.ask(who) for who in "abcd"] == [True, True, True, False]


@pytest.mark.parametrize("seed", range(5))
def test_the_client_with_most_is_always_known(seed: int) -> None:
    """Against a count made anew at each step."""
    chance = Random(seed)
    table = Table(InFlight(max_total=20, max_per_client=6))
    for _ in range(3000):
        if table.waiting and chance.random() < 0.45:
            table.answer(chance.choice(table.waiting))
            continue
        who = chance.choice("aaaabbcdef")
        before, newest = table.count(), list(table.waiting)
        preempted = len(table.preempted)
        admitted = table.ask(who, str(len(newest)))
        full, most = len(newest) == 20, max(before.values(), default=0)
        share = max(6, (20 - len(newest)) / 2)
        assert admitted == (before[who] < share and (not full or most > before[who] + 1))
        assert len(table.preempted) - preempted == (admitted and full)
        if admitted and full:
            (gone,) = set(newest) - set(table.waiting)
            assert before[gone.address.decode()] == most
            assert gone is [each for each in newest if each.address == gone.address][-1]
        assert table.in_flight.total == len(table.waiting) <= 20


MUCH = 2  # of a client's questions
DELAY = 0.3
OTHER = client("10.240.0.2")


class Scene:
    """An around above a `forward` whose upstream is slow, and a client that may have two questions under way."""

    def __init__(self, make: Callable[["Scene"], Around]) -> None:
        self.forward = ForwardScene(whatever, in_flight=InFlight(max_total=3 * MUCH, max_per_client=MUCH))
        self.forward.upstreams[0].delay = DELAY
        self.timers = self.forward.timers
        self.around = make(self)
        self.answers: list[Resolution | Dropped] = []

    def below(self, query: Query, client: Client) -> Answered:
        stepped = self.forward.forwarding(query, client)
        assert stepped is not None
        return _certain(stepped)

    def ask(self, name: str, asker: Client, qtype: int = RRType.A) -> None:
        pursue(self._asked(ask(name, qtype), asker), self.answers.append)

    async def _asked(self, query: Query, asker: Client) -> Resolution | Dropped:
        try:
            return await settled(self.around(query, asker, self.below))
        except Dropped as dropped:
            return dropped

    @property
    def dropped(self) -> int:
        return self.forward.in_flight.dropped_by_client


async def _certain(stepped: object) -> Resolution:
    resolution = await stepped if not isinstance(stepped, Resolution) else stepped  # type: ignore[misc]
    assert isinstance(resolution, Resolution)
    return resolution


WAYS: dict[str, Callable[[Scene], Around]] = {
    "cache": lambda scene: ResponseCache(NODE_CACHE, scene.timers),
    "autopath": lambda scene: SearchPath(
        Autopath(((),)), FixedSearch((parse_name("shop.svc.example."), parse_name("example.")))
    ),
    "dns64": lambda scene: Translator(Dns64(allow_ipv4=True)),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("transport", ["udp", "tcp"])
def test_n14_beyond_its_share_it_gets_nothing_and_others_all(way: str, transport: str) -> None:
    scene = Scene(WAYS[way])
    for number in range(5):
        scene.ask(f"n{number}.shop.svc.example", client(transport=transport), RRType.AAAA)
    assert [type(each) for each in scene.answers] == [Dropped] * (5 - MUCH)
    scene.ask("other.shop.svc.example", OTHER)
    scene.timers.advance(4 * DELAY)
    assert [type(each) for each in scene.answers[3:]] == [Resolution] * (MUCH + 1)
    assert (scene.dropped, scene.forward.in_flight.total) == (3, 0)


def test_n14_refreshes_are_of_the_client_that_asked_and_stale_answers_cost_it_nothing() -> None:
    scene = Scene(WAYS["cache"])
    names = [f"n{number}.example" for number in range(6)]
    for name in names:
        scene.ask(name, OTHER)
        scene.timers.advance(2 * DELAY)
    scene.timers.advance(86_400)
    scene.forward.upstreams[0].behave(silent)
    scene.answers.clear()
    for name in names[:5]:
        scene.ask(name, client())
    assert len(scene.answers) == 5 - MUCH  # what is over the share is not waited for
    assert (scene.dropped, scene.forward.in_flight.total) == (5 - MUCH, MUCH)
    scene.timers.advance(1.8)
    details = [each.detail for each in scene.answers if isinstance(each, Resolution)]
    assert details == [CacheHit("success", ".", stale=True)] * 5
    scene.ask(names[5], OTHER)
    assert scene.forward.in_flight.total == MUCH + 1


@pytest.mark.parametrize("transport", ["udp", "tcp"])
def test_n14_a_dropped_query_gets_no_reply_and_is_counted_under_forward(transport: str) -> None:
    scene = Scene(WAYS["cache"])
    around = partial(scene.around, below=scene.below)
    answering = handler(block(".", around), transport=transport)
    replies = [answering.answer(dig(f"n{number}.example. A"), CLIENT.address, 40_000) for number in range(4)]
    assert [isinstance(reply, Outcome) for reply in replies] == [True, True, False, False]
    assert replies[2:] == [None, None]
    assert [(kind.plugin, kind.rcode, times) for kind, times in counted(answering).items()] == [("forward", "", 2)]


def test_n14_and_its_word_is_heard_again_once_it_has_its_answers() -> None:
    scene = Scene(WAYS["cache"])
    for number in range(4):
        scene.ask(f"n{number}.example", client())
    scene.timers.advance(DELAY)
    scene.answers.clear()
    scene.ask("n3.example", client())
    scene.timers.advance(DELAY)
    (answer,) = scene.answers
    assert isinstance(answer, Resolution)
    assert answer.response.rcode == Rcode.NOERROR


HEAVY, LIGHT, LATE = client("10.240.0.1"), client("10.240.0.2"), client("10.240.0.3")


class FourPlaces:
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
    scene = FourPlaces()
    for name in ("a", "b", "c"):
        scene.ask(name, HEAVY)
    scene.ask("d", LIGHT)
    scene.ask("late", LATE)
    assert scene.got == {"c 1": "dropped by forward"}
    scene.forward.timers.advance(0.3)
    assert scene.got == {
        **{"a 1": "NOERROR", "b 1": "NOERROR", "c 1": "dropped by forward"},
        **{"d 2": "NOERROR", "late 3": "NOERROR"},
    }
    assert scene.forward.in_flight.total == 0


def test_the_query_of_a_dropped_question_is_cancelled() -> None:
    scene = FourPlaces(silent)
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
    scene = FourPlaces(silent, max_connect_attempts=0, read_timeout=0.2)
    for name in ("a", "b", "c", "d"):
        scene.ask(name, HEAVY)
    scene.forward.timers.advance(0.25)  # the first round is over
    scene.ask("late", LATE)
    before = scene.forward.asked[0]
    scene.forward.timers.advance(0.2)
    assert scene.forward.asked[0] - before == 3


def test_others_that_wait_for_the_same_flight_get_its_answer() -> None:
    scene = FourPlaces()
    for name in ("a", "b", "same"):
        scene.ask(name, HEAVY)
    scene.ask("same", LIGHT)
    scene.ask("late", LATE)
    assert scene.got == {"same 1": "dropped by forward"}
    scene.forward.timers.advance(0.3)
    assert scene.got["same 2"] == "NOERROR"
    assert (scene.forward.asked, scene.forward.in_flight.total) == ([4], 0)


def test_a_name_whose_flight_was_cancelled_is_asked_anew() -> None:
    scene = FourPlaces()
    for name in ("a", "b", "c"):
        scene.ask(name, HEAVY)
    scene.ask("d", LIGHT)
    scene.ask("c", LATE)
    scene.forward.timers.advance(0.3)
    assert (scene.got["c 1"], scene.got["c 3"]) == ("dropped by forward", "NOERROR")


def test_max_concurrent_counts_a_dropped_question_no_more() -> None:
    scene = FourPlaces(max_concurrent=4)
    for name in ("a", "b", "c"):
        scene.ask(name, HEAVY)
    scene.ask("d", LIGHT)
    scene.forward.timers.advance(0.3)
    for name in ("e", "f", "g"):
        scene.ask(name, HEAVY)
    scene.ask("h", LIGHT)
    scene.forward.timers.advance(0.3)
    assert set(scene.got.values()) == {"NOERROR"}


@pytest.mark.parametrize("fast", [True, False], ids=["fast path", "chain"])
def test_a_dropped_question_gets_no_reply_and_is_counted_by_fast_path_and_chain(fast: bool) -> None:
    resolver = Resolver(fast, whatever, "cache 30")
    resolver.upstream.delay = 0.1
    replies = {}
    for name, asker in [(f"n{n}", HEAVY) for n in range(2)] + [(f"o{n}", LIGHT) for n in range(2)]:
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
