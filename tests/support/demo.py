"""config/demo in this process: what `make run` answers, without its sockets."""

from collections.abc import Iterator
from ipaddress import ip_address
from pathlib import Path
from random import Random
from typing import Final

from tests.support.deferred_results import at_once
from tests.support.dns_messages import Opt, Reply, query
from tests.support.generation_builder import assembly, read_whole
from topodns.app.generation import Generation
from topodns.app.load import load_settings
from topodns.corefile.zones import ListenAt
from topodns.dnsserver.handler import Handler
from topodns.dnsserver.packet_cache.table import PacketCache
from topodns.query.counters import QueryCounters

ROOT: Final = Path(__file__).parents[2]
PORT: Final = 5300  # of `make run`


class Demo:
    """The answers of the example's one listener, byte for byte, and its counts."""

    def __init__(self) -> None:
        settings = load_settings(str(ROOT / "config" / "demo" / "Corefile"), PORT, {})
        self.assembly = assembly("demo")
        self.generation: Generation = read_whole(self.assembly, settings)
        self.socket_counters = QueryCounters(f"dns://127.0.0.1:{PORT}", "udp", "1")
        table = PacketCache(self.generation.view_key, Random(0), lambda: 0.0)
        blocks = self.generation.tables[ListenAt("127.0.0.1", PORT)]
        self._handler = Handler(blocks, table, self.socket_counters, _ticking().__next__, PORT)

    def ask(self, question: str, source: str = "127.0.0.1", opt: Opt | None = None) -> Reply:
        """The reply to `NAME TYPE` from this address."""
        wire = at_once(self._handler.answer(query(question, opt), ip_address(source).packed, 40212))
        assert wire is not None
        return Reply(wire)


def _ticking() -> Iterator[float]:
    """A clock that shows a millisecond more each time."""
    now = 0.0
    while True:
        now += 0.001
        yield now
