"""Directives as in a Corefile, in any order, and which of them answers or changes an answer."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.asking import ask, client
from tests.support.corefiles import only_block
from tests.support.messages import RD
from tests.support.objects import packed
from topodns.dns.message import Edns, Flag, Option, Query, Rcode, Response, RRClass, RRset, RRType
from topodns.resolve.chain import Chain, Host, Link, build_chain
from topodns.resolve.loadbalance import LoadBalancer
from topodns.resolve.step import Client, Resolution, Scope, Step
from topodns.resolve.whoami import whoami

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
    """Stands below everything but `whoami`: has nine addresses for whatever begins with `web`."""

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
    block = only_block("\n".join(directives))
    host = Host("host-1", Random(1))
    balancer = LoadBalancer(block.loadbalance, host.rng) if block.loadbalance is not None else None
    return build_chain(block, host, cluster, balancer)


@given(st.permutations(ALL))
def test_who_answers_does_not_depend_on_the_order_in_the_corefile(directives: list[str]) -> None:
    chain = chain_of(*directives, cluster=Cluster())
    answered = [
        chain.resolve(ask(name, qtype, qclass), client(address)).plugin
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
    return chain.resolve(ask(name, qtype, qclass, NSID), client(address)).response


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
            resolution.note += name
            return resolution

        return wrapper

    chain = Chain((Link(whoami, (mark("inner "), mark("outer")), None),))  # type: ignore[arg-type]  # they are wrappers
    assert chain.resolve(ask("example."), client()).note == "inner outer"


def test_the_first_step_that_answers_ends_it() -> None:
    cluster = Cluster()
    chain_of("any", "whoami", cluster=cluster).resolve(ask("web.example.", RRType.ANY), client())
    assert cluster.flags == []


def test_where_all_steps_pass_nobody_is_left_to_ask() -> None:
    resolution = chain_of("any", "loadbalance", "nsid", cluster=Cluster()).resolve(ask("other.example."), client())
    response = resolution.response
    assert (response.rcode, response.flags, response.answer, resolution.scope) == (Rcode.SERVFAIL, 0, (), Scope.CLIENT)
    assert response.ede is not None
    assert response.ede.text == "no directive of this server block answers for the name"


def test_a_block_without_steps_refuses() -> None:
    resolution = chain_of("bind 127.0.0.1").resolve(ask("example."), client())
    assert resolution == Resolution(Response(Rcode.REFUSED, flags=0), "", Scope.CLIENT)


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
    assert chain.resolve(ask("web.example."), client()).scope == scope
