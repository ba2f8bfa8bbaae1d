"""A node cache's entries: for the Node, a namespace or one client, as the cluster DNS says."""

from dataclasses import dataclass, field
from random import Random

import pytest

from tests.support.cache_with_upstream import positive, question
from tests.support.deferred_results import at_once
from tests.support.virtual_timers import VirtualTimers
from topodns.dns.message import Ede, EdeCode, Option, Query, Response
from topodns.dns.rrtype import RCODE_NAMES, Rcode
from topodns.plugins.cache.handler import ResponseCache
from topodns.plugins.cache.pod_naming import KNOWN, MAX_CLIENTS, WANTED, PodNaming
from topodns.plugins.cache.settings import Cache, Prefetch, ServeStale
from topodns.query.client_scope import ClientScope, client_scope
from topodns.query.plugin import Client, Resolution, Scope, forwarded_options

NODE, NAMESPACE, CLIENT = ClientScope.NODE, ClientScope.NAMESPACE, ClientScope.CLIENT
SCOPES = {
    "node.example. A": NODE,
    "namespace.example. A": NAMESPACE,
    "other.example. A": NAMESPACE,
    "client.example. A": CLIENT,
}
SHOP, OTHER_SHOP, BANK = 1, 2, 3  # the last octet of three Pods
SPACES = ("shop", "bank")


@dataclass
class ClusterDns:
    """A cluster DNS whose answer `10.SCOPE.NAMESPACE.CLIENT` has all that it depends on, as far as its scope says."""

    namespaces: dict[int, str] = field(default_factory=lambda: {SHOP: "shop", OTHER_SHOP: "shop", BANK: "bank"})
    asked: list[str] = field(default_factory=list)  # `NAME CLIENT`; the client is 0 where the query names none
    reads_pods: bool = True
    option: bytes | None = None  # in place of the right one

    def __call__(self, query: Query, client: Client) -> "object":
        return self._resolve(query)

    async def _resolve(self, query: Query) -> Resolution:
        named = [data for code, data in forwarded_options(query.edns) if code == Option.CLIENT_POD]
        who = named[0][-1] if named else 0
        self.asked.append(f"{query.qname[0]} {who}")
        return Resolution(self._response(f"{'.'.join(query.qname)}. A", who), "forward", Scope.CLIENT, upstream="dns")

    def _response(self, name: str, who: int) -> Response:
        scope = SCOPES[name]
        if not self.reads_pods:
            return positive(30, "10.9.9.9")
        if not who:
            return Response(Rcode.REFUSED, flags=0, ede=Ede(EdeCode.NAME_CLIENT, ""))
        namespace = self.namespaces.get(who)
        if scope is NAMESPACE and namespace is None:
            scope = CLIENT
        number = SPACES.index(namespace) + 1 if namespace is not None else 0
        response = positive(30, f"10.{scope}.{number if scope else 0}.{who if scope is CLIENT else 0}")
        option = client_scope(scope, (namespace or "") if scope is NAMESPACE else "")
        response.options = (option if self.option is None else (Option.CLIENT_POD, self.option),)
        return response


class NodeCache:
    def __init__(self, settings: Cache | None = None) -> None:
        self.timers = VirtualTimers()
        self.dns = ClusterDns()
        self.cache = ResponseCache(settings or Cache(), self.timers)
        self.cache.naming = self.naming = PodNaming(self.timers)

    def resolve(self, name: str, who: int) -> Resolution:
        client = Client(bytes((10, 1, 0, who)), 40_000, "udp")
        return at_once(self.cache(question(name), client, self.dns))  # type: ignore[arg-type]

    def ask(self, name: str, who: int) -> str:
        """The address in the answer to the Pod with this last octet; the rcode if it is none."""
        resolution = self.resolve(name, who)
        assert resolution.response.options == (), "for the node cache alone"
        answer = resolution.response.answer
        return ".".join(map(str, answer[0].rdatas[0])) if answer else RCODE_NAMES[resolution.response.rcode]


@pytest.fixture
def node() -> NodeCache:
    return NodeCache()


def test_a_client_is_named_only_once_it_is_asked_for(node: NodeCache) -> None:
    node.dns.reads_pods = False
    assert [node.ask("node.example. A", who) for who in (SHOP, BANK)] == ["10.9.9.9"] * 2
    assert node.dns.asked == ["node 0"]
    node.dns.reads_pods = True
    node.timers.advance(60)
    assert [node.ask("client.example. A", SHOP), node.ask("node.example. A", BANK)] == ["10.2.1.1", "10.0.0.0"]
    assert node.dns.asked[1:] == ["client 0", "client 1", "node 3"]


@pytest.mark.parametrize(
    ("name", "answers", "asked"),
    [
        ("node.example. A", ["10.0.0.0", "10.0.0.0", "10.0.0.0"], ["node 0", "node 1"]),
        (
            "namespace.example. A",
            ["10.1.1.0", "10.1.1.0", "10.1.2.0"],
            ["namespace 0", "namespace 1", "namespace 2", "namespace 3"],
        ),
        ("client.example. A", ["10.2.1.1", "10.2.1.2", "10.2.2.3"], ["client 0", "client 1", "client 2", "client 3"]),
    ],
)
def test_an_answer_is_shared_as_far_as_the_cluster_dns_says(
    node: NodeCache, name: str, answers: list[str], asked: list[str]
) -> None:
    for _ in range(3):
        assert [node.ask(name, who) for who in (SHOP, OTHER_SHOP, BANK)] == answers
    assert node.dns.asked == asked


def test_the_namespace_of_an_address_is_known_by_any_name(node: NodeCache) -> None:
    for name, who in (("namespace.example. A", SHOP), ("other.example. A", OTHER_SHOP)):
        node.ask(name, who)
    asked = len(node.dns.asked)
    assert node.ask("namespace.example. A", OTHER_SHOP) == "10.1.1.0"
    assert len(node.dns.asked) == asked


def test_an_entry_for_some_clients_lives_for_a_few_seconds_and_is_never_stale() -> None:
    node = NodeCache(Cache(serve_stale=ServeStale()))
    node.ask("client.example. A", SHOP)
    assert node.resolve("client.example. A", SHOP).response.answer[0].ttl == KNOWN
    node.dns.namespaces[SHOP] = "bank"
    node.timers.advance(KNOWN - 1)
    assert node.ask("client.example. A", SHOP) == "10.2.1.1"
    node.timers.advance(1)
    assert node.ask("client.example. A", SHOP) == "10.2.2.1"


@pytest.mark.parametrize("name", ["namespace.example. A", "client.example. A"])
def test_no_copy_of_an_entry_for_some_clients_is_in_the_packet_cache(node: NodeCache, name: str) -> None:
    assert {node.resolve(name, SHOP).scope for _ in range(3)} == {Scope.CLIENT}
    assert node.ask("node.example. A", SHOP) == "10.0.0.0"
    assert node.resolve("node.example. A", SHOP).scope is Scope.EVERYONE


def test_an_answer_from_before_the_cluster_dns_told_clients_apart_ends() -> None:
    node = NodeCache(Cache(serve_stale=ServeStale()))
    node.dns.reads_pods = False
    assert node.ask("client.example. A", SHOP) == "10.9.9.9"
    node.dns.reads_pods = True
    node.timers.advance(31)
    assert node.ask("client.example. A", SHOP) in ("10.9.9.9", "10.2.1.1")  # stale, while the new one is fetched
    assert [node.ask("client.example. A", who) for who in (BANK, SHOP)] == ["10.2.2.3", "10.2.1.1"]


def test_the_first_query_and_one_a_minute_name_their_client_unasked(node: NodeCache) -> None:
    node.dns.reads_pods = False
    node.naming.start()
    for _ in range(3):
        for name in ("node.example. A", "client.example. A"):
            node.ask(name, SHOP)
        node.timers.advance(31)
    assert node.dns.asked == ["node 1", "client 0", "node 0", "client 0", "node 1", "client 0"]
    node.dns.reads_pods = True
    node.timers.advance(60)
    assert [node.ask("node.example. A", who) for who in (SHOP, BANK)] == ["10.0.0.0"] * 2
    assert node.ask("namespace.example. A", BANK) == "10.1.2.0"
    assert node.dns.asked[6:] == ["node 1", "namespace 3"]
    node.naming.close()
    assert node.timers.pending == 0


def test_clients_are_named_no_longer_when_nothing_is_read_of_them(node: NodeCache) -> None:
    node.ask("client.example. A", SHOP)
    node.dns.reads_pods = False
    node.timers.advance(WANTED - 1)
    node.ask("node.example. A", SHOP)
    node.timers.advance(31)
    node.ask("node.example. A", SHOP)
    assert node.dns.asked == ["client 0", "client 1", "node 1", "node 0"]


@pytest.mark.parametrize(
    "option",
    [
        b"", b"\3", b"\xff", b"\0x", b"\2x", b"\1", b"\1Shop", b"\1a.b", b"\1" + b"a" * 64, b"\1shop\0", b"\1\xff",
        b"1", bytes(600),
    ],
)  # fmt: skip
def test_an_answer_with_a_scope_that_cannot_be_read_is_not_kept(node: NodeCache, option: bytes) -> None:
    node.dns.option = option
    for who in (SHOP, BANK, SHOP):
        assert node.ask("client.example. A", who).startswith("10.2.")
    assert [each for each in node.dns.asked if each != "client 0"] == ["client 1", "client 3", "client 1"]


def test_a_cluster_dns_that_asks_again_and_again_is_given_one_name(node: NodeCache) -> None:
    node.dns.namespaces, response = {}, Response(Rcode.REFUSED, flags=0, ede=Ede(EdeCode.NAME_CLIENT, ""))
    node.dns._response = lambda name, who: response  # type: ignore[method-assign]
    assert node.ask("client.example. A", SHOP) == "REFUSED"
    assert node.dns.asked == ["client 0", "client 1"]
    assert len(node.cache.memory.success) == len(node.cache.memory.denial) == 0


def test_addresses_of_no_more_than_so_many_clients_are_remembered(node: NodeCache) -> None:
    key = client_scope(NAMESPACE, "shop")
    for number in range(MAX_CLIENTS + 10):
        client = Client(number.to_bytes(4, "big"), 40_000, "udp")
        response = positive(30)
        response.options = (key,)
        node.naming.key_for(b"key", client, response)
    assert len(node.naming._namespaces) == MAX_CLIENTS


def test_options_of_an_answer_that_are_for_the_client_stay(node: NodeCache) -> None:
    response: Response = positive(30)
    options: tuple[tuple[int, bytes], ...] = ((3, b"id"), client_scope(NODE))
    response.options = options
    node.naming.key_for(b"key", Client(b"\0\0\0\0", 1, "udp"), response)
    assert response.options == options[:1]


CACHES = [
    Cache(),
    Cache(serve_stale=ServeStale()),
    Cache(serve_stale=ServeStale(verify=True)),
    Cache(prefetch=Prefetch(1, 60.0, 50)),
]


class Model:
    """The namespaces that an address had within the last 5 s, "" for none: it may get the answers of these."""

    def __init__(self, namespaces: dict[int, str]) -> None:
        self._spans = {who: [(name, float("-inf"))] for who, name in namespaces.items()}  # (namespace, its beginning)

    def move(self, who: int, namespace: str, now: float) -> None:
        self._spans[who].append((namespace, now))

    def recent(self, who: int, now: float) -> set[str]:
        spans = self._spans[who]
        ends = [*(start for _, start in spans[1:]), float("inf")]
        return {name for (name, _), end in zip(spans, ends, strict=True) if end >= now - 5.0}


class History:
    """A random history of questions, Pods that get an address, changes of the cluster DNS, and time."""

    def __init__(self, cache: Cache, random: Random) -> None:
        self.node = NodeCache(cache)
        self.random = random
        self.model = Model(self.node.dns.namespaces)
        self.for_all_until = 0.0  # until then an answer may be of a time when nothing was read of Pods

    def go_on(self) -> None:
        step = self.random.choices((self.ask, self.move, self.wait, self.read), (60, 10, 30, 1))[0]
        step()

    def ask(self) -> None:
        name, who = self.random.choice(sorted(SCOPES)), self.random.choice((SHOP, OTHER_SHOP, BANK))
        now = self.node.timers.time()
        _, scope, number, whom = map(int, self.node.ask(name, who).split("."))
        if scope == 9:
            assert not self.node.dns.reads_pods or now <= self.for_all_until
            return
        assert scope == NODE or ("", *SPACES)[number] in self.model.recent(who, now)
        assert scope != CLIENT or whom == who

    def move(self) -> None:
        who, namespace = self.random.choice((SHOP, OTHER_SHOP, BANK)), self.random.choice((*SPACES, ""))
        self.model.move(who, namespace, self.node.timers.time())
        self.node.dns.namespaces.pop(who, None)
        if namespace:
            self.node.dns.namespaces[who] = namespace

    def wait(self) -> None:
        self.node.timers.advance(self.random.choice((0.5, 1.0, 2.0, 4.0, 10.0)))

    def read(self) -> None:
        dns = self.node.dns
        if not dns.reads_pods:
            self.for_all_until = self.node.timers.time() + 30 + 3600  # the TTL, and `serve_stale`
        dns.reads_pods = not dns.reads_pods


@pytest.mark.parametrize("cache", CACHES, ids=["plain", "stale", "verify", "prefetch"])
def test_no_answer_for_one_namespace_or_client_is_ever_given_to_another(cache: Cache) -> None:
    for seed in range(40):
        history = History(cache, Random(seed))
        for _ in range(200):
            history.go_on()
