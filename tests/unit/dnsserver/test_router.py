from dataclasses import replace

import pytest

from tests.support.forward_with_upstreams import ForwardScene
from tests.support.in_memory_server import block, dig
from tests.support.model_builders import packed
from tests.support.scripted_upstream import silent
from topodns.dns.name import Name, name_wire, parse_name
from topodns.dns.wire_reader import read_query
from topodns.dnsserver.fast_forward.eligibility import FastRoute
from topodns.dnsserver.packet_cache.table import OF_SPELLINGS
from topodns.dnsserver.router import Block, BlockTable
from topodns.plugins.view.handler import ViewFilter
from topodns.plugins.view.settings import View
from topodns.query.plugin import Client, Scope

ALL = (".", "local.", "cluster.local.", "east.cluster.local.", "10.in-addr.arpa.")
NO_ROOT = ("local.", "cluster.local.")


def find(table: BlockTable, question: str, address: str = "10.0.0.1") -> Block | None:
    """The block that is asked about `NAME TYPE`."""
    return table.match(read_query(dig(question)), Client(packed(address), 40212, "udp"))


def fast_route(origin: str, *elsewhere: Name) -> FastRoute:
    return FastRoute(ForwardScene(silent).forwarding, None, None, None, elsewhere, origin, 1232)


def on_road(origin: str, taken: FastRoute) -> Block:
    return replace(block(origin), fast_route=taken)


def origin_for(origins: tuple[str, ...], question: str) -> str | None:
    found = find(BlockTable([block(origin) for origin in origins]), question)
    return found.label if found is not None else None


@pytest.mark.parametrize(
    ("origins", "question", "origin"),
    [
        (ALL, "svc1.default.svc.cluster.local. A", "cluster.local."),
        (ALL, "cluster.local. SOA", "cluster.local."),
        (ALL, "west.cluster.local. A", "cluster.local."),
        (ALL, "x.east.cluster.local. A", "east.cluster.local."),
        (ALL, "xcluster.local. A", "local."),
        (ALL, "1.0.0.10.in-addr.arpa. PTR", "10.in-addr.arpa."),
        (ALL, "1.0.0.110.in-addr.arpa. PTR", "."),
        (ALL, "example. A", "."),
        (ALL, ". NS", "."),
        (NO_ROOT, "www.local. A", "local."),
        (NO_ROOT, "example. A", None),
        (NO_ROOT, ". NS", None),
        ((), "example. A", None),
    ],
)
def test_the_longest_origin_above_a_name_has_its_block(
    origins: tuple[str, ...], question: str, origin: str | None
) -> None:
    assert origin_for(origins, question) == origin


def test_a_dot_inside_a_label_parts_nothing() -> None:
    query = read_query(dig("x.local. A"))._replace(qname=("x.cluster", "local"))
    found = BlockTable([block(origin) for origin in ALL]).match(query, Client(packed("10.0.0.1"), 40212, "udp"))
    assert found is not None
    assert found.label == "local."


@pytest.mark.parametrize(
    ("origins", "question", "origin"),
    [
        (ALL, "cluster.local. DS", "local."),
        (ALL, "east.cluster.local. DS", "local."),  # as CoreDNS: the highest of all, not the next one up
        (ALL, "local. DS", "local."),
        (ALL, "example. DS", "."),
        (("cluster.local.",), "cluster.local. DS", "cluster.local."),
        (("cluster.local.",), "example. DS", None),
    ],
)
def test_ds_is_asked_of_the_parents_side(origins: tuple[str, ...], question: str, origin: str | None) -> None:
    assert origin_for(origins, question) == origin


def viewed(origin: str, name: str, *expressions: str) -> Block:
    return replace(block(origin), view=ViewFilter(View(name, expressions), ""), view_name=name)


INSIDE = "incidr(client_ip(), '10.0.0.0/8')"
LAB = "incidr(client_ip(), '10.9.0.0/16')"
SPLIT = BlockTable(
    [
        viewed("example.", "lab", LAB),
        viewed("example.", "inside", INSIDE),
        viewed(".", "texts", "type() == 'TXT'"),
        viewed("corp.example.", "lab", LAB),
        block("example."),
        viewed("example.", "never asked"),
        block("open.example."),
        viewed("open.example.", "never asked"),
        block("."),
    ]
)


def views(table: BlockTable, question: str, address: str) -> str | None:
    """`ORIGIN VIEW` of the block for this client."""
    found = find(table, question, address)
    return None if found is None else f"{found.label} {found.view_name}".strip()


@pytest.mark.parametrize(
    ("question", "address", "found"),
    [
        ("www.example. A", "10.9.0.1", "example. lab"),  # in the order of the Corefile
        ("www.example. A", "10.1.0.1", "example. inside"),
        ("www.example. A", "192.0.2.1", "example."),
        ("www.example. A", "2001:db8::1", "example."),
        ("example. A", "10.1.0.1", "example. inside"),
        ("www.corp.example. A", "10.9.0.1", "corp.example. lab"),
        ("www.corp.example. A", "10.1.0.1", "example. inside"),  # where no view holds, the next origin up is asked
        ("www.corp.example. A", "192.0.2.1", "example."),
        ("www.open.example. A", "10.9.0.1", "open.example."),  # without a view, it shadows those behind it
        ("other. A", "10.9.0.1", "."),
        ("other. TXT", "192.0.2.1", ". texts"),
        (". TXT", "192.0.2.1", ". texts"),
        (". A", "192.0.2.1", "."),
        ("www.corp.example. DS", "10.9.0.1", "example. lab"),
        ("www.corp.example. DS", "192.0.2.1", "example."),
        ("other. DS", "192.0.2.1", "."),
    ],
)
def test_the_first_block_whose_view_takes_the_query_has_it(question: str, address: str, found: str) -> None:
    assert views(SPLIT, question, address) == found


@pytest.mark.parametrize(
    ("question", "address", "found"),
    [
        ("www.example. A", "10.1.0.1", "example. inside"),
        ("www.example. A", "192.0.2.1", None),
        ("www.example. DS", "192.0.2.1", None),
        ("other. A", "10.1.0.1", None),
    ],
)
def test_a_query_that_no_view_takes_has_no_block(question: str, address: str, found: str | None) -> None:
    assert views(BlockTable([viewed("example.", "inside", INSIDE)]), question, address) == found


@pytest.mark.parametrize(
    ("question", "address", "scope"),
    [
        ("www.example. A", "10.9.0.1", Scope.CLIENT),
        ("www.example. A", "192.0.2.1", Scope.CLIENT),  # by a block without a view, since others were asked before it
        ("www.corp.example. A", "192.0.2.1", Scope.CLIENT),
        ("www.open.example. A", "10.9.0.1", Scope.EVERYONE),  # no view was asked
        ("other. A", "10.9.0.1", Scope.EVERYONE),  # nor one that rests on more than the message says
        ("other. TXT", "10.9.0.1", Scope.EVERYONE),
    ],
)
def test_a_block_is_for_the_clients_for_which_the_views_decide_the_same(
    question: str, address: str, scope: Scope
) -> None:
    found = find(SPLIT, question, address)
    assert found is not None
    assert found.scope is scope


def test_the_narrowest_of_the_views_that_were_asked_decides() -> None:
    by_namespace = replace(block("example."), view=ViewFilter(View("n", ("false",)), "", scope=Scope.NAMESPACE))
    table = BlockTable([by_namespace, viewed("www.example.", "lab", LAB), block(".")])
    assert [find(table, question, "192.0.2.1").scope for question in ("a.example. A", "www.example. A", "org. A")] == [  # type: ignore[union-attr]
        Scope.NAMESPACE,
        Scope.CLIENT,
        Scope.EVERYONE,
    ]


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("www.example.", "example."),
        ("example.", "example."),
        ("web.cluster.local.", None),  # the block of the root has them elsewhere
        ("cluster.local.", None),
        ("local.", "."),
        ("www.closed.example.", None),  # a block without a road
        ("notclosed.example.", "example."),
        (".", "."),
    ],
)
def test_the_longest_origin_above_a_name_says_which_road_it_takes(name: str, found: str | None) -> None:
    root, example = fast_route(".", ("cluster", "local")), fast_route("example.")
    table = BlockTable([on_road(".", root), on_road("example.", example), block("closed.example.")])
    assert table.fast_routes.find(name_wire(parse_name(name))) is {".": root, "example.": example, None: None}[found]


def test_no_answer_is_for_variants_of_a_question_where_a_block_has_a_view() -> None:
    plain = block("org.", variants=OF_SPELLINGS)
    table = BlockTable([viewed("example.", "big", "size() > 60"), plain])
    found = find(table, "a.org. A")
    assert found is not None
    assert found.variants is None
    alone = find(BlockTable([plain]), "a.org. A")
    assert alone is not None
    assert alone.variants == OF_SPELLINGS


def test_no_name_takes_the_fast_path_where_a_block_has_a_view() -> None:
    fast_routes = BlockTable([on_road(".", fast_route(".")), viewed("example.", "inside", INSIDE)]).fast_routes
    assert not fast_routes
    assert fast_routes.find(name_wire(parse_name("www.other."))) is None


def test_of_two_blocks_of_one_origin_without_a_view_the_first_has_all_its_names() -> None:
    first, second = block("local."), block("local.")
    table = BlockTable([first, block("."), second])
    assert find(table, "www.local. A") is first
