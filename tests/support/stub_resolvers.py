"""Many stub resolvers at once: each asks one question from an address and a socket of its own, and waits.

How long a reply took is measured here. Stories take no pass or fail from small differences: they demand
that a stub, which gives up after 5 s (resolv.conf(5)), gets a reply before.
"""

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from typing import Final

from tests.support.dns_messages import Opt, Reply
from tests.support.server_process import Server

STUB_TIMEOUT: Final = 5.0  # seconds

_sources = count()


@dataclass(frozen=True, slots=True)
class Got:
    """The reply to a stub, and after how many seconds; None: nothing, or the connection was lost."""

    reply: Reply | None
    seconds: float

    def __str__(self) -> str:
        """`NOERROR tc 192.0.2.1`: the rcode, the flags that matter here, the data."""
        if self.reply is None:
            return "nothing"
        flags = [flag for flag in ("tc",) if flag in self.reply.flag_names]
        return " ".join([self.reply.rcode, *flags, *self.reply.data])


@dataclass(frozen=True, slots=True)
class Stub:
    """One question to come."""

    question: str
    tcp: bool
    opt: Opt | None = None

    @property
    def name(self) -> str:
        return self.question.split()[0]


def stub_address() -> str:
    """A loopback address that no other stub of this run has had lately."""
    number = next(_sources)
    return f"127.{60 + number // 62500 % 100}.{1 + number // 250 % 250}.{1 + number % 250}"


def ask_together(server: Server, stubs: Sequence[Stub]) -> list[Got]:
    """The reply to each, all asking at the same time."""
    with ThreadPoolExecutor(len(stubs)) as pool:
        return list(pool.map(lambda stub: _ask(server, stub), stubs))


def _ask(server: Server, stub: Stub) -> Got:
    began = time.monotonic()
    reply: Reply | None = None
    with suppress(TimeoutError, ConnectionError):
        reply = server.ask(stub.question, stub_address(), stub.opt, stub.tcp)
    return Got(reply, time.monotonic() - began)
