"""Fields that leave the cluster with a question, and records that come in with its answer: only those asked for."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import pytest

from tests.support import reply_faults as faulty
from tests.support.dns_messages import DO, KEEPALIVE, RD, Opt, Options, node_identity, query, subnet
from tests.support.faulty_upstream import ANSWER, Asked, BadUpstream, bad_upstream
from tests.support.reply_faults import CNAME, NS, A, compose, opt_record, packed, record, wire_name
from tests.support.server_process import Server, serving
from tests.support.stub_resolvers import Stub, ask_together
from tests.support.upstream_faults import answers, once_all_are_there, question_of, says

COREFILE = """
.:0 {{
    bind HERE
    cache 30
    forward . 127.0.0.1:{port}
}}
"""
NSID, COOKIE, PADDING, LOCAL = 3, 10, 12, 65001
PERSONAL: Options = [
    subnet("10.1.2.0/24"),
    node_identity("node-a1"),
    (COOKIE, b"12345678"),
    (KEEPALIVE, b""),
    (NSID, b""),
    (PADDING, bytes(20)),
    (LOCAL, b"secret"),
]
AD = 0x0020  # the cache asks for all of its clients, and sets AD for those that want it (RFC 6840 section 5.7)
A_IN = b"\0\1\0\1"
EVIL = "192.0.2.66"

each_transport = pytest.mark.parametrize("tcp", [False, True], ids=["udp", "tcp"])


@pytest.fixture(scope="module")
def upstream() -> Iterator[BadUpstream]:
    with bad_upstream(answers) as upstream:
        yield upstream


@pytest.fixture(scope="module")
def server(upstream: BadUpstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("privacy"), COREFILE.format(port=upstream.port)) as server:
        yield server


@each_transport
@pytest.mark.parametrize("flags", [0, DO], ids=["", "do"])
def test_nothing_but_the_question_leaves(server: Server, upstream: BadUpstream, tcp: bool, flags: int) -> None:
    name = f"private-{flags}-{tcp:d}.example.org"
    reply = server.ask(f"{name.title()} A", opt=Opt(4096, PERSONAL, flags=flags), tcp=tcp)
    assert reply.answer == [f"{name.title()}. 30 IN A {ANSWER}"]
    assert upstream.asked[-1].transport == ("tcp" if tcp else "udp")
    assert upstream.asked[-1].message[2:] == query(f"{name} A", Opt(1232, flags=flags), RD | AD)[2:]


@each_transport
def test_a_client_without_edns_is_forwarded_without_edns(server: Server, upstream: BadUpstream, tcp: bool) -> None:
    reply = server.ask(f"plain-{tcp:d}.example.org A", tcp=tcp)
    assert (reply.data, reply.options) == ([ANSWER], None)
    assert upstream.asked[-1].message[2:] == query(f"plain-{tcp:d}.example.org A", flags=RD | AD)[2:]


@each_transport
def test_the_edns_of_the_upstream_is_for_us_alone(server: Server, upstream: BadUpstream, tcp: bool) -> None:
    said = b"".join(code.to_bytes(2, "big") + b"\0\4them" for code in (NSID, COOKIE, KEEPALIVE, PADDING, LOCAL))
    with_options = record(b"\0", faulty.OPT, said, ttl=DO, rclass=4096)
    upstream.behaviour = says(
        lambda message: compose(message, [record(b"\xc0\x0c", A, packed(ANSWER))], additional=[with_options])
    )
    for _ in ("from the upstream", "from the cache"):
        reply = server.ask(f"hop-{tcp:d}.example.org A", opt=Opt(), tcp=tcp)
        assert (reply.data, reply.options) == ([ANSWER], {})
        assert (reply.edns_size, reply.edns_version, reply.edns_flags) == (1232, 0, 0)


def poisoned(message: bytes) -> bytes:
    """The answer, and in each section a record about names that were not asked for."""
    victim, server = wire_name("www.bank.example"), wire_name("ns.evil.example")
    evil = record(victim, A, packed(EVIL))
    return compose(
        message,
        [record(b"\xc0\x0c", A, packed(ANSWER)), evil, record(wire_name("bank.example"), CNAME, server)],
        [record(wire_name("bank.example"), NS, server), record(wire_name("victim.example.org"), NS, server)],
        [evil, record(server, A, packed(EVIL)), record(wire_name("poison.example.org"), A, packed(EVIL)), opt_record()],
    )


@each_transport
def test_n15_records_that_were_not_asked_for_reach_no_client(server: Server, upstream: BadUpstream, tcp: bool) -> None:
    upstream.behaviour = says(poisoned)
    for _ in ("from the upstream", "from the cache"):
        reply = server.ask(f"poisoned-{tcp:d}.example.org A", opt=Opt(), tcp=tcp)
        assert (reply.data, reply.authority, reply.additional) == ([ANSWER], [], [])
    upstream.behaviour = answers
    for victim in ("www.bank.example", "bank.example", "ns.evil.example", "victim.example.org", "poison.example.org"):
        asked = len(upstream.asked)
        assert server.ask(f"{victim} A", opt=Opt(flags=DO if tcp else 0), tcp=tcp).data == [ANSWER]
        assert len(upstream.asked) == asked + 1, f"{victim} came from a cache"


BATCHES, TOGETHER = 10, 20


def asked_together(server: Server, upstream: BadUpstream, label: str, tcp: bool) -> list[list[Asked]]:
    """What the upstream is asked by BATCHES times TOGETHER clients; those of a batch are in flight together.

    Only the first query with each question counts: on a slow machine some are sent again, elsewhere.
    """
    upstream.behaviour = once_all_are_there(TOGETHER)
    batches = []
    for batch in range(BATCHES):
        before = len(upstream.asked)
        names = [f"{label}-{batch}-{number}.example.org" for number in range(TOGETHER)]
        got = ask_together(server, [Stub(f"{name} A", tcp=tcp) for name in names])
        assert {str(each) for each in got} == {f"NOERROR {ANSWER}"}
        first: dict[bytes, Asked] = {}
        for each in upstream.asked[before:]:
            first.setdefault(question_of(each.message), each)
        batches.append([first[wire_name(name) + A_IN] for name in names])
    return batches


def looks_random(numbers: Sequence[int], bits: int) -> bool:
    """Each bit is set about half of the time (7 sigma), and neighbours are far apart."""
    ones = [sum(number >> bit & 1 for number in numbers) / len(numbers) for bit in range(bits)]
    near = sum(abs(one - other) < 16 for one, other in pairwise(numbers))
    return all(0.25 < share < 0.75 for share in ones) and near < len(numbers) / 10


def ids(batches: list[list[Asked]]) -> list[int]:
    return [int.from_bytes(each.message[:2], "big") for batch in batches for each in batch]


def test_n15_over_udp_each_query_has_an_unpredictable_port_and_id(server: Server, upstream: BadUpstream) -> None:
    batches = asked_together(server, upstream, "guess", tcp=False)
    assert [len({each.port for each in batch}) for batch in batches] == [TOGETHER] * BATCHES
    ports = [each.port for batch in batches for each in batch]
    assert looks_random(ports, bits=12)  # the kernel's range is no power of two
    assert looks_random(ids(batches), bits=16)


def test_over_tcp_each_query_has_an_unpredictable_id(server: Server, upstream: BadUpstream) -> None:
    batches = asked_together(server, upstream, "pipelined", tcp=True)
    assert all(len({each.connection for each in batch}) <= 2 for batch in batches)
    assert looks_random(ids(batches), bits=16)
