"""Directives as in a Corefile, in any order, and which of them answers or changes an answer."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.chains import chain_of as chain_from
from tests.support.corefile_settings import only_block
from tests.support.deferred_results import at_once
from tests.support.dns_messages import RD
from tests.support.model_builders import packed
from tests.support.query_builders import ask, client
from topodns.dependency import service_fact
from topodns.dns.message import Edns, Flag, Option, Query, Response, RRset
from topodns.dns.rrtype import Rcode, RRClass, RRType
from topodns.dnsserver.chain import Chain, ChainLink
from topodns.plugins.whoami import whoami
from topodns.query.deferred import Outcome, pursue
from topodns.query.plugin import Answered, Below, ChainPart, Client, FellThrough, Resolution, Scope, Step, settled

ALL = (
    "nsid host-1",
    "local",
    "any",
    "chaos topodns-test",
    "loadbalance",
    "acl {\nblock net 10.240.0.1/32\n}",
    "header {\nquery clear rd\nresponse set ra\n}",
    "minimal",
    "whoami",
)
BLOCKED, ALLOWED = "10.240.0.1", "10.240.0.2"
NSID = Edns(1232, 0, False, ((3, b""),))
ADDRESSES = tuple(packed(f"10.244.0.{number}") for number in range(1, 10))


class Cluster:
    """Is below everything but `whoami`: has nine addresses for every name that begins with `web`."""

    def __init__(self) -> None:
        self.flags: list[int] = []

    def __call__(self, query: Query, client: Client) -> Resolution | None:
        self.flags.append(query.flags)
        if query.qname[0] != "web":
            return None
        glue = RRset(b"\2ns\0", RRType.A, 5, ADDRESSES[:1])
        response = Response(answer=(RRset(b"", RRType.A, 5, ADDRESSES),), additional=(glue,))
        return Resolution(response, "kubernetes")


def chain_of(*directives: str, cluster: Step | None = None) -> Chain:
    """The chain of a server block with these directives, in this order."""
    step = () if cluster is None else (ChainPart(step=cluster),)
    return chain_from(only_block("\n".join(directives)), {"kubernetes": step})


@given(st.permutations(ALL))
def test_the_answering_plugin_does_not_depend_on_the_order_in_the_corefile(directives: list[str]) -> None:
    chain = chain_of(*directives, cluster=Cluster())
    answered = [
        at_once(chain.resolve(ask(name, qtype, qclass), client(address))).plugin
        for name, qtype, qclass, address in (
            ("localhost.", RRType.ANY, RRClass.IN, BLOCKED),  # `local` before `any` and `acl`
            ("example.", RRType.ANY, RRClass.IN, BLOCKED),  # `any` before `acl`
            ("version.bind.", RRType.TXT, RRClass.CH, BLOCKED),  # `chaos` before `acl`
            ("web.example.", RRType.A, RRClass.IN, BLOCKED),  # `acl` before `kubernetes`
            ("other.example.", RRType.A, RRClass.IN, BLOCKED),  # and before `whoami`
            ("web.example.", RRType.A, RRClass.IN, ALLOWED),  # `kubernetes` before `whoami`
            ("other.example.", RRType.A, RRClass.IN, ALLOWED),  # `whoami` last
        )
    ]
    assert answered == ["local", "any", "chaos", "acl", "acl", "kubernetes", "whoami"]


def resolve(
    chain: Chain, name: str, qtype: int = RRType.A, qclass: int = RRClass.IN, address: str = ALLOWED
) -> Response:
    return at_once(chain.resolve(ask(name, qtype, qclass, NSID), client(address))).response


QUESTIONS = {
    "local": ("localhost.", RRType.A, RRClass.IN, ALLOWED),
    "any": ("example.", RRType.ANY, RRClass.IN, ALLOWED),
    "chaos": ("version.bind.", RRType.TXT, RRClass.CH, ALLOWED),
    "acl": ("web.example.", RRType.A, RRClass.IN, BLOCKED),
    "kubernetes": ("web.example.", RRType.A, RRClass.IN, ALLOWED),
    "whoami": ("other.example.", RRType.A, RRClass.IN, ALLOWED),
}


@pytest.mark.parametrize("plugin", QUESTIONS)
def test_nsid_marks_the_answers_of_all_steps(plugin: str) -> None:
    response = resolve(chain_of(*ALL, cluster=Cluster()), *QUESTIONS[plugin])
    assert response.options == ((Option.NSID, b"host-1"),)


@pytest.mark.parametrize("plugin", QUESTIONS)
def test_header_changes_the_answers_of_the_steps_below_it(plugin: str) -> None:
    response = resolve(chain_of(*ALL, cluster=Cluster()), *QUESTIONS[plugin])
    below = plugin in ("kubernetes", "whoami")
    assert bool(response.flags & Flag.RA) is below
    assert bool(response.cleared & RD) is below  # which `query clear rd` took out of the query


@pytest.mark.parametrize(
    ("header", "flags"),
    [("", RD), ("header {\nquery clear rd\n}", 0), ("header {\nquery set aa\n}", RD | Flag.AA)],
)
def test_the_steps_below_header_see_the_query_as_it_makes_it(header: str, flags: int) -> None:
    cluster = Cluster()
    chain_of(header, cluster=cluster).resolve(ask("web.example."), client())
    assert cluster.flags == [flags]


def test_loadbalance_mixes_the_answers_of_the_steps_below_it() -> None:
    chain = chain_of("loadbalance", cluster=Cluster())
    orders = {resolve(chain, "web.example.").answer[0].rdatas for _ in range(20)}
    assert len(orders) > 10
    assert {frozenset(order) for order in orders} == {frozenset(ADDRESSES)}
    assert resolve(chain_of(cluster=Cluster()), "web.example.").answer[0].rdatas == ADDRESSES


def test_minimal_empties_the_other_sections_of_positive_answers() -> None:
    assert len(resolve(chain_of(cluster=Cluster()), "web.example.").additional) == 1
    assert resolve(chain_of("minimal", cluster=Cluster()), "web.example.").additional == ()


def test_the_innermost_wrapper_is_the_first() -> None:
    def mark(name: str) -> object:
        def wrapper(query: Query, client: Client, resolution: Resolution) -> Resolution:
            resolution.problem += name
            return resolution

        return wrapper

    chain = Chain((ChainLink(whoami, (mark("inner "), mark("outer")), None),))  # type: ignore[arg-type]  # they are wrappers
    assert at_once(chain.resolve(ask("example."), client())).problem == "inner outer"


def test_the_first_step_that_answers_ends_it() -> None:
    cluster = Cluster()
    chain_of("any", "whoami", cluster=cluster).resolve(ask("web.example.", RRType.ANY), client())
    assert cluster.flags == []


def test_a_query_that_all_steps_pass_is_servfail() -> None:
    chain = chain_of("any", "loadbalance", "nsid", cluster=Cluster())
    resolution = at_once(chain.resolve(ask("other.example."), client()))
    response = resolution.response
    assert (response.rcode, response.flags, response.answer, resolution.scope) == (Rcode.SERVFAIL, 0, (), Scope.CLIENT)
    assert response.ede is not None
    assert response.ede.text == "no directive of this server block answers for the name"


@pytest.mark.parametrize(
    ("directives", "rcode"),
    [
        (["bind 127.0.0.1", "ready", "reload", "debug"], Rcode.REFUSED),
        (["errors"], Rcode.SERVFAIL),
        (["loadbalance", "minimal"], Rcode.SERVFAIL),
        (["any", "nsid"], Rcode.SERVFAIL),
    ],
)
def test_the_rcode_without_an_answering_plugin_is_coredns_s(directives: list[str], rcode: int) -> None:
    resolution = at_once(chain_of(*directives).resolve(ask("example."), client()))
    assert (resolution.response.rcode, resolution.scope, resolution.plugin) == (rcode, Scope.CLIENT, "")


@pytest.mark.parametrize(
    ("acl", "scope"),
    [
        ("acl {\nblock net 10.9.0.0/16\n}", Scope.CLIENT),
        ("acl {\nallow net 10.240.0.0/16\nblock\n}", Scope.CLIENT),
        ("acl {\nblock type TXT\n}", Scope.EVERYONE),
        ("", Scope.EVERYONE),
    ],
)
def test_answers_under_an_acl_that_looks_at_sources_are_each_clients_own(acl: str, scope: Scope) -> None:
    chain = chain_of("any", acl, cluster=Cluster())
    assert at_once(chain.resolve(ask("web.example."), client())).scope == scope


FACT = service_fact("ns", "web")


class Upstream:
    """A step that waits until the test answers for it; `given` is its answer."""

    def __init__(self, given: Resolution | None) -> None:
        self.outcome: Outcome[None] = Outcome()
        self._given = given

    async def __call__(self, query: Query, client: Client) -> Resolution | None:
        await self.outcome
        return self._given


def outside() -> Resolution:
    return Resolution(Response(answer=(RRset(b"", RRType.A, 5, ADDRESSES),)), "forward", upstream="192.0.2.53:53")


def chain_with(instead: Mapping[str, tuple[ChainPart, ...]], *directives: str) -> Chain:
    return chain_from(only_block("\n".join(directives)), instead)


def test_a_step_that_waits_answers_later_and_the_wrappers_around_it_see_its_answer() -> None:
    upstream = Upstream(outside())
    answered = chain_with({"forward": (ChainPart(step=upstream),)}, "nsid host-1").resolve(
        ask("example.", edns=NSID), client()
    )
    assert not isinstance(answered, Resolution)
    results: list[Resolution] = []
    pursue(answered, results.append)
    assert results == []
    upstream.outcome.settle(None)
    assert results[0].plugin == "forward"
    assert results[0].response.options == ((Option.NSID, b"host-1"),)


def test_a_step_that_waits_and_passes_leaves_it_to_the_next() -> None:
    first, second = Upstream(None), Upstream(outside())
    answered = chain_with({"forward": (ChainPart(step=first), ChainPart(step=second))}).resolve(
        ask("example."), client()
    )
    assert not isinstance(answered, Resolution)
    results: list[Resolution] = []
    pursue(answered, results.append)
    first.outcome.settle(None)
    assert results == []
    second.outcome.settle(None)
    assert results[0].plugin == "forward"


@pytest.mark.parametrize("deferred", [False, True])
def test_each_step_gets_the_query_altered_once_also_after_one_that_waits_and_passes(deferred: bool) -> None:
    def alter(query: Query) -> Query:
        return query._replace(flags=query.flags + 1)

    async def later(query: Query, client: Client) -> Resolution | None:
        return cluster(query, client)

    cluster = Cluster()
    links = (ChainLink(later if deferred else cluster, (), alter), ChainLink(cluster, (), alter))
    at_once(Chain(links).resolve(ask("other.example."), client()))
    assert cluster.flags == [RD + 1, RD + 1]


def test_a_step_that_falls_through_adds_its_facts_to_the_final_answer() -> None:
    """So that a kept answer is forgotten when the name appears in the cluster."""

    def falling(query: Query, client: Client) -> FellThrough:
        return FellThrough((FACT,))

    upstream = Upstream(outside())
    upstream.outcome.settle(None)
    chain = chain_with({"kubernetes": (ChainPart(step=falling),), "forward": (ChainPart(step=upstream),)})
    assert at_once(chain.resolve(ask("web.ns.svc.cluster.local."), client())).facts == (FACT,)


class Marking:
    """An around that notes its name when the query passes, on the way down and on the way up."""

    def __init__(self, name: str, notes: list[str]) -> None:
        self._name, self._notes = name, notes

    async def __call__(self, query: Query, client: Client, below: Below) -> Resolution:
        self._notes.append(self._name)
        resolution = await settled(below(query, client))
        self._notes.append(f"/{self._name}")
        return resolution


def test_arounds_are_passed_in_coredns_order_and_the_cache_is_next_to_the_forwards() -> None:
    notes: list[str] = []

    def hosts(query: Query, client: Client) -> None:
        notes.append("hosts")

    def forward(query: Query, client: Client) -> Resolution:
        notes.append("forward")
        return outside()

    arounds = {name: (ChainPart(around=Marking(name, notes)),) for name in ("cache", "autopath", "rewrite", "dns64")}
    steps = {"hosts": (ChainPart(step=hosts),), "forward": (ChainPart(step=forward),)}
    chain = chain_with({**arounds, **steps}, "acl {\nblock type TXT\n}")
    at_once(chain.resolve(ask("example."), client()))
    down = ["dns64", "rewrite", "autopath", "hosts", "cache", "forward"]
    assert notes == [*down, "/cache", "/autopath", "/rewrite", "/dns64"]


def test_an_around_may_ask_below_again_and_acl_judges_each_name() -> None:
    def twice(query: Query, client: Client, below: Below) -> Answered:
        below(query, client)
        return below(query._replace(qtype=RRType.TXT), client)

    chain = chain_with(
        {"rewrite": (ChainPart(around=twice),), "kubernetes": (ChainPart(step=Cluster()),)}, "acl {\nblock type TXT\n}"
    )
    assert at_once(chain.resolve(ask("web.example."), client())).plugin == "acl"


def test_a_block_with_nothing_but_an_around_has_no_plugin_left_to_ask() -> None:
    chain = chain_with({"cache": (ChainPart(around=Marking("cache", [])),)}, "cache")
    assert at_once(chain.resolve(ask("example."), client())).response.rcode == Rcode.SERVFAIL
