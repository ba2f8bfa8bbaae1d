"""Upstreams and their impostors that send without end what is no reply: others do not wait for it, and the
connection ends.
"""

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import count
from pathlib import Path

import pytest

from tests.support.background_threads import accepting, beside
from tests.support.certificates import Certificates, make_certificates, needs_openssl
from tests.support.dns_messages import query
from tests.support.scripted_http_server import server_side
from tests.support.server_process import METRICS, Server, open_udp, receive_framed, send_framed, serving, until
from tests.support.steady_client import victim
from tests.support.stub_resolvers import stub_address
from tests.support.upstream_faults import reply_to
from topodns.dns.dso import INFINITE, SessionTimeouts, keepalive_tlv, write_dso_response
from topodns.dns.tcp_framing import frame

COREFILE = """
.:0 {{
    bind HERE
    prometheus HERE:{metrics}
    {options}
    hosts {{
        192.0.2.1 local.example
        fallthrough
    }}
    cache 30 {{
        {push}
    }}
    forward . {scheme}127.0.0.1:{port} {{
        {more}
    }}
}}
"""
CPU = 0.02  # seconds of the server between a question of the victim and its reply
ASKED = 60  # questions of the victim during an attack
PIECE = 1 << 16  # octets of one write of an upstream

Flood = Callable[[bytes], bytes]
"""The message that an upstream sends again and again, made of the query or the DSO request that it got."""


def reply_to_nothing(message: bytes) -> bytes:
    return bytes((message[0] ^ 0xFF, message[1])) + bytes.fromhex("8180 0001 0000 0000 0000")


def longest_reply_to_nothing(message: bytes) -> bytes:
    return reply_to_nothing(message).ljust(0xFFFF, b"\0")


def same_reply(message: bytes) -> bytes:
    return reply_to(message)


def reply_to_another_question(message: bytes) -> bytes:
    return message[:2] + reply_to(query("other.example A"))[2:]


def query_in_place_of_a_reply(message: bytes) -> bytes:
    return message


def keepalive_without_a_session(_: bytes) -> bytes:
    return bytes.fromhex("0000 3000 0000 0000 0000 0000 0001 0008 ffffffff 00003a98")


def dso_response_to_nothing(message: bytes) -> bytes:
    return bytes((message[0] ^ 0xFF, message[1])) + bytes.fromhex("b000 0000 0000 0000 0000")


def dso_request(_: bytes) -> bytes:
    return bytes.fromhex("1234 3000 0000 0000 0000 0000 f801 0000")


def push_of_names_never_subscribed_to(_: bytes) -> bytes:
    record = b"\5other\7example\0" + bytes.fromhex("0001 0001 0000003c 0004 c0000201")
    return bytes.fromhex("0000 3000 0000 0000 0000 0000 0041") + len(record).to_bytes(2, "big") + record


class Flooder:
    """Answers queries and Keepalives, and then floods; with `in_session` only after a Keepalive."""

    def __init__(self, flood: Flood, in_session: bool, context: ssl.SSLContext | None) -> None:
        self._flood, self._in_session, self._context = flood, in_session, context
        self.floods = self.ended = self.port = 0

    def converse(self, connection: socket.socket) -> None:
        with suppress(AssertionError), ExitStack() as stack:
            stream = connection
            if self._context is not None:
                stream = stack.enter_context(self._context.wrap_socket(connection, server_side=True))
            while True:
                message = receive_framed(stream)
                is_dso = message[2] & 0x78 == 0x30
                if is_dso:
                    timeouts = keepalive_tlv(SessionTimeouts(INFINITE, 15_000))
                    send_framed(stream, write_dso_response(int.from_bytes(message[:2], "big"), 0, timeouts))
                elif self._in_session or self._flood is not same_reply:
                    send_framed(stream, reply_to(message))
                if is_dso or not self._in_session:
                    self._flood_on(stream, message)

    def _flood_on(self, stream: socket.socket, message: bytes) -> None:
        framed = frame(self._flood(message))
        self.floods += 1
        try:
            while True:
                stream.sendall(framed * (PIECE // len(framed) + 1))
        finally:
            self.ended += 1


@contextmanager
def flooder(flood: Flood, in_session: bool = False, context: ssl.SSLContext | None = None) -> Iterator[Flooder]:
    one = Flooder(flood, in_session, context)
    with accepting(one.converse) as one.port:
        yield one


@contextmanager
def questions(server: Server, names: Callable[[int], str]) -> Iterator[None]:
    """A client of the upstream, which asks 20 times a second until the block ends."""
    with open_udp((server.address, server.port), stub_address()) as sock:

        def ask(ended: threading.Event) -> None:
            for number in count():
                sock.send(query(names(number)))
                if ended.wait(0.05):
                    return

        with beside(ask):
            yield


def no_client_waits(server: Server, upstream: Flooder, names: Callable[[int], str]) -> None:
    with questions(server, names):
        until(lambda: upstream.floods, "the first flood")
        with victim(server, "local.example A", "192.0.2.1", per_second=100) as fate:
            until(lambda: fate.asked >= ASKED, "questions of the victim")
    assert (fate.lost, fate.wrong) == (0, []), fate
    assert fate.cpu(99) < CPU, fate


def corefile(upstream: Flooder, options: str = "", push: str = "", scheme: str = "", more: str = "force_tcp") -> str:
    return COREFILE.format(metrics=METRICS, port=upstream.port, options=options, push=push, scheme=scheme, more=more)


def new_names(number: int) -> str:
    return f"n{number}.example.org A"


CHAIN = "rewrite ttl exact example.org 30"
FLOODS = (
    reply_to_nothing,
    longest_reply_to_nothing,
    same_reply,
    reply_to_another_question,
    query_in_place_of_a_reply,
    keepalive_without_a_session,
)


@pytest.mark.parametrize(
    ("flood", "options"),
    [*((flood, "") for flood in FLOODS), (reply_to_nothing, CHAIN), (same_reply, CHAIN)],
    ids=lambda value: getattr(value, "__name__", value and "chain"),
)
def test_an_upstream_that_sends_what_is_no_reply_delays_no_other_client(
    tmp_path: Path, flood: Flood, options: str
) -> None:
    with flooder(flood) as upstream, serving(tmp_path, corefile(upstream, options)) as server:
        no_client_waits(server, upstream, new_names)
        until(lambda: upstream.ended == upstream.floods, "the end of each connection")
        assert server.metric("topodns_forward_dropped_total") == 0


def test_datagrams_that_are_no_reply_delay_no_other_client_and_end_no_wait_for_the_reply(tmp_path: Path) -> None:
    junk = [bytes((ident, 0)) + bytes.fromhex("8180 0001 0000 0000 0000") for ident in range(256)] * 40
    sent = 0
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(("127.0.0.1", 0))
        sock.settimeout(0.1)

        def answer(ended: threading.Event) -> None:
            nonlocal sent
            while not ended.is_set():
                try:
                    message, client = sock.recvfrom(512)
                except TimeoutError:
                    continue
                for piece in junk:
                    sock.sendto(piece, client)
                sent += len(junk)
                sock.sendto(reply_to(message), client)

        port = sock.getsockname()[1]
        text = COREFILE.format(metrics=METRICS, port=port, options="", push="", scheme="", more="")
        with beside(answer), serving(tmp_path, text) as server:
            with questions(server, new_names), victim(server, "local.example A", "192.0.2.1", per_second=100) as fate:
                until(lambda: fate.asked >= ASKED and sent > 10 * len(junk), "questions of the victim")
            assert (fate.lost, fate.wrong) == (0, []), fate
            assert fate.cpu(99) < CPU, fate


@needs_openssl
@pytest.mark.parametrize("flood", FLOODS[:3], ids=lambda flood: flood.__name__)
def test_an_upstream_over_tls_that_sends_what_is_no_reply_delays_no_other_client(
    tmp_path: Path, flood: Flood, certificates: Certificates
) -> None:
    with flooder(flood, context=server_side(certificates)) as upstream:
        text = corefile(upstream, scheme="tls://", more=f"tls {certificates.ca}")
        with serving(tmp_path, text) as server:
            no_client_waits(server, upstream, new_names)
            until(lambda: upstream.ended == upstream.floods, "the end of each connection")


IN_SESSION = (
    *FLOODS,
    dso_response_to_nothing,
    dso_request,
    push_of_names_never_subscribed_to,
)


@pytest.mark.parametrize("flood", IN_SESSION, ids=lambda flood: flood.__name__)
def test_an_upstream_that_floods_a_session_delays_no_other_client(tmp_path: Path, flood: Flood) -> None:
    with flooder(flood, in_session=True) as upstream, serving(tmp_path, corefile(upstream, push="push")) as server:
        no_client_waits(server, upstream, lambda number: f"n{number // 4}.example.org A")
        assert upstream.floods, "no session"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))
