"""The calls of queries and of a watch event: the functions that they call, file by file.

Run with `python -m bench.walk`. A whole server runs in this process, and an upstream and a stand-in for an API server
in other threads. The server gets the first query for a headless Service with topology keys, the second one, and a query
that it forwards; then an EndpointSlice of that Service changes. All of it once more with `rewrite` in the server block.
A file border is a call from one file of topodns into another one: the fewer there are, the fewer files a reader has to
open.
"""

import argparse
import asyncio
import dis
import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from types import CodeType, FrameType
from typing import Final, NamedTuple

import topodns
from bench.questions import Question
from tests.support.api_objects import Object, endpoint_slice, namespace, node, pod, service
from tests.support.fake_api.server import FakeApi, running
from topodns.app.hooks import Options
from topodns.app.load import load_settings
from topodns.app.server import Announcement, run
from topodns.corefile.zones import ListenAt
from topodns.dns.message import Flag
from topodns.dns.rrtype import RRClass, RRType
from topodns.dns.wire_format import (
    HEADER_SIZE,
    QNAME_POINTER,
    QUESTION_TAIL_SIZE,
    pack_header_without_id,
    pack_pointer_record_head,
)
from topodns.dnsserver.packet_cache.table import PacketCache
from topodns.net.udp import UdpListener
from topodns.net.upstream.udp_transport import UdpCarrier
from topodns.plugins.block import Settings

PACKAGE: Final = str(Path(topodns.__file__).parent) + os.sep
WITHIN: Final = 10.0  # seconds for an answer or a change, at most

CLIENT: Final = "127.0.0.1"
QUESTION: Final = Question(socket.inet_aton(CLIENT), "near.default.svc.cluster.local")
OUTSIDE: Final = Question(socket.inet_aton(CLIENT), "www.example.org")
OTHER_OUTSIDE: Final = Question(socket.inet_aton(CLIENT), "other.example.org")
OUTSIDE_ADDRESS: Final = "192.0.2.1"
OTHER_QUESTION: Final = Question(socket.inet_aton(CLIENT), "other.default.svc.cluster.local")
BEFORE: Final = {"10.61.1.1": "n1", "10.61.2.1": "n2"}
AFTER: Final = {"10.61.1.2": "n1", "10.61.2.1": "n2"}
FORGET: Final = PacketCache.forget.__qualname__
SERVE_BATCH: Final = UdpListener._serve_batch.__qualname__
OF_A_QUERY: Final = (SERVE_BATCH, UdpListener._send_deferred.__qualname__, UdpCarrier._receive.__qualname__)
SAMPLE: Final = "query/query_sample.py"
KEYS: Final = "kubernetes.io/hostname,topology.kubernetes.io/zone"

CLUSTER: Final[tuple[Object, ...]] = (
    namespace("default"),
    node("n1", "a", "127.61.0.1"),
    node("n2", "b", "127.61.0.2"),
    pod("client", CLIENT, "n1"),
    service("near", keys=KEYS),
    endpoint_slice("near", BEFORE),
    service("other", keys=KEYS),
    endpoint_slice("other", {"10.61.1.9": "n1"}),
)

COREFILE: Final = """\
. {
    bind 127.0.0.1
    errors
    kubernetes cluster.local in-addr.arpa ip6.arpa {
        endpoint URL
        pods insecure
        fallthrough in-addr.arpa ip6.arpa
        ttl 30
    }
    topology
    prometheus 127.0.0.1:0
    REWRITE
    forward . UPSTREAM
    cache 30
    loadbalance
}
"""
REWRITES: Final = {"": "", ", with `rewrite`": "rewrite name exact alias.example.org other.example.org"}


class Call(NamedTuple):
    """A call of a function of topodns. `caller` is a file, "" where the caller is not of topodns."""

    caller: str
    file: str
    function: str

    @property
    def crosses(self) -> bool:
        return self.caller not in ("", self.file)


class Tracer:
    """Collects calls in the thread of the server. A coroutine or generator that goes on is no call."""

    def __init__(self) -> None:
        self.calls: list[Call] = []

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(PACKAGE) or frame.f_lasti > _beginning(code):
            return
        caller = frame.f_back.f_code.co_filename if frame.f_back is not None else ""
        self.calls.append(Call(_short(caller), _short(code.co_filename), code.co_qualname))


@cache
def _beginning(code: CodeType) -> int:
    """The offset of the first RESUME: beyond it, a call event is a coroutine or generator that goes on."""
    return next(each.offset for each in dis.get_instructions(code) if each.opname == "RESUME")


def _short(path: str) -> str:
    return path.removeprefix(PACKAGE) if path.startswith(PACKAGE) else ""


class Walk:
    """Sends the query and makes the change, in a thread beside the server. `walks`: the calls of each, by title."""

    def __init__(self, api: FakeApi) -> None:
        self.walks: dict[str, list[Call]] = {}
        self._api = api
        self._loop: asyncio.AbstractEventLoop
        self._port = 0
        self._thread: threading.Thread | None = None

    def begin(self, ports: Mapping[ListenAt, int], settings: Settings) -> None:
        """Called in the server's loop once it serves."""
        self._loop = asyncio.get_running_loop()
        (self._port,) = ports.values()
        self._thread = threading.Thread(target=self._go, name="walk")
        self._thread.start()

    def join(self) -> None:
        if self._thread is not None:
            self._thread.join()

    def _go(self) -> None:
        try:
            for _ in range(3):  # imports and indexes at the first query of a server are not part of the figures
                self._ask(OTHER_QUESTION)
                self._ask(OTHER_OUTSIDE)
            for time_ in ("first", "second"):  # the packet cache keeps the reply to the second
                title = f"a query: headless Service with topology keys, asked for the {time_} time"
                self._trace(title, lambda _: self._expect(QUESTION, "10.61.1.1"))
            self._ask(QUESTION)
            self._trace("a query that is forwarded over UDP", lambda _: self._expect(OUTSIDE, OUTSIDE_ADDRESS))
            self._trace("a watch event: MODIFIED EndpointSlice of that Service", self._change)
            self._expect(QUESTION, "10.61.1.2")
        finally:
            os.kill(os.getpid(), signal.SIGTERM)

    def _trace(self, title: str, action: Callable[[list[Call]], None]) -> None:
        """`action` gets the calls so far."""
        tracer = Tracer()
        self._in_loop(lambda: sys.setprofile(tracer))
        action(tracer.calls)
        self._in_loop(lambda: sys.setprofile(None))
        self.walks[title] = tracer.calls

    def _in_loop(self, action: Callable[[], object]) -> None:
        done = threading.Event()

        def act() -> None:
            action()
            done.set()

        self._loop.call_soon_threadsafe(act)
        assert done.wait(WITHIN)

    def _expect(self, question: Question, address: str) -> None:
        assert socket.inet_aton(address) in self._ask(question)

    def _change(self, calls: list[Call]) -> None:
        self._api.put(endpoint_slice("near", AFTER))
        deadline = time.monotonic() + WITHIN
        while not any(call.function == FORGET for call in calls):
            assert time.monotonic() < deadline
            time.sleep(0.01)

    def _ask(self, question: Question) -> bytes:
        with socket.socket(type=socket.SOCK_DGRAM) as sock:
            sock.settimeout(WITHIN)
            sock.bind((CLIENT, 0))
            sock.sendto(question.message, (CLIENT, self._port))
            return sock.recv(65535)


@contextmanager
def upstream() -> Iterator[str]:
    """The address of a resolver that gives OUTSIDE_ADDRESS for each name."""
    with socket.socket(type=socket.SOCK_DGRAM) as sock:
        sock.bind((CLIENT, 0))
        thread = threading.Thread(target=_resolve, args=(sock,), name="upstream")
        thread.start()
        try:
            yield "{}:{}".format(*sock.getsockname())
        finally:
            sock.sendto(b"", sock.getsockname())
            thread.join()


def _resolve(sock: socket.socket) -> None:
    record = pack_pointer_record_head(QNAME_POINTER, RRType.A, RRClass.IN, 30, 4) + socket.inet_aton(OUTSIDE_ADDRESS)
    while True:
        data, client = sock.recvfrom(65535)
        if not data:
            return
        question = data[HEADER_SIZE : data.index(0, HEADER_SIZE) + 1 + QUESTION_TAIL_SIZE]
        header = pack_header_without_id(Flag.QR | Flag.RD | Flag.RA, 1, 1, 0, 0)
        sock.sendto(data[:2] + header + question + record, client)


def of_query(calls: list[Call]) -> list[Call]:
    """The calls from the packet cache's first lookup to the reply: those of one batch of the UDP listener.

    Without timers and watches that run meanwhile, and without the sample of queries, which takes one of many.
    """
    found: list[Call] = []
    of_it = False
    for call in calls:
        if not call.caller:  # called by the event loop
            if found and call.function == SERVE_BATCH:
                break
            of_it = call.function in OF_A_QUERY
        if of_it and call.file != SAMPLE:
            found.append(call)
    return found


def of_event(calls: list[Call]) -> list[Call]:
    """The calls from the first line of the watch to the last one of a packet cache's forgetting."""
    start = next(at for at, call in enumerate(calls) if call.file.endswith("informer/watcher.py"))
    last = max(at for at, call in enumerate(calls) if call.function == FORGET)
    return calls[start : last + 1]


def lines(title: str, calls: list[Call]) -> Iterator[str]:
    """A walk as text: a line a call, `>` before those that cross a file border."""
    borders = sum(call.crosses for call in calls)
    files = len({call.file for call in calls})
    for call in calls:
        yield f"{'>' if call.crosses else ' '} {call.file:<42} {call.function}"
    yield f"{title}: {borders} file borders, {len(calls)} calls, {files} files"


def main() -> int:
    """Print all walks, or with `--short` only their sums."""
    parser = argparse.ArgumentParser(prog="python -m bench.walk", description=str(__doc__).partition("\n")[0])
    parser.add_argument("--short", action="store_true", help="print the sums only")
    arguments = parser.parse_args()
    logging.disable(logging.CRITICAL)
    for suffix, rewrite in REWRITES.items():
        for title, calls in walks(rewrite).items():
            part = of_event if title.startswith("a watch event") else of_query
            text_lines = [*lines(title + suffix, part(calls))]
            print("\n".join(text_lines[-1:] if arguments.short else [*text_lines, ""]))
    return 0


def walks(rewrite: str) -> dict[str, list[Call]]:
    """The walks of a server with this line in its block."""
    with (
        TemporaryDirectory(prefix="topodns-walk-") as directory,
        running(CLUSTER) as api,
        upstream() as address,
    ):
        corefile = Path(directory) / "Corefile"
        text = COREFILE.replace("URL", api.url).replace("REWRITE", rewrite).replace("UPSTREAM", address)
        corefile.write_text(text)
        walk = Walk(api)
        run(lambda: load_settings(str(corefile), 0, {}), Announcement(walk.begin), Options())
        walk.join()
        return walk.walks


if __name__ == "__main__":
    sys.exit(main())
