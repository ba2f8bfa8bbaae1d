"""Guards of a Service (semantics 10.2 and 10.4): the annotations, the load of domains, and bounded answers."""

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.model_builders import endpoint, endpoint_slice, node, service
from topodns.cluster.annotations import MAX_LOAD, MIN_ENDPOINTS
from topodns.cluster.backends import Backends
from topodns.cluster.endpoints import Group, Pool
from topodns.cluster.model import Endpoint, KeySource, MaxLoad, Node, ObjectKey, Policy, TopologyInputs
from topodns.cluster.node_labels import NodeLabels
from topodns.topology import guards as guards_module
from topodns.topology.guards import Domains, Guards, bounded, guards_of, idle_guards
from topodns.topology.select import Location, Reason, Selection, select

H = "kubernetes.io/hostname"
Z = "topology.kubernetes.io/zone"
DB = ObjectKey("default", "db")


def test_a_service_without_annotations_has_no_guards() -> None:
    assert guards_of(service("db")) == Guards()


@pytest.mark.parametrize(("text", "least"), [("1", 1), ("2", 2), (" 1000 ", 1000), ("007", 7)])
def test_numbers_of_endpoints_are_1_to_1000(text: str, least: int) -> None:
    guards = guards_of(service("db", min_endpoints=text, max_endpoints=text))
    assert (guards.min_endpoints, guards.max_endpoints, guards.problems) == (least, least, ())


@pytest.mark.parametrize(
    ("text", "factor"), [("1", Fraction(1)), ("1.5", Fraction(3, 2)), (" 1.4 ", Fraction(7, 5)), ("100", Fraction(100))]
)
def test_a_load_is_an_exact_decimal_from_1_to_100(text: str, factor: Fraction) -> None:
    assert guards_of(service("db", max_load=text)).max_load == MaxLoad(factor, DB)


@pytest.mark.parametrize(("text", "near"), [("near", True), ("name", False), (" near", True)])
def test_keys_apply_to_both_names_or_to_the_near_one_alone(text: str, near: bool) -> None:
    guards = guards_of(service("db", apply_to=text))
    assert (guards.near_only, guards.problems) == (near, ())


COUNTS = ("", "0", "-2", "+2", "1001", "9" * 103, "two", "1.5", "٢", "1 2")
LOADS = ("", "0", "0.99", "100.1", "1e1", "nan", "inf", "-1", "1,5", "3/2", "1.", ".5", "1_0", "٢")
BAD = [
    *(("min-endpoints", "1 to 1000", text) for text in COUNTS),
    *(("max-endpoints", "1 to 1000", text) for text in COUNTS),
    *(("max-load", "a decimal from 1 to 100", text) for text in LOADS),
    *(("apply-to", "near or name", text) for text in ("", "Near", "all", "near,name")),
]


@pytest.mark.parametrize(("name", "expected", "text"), BAD)
def test_any_other_value_has_no_effect_and_is_named(name: str, expected: str, text: str) -> None:
    inputs = TopologyInputs(**{name.replace("-", "_"): text})  # type: ignore[arg-type]  # no other field
    guards = guards_of(replace(service("db"), topology=inputs))
    (problem,) = guards.problems
    assert problem == f"annotation 'topodns.io/{name}': expected {expected}, found {text[:80]!r}; it has no effect"
    assert guards._replace(problems=()) == Guards()


# max-load


class Cluster:
    """Nodes and endpoints by zone: `a0` to `a9` are the Nodes of zone a."""

    def __init__(self, nodes: Mapping[str, int], endpoints: Mapping[str, int]) -> None:
        names = [(f"{zone}{at}", zone) for zone, number in nodes.items() for at in range(number)]
        named = [node(name, {H: name, Z: zone}) for name, zone in names]
        self.nodes = {each.name: each for each in named}
        self.labels = NodeLabels()
        for each in named:
            self.labels.move(None, each)
        self.domains = Domains(lambda: self.nodes, self.labels)
        self.pool = pool_of(
            [
                endpoint(f"10.{place}.0.{at + 1}", node=f"{zone}{at % max(nodes[zone], 1)}")
                for place, (zone, number) in enumerate(endpoints.items())
                for at in range(number)
            ],
            self.nodes,
        )

    def ask(self, name: str, factor: str, keys: Sequence[str] = (Z, "*")) -> Selection:
        policy = Policy(tuple(keys), KeySource.ANNOTATION, max_load=MaxLoad(Fraction(factor), DB))
        return select(self.pool, policy, Location(name, self.nodes.get(name)), domains=self.domains)


def pool_of(endpoints: Sequence[Endpoint], nodes: Mapping[str, Node]) -> Pool:
    return Backends([endpoint_slice("db", *endpoints)], nodes.get, terminating_fallback=False).pools[4]


# Nodes, endpoints, load at most -> capacity of each zone, Nodes of zone a that try the next key
CAPACITIES = [
    ((10, 10, 10), (2, 5, 5), "1.5", (7, 18, 18), 3),
    ((10, 10, 10), (2, 5, 5), "1", (5, 12, 12), 5),
    ((10, 10, 10), (4, 4, 4), "1", (10, 10, 10), 0),
    ((1, 1, 1), (1, 100, 100), "1", (1, 1, 1), 0),
    ((10, 10, 10), (0, 6, 6), "1.5", (1, 22, 22), 10),
    ((10, 10, 10), (2, 6, 6), "1.4", (6, 18, 18), 4),
]


@pytest.mark.parametrize(("nodes", "endpoints", "factor", "capacities", "beyond"), CAPACITIES)
def test_a_zone_serves_at_most_its_share_of_the_nodes_times_the_factor(
    nodes: Sequence[int], endpoints: Sequence[int], factor: str, capacities: Sequence[int], beyond: int
) -> None:
    cluster = Cluster(dict(zip("abc", nodes, strict=True)), dict(zip("abc", endpoints, strict=True)))
    loads = [cluster.domains.load(cluster.pool, Z, zone, Fraction(factor)) for zone in "abc"]
    assert [load.capacity for load in loads] == list(capacities)
    asked = [cluster.ask(f"a{at}", factor) for at in range(nodes[0])]
    assert sum(each.key == "*" for each in asked) == beyond
    assert all(each.reason is (Reason.MATCHED if each.key == Z else Reason.ANY) for each in asked)


def test_a_node_counts_where_its_label_says_and_other_labels_have_no_nodes_read_again() -> None:
    cluster, read = Cluster({"a": 10, "b": 10}, {"a": 2, "b": 8}), list[int]()

    def nodes() -> Mapping[str, Node]:
        read.append(len(cluster.nodes))
        return cluster.nodes

    def relabel(labels: Mapping[str, str]) -> None:
        old, new = cluster.nodes["a0"], node("a0", {H: "a0", **labels})
        cluster.labels.move(old, new)
        cluster.nodes["a0"] = new

    cluster.domains = Domains(nodes, cluster.labels)
    before = [cluster.ask(f"a{at}", "1").key for at in range(1, 10)]
    relabel({Z: "a", "rack": "7"})
    assert [cluster.ask(f"a{at}", "1").key for at in range(1, 10)] == before
    assert len(read) == 1
    relabel({Z: "b"})
    assert [cluster.domains.load(cluster.pool, Z, each, Fraction(1)).nodes for each in "ab"] == [9, 11]
    assert sum(cluster.ask(f"a{at}", "1").key == Z for at in range(1, 10)) == 4
    assert len(read) == 2


def test_a_hostname_and_other_domains_have_no_load() -> None:
    cluster = Cluster({"a": 10, "b": 10}, {"a": 1, "b": 10})
    assert cluster.ask("a0", "1", [H, Z]).key == H
    assert {cluster.ask(f"a{at}", "1", ["!" + Z]).key for at in range(10)} == {"!" + Z}


def test_without_another_key_nodes_beyond_the_load_get_what_the_keys_alone_give() -> None:
    cluster = Cluster({"a": 10, "b": 10}, {"a": 1, "b": 9})
    asked = [cluster.ask(f"a{at}", "1", [Z]) for at in range(10)]
    assert {(each.reason, len(each.group.endpoints)) for each in asked} == {
        (Reason.MATCHED, 1),
        (Reason.LAST_RESORT, 1),
    }


def test_a_node_that_joins_moves_at_most_one_other() -> None:
    before = Cluster({"a": 10, "b": 20}, {"a": 2, "b": 10})
    kept = {name for name in before.nodes if name[0] == "a" and before.ask(name, "1.5").key == Z}
    after = Cluster({"a": 11, "b": 20}, {"a": 2, "b": 10})
    still = {name for name in before.nodes if name[0] == "a" and after.ask(name, "1.5").key == Z}
    assert len(kept - still) <= 1


def test_the_order_of_nodes_follows_their_labels() -> None:
    cluster = Cluster({"a": 4, "b": 4}, {"a": 1, "b": 3})
    assert {cluster.ask(f"a{at}", "1").key for at in range(4)} == {Z, "*"}
    for at in range(1, 4):
        moved = node(f"a{at}", {H: f"a{at}", Z: "b"})
        cluster.labels.move(cluster.nodes[moved.name], moved)
        cluster.nodes[moved.name] = moved
    assert cluster.ask("a0", "1").key == Z, "the only Node of its zone"


@given(st.lists(st.tuples(st.integers(0, 5), st.sampled_from("abc")), max_size=12))
def test_after_any_moves_of_nodes_their_order_is_that_of_domains_that_are_read_now(
    moves: Sequence[tuple[int, str]],
) -> None:
    cluster = Cluster({"a": 6, "b": 3, "c": 3}, {"a": 1, "b": 2, "c": 3})
    for at, zone in moves:
        moved = node(f"a{at}", {H: f"a{at}", Z: zone})
        cluster.labels.move(cluster.nodes[moved.name], moved)
        cluster.nodes[moved.name] = moved
        asked = [cluster.ask(name, "1").key for name in cluster.nodes]
        known, cluster.domains = cluster.domains, Domains(lambda: cluster.nodes, cluster.labels)
        assert [cluster.ask(name, "1").key for name in cluster.nodes] == asked
        cluster.domains = known


def test_a_node_that_joins_has_no_other_one_hashed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, hashed = Cluster({"a": 50, "b": 50}, {"a": 1, "b": 9}), list[bytes]()
    cluster.ask("a0", "1")

    def counted(text: bytes, digest_size: int) -> "hashlib.blake2b":
        hashed.append(text)
        return hashlib.blake2b(text, digest_size=digest_size)

    monkeypatch.setattr(guards_module, "blake2b", counted)
    joined = node("a50", {H: "a50", Z: "a"})
    cluster.labels.move(None, joined)
    cluster.nodes["a50"] = joined
    cluster.ask("a0", "1")
    assert set(hashed) == {b"default\0db\0a50", b"default\0db\0a0"}


def literal(cluster: Cluster, name: str, factor: Fraction, keys: Sequence[str]) -> str:
    """The winner by semantics 10.2, word by word."""
    own = cluster.nodes[name]
    spots = [cluster.nodes[each.node_name] for each in cluster.pool.everyone.endpoints]
    first = ""
    for key in keys:
        if key == "*":
            return key
        value = own.labels[key]
        e, all_e = sum(each.labels[key] == value for each in spots), len(spots)
        if not e:
            continue
        first = first or key
        peers = [each for each in cluster.nodes.values() if each.labels[key] == value]
        capacity = max(1, int(factor * len(cluster.nodes) * e / all_e // 1))
        order = sorted(
            peers, key=lambda each: hashlib.blake2b(f"default\0db\0{each.name}".encode(), digest_size=8).digest()
        )
        if key == H or own in order[:capacity]:
            return key
    return first


@given(
    st.lists(st.integers(1, 6), min_size=3, max_size=3),
    st.lists(st.integers(0, 5), min_size=3, max_size=3),
    st.sampled_from(["1", "1.4", "1.5", "2", "3.333"]),
    st.sampled_from([[Z], [Z, "*"], [H, Z], [Z, H], [H, Z, "*"]]),
)
def test_the_winner_is_that_of_the_rule_written_out(
    nodes: list[int], endpoints: list[int], factor: str, keys: list[str]
) -> None:
    cluster = Cluster(dict(zip("abc", nodes, strict=True)), dict(zip("abc", endpoints, strict=True)))
    if not cluster.pool.everyone.endpoints:
        return
    for name in cluster.nodes:
        assert cluster.ask(name, factor, keys).key == literal(cluster, name, Fraction(factor), keys)


# Guards without effect


@pytest.mark.parametrize(
    ("keys", "least", "loaded", "idle"),
    [
        (["*"], 2, True, ["min-endpoints", "max-load"]),
        ([Z], 2, True, ["min-endpoints", "max-load"]),
        ([H], 1, True, ["max-load"]),
        (["!" + Z, "*"], 2, True, ["max-load"]),
        ([H, "*"], 2, True, ["max-load"]),
        ([H, Z], 1, True, ["max-load"]),
        ([H, Z], 2, True, []),
        ([Z, H], 1, True, []),
        ([Z, "*"], 2, True, []),
        ([Z], 1, False, []),
        ([H, Z, "*"], 1, True, []),
    ],
)
def test_a_guard_that_changes_no_answer_is_idle(keys: list[str], least: int, loaded: bool, idle: list[str]) -> None:
    load = MaxLoad(Fraction(1), DB) if loaded else None
    policy = Policy(tuple(keys), KeySource.ANNOTATION, min_endpoints=least, max_load=load)
    assert list(idle_guards(policy)) == [f"topodns.io/{name}" for name in idle]


@given(
    st.lists(st.integers(1, 5), min_size=3, max_size=3),
    st.lists(st.integers(0, 4), min_size=3, max_size=3),
    st.lists(st.sampled_from([H, Z, "!" + Z, "!" + H]), max_size=3, unique=True),
    st.booleans(),
    st.integers(1, 3),
)
def test_without_an_idle_guard_each_client_gets_the_same(
    nodes: list[int], endpoints: list[int], keys: list[str], wild: bool, least: int
) -> None:
    cluster = Cluster(dict(zip("abc", nodes, strict=True)), dict(zip("abc", endpoints, strict=True)))
    ordered = (*keys, *(["*"] * (wild or not keys)))
    policy = Policy(ordered, KeySource.ANNOTATION, min_endpoints=least, max_load=MaxLoad(Fraction(1), DB))
    idle = set(idle_guards(policy))
    bare = replace(policy, max_load=None) if MAX_LOAD in idle else policy
    bare = replace(bare, min_endpoints=1) if MIN_ENDPOINTS in idle else bare
    for name, each in cluster.nodes.items():
        guarded, free = (
            select(cluster.pool, one, Location(name, each), domains=cluster.domains) for one in (policy, bare)
        )
        assert guarded.group.endpoints == free.group.endpoints


# max-endpoints


def pods(number: int) -> tuple[Endpoint, ...]:
    return tuple(endpoint(f"10.0.{at // 200}.{at % 200 + 1}", pod=f"db-{at}") for at in range(number))


def chosen(group: Group, most: int, client: str) -> set[str]:
    return {each.pod_name for each in bounded(group, most, DB, client).endpoints}


def test_a_group_that_is_within_the_bound_is_whole() -> None:
    group = Group(pods(16))
    assert bounded(group, 16, DB, "n1") is group


@pytest.mark.parametrize(("number", "most_times"), [(100, 1.6), (1000, 3.0)])
def test_no_endpoint_is_in_many_more_answers_than_others(number: int, most_times: float) -> None:
    group, nodes, most = Group(pods(number)), 300, 16
    answers = Counter(pod for at in range(nodes) for pod in chosen(group, most, f"worker-{at}"))
    assert sum(answers.values()) == nodes * most
    assert max(answers.values()) <= most_times * nodes * most / number


@given(st.integers(0, 99))
def test_an_endpoint_that_goes_changes_only_the_answers_that_had_it(gone: int) -> None:
    before = Group(pods(100))
    after = Group(tuple(each for at, each in enumerate(pods(100)) if at != gone))
    for client in ("n1", "n2", "10.1.1.1"):
        had, has = chosen(before, 16, client), chosen(after, 16, client)
        lost = had - has
        assert lost <= {f"db-{gone}"}
        assert len(has) == 16
        assert len(has - had) == len(lost)


def test_both_families_of_a_pod_and_its_copies_are_chosen_together() -> None:
    ipv6 = Group(tuple(endpoint(f"fd00::{at + 1:x}", pod=f"db-{at}") for at in range(100)))
    assert chosen(Group(pods(100)), 16, "n1") == chosen(ipv6, 16, "n1")
    copies = Group((*pods(100), *(endpoint(f"10.9.0.{at + 1}", pod=f"db-{at}") for at in range(100))))
    assert chosen(copies, 16, "n1") == chosen(ipv6, 16, "n1")


def test_the_subset_is_that_of_the_rule_written_out() -> None:
    def rank(address: bytes) -> bytes:
        return hashlib.blake2b(b"default\0db\0n1\0" + address, digest_size=8).digest()

    group = Group(tuple(endpoint(f"10.0.0.{at}") for at in range(1, 31)))
    expected = sorted(group.addresses, key=rank)[-7:]
    assert set(bounded(group, 7, DB, "n1").addresses) == set(expected)
    assert list(bounded(group, 7, DB, "n1").addresses) == [each for each in group.addresses if each in expected]


def test_subsets_for_any_number_of_clients_take_bounded_memory() -> None:
    group = Group(pods(1001))
    for client in range(70):
        bounded(group, 1000, DB, f"192.0.2.{client}")
    assert group.subsets is not None
    assert 0 < sum(len(each.endpoints) for each in group.subsets.values()) <= 1 << 16
