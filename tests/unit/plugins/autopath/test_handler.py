"""A client's search list, gone through for it. Questions are asked of a whole server block, so `acl` has its say."""

from collections.abc import Callable, Iterable, Mapping
from ipaddress import ip_network

import pytest

from tests.support import search_list_queries
from tests.support.chains import chain_of
from tests.support.cluster_dig import ClusterDig, cases, expected, query_of, settings
from tests.support.deferred_results import at_once
from tests.support.model_builders import namespace, packed, pod, service
from tests.support.query_builders import client
from tests.support.rrset_text import lines
from tests.support.search_list_queries import SHOP
from topodns.cluster.model import ClusterObject, Kind, Replaced, kind_of
from topodns.cluster.state import ClusterState
from topodns.corefile.zones import BlockKey
from topodns.dependency import namespace_fact, service_fact
from topodns.dns.message import Query, Response, RRset
from topodns.dns.name import Name, name_text, parse_name
from topodns.dns.rrtype import RCODE_NAMES, Rcode, RRType
from topodns.dnsserver.chain import Chain
from topodns.plugins.acl import Acl, AclAction, AclRule
from topodns.plugins.autopath.handler import SearchPath
from topodns.plugins.autopath.search_list import ClusterSearch, FixedSearch, Searcher, own_namespace
from topodns.plugins.autopath.settings import Autopath
from topodns.plugins.block import ServerBlock
from topodns.plugins.kubernetes.handler import ClusterZone
from topodns.plugins.kubernetes.settings import PodMode
from topodns.plugins.kubernetes.zone import KubernetesZone
from topodns.query.deferred import Outcome
from topodns.query.plugin import Around, ChainPart, Client, Resolution, Scope, Step

CORP = ("corp.example",)
OUTSIDE = {
    "example.com.": "192.0.2.1",
    "db.prod.corp.example.": "192.0.2.2",
    "x.y.corp.example.": "192.0.2.3",
    "files.corp.example.": "192.0.2.4",
}
OBJECTS = (
    namespace("shop"),
    namespace("prod"),
    service("web", "shop", ["10.96.0.1"], ["http:80"]),
    service("api", "prod", ["10.96.0.2"], ["http:80"]),
    pod("p1", ["10.0.0.1"], "shop"),
    pod("p2", ["10.0.0.2"], "prod"),
    pod("on-the-host", ["10.0.0.3"], "shop", host_network=True),
    pod("old", ["10.0.0.4"], "prod", terminating=True),
    pod("new", ["10.0.0.4"], "shop"),
)
STRANGER = "10.9.9.9"


class Upstream:
    """A step that knows some addresses, and of every other name that it does not exist."""

    def __init__(self, records: Mapping[str, str], asked: list[str]) -> None:
        self._records = records
        self._asked = asked
        self.meanwhile: Callable[[], object] = lambda: None

    def __call__(self, query: Query, client: Client) -> Resolution:
        name = name_text(query.qname)
        self._asked.append(name)
        address = self._records.get(name)
        if address is None:
            return Resolution(Response(Rcode.NXDOMAIN, flags=0), "forward", valid_until=1030.0)
        if query.qtype != RRType.A:
            return Resolution(Response(flags=0), "forward", valid_until=1020.0)
        answer = (RRset(b"", RRType.A, 60, (packed(address),)),)
        return Resolution(Response(answer=answer, flags=0), "forward", valid_until=1020.0)

    async def later(self, query: Query, client: Client) -> Resolution:
        """The same, after a wait."""
        self.meanwhile()
        outcome: Outcome[Resolution] = Outcome()
        outcome.settle(self(query, client))
        return await outcome


class Dig:
    """A server block with `autopath @kubernetes`, `kubernetes` and `forward`."""

    def __init__(
        self,
        objects: Iterable[ClusterObject] = OBJECTS,
        pods: PodMode = PodMode.DISABLED,
        acl: tuple[Acl, ...] = (),
        late: bool = False,
        origins: tuple[str, ...] = (".",),
        more_outside: Mapping[str, str] | None = None,
        denied: bool = False,
    ) -> None:
        """`denied`: Pods are wanted, and may not be read."""
        kinds: frozenset[Kind] = frozenset(("Namespace", "Service", "EndpointSlice"))
        state = ClusterState(kinds | {"Pod"} if pods is PodMode.VERIFIED else kinds)
        if denied:
            state.do_without("Pod")
        for kind in sorted(state.needed - state.denied):
            state.apply(Replaced(kind, tuple(each for each in objects if kind_of(each) == kind)), 0)
        self.state = state
        self.asked: list[str] = []
        search = ClusterSearch(settings(pods=pods), state, tuple(map(parse_name, CORP)))
        self.around = SearchPath(Autopath(tuple(map(parse_name, origins))), search)
        self.upstream = upstream = Upstream({**OUTSIDE, **(more_outside or {})}, self.asked)
        forward: Step = upstream.later if late else upstream
        block = ServerBlock((BlockKey((), 53),), "Corefile", 1, {"acl": acl} if acl else {})
        cluster = ClusterZone(KubernetesZone(settings(pods=pods), None, state, None))
        parts = {
            "autopath": (ChainPart(around=self.around),),
            "kubernetes": (ChainPart(step=cluster),),
            "forward": (ChainPart(step=forward),),
        }
        self.chain: Chain = chain_of(block, parts)

    def resolve(self, question: str, source: str = STRANGER) -> Resolution:
        return at_once(self.chain.resolve(query_of(question), client(source)))

    def __call__(self, question: str, source: str = STRANGER) -> str:
        return got(self.resolve(question, source), question.split()[0])


def got(resolution: Resolution, qname: str) -> str:
    response = resolution.response
    return "\n".join(lines(response.answer, qname)) or RCODE_NAMES[response.rcode]


FOUND = {
    **search_list_queries.FOUND,
    "one label, from who knows where": ("web.prod.svc.cluster.local. A", "NXDOMAIN"),
    "what would be an endpoint of a Service": ("example.web.shop.svc.cluster.local. A", "NXDOMAIN"),
    "a namespace that does not exist": ("example.com.nowhere.svc.cluster.local. A", "NXDOMAIN"),
    "a name that is no one's": ("example.net. A", "NXDOMAIN"),
}


@cases(FOUND)
def test_without_a_watch_of_pods_the_name_says_whose_search_list_it_is(question: str, records: list[str]) -> None:
    assert Dig()(SHOP.absolute(question)) == SHOP.answer(question, *records)
    assert Dig(late=True)(SHOP.absolute(question)) == SHOP.answer(question, *records)


def test_the_domains_are_tried_in_the_order_of_a_pod_s_resolv_conf() -> None:
    dig = Dig()
    dig("example.net.shop.svc.cluster.local. A")
    assert dig.asked == ["example.net.corp.example.", "example.net."]  # the cluster's are not the upstream's


WHO = {
    "a Pod there": ("10.0.0.1", True),
    "a Pod of another namespace": ("10.0.0.2", False),
    "an address that no Pod has": (STRANGER, False),
    "a Pod on the host's network, whose address others share": ("10.0.0.3", False),
    "an address that goes from one Pod to another": ("10.0.0.4", False),
}
FROM_SHOP = {
    "one label": ("files.shop.svc.cluster.local. A", "192.0.2.4"),
    "a name outside": ("example.com.shop.svc.cluster.local. A", "192.0.2.1"),
    "a Service of another namespace": ("api.prod.shop.svc.cluster.local. A", "10.96.0.2"),
}


@pytest.mark.parametrize(("question", "address"), FROM_SHOP.values(), ids=FROM_SHOP)
@pytest.mark.parametrize(("source", "searched"), WHO.values(), ids=WHO)
def test_where_pods_are_watched_names_are_searched_for_the_pods_of_the_namespace_alone(
    source: str, searched: bool, question: str, address: str
) -> None:
    answer = Dig(pods=PodMode.VERIFIED)(question, source)
    assert answer.endswith(address) if searched else answer == "NXDOMAIN"


@cases(search_list_queries.FOUND)
def test_a_pod_s_own_list_is_gone_through_as_without_a_watch(question: str, records: list[str]) -> None:
    assert Dig(pods=PodMode.VERIFIED)(SHOP.absolute(question), "10.0.0.1") == SHOP.answer(question, *records)


@pytest.mark.parametrize("pods", [PodMode.DISABLED, PodMode.VERIFIED])
@pytest.mark.parametrize("question", search_list_queries.OWN.values(), ids=search_list_queries.OWN)
def test_names_that_may_be_a_service_s_own_are_not_searched_outside(question: str, pods: PodMode) -> None:
    name, _ = question.split()
    outside = name.removesuffix("shop.svc.cluster.local.")
    dig = Dig(pods=pods, more_outside={outside: "192.0.2.66"})
    for source in ("10.0.0.1", "10.0.0.2", STRANGER):
        resolution = dig.resolve(question, source)
        assert got(resolution, name) == "NXDOMAIN"
        assert resolution.scope is Scope.EVERYONE
    assert dig.asked == []


def test_a_name_of_a_service_without_a_ready_endpoint_is_not_searched_outside() -> None:
    """CoreDNS and `ignore empty_service` say NXDOMAIN of it."""
    objects = (*OBJECTS, service("empty", "shop", ports=["http:80"]))
    dig = Dig(objects, pods=PodMode.VERIFIED, more_outside={"empty.corp.example.": "192.0.2.66"})
    assert dig("empty.shop.svc.cluster.local. A", "10.0.0.1") == "NXDOMAIN"


def test_a_target_of_another_name_is_not_searched() -> None:
    for pods in (PodMode.DISABLED, PodMode.VERIFIED):
        dig = Dig(pods=pods)
        asked = query_of("example.com.shop.svc.cluster.local. A")
        resolution = at_once(dig.chain.resolve(asked, client("10.0.0.1")._replace(depth=1)))
        assert resolution.response.rcode == Rcode.NXDOMAIN


def test_while_pods_are_denied_the_name_decides_the_search_list() -> None:
    dig = Dig(pods=PodMode.VERIFIED, denied=True)
    assert "192.0.2.1" in dig("example.com.shop.svc.cluster.local. A", STRANGER)
    assert dig("app-0.app.shop.svc.cluster.local. A", STRANGER) == "NXDOMAIN"


def test_without_a_watch_of_pods_one_label_is_not_searched() -> None:
    assert Dig()("files.shop.svc.cluster.local. A", "10.0.0.1") == "NXDOMAIN"


def test_an_answer_to_everyone_rests_on_all_that_was_tried() -> None:
    resolution = Dig().resolve("db.prod.shop.svc.cluster.local. A")
    assert resolution.scope is Scope.EVERYONE
    assert {namespace_fact("shop"), service_fact("shop", "prod")} <= set(resolution.facts)
    assert {namespace_fact("prod"), service_fact("prod", "db")} <= set(resolution.facts)
    assert resolution.valid_until == 1020.0


def test_an_answer_is_valid_no_longer_than_the_denials_before_it() -> None:
    resolution = Dig().resolve("example.net.shop.svc.cluster.local. A")
    assert resolution.response.rcode == Rcode.NXDOMAIN
    assert resolution.valid_until == 1030.0
    assert service_fact("shop", "net") in resolution.facts


def test_a_namespace_that_comes_to_be_is_among_the_facts_of_the_denial() -> None:
    assert namespace_fact("nowhere") in Dig().resolve("example.com.nowhere.svc.cluster.local. A").facts


def test_an_answer_that_depends_on_the_asking_pod_is_cached_for_its_namespace() -> None:
    dig = Dig(pods=PodMode.VERIFIED)
    for name in ("other", "example.com"):
        for source in ("10.0.0.1", STRANGER):
            assert dig.resolve(f"{name}.shop.svc.cluster.local. A", source).scope is Scope.NODE
    for name in ("web", "app-0.app", "example.web"):
        assert dig.resolve(f"{name}.shop.svc.cluster.local. A", STRANGER).scope is Scope.EVERYONE


def test_an_address_that_changes_hands_meanwhile_leaves_no_answer_to_its_next_namespace() -> None:
    question = "example.com.shop.svc.cluster.local. A"
    dig = Dig(pods=PodMode.VERIFIED, late=True)
    assert dig.resolve(question, "10.0.0.1").scope is Scope.NODE
    moved = (pod("next", ["10.0.0.1"], "prod"),)
    dig.upstream.meanwhile = lambda: dig.state.apply(Replaced("Pod", moved), 0)
    assert dig.resolve(question, "10.0.0.1").scope is Scope.CLIENT


def test_the_namespace_of_a_client() -> None:
    state = Dig(pods=PodMode.VERIFIED).state
    named = {address: own_namespace(state, packed(address)) for address in ("10.0.0.1", "10.0.0.2", "10.0.0.3")}
    assert named == {"10.0.0.1": "shop", "10.0.0.2": "prod", "10.0.0.3": ""}
    assert (own_namespace(state, packed("10.0.0.4")), own_namespace(state, packed(STRANGER))) == ("", "")


def test_acl_is_asked_about_each_name_that_is_tried() -> None:
    blocked = Acl((parse_name("example.com"),), (AclRule(AclAction.BLOCK, networks=(ip_network("10.0.0.0/8"),)),))
    dig = Dig(acl=(blocked,))
    assert dig("example.com.shop.svc.cluster.local. A", "10.0.0.1") == "REFUSED"
    assert dig.asked == ["example.com.corp.example."]
    assert "192.0.2.1" in dig("example.com.shop.svc.cluster.local. A", "192.168.0.1")


def test_names_outside_of_the_directive_s_zones_are_left_alone() -> None:
    assert Dig(origins=("example.org.",))("example.com.shop.svc.cluster.local. A") == "NXDOMAIN"
    assert "192.0.2.1" in Dig(origins=("cluster.local.",))("example.com.shop.svc.cluster.local. A")


def test_successes_are_counted() -> None:
    dig = Dig()
    for question in ("example.com.shop.svc.cluster.local. A", "web.shop.svc.cluster.local. A", "example.com. A"):
        dig(question)
    assert dig.around.counts.successes == 1


def through(searcher: Searcher, records: Mapping[str, str], asked: list[str], question: str) -> str:
    around: Around = SearchPath(Autopath(((),)), searcher)
    step = Upstream(records, asked)
    return got(at_once(around(query_of(question), client(), step)), question.split()[0])


def domains(*texts: str) -> tuple[Name, ...]:
    return tuple(map(parse_name, texts))


def test_a_file_s_list_is_everyone_s() -> None:
    searcher = FixedSearch(domains("example.org", "example.com", "com"))
    records = {"b.com.": "127.0.0.53", "a.example.com.": "127.0.0.54"}
    asked: list[str] = []
    assert through(searcher, records, asked, "b.example.org. A") == expected(
        """
        b.example.org. 60 IN CNAME b.com.
        b.com. 60 IN A 127.0.0.53
        """
    )
    assert asked == ["b.example.org.", "b.example.com.", "b.com."]
    assert through(searcher, records, asked, "a.example.com. A") == "a.example.com. 60 IN A 127.0.0.54"
    assert through(searcher, records, asked, "c.example.com. A") == "NXDOMAIN"


def test_a_domain_under_which_the_name_is_too_long_is_passed_over() -> None:
    long = ".".join(["a" * 63] * 3)
    searcher = FixedSearch(domains("o", "b" * 63 + ".org", "c"))
    asked: list[str] = []
    question = f"{long}.o. A"
    through(searcher, {}, asked, question)
    assert asked == [f"{long}.o.", f"{long}.c.", f"{long}."]


def test_a_name_that_no_step_of_the_block_answers_for_is_not_found() -> None:
    dig = Dig()
    block = ServerBlock((BlockKey(("cluster", "local"), 53),), "Corefile", 1, {"kubernetes": settings()})
    cluster = ClusterDig(OBJECTS, settings())
    chain = chain_of(
        block, {"autopath": (ChainPart(around=dig.around),), "kubernetes": (ChainPart(step=cluster.step),)}
    )
    answered = at_once(chain.resolve(query_of("example.com.shop.svc.cluster.local. A"), client()))
    assert answered.response.rcode == Rcode.NXDOMAIN
