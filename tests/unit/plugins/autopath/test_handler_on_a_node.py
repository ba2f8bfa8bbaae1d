"""A Pod's search list, gone through in front of a cluster's DNS: nothing is known here but what that DNS says.

Two server blocks of one listener, as on a node: the cluster's, with `autopath @kubernetes` and `forward`, and the root.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from ipaddress import ip_network
from typing import Any

import pytest

from tests.support import search_list_queries
from tests.support.chains import chain_of
from tests.support.cluster_dig import ClusterDig, cases, query_of, settings
from tests.support.deferred_results import at_once
from tests.support.model_builders import endpoint, endpoint_slice, namespace, packed, service
from tests.support.query_builders import client
from tests.support.rrset_text import lines
from tests.support.search_list_queries import SHOP
from topodns.corefile.zones import BlockKey
from topodns.dns.message import Query, Response, RRset
from topodns.dns.name import name_text, parse_name
from topodns.dns.rrtype import RCODE_NAMES, Rcode, RRType
from topodns.dnsserver.router import Block, BlockTable, Neighbours
from topodns.plugins.acl import Acl, AclAction, AclRule
from topodns.plugins.autopath.handler import SearchPath
from topodns.plugins.autopath.search_list import DistantClusterSearch
from topodns.plugins.autopath.settings import Autopath
from topodns.plugins.block import ServerBlock
from topodns.query.deferred import Outcome
from topodns.query.plugin import Answered, ChainPart, Client, Dropped, Resolution, Scope, Step

ORIGIN = parse_name("cluster.local")
HOST_DOMAINS = (parse_name("corp.example"),)
OUTSIDE = {
    "example.com.": "192.0.2.1",
    "x.y.corp.example.": "192.0.2.3",
    "redis.": "192.0.2.66",
    "www.example.": "192.0.2.66",
    "app-0.app.": "192.0.2.66",
    "_http._tcp.app.": "192.0.2.66",
}
OBJECTS = (
    namespace("shop"),
    namespace("prod"),
    service("web", "shop", ["10.96.0.1"], ["http:80"]),
    service("app", "shop", ports=["http:80"]),  # without an endpoint: NXDOMAIN, as if it were not there
    service("com", "prod", ports=["http:80"]),
    endpoint_slice("com", endpoint("10.0.0.1", hostname="one"), namespace="prod"),
    service("api", "prod", ["10.96.0.2"], ["http:80"]),
)
SEARCHED = "example.com.shop.svc.cluster.local."
FRESH, CACHED = Scope.CLIENT, Scope.EVERYONE


class Node:
    """Both blocks. What each was asked is in `cluster_dns` and `outside`; `fails` names that get SERVFAIL."""

    def __init__(self, *, late: bool = False, scope: Scope = CACHED, acl: tuple[Acl, ...] = ()) -> None:
        self.cluster_dns: list[str] = []
        self.outside: list[str] = []
        self.fails: dict[str, Callable[[], Resolution]] = {}
        self._watched = ClusterDig(OBJECTS, settings())
        self._scope = scope
        self._late = late
        self.table = BlockTable([])
        search = DistantClusterSearch((ORIGIN,), HOST_DOMAINS)
        match: Callable[[Query, Client], Block | None] = lambda query, client: self.table.match(query, client)  # noqa: E731
        self.around = SearchPath(
            Autopath((ORIGIN,), HOST_DOMAINS, kubernetes=True), search, asking=Neighbours(match, {ORIGIN})
        )
        cluster: Step = self._cluster
        upstream: Step = self._upstream
        parts = {"autopath": (ChainPart(around=self.around),), "forward": (ChainPart(step=cluster),)}
        self.blocks = {
            "cluster.local.": self._block("cluster.local.", parts, acl),
            ".": self._block(".", {"forward": (ChainPart(step=upstream),)}),
        }
        self.table = BlockTable(self.blocks.values())

    def _block(self, origin: str, parts: Mapping[str, tuple[ChainPart, ...]], acl: tuple[Acl, ...] = ()) -> Block:
        name = parse_name(origin)
        block = ServerBlock((BlockKey(name, 53),), "Corefile", 1, {"acl": acl} if acl else {})
        return Block(name, origin, chain_of(block, parts), 1232)

    def _cluster(self, query: Query, client: Client) -> Answered:
        self.cluster_dns.append(name_text(query.qname))
        stepped = self._watched.step(query, client)
        assert isinstance(stepped, Resolution)
        return self._told(query, replace(stepped, plugin="forward", facts=(), valid_until=1005.0))

    def _upstream(self, query: Query, client: Client) -> Answered:
        name = name_text(query.qname)
        self.outside.append(name)
        address = OUTSIDE.get(name)
        if address is None:
            return self._told(query, Resolution(Response(Rcode.NXDOMAIN, flags=0), "forward", valid_until=1030.0))
        answer = (RRset(b"", RRType.A, 60, (packed(address),)),) if query.qtype == RRType.A else ()
        return self._told(query, Resolution(Response(answer=answer, flags=0), "forward", valid_until=1020.0))

    def _told(self, query: Query, resolution: Resolution) -> Answered:
        failing = self.fails.get(name_text(query.qname))
        if failing is not None:
            resolution = failing()
        resolution.scope = max(resolution.scope, self._scope)
        return _later(resolution) if self._late else resolution

    def resolve(self, question: str, source: str = "10.0.0.7") -> Resolution:
        asked = query_of(question)
        block = self.table.match(asked, client(source))
        assert block is not None
        return at_once(block.chain.resolve(asked, client(source)))

    def __call__(self, question: str) -> str:
        response = self.resolve(question).response
        return "\n".join(lines(response.answer, question.split()[0])) or RCODE_NAMES[response.rcode]


async def _later(resolution: Resolution) -> Resolution:
    outcome: Outcome[Resolution] = Outcome()
    outcome.settle(resolution)
    return await outcome


FOUND = {
    **search_list_queries.FOUND,
    "one label, from who knows where": ("redis.shop.svc.cluster.local. A", "NXDOMAIN"),
    "an endpoint of a Service, that is not there": ("example.com.prod.svc.cluster.local. A", "NXDOMAIN"),
    "an endpoint of a Service that has none": ("app-0.app.shop.svc.cluster.local. A", "NXDOMAIN"),
    "a port of a Service that has no endpoint": ("_http._tcp.app.shop.svc.cluster.local. A", "NXDOMAIN"),
    "a namespace that does not exist": ("www.example.com.svc.cluster.local. A", "NXDOMAIN"),
    "a name of another block": ("example.net. A", "NXDOMAIN"),
}


@cases(FOUND)
@pytest.mark.parametrize("late", [False, True], ids=["at once", "after a wait"])
def test_the_name_and_the_cluster_s_dns_say_whose_search_list_it_is(
    late: bool, question: str, records: list[str]
) -> None:
    assert Node(late=late)(SHOP.absolute(question)) == SHOP.answer(question, *records)


def test_each_name_is_asked_of_the_block_that_it_belongs_to_in_the_order_of_a_pod_s_resolv_conf() -> None:
    node = Node()
    assert node("example.net.shop.svc.cluster.local. A") == "NXDOMAIN"
    assert node.cluster_dns == [
        "example.net.shop.svc.cluster.local.",
        "shop.svc.cluster.local.",  # is there such a namespace?
        "net.shop.svc.cluster.local.",  # is that a Service?
        "example.net.svc.cluster.local.",
        "example.net.cluster.local.",
    ]
    assert node.outside == ["example.net.corp.example.", "example.net."]


@pytest.mark.parametrize(
    "name", ["redis.shop", "app-0.app.shop", "10-0-0-7.app.shop", "fd00-10--a.app.shop", "_http._tcp.app.shop"]
)
def test_a_name_in_the_form_of_a_service_or_an_endpoint_is_asked_once(name: str) -> None:
    node = Node()
    assert node(f"{name}.svc.cluster.local. A") == "NXDOMAIN"
    assert node.cluster_dns == [f"{name}.svc.cluster.local."]
    assert node.outside == []


@pytest.mark.parametrize("question", search_list_queries.OWN.values(), ids=search_list_queries.OWN)
def test_names_that_may_be_a_service_s_own_are_not_searched_outside(question: str) -> None:
    node = Node()
    assert node(question) == "NXDOMAIN"
    assert node.outside == []


def test_a_name_that_begins_like_an_endpoint_and_is_longer_is_one_outside() -> None:
    node = Node()
    node("s3-1.amazonaws.com.shop.svc.cluster.local. A")
    assert "s3-1.amazonaws.com." in node.outside


def test_only_names_under_a_domain_of_the_cluster_are_searched() -> None:
    search = DistantClusterSearch((ORIGIN, parse_name("prod.example")), ())
    covered = [name for name in NAMES if search.covers(parse_name(name))]
    assert covered == ["a.b.c.svc.cluster.local", "a.b.c.d.svc.cluster.local", "a.b.c.svc.prod.example"]


NAMES = (
    "a.b.c.svc.cluster.local",
    "a.b.c.d.svc.cluster.local",
    "a.b.c.svc.prod.example",
    "b.c.svc.cluster.local",
    "c.svc.cluster.local",
    "svc.cluster.local",
    "cluster.local",
    "a.b.c.pod.cluster.local",
    "a.b.c.svc.other.example",
    "example.com",
)


def test_the_answer_is_for_everyone_and_as_long_as_all_that_it_rests_on() -> None:
    resolution = Node().resolve(f"{SEARCHED} A")
    assert (resolution.scope, resolution.valid_until) == (Scope.EVERYONE, 1005.0)


def test_an_answer_that_an_upstream_has_just_given_is_kept_by_the_caches_alone() -> None:
    assert Node(scope=FRESH).resolve(f"{SEARCHED} A").scope is Scope.CLIENT


def failing(plugin: str = "forward") -> Resolution:
    return Resolution(Response(Rcode.SERVFAIL, flags=0), plugin, Scope.CLIENT)


@pytest.mark.parametrize("late", [False, True], ids=["at once", "after a wait"])
def test_a_failed_search_step_is_a_failure_and_not_nxdomain(late: bool) -> None:
    node = Node(late=late)
    node.fails["example.com.corp.example."] = failing
    assert node(f"{SEARCHED} A") == "SERVFAIL"
    assert node.outside == ["example.com.corp.example."]


@pytest.mark.parametrize("premise", ["shop.svc.cluster.local.", "com.shop.svc.cluster.local."])
def test_where_the_cluster_s_dns_does_not_say_whose_list_it_is_the_client_goes_through_it_itself(premise: str) -> None:
    node = Node()
    node.fails[premise] = failing
    resolution = node.resolve(f"{SEARCHED} A")
    assert (resolution.response.rcode, resolution.scope) == (Rcode.NXDOMAIN, Scope.CLIENT)
    assert node.outside == []


def test_a_stale_answer_in_a_search_makes_the_whole_answer_uncacheable() -> None:
    node = Node()
    node.fails["shop.svc.cluster.local."] = lambda: Resolution(Response(), "cache", Scope.CLIENT)
    assert node.resolve(f"{SEARCHED} A").scope is Scope.CLIENT
    assert "192.0.2.1" in node(f"{SEARCHED} A")


def test_beyond_a_client_s_share_of_queries_in_flight_a_search_is_dropped_as_any_query() -> None:
    def drop() -> Resolution:
        raise Dropped("forward")

    node = Node()
    node.fails["example.com."] = drop
    with pytest.raises(Dropped):
        node(f"{SEARCHED} A")


def test_an_answer_that_the_cluster_s_dns_has_searched_for_itself_is_passed_on() -> None:
    node = Node()
    answer = (RRset(b"", RRType.CNAME, 30, (b"\7example\3com\0",)),)
    node.fails[SEARCHED] = lambda: Resolution(Response(answer=answer, flags=0), "forward")
    assert node(f"{SEARCHED} A") == f"{SEARCHED} 30 IN CNAME example.com."
    assert (node.cluster_dns, node.outside, node.around.counts.successes) == ([SEARCHED], [], 0)


def test_acl_is_asked_about_each_name_that_is_tried() -> None:
    block = AclRule(AclAction.BLOCK, networks=(ip_network("10.0.0.0/8"),))
    node = Node(acl=(Acl((parse_name("example.com.svc.cluster.local"),), (block,)),))
    assert node.resolve(f"{SEARCHED} A", "10.0.0.7").response.rcode == Rcode.REFUSED
    assert node.resolve(f"{SEARCHED} A", "192.168.0.1").response.rcode == Rcode.NOERROR
    assert node.resolve(f"{SEARCHED} A", "192.168.0.1").scope is Scope.CLIENT


@pytest.mark.parametrize("late", [False, True], ids=["at once", "after a wait"])
@pytest.mark.parametrize("trait", [{"scope": Scope.NAMESPACE}, {"rotate": True}])
def test_an_answer_of_a_block_that_differs_by_client_is_not_cached(trait: dict[str, Any], late: bool) -> None:
    node = Node(late=late)
    node.table = BlockTable([node.blocks["cluster.local."], replace(node.blocks["."], **trait)])
    assert node.resolve(f"{SEARCHED} A").scope is Scope.CLIENT


def test_a_name_that_is_no_block_s_is_passed_over() -> None:
    node = Node()
    node.table = BlockTable([node.blocks["cluster.local."]])
    assert node(f"{SEARCHED} A") == "NXDOMAIN"
    assert "192.0.2.1" not in node("api.prod.shop.svc.cluster.local. A")


def test_a_question_that_an_alias_led_to_is_not_searched() -> None:
    node = Node()
    asked = query_of(f"{SEARCHED} A")
    led = client()._replace(depth=1)
    assert at_once(node.blocks["cluster.local."].chain.resolve(asked, led)).response.rcode == Rcode.NXDOMAIN
    assert node.cluster_dns == [SEARCHED]


def test_successes_are_counted() -> None:
    node = Node()
    for question in (f"{SEARCHED} A", "web.shop.svc.cluster.local. A", "example.com. A"):
        node(question)
    assert node.around.counts.successes == 1
