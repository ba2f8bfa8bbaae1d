"""N14: what one client may have under way at upstreams, whichever way its questions go there."""

from collections.abc import Callable
from functools import partial

import pytest

from tests.support.cache_with_upstream import CLIENT
from tests.support.forward_with_upstreams import ForwardScene
from tests.support.in_memory_server import block, counted, dig, handler
from tests.support.query_builders import ask, client
from tests.support.scripted_upstream import silent, whatever
from topodns.dns.message import Query
from topodns.dns.name import parse_name
from topodns.dns.rrtype import Rcode, RRType
from topodns.nodecache.corefile import NODE_CACHE
from topodns.plugins.autopath.handler import SearchPath
from topodns.plugins.autopath.search_list import FixedSearch
from topodns.plugins.autopath.settings import Autopath
from topodns.plugins.cache.handler import ResponseCache
from topodns.plugins.dns64 import Dns64, Translator
from topodns.plugins.forward.limits import InFlight
from topodns.query.answer_detail import CacheHit
from topodns.query.deferred import Outcome, pursue
from topodns.query.plugin import Answered, Around, Client, Dropped, Resolution, settled

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
