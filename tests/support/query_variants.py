"""Queries with EDNS options, and random messages that resemble them."""

import struct
from typing import Final

from hypothesis import strategies as st

from tests.support.dns_messages import ECS, NODE_IDENTITY, Opt
from tests.support.in_memory_server import dig
from topodns.dns.rrtype import RRType

COOKIE: Final = 10
PADDING: Final = 12
NSID: Final = 3
UNKNOWN: Final = 4711  # an option without a name in topodns


def with_options(*options: tuple[int, bytes], name: str = "web.example. A") -> bytes:
    return dig(name, Opt(options=options))


FAKE_OPT = b"\0\0\1\0\1" + Opt(size=1232).wire()
LABELS = st.sampled_from([b"a", b"A", b"web", b"wEb", b"x\0y", b"\0", FAKE_OPT, FAKE_OPT[:-2] + b"\0\4", b"Zz9-"])
OPTIONS = st.lists(
    st.tuples(
        st.sampled_from([COOKIE, PADDING, UNKNOWN, NSID, ECS, NODE_IDENTITY]),
        st.sampled_from([b"", b"\0\0", b"8 octets", FAKE_OPT, Opt().wire(), bytes(11)]),
    ),
    max_size=3,
)


@st.composite
def messages(draw: st.DrawFn) -> bytes:
    """A query, with anything in its labels and options; now and then a few octets of it are others."""
    labels = draw(st.lists(LABELS, max_size=3))
    name = b"".join(bytes((len(label),)) + label for label in labels) + b"\0"
    qtype = draw(st.sampled_from([RRType.A, RRType.AAAA, 65, 97]))
    opt = draw(st.none() | st.builds(Opt, options=OPTIONS))
    counts = (1, 0, 0, int(opt is not None))
    data = bytearray(struct.pack("!HHHHHH", 7, 0x0100, *counts) + name + struct.pack("!HH", qtype, 1))
    data += opt.wire() if opt is not None else b""
    for _ in range(draw(st.sampled_from([0, 0, 0, 1, 2]))):
        data[draw(st.integers(4, len(data) - 1))] = draw(st.sampled_from([0, 1, 2, 4, 11, 0x29, 65, 97, 255]))
    return bytes(data[: draw(st.sampled_from([len(data), len(data), len(data), len(data) - 1]))])
