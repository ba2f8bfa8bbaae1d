"""What is pushed to whom after which change, at which cost. tests/stories/test_push.py has it over TCP."""

from random import Random

import pytest

from tests.support.model_builders import endpoint, endpoint_slice, namespace, node, packed, service
from tests.support.push_client import (
    AAAA,
    ALL_REMOVED,
    CNAME,
    NOERROR,
    NOTAUTH,
    PTR,
    REFUSED,
    SERVFAIL,
    SRV,
    TXT,
    A,
    Notified,
    changes,
    reconfirm,
    unsubscribe,
)
from tests.support.push_server import ORIGIN, PushServer, push_block
from tests.support.scripted_step import FACT, Scripted
from topodns.cluster.model import Change, Deleted, ObjectKey, Upserted
from topodns.dependency import EVERYTHING, Fact, service_fact
from topodns.dns.message import Query
from topodns.dns.name import parse_name
from topodns.dns.rrtype import Rcode
from topodns.dnsserver.router import BlockTable
from topodns.plugins.kubernetes.settings import KubernetesSettings
from topodns.plugins.push import SessionEnd
from topodns.plugins.topology.settings import TopologySettings
from topodns.query.deferred import Outcome
from topodns.query.plugin import Client, Resolution, Scope
from topodns.query.session import PushLimits
from topodns.topology.select import UnknownClient

WEB, DB = "web.default.svc.cluster.local.", "db.default.svc.cluster.local."
ZONE = "topology.kubernetes.io/zone"
HOME = {"n1": "10.0.0.1", "n2": "10.0.0.2"}


def cluster(*more: Change, topology: TopologySettings | None = None, limits: PushLimits | None = None) -> PushServer:
    """Two Nodes in two topology zones."""
    server = PushServer(topology=topology, limits=limits or PushLimits())
    nodes = [node(name, {ZONE: f"zone-{name}"}, [address]) for name, address in HOME.items()]
    server.apply(Upserted(namespace("default")), *map(Upserted, nodes), *more)
    return server


def db_on(**addresses: str) -> Change:
    """The slice of `db` with an endpoint on each of these nodes."""
    return Upserted(endpoint_slice("db", *(endpoint(address, name) for name, address in addresses.items())))


def touched(server: PushServer, *facts: Fact) -> None:
    server.publisher.touched(frozenset(facts))
    server.settle()


def test_sessions_share_an_answer_that_is_the_same_for_all() -> None:
    step = Scripted(bytes(4))
    server = PushServer(step)
    clients = [server.connect(f"10.0.1.{last}") for last in range(1, 51)]
    assert {one.subscribe(WEB) for one in clients} == {NOERROR}
    assert len(step.asked) == 1
    step.rdatas = (b"\1\2\3\4",)
    touched(server, FACT)
    assert len(step.asked) == 2
    assert {tuple(one.addresses(WEB)) for one in clients} == {("1.2.3.4",)}
    assert server.counts.pushes == 100


def test_an_answer_that_rests_on_nothing_touched_is_not_made_anew() -> None:
    step = Scripted(bytes(4))
    server = PushServer(step)
    server.connect().subscribe(WEB)
    touched(server, service_fact("default", "other"))
    assert len(step.asked) == 1


def test_many_changes_in_one_turn_are_one_push() -> None:
    step = Scripted(bytes(4))
    server = PushServer(step)
    one = server.connect()
    one.subscribe(WEB)
    for number in range(10):
        step.rdatas = (bytes([10, 0, 0, number]),)
        server.publisher.touched(frozenset({FACT}))
    server.settle()
    assert (len(step.asked), one.pushes) == (2, 2)


def test_the_query_is_that_of_the_client_over_tcp() -> None:
    step = Scripted(bytes(4))
    server = PushServer(step)
    server.connect("10.0.0.7").subscribe(WEB.upper(), node="n1")
    [(query, client)] = step.asked
    assert (query.qname, query.qtype, query.edns and query.edns.options) == (parse_name(WEB), 1, ((65518, b"n1"),))
    assert (client.address, client.port, client.transport, client.local_port) == (packed("10.0.0.7"), 40000, "tcp", 53)


def test_a_change_of_everything_makes_all_answers_anew_in_slices() -> None:
    step = Scripted(bytes(4))
    server = PushServer(step)
    for last in range(1, 4):
        one = server.connect(f"10.0.1.{last}")
        for number in range(200):
            one.subscribe(f"n{number}-{last}.default.svc.cluster.local.")
    before = len(step.asked)
    touched(server, EVERYTHING)
    assert len(step.asked) == before + 600


def test_a_service_without_endpoints_near_is_pushed_empty_and_full_again() -> None:
    server = cluster(Upserted(service("db", annotation=ZONE)), db_on(n1="10.1.0.1"))
    one = server.connect(HOME["n2"])
    assert one.subscribe(DB) == NOERROR
    assert one.messages == []
    server.apply(db_on(n1="10.1.0.1", n2="10.1.0.2"))
    assert one.addresses(DB) == ["10.1.0.2"]
    server.apply(db_on(n1="10.1.0.1"))
    assert changes(one.messages[-1]) == [Notified(DB, 1, ALL_REMOVED, b"")]


def test_other_types_are_followed_as_well() -> None:
    server = cluster(
        Upserted(service("web", cluster_ips=["10.96.0.1"], ports=["http:80/TCP"])),
        Upserted(service("elsewhere", external_name="example.org")),
    )
    one = server.connect()
    alias = "elsewhere.default.svc.cluster.local."
    assert [one.subscribe(WEB, SRV), one.subscribe(alias, CNAME)] == [NOERROR, NOERROR]
    assert one.subscribe("dns-version.cluster.local.", TXT) == NOERROR
    assert one.pushes == 3
    server.apply(Upserted(service("elsewhere", external_name="example.net")))
    assert one.records[(alias, CNAME)] == {b"\7example\3net\0": 5}


@pytest.mark.parametrize("rtype", [A, AAAA])
def test_a_subscriber_to_the_addresses_of_an_external_name_is_pushed_its_alias(rtype: int) -> None:
    server = cluster(Upserted(service("elsewhere", external_name="example.org")))
    one = server.connect()
    alias = "elsewhere.default.svc.cluster.local."
    assert one.subscribe(alias, rtype) == NOERROR
    assert one.records == {(alias, CNAME): {b"\7example\3org\0": 5}}
    server.apply(Upserted(service("elsewhere", external_name="example.net")))
    assert one.records == {(alias, CNAME): {b"\7example\3net\0": 5}}
    server.apply(Upserted(service("elsewhere", cluster_ips=["10.96.0.7", "fd00::7"])))
    assert one.records[(alias, CNAME)] == {}
    assert len(one.addresses(alias, rtype)) == 1


@pytest.mark.parametrize("rcode", [Rcode.NOERROR, Rcode.NXDOMAIN, Rcode.REFUSED, Rcode.SERVFAIL])
def test_the_reverse_name_of_an_endpoint_that_goes_and_comes_back_is_followed(rcode: int) -> None:
    """With `fallthrough`, and `forward` after `kubernetes`, whatever upstreams answer; SERVFAIL: all have failed."""
    settings = KubernetesSettings((ORIGIN, parse_name("in-addr.arpa")), fallthrough=((),))
    forward = Scripted(b"\3ptr\3org\0")
    forward.upstream, forward.facts, forward.rcode = "192.0.2.53:53", (), rcode
    server = PushServer(after=forward, kubernetes=settings)
    server.apply(Upserted(namespace("default")), Upserted(service("db")), db_on(n1="10.1.0.1"))
    one, name = server.connect(), "1.0.1.10.in-addr.arpa."
    assert one.subscribe("2.0.1.10.in-addr.arpa.", PTR) == NOTAUTH
    assert one.subscribe(name, PTR) == NOERROR
    (pushed,) = one.records[(name, PTR)]
    server.apply(db_on())
    assert (one.records[(name, PTR)], one.is_open) == ({}, True)
    server.apply(db_on(n1="10.1.0.1"))
    assert [*one.records[(name, PTR)]] == [pushed]


def test_a_client_that_may_have_nothing_is_refused_and_one_that_may_no_longer_has_it_removed() -> None:
    server = cluster(
        Upserted(service("db", annotation=ZONE)),
        db_on(n1="10.1.0.1"),
        topology=TopologySettings(unknown_client=UnknownClient.REFUSE),
    )
    one = server.connect(HOME["n1"])
    assert server.connect("10.9.9.9").subscribe(DB) == REFUSED
    assert one.subscribe(DB) == NOERROR
    server.apply(Deleted("Node", ObjectKey("", "n1")), Upserted(node("n3", {ZONE: "zone-n3"})))
    assert one.addresses(DB) == []
    server.apply(Upserted(node("n1", {ZONE: "zone-n1"}, [HOME["n1"]])))
    assert one.addresses(DB) == ["10.1.0.1"]
    assert server.counts.subscriptions == 1


def test_while_an_answer_is_not_ready_the_last_one_stays() -> None:
    step = Scripted(bytes(4))
    server = PushServer(step)
    one = server.connect()
    one.subscribe(WEB)
    step.rcode = Rcode.SERVFAIL
    touched(server, FACT)
    assert one.pushes == 1
    assert server.connect("10.0.0.7").subscribe("new.default.svc.cluster.local.") == SERVFAIL
    step.rcode, step.rdatas = Rcode.NOERROR, (b"\1\2\3\4",)
    touched(server, FACT)
    assert one.addresses(WEB) == ["1.2.3.4"]


def test_what_an_upstream_answers_cannot_be_followed() -> None:
    step = Scripted(bytes(4))
    step.upstream = "192.0.2.53:53"
    server = PushServer(step)
    one = server.connect()
    assert one.subscribe(WEB) == NOTAUTH
    assert server.counts.subscriptions == 0


def test_a_name_that_falls_through_is_pushed_empty_and_its_session_and_other_subscriptions_stay() -> None:
    """As the reverse name of an endpoint that goes: `fallthrough` hands it to `forward`, until there is one again."""
    step = Scripted(bytes(4))
    server = PushServer(step)
    one, other = server.connect(), server.connect("10.0.0.8")
    for each in (one, other):
        assert each.subscribe(WEB) == NOERROR
        assert each.subscribe(DB) == NOERROR
    step.upstream, step.facts = "192.0.2.53:53", ()
    touched(server, FACT)
    assert (one.is_open, other.is_open) == (True, True)
    assert (one.addresses(WEB), server.counts.subscriptions) == ([], 4)
    assert one.pushes == 4
    assert server.connect("10.0.0.7").subscribe(WEB) == NOTAUTH
    touched(server, FACT)
    assert one.pushes == 4
    step.upstream, step.facts = "", (FACT,)
    touched(server, FACT)
    new = server.connect("10.0.0.7")
    assert new.subscribe(WEB) == NOERROR
    for each in (one, other, new):
        assert each.addresses(WEB) == ["0.0.0.0"]
    assert server.counts.ended == {}


def test_what_a_plugin_drops_is_refused() -> None:
    step = Scripted(bytes(4))
    step.dropped = True
    assert PushServer(step).connect().subscribe(WEB) == REFUSED


def test_what_has_no_dependencies_and_is_for_one_query_only_is_refused() -> None:
    step = Scripted(bytes(4), scope=Scope.CLIENT, facts=())
    assert PushServer(step).connect().subscribe(WEB) == REFUSED


def test_reconfirm_makes_a_followed_answer_anew_and_no_other() -> None:
    step = Scripted(bytes(4))
    server = PushServer(step)
    one = server.connect()
    one.subscribe(WEB)
    step.rdatas = (b"\1\2\3\4",)
    assert one.tell(reconfirm(DB, 1, bytes(4)))
    server.settle()
    assert len(step.asked) == 1
    assert one.tell(reconfirm(WEB, 1, bytes(4)))
    server.settle()
    assert one.addresses(WEB) == ["1.2.3.4"]


def test_answers_of_a_viewer_join_when_they_are_the_same_for_all_and_part_when_not() -> None:
    step = Scripted(bytes(4), scope=Scope.NODE)
    server = PushServer(step)
    clients = [server.connect(f"10.0.1.{last}") for last in range(1, 5)]
    for one in clients:
        one.subscribe(WEB)
    assert len(step.asked) == 4
    step.scope = Scope.EVERYONE
    touched(server, FACT)
    assert len(step.asked) == 8
    touched(server, FACT)
    assert len(step.asked) == 9, "one for all"
    step.scope, step.rdatas = Scope.NODE, (b"\1\2\3\4",)
    touched(server, FACT)
    assert {tuple(one.addresses(WEB)) for one in clients} == {("1.2.3.4",)}
    before = len(step.asked)
    touched(server, FACT)
    assert len(step.asked) == before + 4, "one for each"


class Waiting(Scripted):
    """Answers only when the test lets it."""

    def __init__(self, *rdatas: bytes) -> None:
        super().__init__(*rdatas)
        self.arrival: Outcome[None] = Outcome()

    async def later(self, query: Query, client: Client) -> Resolution:
        await self.arrival
        return super().__call__(query, client)

    def __call__(self, query: Query, client: Client) -> Resolution:
        return self.later(query, client)  # type: ignore[return-value]

    def arrive(self) -> None:
        arrival, self.arrival = self.arrival, Outcome()
        arrival.settle(None)


def test_a_deferred_answer_has_its_response_when_it_is_there() -> None:
    step = Waiting(bytes(4))
    server = PushServer(step)
    one, two = server.connect(), server.connect()
    assert (one.subscribe(WEB), two.subscribe(WEB)) == (-1, -1)
    step.arrive()
    assert (one.responses[-1].rcode, two.responses[-1].rcode) == (NOERROR, NOERROR)
    assert (one.addresses(WEB), two.addresses(WEB)) == (["0.0.0.0"], ["0.0.0.0"])


def test_a_change_while_an_answer_waits_makes_it_anew() -> None:
    step = Waiting(bytes(4))
    server = PushServer(step)
    one = server.connect()
    one.subscribe(WEB)
    server.publisher.touched(frozenset({FACT}))
    step.arrive()
    step.rdatas = (b"\1\2\3\4",)
    server.settle()
    step.arrive()
    server.settle()
    assert one.addresses(WEB) == ["1.2.3.4"]


def test_an_answer_that_is_cancelled_while_it_waits_has_its_response_and_no_push() -> None:
    step = Waiting(bytes(4))
    server = PushServer(step)
    one, gone = server.connect(), server.connect("10.0.0.7")
    one.subscribe(WEB)
    gone.subscribe(WEB)
    assert one.tell(unsubscribe(1))
    gone.close()
    step.arrive()
    step.arrive()
    server.settle()
    assert [response.rcode for response in one.responses] == [NOERROR]
    assert (one.messages, gone.responses) == ([], [])
    assert (server.counts.subscriptions, server.counts.octets) == (0, 0)


def test_an_answer_that_was_cancelled_while_it_is_made_anew_takes_no_memory() -> None:
    """Also where it is not ready then: as of a name whose upstream fails late."""
    step = Waiting(bytes(4))
    server = PushServer(step)
    one = server.connect()
    one.subscribe(WEB)
    step.arrive()
    touched(server, FACT)
    one.close()
    server.settle()
    step.rcode = Rcode.SERVFAIL
    step.arrive()
    assert (server.counts.octets, server.known_addresses) == (0, 0)


def test_a_client_that_cancels_while_it_waits_has_its_response_at_once() -> None:
    """A client that subscribes and cancels in turns leaves nothing to do, and to keep, until the answer is there."""
    step = Waiting(bytes(4))
    server = PushServer(step)
    one, two = server.connect(), server.connect()
    one.subscribe(WEB)
    for ident in range(1, 101):
        assert two.subscribe(WEB) == -1
        assert two.tell(unsubscribe(ident))
        assert (two.responses[-1].ident, two.responses[-1].rcode) == (ident, NOERROR)
    step.arrive()
    assert len(two.responses) == 100
    assert (one.addresses(WEB), two.messages) == (["0.0.0.0"], [])


def test_an_answer_that_joins_another_while_it_is_doubted_is_not_made_any_more() -> None:
    step = Scripted(bytes(4), scope=Scope.NODE)
    server = PushServer(step)
    clients = [server.connect(f"10.0.1.{last}") for last in range(1, 5)]
    for one in clients:
        one.subscribe(WEB)
    for scope in (Scope.EVERYONE, Scope.NODE, Scope.EVERYONE):
        step.scope = scope
        server.publisher.touched(frozenset({FACT}))
        for one in clients:
            assert one.tell(reconfirm(WEB, 1, bytes(4)))
        server.settle()
    before = len(step.asked)
    touched(server, FACT)
    assert len(step.asked) == before + 1, "one for all"
    for one in clients:
        one.close()
    server.settle()
    assert (server.counts.octets, server.known_addresses) == (0, 0)


def test_after_a_reload_answers_are_those_of_the_new_blocks() -> None:
    server = PushServer(Scripted(bytes(4)))
    one = server.connect()
    one.subscribe(WEB)
    server.publisher.swap(BlockTable([push_block(Scripted(b"\1\2\3\4"))]), PushLimits())
    server.settle()
    assert one.addresses(WEB) == ["1.2.3.4"]


def test_after_a_reload_without_the_zone_of_a_subscription_its_session_ends_with_notauth() -> None:
    server = PushServer(Scripted(bytes(4)))
    one = server.connect()
    one.subscribe(WEB)
    server.publisher.swap(BlockTable([]), PushLimits())
    server.settle()
    assert not one.is_open
    assert one.messages[-1].rcode == NOTAUTH
    assert server.counts.ended == {SessionEnd.SERVER: 1}


def test_after_a_reload_without_push_all_sessions_end() -> None:
    server = PushServer(Scripted(bytes(4)))
    one = server.connect()
    one.subscribe(WEB)
    server.publisher.swap(BlockTable([]), None)
    assert not one.is_open
    assert server.counts.ended == {SessionEnd.SERVER: 1}


def test_retry_delays_differ() -> None:
    server = PushServer()
    assert len({server.publisher.retry_delay() for _ in range(20)}) > 10


def random_change(rng: Random) -> Change:
    """A change of one of two headless Services, their keys, their endpoints, or a Node's place."""
    name = rng.choice(["web", "db"])
    kind = rng.randrange(6)
    if kind == 0:
        return Upserted(service(name, annotation=rng.choice([None, ZONE, f"{ZONE},*", "kubernetes.io/hostname"])))
    if kind == 1:
        return Deleted("Service", ObjectKey("default", name))
    if kind == 2:
        where = rng.choice(sorted(HOME))
        return Upserted(node(where, {ZONE: rng.choice(["a", "b"])}, [HOME[where]]))
    places = [(f"10.1.0.{last}", rng.choice(["n1", "n2"])) for last in range(1, rng.randrange(2, 6))]
    return Upserted(endpoint_slice(name, *(endpoint(address, home) for address, home in places)))


@pytest.mark.parametrize("seed", range(12))
def test_after_any_changes_each_client_has_what_a_new_subscriber_at_its_place_gets(seed: int) -> None:
    rng = Random(seed)
    server = cluster(Upserted(service("web")), Upserted(service("db", annotation=ZONE)))
    places = (*HOME.values(), "10.9.9.9")
    clients = [(place, server.connect(place)) for place in (*places, *places)]
    for _, one in clients:
        assert [one.subscribe(name) for name in (WEB, DB)] == [NOERROR, NOERROR]
    for _ in range(25):
        server.apply(*(random_change(rng) for _ in range(rng.randrange(1, 4))))
        resolved = {}
        for place in places:
            fresh = PushServer()
            fresh.state, fresh.locator, fresh.blocks = server.state, server.locator, server.blocks
            fresh.publisher._blocks = server.blocks
            new = fresh.connect(place)
            assert [new.subscribe(name) for name in (WEB, DB)] == [NOERROR, NOERROR]
            resolved[place] = [new.addresses(name) for name in (WEB, DB)]
        for place, one in clients:
            assert [one.addresses(name) for name in (WEB, DB)] == resolved[place]
        if rng.random() < 0.3:
            one = rng.choice(clients)[1]
            ident = next(iter(one.session.answers))
            name = WEB if one.session.answers[ident].qname.startswith(b"\3web") else DB
            assert one.tell(unsubscribe(ident))
            one.records.pop((name, 1), None)
            assert one.subscribe(name) == NOERROR
