"""The queries of each row of the table, and the files from which generators read them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import product
from pathlib import Path
from random import Random
from string import ascii_lowercase
from typing import Final, NamedTuple

from bench.cluster import NODES, client_on, cluster_ip_names, headless_names
from bench.compare.cluster import ORIGIN, SIZES, pod_name, sized_name
from bench.questions import HOT_NAMES, Question, write_dnsperf_input, write_questions
from topodns.dns.rrtype import RRType

ADDRESSES: Final = 50  # of clients, where topology keys decide
ADDRESS_NODES: Final = 20  # that these are on
EDNS_SIZE: Final = 1232  # octets: the UDP payload size of a client that queries a Service with many endpoints
LOOPBACK: Final = bytes((127, 0, 0, 1))
MIX_POD: Final = 1_234_567  # the Pod whose name is in the mix

_PASSES: Final = 3  # over all questions of a hot load, before it is measured
_TYPES: Final = (RRType.A, RRType.AAAA)
_SEARCH: Final = (f"svc.{ORIGIN}", ORIGIN)  # of a Pod's search list, after its own namespace


class Method(Enum):
    """How a load is sent."""

    UDP = "UDP, 64 queries in flight"
    ONE_BY_ONE = "TCP, 20 connections, one query in flight on each"
    PIPELINED = "TCP, 20 connections, 32 queries in flight on each"
    DNSPERF = "dnsperf"


class Row(Enum):
    """The rows of the table, in its order."""

    HOT = "hot: 300 Services with a ClusterIP"
    MIX = "hot: mix of kubernetes/perf-tests, 14 of 25 NXDOMAIN"
    KEYS = "hot: headless with keys, 50 addresses on 20 nodes"
    SIZED_100 = "hot: 100 endpoints, cut to 1,232 octets"
    SIZED_1000 = "hot: 1,000 endpoints, cut to 1,232 octets"
    WHOLE_1000 = "hot: 1,000 endpoints, whole over TCP"
    DNSPERF = "hot, by dnsperf from one address"
    ONE_BY_ONE = "hot over TCP, one by one"
    PIPELINED = "hot over TCP, pipelined"
    SERVICES_ONCE = "4,000 questions for Services, once each"
    NAMES_ONCE = "100,000 different names, once each"
    FORWARDED_UDP = "forwarded over UDP, once each"
    FORWARDED_TCP = "forwarded over TCP, once each"
    FORWARDED_CACHE = "forwarded over TCP into a cache, once each"
    CACHED = "forwarded before, cached"
    NODE_ONCE = "node cache and server together, once each"
    NODE_CACHED = "node cache, cached"


@dataclass(frozen=True)
class Sizes:
    """How many queries a load has."""

    names_once: int = 100_000
    hot: int = 40_000
    large: int = 4_000  # whose answers are large
    forwarded: int = 20_000
    pool: int = 10_000  # different queries of a hot load at most, of which the others are repetitions


FULL: Final = Sizes()
SHORT: Final = Sizes(2_000, 2_000, 200, 1_000, 300)  # enough to test that the bench runs


class Load(NamedTuple):
    """The queries of a row. Those of `warm_up` are sent before, and not measured.

    `with_records`: number of right answers that have records; None if right answers of servers differ.
    """

    row: Row
    method: Method
    file: Path
    with_records: int | None
    warm_up: Path | None = None


def hot_pool() -> list[Question]:
    """Each of 300 Services with a ClusterIP, from a client on each node."""
    names = cluster_ip_names()[: 2 * HOT_NAMES]
    return [Question(client_on(node), name) for node, name in product(range(NODES), names)]


def keyed_pool() -> list[Question]:
    """Each of 150 headless Services with topology keys, from each of 50 addresses on 20 nodes."""
    clients = [_address_on(number % ADDRESS_NODES, number // ADDRESS_NODES) for number in range(ADDRESSES)]
    return [Question(client, name) for client, name in product(clients, headless_names()[:HOT_NAMES])]


def mixed_pool() -> list[Question]:
    """The 25 lines of dns/queries/all-queries.txt of kubernetes/perf-tests, for 75 pairs of Services.

    A Pod's search list makes 14 names of them that do not exist. Those of one label and of two are outside of the
    cluster, and have an address here.
    """
    names = cluster_ip_names()[:HOT_NAMES]
    questions = []
    for number, (one, other) in enumerate(zip(names[::2], names[1::2], strict=True)):
        namespace = one.split(".")[1]
        searched = [*_searched(one.split(".")[0], namespace), *_searched(other.split(".")[0], other.split(".")[1])]
        searched += _searched("google.com", namespace)
        client = client_on(number % NODES)
        questions += [Question(client, name, rtype) for name, rtype in product(searched, _TYPES)]
        questions.append(Question(client, pod_name(MIX_POD)))
    return questions


def services_once(rng: Random) -> list[Question]:
    """A and AAAA of each Service, with a ClusterIP or with keys, from any node."""
    asked = list(product([*headless_names(), *cluster_ip_names()], _TYPES))
    rng.shuffle(asked)
    return [Question(client_on(rng.randrange(NODES)), name, rtype) for name, rtype in asked]


def names_once(count: int, rng: Random) -> list[Question]:
    """Half of them names of Pods, half names outside with a domain of a Pod's search list behind them (NXDOMAIN)."""
    forms = (f"ns0.svc.{ORIGIN}", *_SEARCH)
    names = [pod_name(number) for number in range(count // 2)]
    names += [f"host{number}.example.{forms[number % len(forms)]}" for number in range(count - count // 2)]
    rng.shuffle(names)
    return [Question(client_on(number % NODES), name) for number, name in enumerate(names)]


def pods_once(count: int) -> list[Question]:
    """Names of Pods."""
    return [Question(client_on(number % NODES), pod_name(number)) for number in range(count)]


def outside_names(count: int, rng: Random) -> list[Question]:
    labels = ("".join(rng.choices(ascii_lowercase, k=12)) for _ in range(count))
    return [Question(LOOPBACK, f"{label}.example.com") for label in labels]


def has_records(question: Question) -> bool:
    """Whether the right answer has records."""
    name = question.name
    outside, pod = not name.endswith(f".{ORIGIN}"), name.endswith(f".pod.{ORIGIN}")
    return question.rtype == RRType.A and (outside or pod or name in _SERVICES)


class Loads:
    """The loads, as files in `folder`. `paced`: the queries for latencies. `fresh`: 500 other names outside."""

    def __init__(self, folder: Path, sizes: Sizes, rng: Random) -> None:
        self._folder, self._sizes, self._rng = folder, sizes, rng
        hot, keyed, fresh = hot_pool(), keyed_pool(), outside_names(500, rng)
        self.fresh = write_questions(folder / "fresh", fresh)
        self.cluster = (
            self._once(Row.SERVICES_ONCE, services_once(rng)),
            self._once(Row.NAMES_ONCE, names_once(sizes.names_once, rng)),
            self._hot(Row.HOT, hot),
            self._hot(Row.MIX, mixed_pool()),
            self._hot(Row.KEYS, keyed),
            *self._large(),
            self._hot(Row.ONE_BY_ONE, hot, Method.ONE_BY_ONE),
            self._hot(Row.PIPELINED, hot, Method.PIPELINED),
            self._by_dnsperf(hot),
        )
        outside = outside_names(sizes.forwarded, rng)
        forwarded = (Row.FORWARDED_UDP, Row.FORWARDED_TCP, Row.FORWARDED_CACHE)
        self.forwarded = {row: self._once(row, outside) for row in forwarded}
        self.cached = self._hot(Row.CACHED, fresh[:1])
        self.node_once = self._once(Row.NODE_ONCE, pods_once(sizes.forwarded))
        self.node_cached = self._hot(Row.NODE_CACHED, hot[:HOT_NAMES])
        self.pods = (*range(sizes.names_once // 2), MIX_POD)
        half, other_half = self._part(hot), self._part(keyed)
        self.paced_warm_up = self._write("paced-before", [*half, *other_half] * _PASSES)
        paced = rng.choices(half, k=sizes.hot) + rng.choices(other_half, k=sizes.hot)
        rng.shuffle(paced)
        self.paced = self._write("paced", paced)

    def _large(self) -> Iterator[Load]:
        for row, size in zip((Row.SIZED_100, Row.SIZED_1000), SIZES, strict=True):
            yield self._hot(
                row, [Question(client_on(0), sized_name(size), edns_size=EDNS_SIZE)], count=self._sizes.large
            )
        whole = [Question(LOOPBACK, sized_name(SIZES[-1]))]
        yield self._hot(Row.WHOLE_1000, whole, Method.ONE_BY_ONE, self._sizes.large)

    def _once(self, row: Row, questions: Sequence[Question]) -> Load:
        return Load(row, Method.UDP, self._write(row.name, questions), sum(map(has_records, questions)))

    def _hot(self, row: Row, pool: Sequence[Question], method: Method = Method.UDP, count: int = 0) -> Load:
        pool = self._part(pool)
        asked = self._rng.choices(pool, k=count or self._sizes.hot)
        warm_up = self._write(f"{row.name}-before", [*pool] * _PASSES)
        return Load(row, method, self._write(row.name, asked), sum(map(has_records, asked)), warm_up)

    def _by_dnsperf(self, pool: Sequence[Question]) -> Load:
        pool = self._part(pool)
        asked = self._rng.choices(pool, k=self._sizes.hot)
        file = write_dnsperf_input(self._folder / Row.DNSPERF.name, asked)
        return Load(Row.DNSPERF, Method.DNSPERF, file, None, self._write("dnsperf-before", [*pool] * _PASSES))

    def _part(self, pool: Sequence[Question]) -> Sequence[Question]:
        return pool if len(pool) <= self._sizes.pool else self._rng.sample(pool, self._sizes.pool)

    def _write(self, name: str, questions: Sequence[Question]) -> Path:
        return write_questions(self._folder / name, questions)


_SERVICES: Final = frozenset((*cluster_ip_names(), *headless_names(), *map(sized_name, SIZES)))


def _searched(name: str, namespace: str) -> list[str]:
    """The name, and the name with each domain of the search list of a Pod in this namespace."""
    return [name, *(f"{name}.{domain}" for domain in (f"{namespace}.svc.{ORIGIN}", *_SEARCH))]


def _address_on(node: int, number: int) -> bytes:
    """Another address of a client on this node."""
    return client_on(node)[:3] + bytes((1 + number,))
