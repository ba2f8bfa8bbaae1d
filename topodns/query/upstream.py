"""The contract between who decides what an upstream is asked (`forward`) and who carries it there (`edge.upstream`)."""

from collections.abc import Callable
from enum import Enum
from typing import NamedTuple, Protocol


class Transport(Enum):
    UDP = "udp"
    TCP = "tcp"
    TLS = "tcp-tls"  # CoreDNS's label value

    __hash__ = object.__hash__  # Enum's is a function of Python, and each query looks one up


class Failure(NamedTuple):
    """Why there is no reply. `timed_out`: nothing came in time; else the network or the upstream said no."""

    problem: str  # for people: "i/o timeout", "connection refused"
    timed_out: bool


Came = Callable[[bytes | Failure], object]
"""Who gets what came of a query, once: the reply, or why there is none. Must not raise.

A function and not an outcome, because one more object and two more calls for each query are a tenth of its cost.
"""


class Upstream(Protocol):
    """One server that can be asked, over the transports that its settings allow."""

    @property
    def name(self) -> str:
        """Its address as metrics show it: "10.0.0.10:53", "[2001:db8::1]:853"."""

    def exchange(self, message: bytes, question: bytes, transport: Transport, timeout: float, came: Came) -> None:
        """Send a query and wait so many seconds for the reply to it: the whole message, its question the query's.

        `question` is the question section of `message`, which has the id 0; on the wire it gets one of its own, and the
        reply comes back with whatever id. A reply with another id, question, source or with QR clear is not there: the
        wait goes on (RFC 5452 section 9.1). The question is compared without case; an error may come without one, as a
        bare header. Over TCP and TLS, a query whose connection was closed while it waited is sent again over the other
        one, then over a new one, within the same time. Never raises; `came` is always called, perhaps before this
        returns.
        """

    def close(self) -> None:
        """Ask nothing more; connections go when what is in flight is settled."""
