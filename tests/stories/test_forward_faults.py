"""Whatever an upstream does, each stub gets a reply before it gives up, and never a wrong one.

There is one server, and every kind of upstream has origins of its own there: `alone`, `beside` a good upstream, and
`known`, where a cache may serve what has gone stale. All questions are asked at once and the tests look at what came.
"""

import asyncio
import socket
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from tests.support import reply_faults as faulty
from tests.support.dns_messages import EDE, Opt
from tests.support.faulty_upstream import ANSWER, Act, Asked, BadUpstream, Behaviour, bad_upstream
from tests.support.server_process import METRICS, Server, own_address, serving, until
from tests.support.stub_resolvers import Got, Stub, ask_together
from tests.support.upstream_faults import (
    LIES,
    answers,
    as_large_as_can_be,
    closes,
    half_a_reply,
    other_case,
    resets,
    says,
    says_first,
    says_from,
    silent,
    slow,
    truncated,
)

# An upstream that forwards a query back to its sender, as a node's resolver does whose resolv.conf names us.

_PATIENCE: Final = 6.0  # seconds that a query may be on its way


class Relay:
    """A behaviour over UDP: while `to` is an address, that is who gives the answers; else the upstream does."""

    def __init__(self, to: tuple[str, int]) -> None:
        self.to: tuple[str, int] | None = to

    def __call__(self, asked: Asked) -> Sequence[Act]:
        if self.to is None:
            return answers(asked)
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sock.setblocking(False)
        sock.connect(self.to)
        sock.send(asked.message)
        loop = asyncio.get_running_loop()
        loop.add_reader(sock, _pass_back, loop, sock, asked)
        return [Act(lambda: _close(loop, sock), after=_PATIENCE)]


def _pass_back(loop: asyncio.AbstractEventLoop, sock: socket.socket, asked: Asked) -> None:
    with suppress(ConnectionRefusedError):
        asked.channel.send(sock.recv(65535))
    _close(loop, sock)


def _close(loop: asyncio.AbstractEventLoop, sock: socket.socket) -> None:
    if sock.fileno() >= 0:
        loop.remove_reader(sock)
        sock.close()


IN_TIME = 4.5  # seconds; a stub waits for 5
AT_ONCE = 2.0  # where another upstream is there; a flight that waits for the first one alone takes 4

RIGHT = f"NOERROR {ANSWER}"
FAILED = "SERVFAIL"
STALE_ANSWER = b"\0\3"  # RFC 8914 section 4.4


class Kind(NamedTuple):
    """The behaviour of an upstream, and the reply to a stub if there is no other upstream: over UDP, over TCP."""

    behaviour: Behaviour
    udp: str
    tcp: str


BROKEN = [
    faulty.alias_with_two_opts,
    faulty.name_pointing_to_itself,
    faulty.more_records_than_there_are,
    faulty.address_of_five_octets,
    faulty.half_a_message,
]


def dashed(function: object) -> str:
    return getattr(function, "__name__", "").replace("_", "-")


# Those that fail a question, so that another upstream or stale data helps.
FAILING = {
    "down": Kind(silent, FAILED, FAILED),  # nothing listens at its port
    "silent": Kind(silent, FAILED, FAILED),
    "resetting": Kind(resets, FAILED, FAILED),
    "closing": Kind(closes, FAILED, FAILED),
    "closing-half-way": Kind(faulty.by_transport(silent, half_a_reply), FAILED, FAILED),
    "half-and-silence": Kind(faulty.by_transport(silent, faulty.half_and_silence), FAILED, FAILED),
    "not-dns": Kind(faulty.not_dns, FAILED, FAILED),
    "too-slow": Kind(slow(9), FAILED, FAILED),
    **{dashed(lie): Kind(says(lie), FAILED, FAILED) for lie in LIES},
    **{dashed(broken): Kind(says(broken), FAILED, FAILED) for broken in BROKEN},
}
# Those whose answers are taken, as they are or mended.
ANSWERING = {
    "good": Kind(answers, RIGHT, RIGHT),
    "slow": Kind(slow(0.7), RIGHT, RIGHT),
    "resetting-once": Kind(faulty.by_transport(answers, faulty.at_first(resets)), RIGHT, RIGHT),
    "closing-once": Kind(faulty.by_transport(answers, faulty.at_first(closes)), RIGHT, RIGHT),
    "closing-half-way-once": Kind(faulty.by_transport(answers, faulty.at_first(half_a_reply)), RIGHT, RIGHT),
    "silent-once": Kind(faulty.at_first(silent), RIGHT, RIGHT),
    "other-port-first": Kind(faulty.by_transport(says_from("127.0.0.1"), answers), RIGHT, RIGHT),
    "other-address-first": Kind(faulty.by_transport(says_from("127.0.0.2"), answers), RIGHT, RIGHT),
    **{f"{dashed(lie)}-first": Kind(says_first(lie), RIGHT, RIGHT) for lie in LIES},
    "other-case": Kind(says(other_case), RIGHT, RIGHT),
    "with-edns-1": Kind(says(faulty.with_edns_1), RIGHT, RIGHT),
    "with-two-opts": Kind(says(faulty.with_two_opts), RIGHT, RIGHT),
    "with-an-option-cut-short": Kind(says(faulty.with_an_option_cut_short), RIGHT, RIGHT),
    "formerr-to-edns": Kind(says(faulty.formerr_to_edns), RIGHT, RIGHT),
    "badvers-to-edns": Kind(says(faulty.badvers_to_edns), RIGHT, RIGHT),
    "octets-after-the-end": Kind(says(faulty.octets_after_the_end), RIGHT, RIGHT),
    "truncating": Kind(faulty.by_transport(says(truncated), answers), "NOERROR tc", RIGHT),
    "always-truncating": Kind(says(truncated), "NOERROR tc", "NOERROR tc"),
    "servfail": Kind(says(faulty.servfail), FAILED, FAILED),
    "alias-of-itself": Kind(says(faulty.alias_of_itself), "NOERROR {name}.", "NOERROR {name}."),
    "aliases-in-a-circle": Kind(
        says(faulty.aliases_in_a_circle), "NOERROR {name}. other.test.", "NOERROR {name}. other.test."
    ),
}


LARGE = Kind(faulty.by_transport(says(faulty.as_large_as_a_datagram), says(as_large_as_can_be)), "", "")
LONG_CHAIN = Kind(says(faulty.long_chain(100)), "", "")
KINDS = {**FAILING, **ANSWERING, "large": LARGE, "long-chain": LONG_CHAIN}

TRANSPORTS = ("udp", "tcp")
CANARY = "canary.good-udp.known.test"  # asked for last of those that are to go stale

COREFILE = """
alone.test beside.test {{
    bind HERE
    prometheus HERE:{metrics}
    {forwards}
}}
known.test {{
    bind HERE
    cache 1 {{
        success 9984 1 1
        serve_stale 1h verify
    }}
    {forwards_of_known}
}}
"""


@dataclass
class Setup:
    """The upstreams' side. While all is `well`, those of the `known` origins answer."""

    well: bool = True
    asked: Counter[str] = field(default_factory=Counter)  # names

    def behave(self, asked: Asked) -> Sequence[Act]:
        labels = labels_of(asked.message)
        if len(labels) < 4:
            return silent(asked)  # a probe: who fails questions fails these
        self.asked[".".join(labels)] += 1
        _, kind, variant, _ = labels
        if self.well and variant == "known":
            return answers(asked)
        return KINDS[kind.rpartition("-")[0]].behaviour(asked)


def labels_of(message: bytes) -> list[str]:
    """The labels of the name that is asked for."""
    labels, at = [], 12
    while message[at]:
        labels.append(message[at + 1 : at + 1 + message[at]].decode().lower())
        at += 1 + message[at]
    return labels


def name_of(kind: str, transport: str, variant: str, host: str = "first") -> str:
    return f"{host}.{kind}-{transport}.{variant}.test"


def forwards(variant: str, kinds: Iterable[str], bad: BadUpstream, nobody: int, others: str = "") -> str:
    """A line for each kind and transport: upstreams have connections, and a health, for each of them."""
    lines = []
    for kind, transport in product(kinds, TRANSPORTS):
        port = nobody if kind == "down" else bad.port
        options = "{\n policy round_robin\n }" if others else ""
        lines.append(f"forward {kind}-{transport}.{variant}.test 127.0.0.1:{port} {others} {options}")
    return "\n    ".join(lines)


def stub(kind: str, transport: str, variant: str, host: str = "first") -> Stub:
    qtype = "TXT" if kind == "large" else "A"
    opt = None if kind == "large" else Opt()
    return Stub(f"{name_of(kind, transport, variant, host)} {qtype}", transport == "tcp", opt)


@pytest.fixture(scope="module")
def got(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Got]]:
    """The replies to the stubs, by the name that they asked for."""
    setup = Setup()
    with bad_upstream(setup.behave) as bad, bad_upstream(answers) as good, free_port() as nobody:
        corefile = COREFILE.format(
            metrics=METRICS,
            forwards="\n    ".join(
                (
                    forwards("alone", KINDS, bad, nobody),
                    forwards("beside", FAILING, bad, nobody, f"127.0.0.1:{good.port}"),
                )
            ),
            forwards_of_known=forwards("known", ["good", *FAILING], bad, nobody),
        )
        with serving(tmp_path_factory.mktemp("faults"), corefile) as server:
            yield ask_everything(server, setup)
            assert server.metric("coredns_panics_total") == 0
            assert "bug" not in server.output()


def ask_everything(server: Server, setup: Setup) -> dict[str, Got]:
    known = [stub(kind, transport, "known") for kind, transport in product(FAILING, TRANSPORTS) if kind != "down"]
    learn(server, setup, known)
    beside = [stub(*each, "beside", host) for each in product(FAILING, TRANSPORTS) for host in ("first", "second")]
    alone = [stub(*each, "alone") for each in product(KINDS, TRANSPORTS)]
    answered = {}
    for stubs in (beside, [*alone, *known]):
        answered.update({stub.name: got for stub, got in zip(stubs, ask_together(server, stubs), strict=True)})
    return answered


def learn(server: Server, setup: Setup, known: Sequence[Stub]) -> None:
    """Have these names in the cache, and past their TTL of a second."""
    assert {str(got) for got in ask_together(server, known)} == {RIGHT}
    server.ask(f"{CANARY} A")
    until(lambda: server.ask(f"{CANARY} A") and setup.asked[CANARY] > 1, "the end of the TTL")
    setup.well = False


@contextmanager
def free_port() -> Iterator[int]:
    """A port without a listener while this lasts."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as bound:  # and not listening
        bound.bind(("127.0.0.1", 0))
        yield int(bound.getsockname()[1])


each_transport = pytest.mark.parametrize("transport", TRANSPORTS)


@each_transport
@pytest.mark.parametrize("kind", FAILING | ANSWERING)
def test_n01_a_stub_gets_the_right_answer_or_servfail_in_time(got: dict[str, Got], kind: str, transport: str) -> None:
    name = name_of(kind, transport, "alone")
    expected = KINDS[kind].udp if transport == "udp" else KINDS[kind].tcp
    assert str(got[name]) == expected.format(name=name)
    assert got[name].seconds < IN_TIME


@each_transport
@pytest.mark.parametrize("kind", FAILING)
def test_with_another_good_upstream_every_stub_gets_the_right_answer(
    got: dict[str, Got], kind: str, transport: str
) -> None:
    for host in ("first", "second"):
        answer = got[name_of(kind, transport, "beside", host)]
        assert str(answer) == RIGHT
        assert answer.seconds < AT_ONCE


@each_transport
@pytest.mark.parametrize("kind", [kind for kind in FAILING if kind != "down"])
def test_n04_a_name_known_before_is_served_stale(got: dict[str, Got], kind: str, transport: str) -> None:
    answer = got[name_of(kind, transport, "known")]
    assert str(answer) == RIGHT
    assert answer.reply is not None
    assert (answer.reply.options or {})[EDE][:2] == STALE_ANSWER
    assert answer.seconds < IN_TIME


def test_a_message_of_64_kib_reaches_a_client_over_tcp_whole(got: dict[str, Got]) -> None:
    reply = got[name_of("large", "tcp", "alone")].reply
    assert reply is not None
    assert (reply.rcode, len(reply.wire), len(reply.answer)) == ("NOERROR", 0xFFFF, 245)


def test_a_message_of_64_kib_is_cut_short_for_a_client_over_udp(got: dict[str, Got]) -> None:
    reply = got[name_of("large", "udp", "alone")].reply
    assert reply is not None
    assert (reply.rcode, reply.flag_names) == ("NOERROR", {"qr", "rd", "ra", "tc"})
    assert len(reply.wire) <= 512


@each_transport
def test_a_chain_of_a_hundred_aliases_is_no_answer(got: dict[str, Got], transport: str) -> None:
    reply = got[name_of("long-chain", transport, "alone")].reply
    assert reply is not None
    assert (reply.rcode, reply.answer) == ("SERVFAIL", [])


def test_an_upstream_on_an_interface_that_is_not_here_is_one_that_is_down(tmp_path: Path) -> None:
    with bad_upstream(answers) as upstream:
        destinations = f"fe80::1%nosuch0 127.0.0.1:{upstream.port}"
        corefile = f".:0 {{\nbind HERE\nforward . {destinations} {{\npolicy sequential\n}}\n}}"
        with serving(tmp_path, corefile) as server:
            assert server.ask("example.org A").data == [ANSWER]
            assert server.ask("other.example.org A", tcp=True).data == [ANSWER]


# A forwarding loop: noticed, broken, said, and over when it is over; nothing a packet says ends the process.

LOOP_COREFILE = """
.:{at} {{
    bind HERE
    prometheus HERE:{metrics}
    errors
    {loop}
    forward . 127.0.0.1:{port}
}}
"""
PORT = 5353


@contextmanager
def circle(directory: Path, loop: str) -> Iterator[tuple[Server, BadUpstream, Relay]]:
    """A server whose upstream asks the server."""
    address = own_address()
    relay = Relay((address, PORT))
    with bad_upstream(relay) as upstream:
        corefile = LOOP_COREFILE.format(at=PORT, metrics=METRICS, loop=loop, port=upstream.port)
        with serving(directory, corefile, address=address, port=PORT) as server:
            yield server, upstream, relay


def test_n16_a_loop_is_broken_and_forwarding_goes_on_when_it_is_gone(tmp_path: Path) -> None:
    with circle(tmp_path, "loop") as (server, upstream, relay):
        line = server.wait_for_line("Loop detected for .")
        assert line.startswith("[ERROR] plugin/loop: ")
        asked = len(upstream.asked)
        for tcp in (False, True):
            reply = server.ask("www.example.org A", opt=Opt(), tcp=tcp)
            assert reply.rcode == "SERVFAIL"
            assert "circle" in reply.ede
        assert server.metric("topodns_loop_detected_total") == 1
        assert server.metric("topodns_loop_refused_total") == 1 + 2  # the probe is refused, too
        assert len(upstream.asked) == asked
        assert server.process.poll() is None
        relay.to = None
        until(lambda: server.lines("No loop any more for ."), "the end of the loop")
        assert server.ask("www.example.org A").data == [ANSWER]


def test_a_loop_without_the_directive_ends_with_each_question(tmp_path: Path) -> None:
    """The query comes back while it is in flight, and waits for itself until time is up."""
    with circle(tmp_path, "") as (server, upstream, relay):
        stubs = [Stub(f"www-{number}.example.org A", tcp=False) for number in range(50)]
        assert {str(got) for got in ask_together(server, stubs)} == {"SERVFAIL"}
        assert len(upstream.asked) <= 6 * len(stubs)
        relay.to = None
        assert server.ask("www.example.org A").data == [ANSWER]
