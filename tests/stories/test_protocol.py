"""The wire as a client meets it: both families and transports, pipelining, truncation, sizes, and RFC 8906's probes."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import pytest

from tests.support.dns_messages import DO, ECS, KEEPALIVE, Opt, Options, Reply, query, subnet
from tests.support.event_loops import needs_ipv6
from tests.support.server_process import (
    Server,
    exchange_tcp,
    exchange_udp,
    open_tcp,
    open_udp,
    receive_framed,
    send_framed,
    serving,
)

COREFILE = """
cluster.local {
    bind HERE ::1
    kubernetes {
        manifests cluster.yaml
    }
}
"""
BIG: Final = 100  # endpoints: 1,600 octets of A records
SERVICE = """
apiVersion: v1
kind: Service
metadata: {namespace: default, name: %(name)s}
spec: {clusterIP: None, clusterIPs: [None]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  namespace: default
  name: %(name)s-1
  labels: {kubernetes.io/service-name: %(name)s}
addressType: IPv4
ports: []
endpoints: [%(endpoints)s]
---
"""
SMALL_A, BIG_A = "small.default.svc.cluster.local A", "big.default.svc.cluster.local A"
COOKIE, NSID, EXPIRE, UNKNOWN = 10, 3, 9, 100


def manifest(name: str, count: int) -> str:
    endpoints = ", ".join(f"{{addresses: [10.0.0.{number}]}}" for number in range(1, count + 1))
    return SERVICE % {"name": name, "endpoints": endpoints}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    directory = tmp_path_factory.mktemp("protocol")
    namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: default}\n---"
    (directory / "cluster.yaml").write_text(namespace + manifest("small", 2) + manifest("big", BIG))
    with serving(directory, COREFILE) as server:
        yield server


def port_on(server: Server, host: str) -> int:
    """The port that the banner gives for this address, such as `cluster.local.:40123 on ::1`."""
    (line,) = server.lines(f" on {host}")
    return int(line.split()[0].rpartition(":")[2])


@needs_ipv6
@pytest.mark.parametrize("tcp", [False, True], ids=["udp", "tcp"])
def test_ipv6_is_answered_as_ipv4_is(server: Server, tcp: bool) -> None:
    over_ipv6 = server.ask(SMALL_A, tcp=tcp, to="::1", port=port_on(server, "::1"))
    assert over_ipv6.data == server.ask(SMALL_A, tcp=tcp).data == ["10.0.0.1", "10.0.0.2"]


def test_a_name_outside_every_block_is_refused(server: Server) -> None:
    reply = server.ask("example.org A")
    assert (reply.rcode, reply.flag_names, reply.authority) == ("REFUSED", {"qr", "rd"}, [])


def test_the_question_comes_back_as_it_was_spelled(server: Server) -> None:
    for _ in range(2):
        reply = server.ask("sMaLL.deFault.svc.CLUSTER.local A")
        assert (reply.rcode, b"\5sMaLL\7deFault\3svc\7CLUSTER\5local\0" in reply.wire) == ("NOERROR", True)


def test_pipelined_queries_are_each_answered_once(server: Server) -> None:
    asked = {ident: SMALL_A if ident % 3 else BIG_A for ident in range(500)}
    with open_tcp((server.address, server.port)) as sock:
        send_framed(sock, *(query(question, ident=ident) for ident, question in asked.items()))
        got = [Reply(receive_framed(sock)) for _ in asked]
    assert {reply.ident: len(reply.answer) for reply in got} == {
        ident: 2 if question == SMALL_A else BIG for ident, question in asked.items()
    }


def test_a_message_over_tcp_may_come_in_any_pieces(server: Server) -> None:
    message = query(SMALL_A)
    with open_tcp((server.address, server.port)) as sock:
        for octet in len(message).to_bytes(2, "big") + message:
            sock.sendall(bytes([octet]))
        assert Reply(receive_framed(sock)).rcode == "NOERROR"


def test_the_keepalive_option_is_answered_over_tcp_only(server: Server) -> None:
    opt = Opt(options=[(KEEPALIVE, b"")])
    assert server.ask(SMALL_A, opt=opt, tcp=True).options == {KEEPALIVE: (100).to_bytes(2, "big")}
    assert server.ask(SMALL_A, opt=opt).options == {}


SIZES = [
    ("no EDNS: 512", None, 512),
    ("less than 512 offered means 512", Opt(size=100), 512),
    ("512 offered", Opt(size=512), 512),
    ("1000 offered", Opt(size=1000), 1000),
    ("never more than 1232, whatever is offered", Opt(size=65535), 1232),
]


@pytest.mark.parametrize(("opt", "limit"), [case[1:] for case in SIZES], ids=[case[0] for case in SIZES])
def test_an_answer_too_long_for_the_client_is_truncated_and_whole_over_tcp(
    server: Server, opt: Opt | None, limit: int
) -> None:
    for _ in range(2):  # made, then ready-made
        reply = server.ask(BIG_A, opt=opt)
        assert "tc" in reply.flag_names
        assert limit - 16 < len(reply.wire) <= limit
        assert len(set(reply.data)) == len(reply.answer)
        whole = server.ask(BIG_A, opt=opt, tcp=True)
        assert "tc" not in whole.flag_names
        assert len(set(whole.data)) == BIG


@dataclass(frozen=True)
class Probe:
    """A query of RFC 8906 section 8, and the reply that has to come back."""

    flags: int = 0
    opt: Opt | None = None
    question: str = "cluster.local SOA"
    rcode: str = "NOERROR"
    answers: int = 1
    header: frozenset[str] = frozenset({"qr", "aa"})
    edns_flags: int = 0


def later_version(flags: int = 0, options: Options = ()) -> Probe:
    """A query of a future version of EDNS gets BADVERS, and nothing else."""
    opt = Opt(version=1, flags=flags, options=options)
    return Probe(opt=opt, rcode="BADVERS", answers=0, header=frozenset({"qr"}), edns_flags=flags & DO)


PROBES = {
    "plain SOA": Probe(),
    "RD is copied": Probe(flags=0x0100, header=frozenset({"qr", "aa", "rd"})),
    "unknown type": Probe(question="cluster.local TYPE1000", answers=0),
    "CD is copied": Probe(flags=0x0010, header=frozenset({"qr", "aa", "cd"})),
    "AD is not": Probe(flags=0x0020),
    "the reserved bit is not": Probe(flags=0x0040),
    "EDNS": Probe(opt=Opt()),
    "EDNS version 1": later_version(),
    "unknown option": Probe(opt=Opt(options=[(UNKNOWN, b"")])),
    "unknown EDNS flag": Probe(opt=Opt(flags=0x40)),
    "unknown option, version 1": later_version(options=[(UNKNOWN, b"")]),
    "unknown flag, version 1": later_version(flags=0x40),
    "DO": Probe(opt=Opt(flags=DO), edns_flags=DO),
    "DO, version 1": later_version(flags=DO),
    "several options": Probe(opt=Opt(options=[(COOKIE, bytes(8)), (NSID, b""), (EXPIRE, b""), subnet("0.0.0.0/0")])),
}


@pytest.mark.parametrize("tcp", [False, True], ids=["udp", "tcp"])
@pytest.mark.parametrize("probe", PROBES.values(), ids=PROBES.keys())
def test_probes_of_rfc_8906_are_answered(server: Server, probe: Probe, tcp: bool) -> None:
    message = query(probe.question, probe.opt, probe.flags)
    at = (server.address, server.port)
    reply = Reply(exchange_tcp(message, at) if tcp else exchange_udp(message, at))
    assert (reply.rcode, len(reply.answer)) == (probe.rcode, probe.answers)
    assert reply.flag_names == probe.header
    assert reply.flags & 0x0040 == 0
    assert (reply.options is None) == (probe.opt is None)
    if probe.opt is not None:
        assert reply.options == {}
        assert (reply.edns_version, reply.edns_flags, reply.edns_size) == (0, probe.edns_flags, 1232)


HEADER_ONLY = [
    ("opcode 15 with a bare header", struct.pack("!HHHHHH", 7, 15 << 11, 0, 0, 0, 0), 4),
    ("NOTIFY", query("cluster.local SOA", flags=4 << 11, ident=7), 4),
    ("UPDATE", query("cluster.local SOA", flags=5 << 11, ident=7), 4),
    ("no question", struct.pack("!HHHHHH", 7, 0, 0, 0, 0, 0), 1),
    ("two questions", struct.pack("!HHHHHH", 7, 0, 2, 0, 0, 0) + query("a A")[12:] + query("b A")[12:], 1),
    ("ARCOUNT of what is not there", query("a A", ident=7)[:10] + b"\xff\xff" + query("a A")[12:], 1),
    ("two OPT records", query("a A", Opt(), ident=7)[:11] + b"\2" + query("a A", Opt())[12:] + Opt().wire(), 1),
]


@pytest.mark.parametrize(
    ("message", "rcode"), [case[1:] for case in HEADER_ONLY], ids=[case[0] for case in HEADER_ONLY]
)
def test_an_unreadable_message_or_one_that_is_no_query_gets_a_bare_header(
    server: Server, message: bytes, rcode: int
) -> None:
    reply = exchange_udp(message, (server.address, server.port))
    assert (reply[:2], reply[3] & 0xF, reply[4:]) == (message[:2], rcode, bytes(8))
    assert reply[2] == 0x80 | message[2] & 0x79  # QR, opcode and RD; AA clear


SILENCE = [
    ("a response: two servers must never talk to each other", query(SMALL_A, flags=0x8000)),
    ("a broken response", query(SMALL_A, flags=0x8000)[:20]),
    ("less than a header", query(SMALL_A)[:11]),
]


@pytest.mark.parametrize("message", [case[1] for case in SILENCE], ids=[case[0] for case in SILENCE])
def test_a_message_that_is_no_query_to_the_server_is_left_unanswered(server: Server, message: bytes) -> None:
    with open_udp((server.address, server.port)) as sock:
        sock.send(message)
        sock.send(query(SMALL_A, ident=4711))  # datagrams of one socket are answered in their order
        assert sock.recv(65535)[:2] == (4711).to_bytes(2, "big")


@pytest.mark.parametrize("qtype", ["AXFR", "IXFR"])
def test_transfers_are_refused(server: Server, qtype: str) -> None:
    assert server.ask(f"cluster.local {qtype}", tcp=True).rcode == "REFUSED"


def test_other_classes_are_refused(server: Server) -> None:
    assert server.ask("version.bind CH TXT").rcode == "REFUSED"
    assert server.ask("small.default.svc.cluster.local CH A").rcode == "REFUSED"


def test_a_client_subnet_is_not_echoed_without_trust(server: Server) -> None:
    reply = server.ask(SMALL_A, opt=Opt(options=[subnet("10.1.0.0/16")]))
    assert ECS not in (reply.options or {})
