"""The memory of cached answers: resident octets of full tables, beside the octets that the tables count.

Run with `python -m bench.cache_memory`. The overheads in `plugins.cache.store` and
`dnsserver.packet_cache.table` come from here.
"""

import gc
import os
from collections.abc import Callable
from random import Random
from time import monotonic
from typing import Final

from bench.proc import resident_megabytes
from topodns.dns.message import Flag, Response, RRset
from topodns.dns.rrtype import RRType
from topodns.dns.wire_reader import read_query
from topodns.dns.wire_writer import write_response
from topodns.dnsserver.packet_cache.table import PacketCache, PacketCaches
from topodns.memory.budget import Budget
from topodns.plugins.cache.counts import TableCounts
from topodns.plugins.cache.entry import CacheEntry, Sort, key_of, pack
from topodns.plugins.cache.store import FailureCache, FailureTable, SegmentedLru
from topodns.query.counters import QueryCounters, ReplyKind
from topodns.query.plugin import Resolution, Scope

NAMES: Final = 30_000
_MUCH: Final = 1 << 30
_QUERY: Final = bytes.fromhex("000101000001000000000000")
_CELL: Final = QueryCounters("dns://:53", "udp", "1").cell(ReplyKind(".", "A", "NOERROR", "cache", False, "", "", 0, 0))


def _message(number: int) -> bytes:
    labels = (b"%08x" % (number * 2654435761 % 2**32), b"shop", b"svc", b"cluster", b"local")
    return _QUERY + b"".join(bytes((len(label),)) + label for label in labels) + b"\0\0\1\0\1"


def _answer(number: int) -> Response:
    return Response(answer=(RRset(b"", RRType.A, 300, (number.to_bytes(4, "big"),)),), flags=Flag.RA)


def _denial(number: int) -> Response:
    rdata = b"\2ns\3dns\7cluster\5local\0" + b"\x0ahostmaster\7cluster\5local\0" + bytes(20)
    return Response(3, authority=(RRset(b"\7cluster\5local\0", RRType.SOA, 300, (rdata,)),), flags=Flag.RA)


def _fill_table(make: Callable[[int], Response], octets: int = _MUCH, names: int = NAMES) -> tuple[SegmentedLru, int]:
    table = SegmentedLru(names, Budget(octets))
    for number in range(names):
        query = read_query(_message(number))
        entry = CacheEntry(pack(make(number)), Sort.SUCCESS, 300, monotonic())
        table.insert(key_of(query), entry, (number % 200).to_bytes(4, "big"))
    return table, table.octets


def _fill_failures(octets: int, names: int) -> tuple[FailureCache, int]:
    table = FailureTable(octets, monotonic)
    cache = FailureCache(table, TableCounts())
    for number in range(names):
        entry = CacheEntry(pack(Response(2)), Sort.FAILURE, 300, monotonic())
        cache.insert(key_of(read_query(_message(number))), entry)
    return cache, int(table.entries.currsize)


def _fill_hot(ageing: bool) -> tuple[PacketCache, int]:
    table = PacketCache(lambda address: "", Random(1), monotonic, PacketCaches(_MUCH))
    for number in range(NAMES):
        message = _message(number)
        query, response = read_query(message), _answer(number)
        reply = write_response(query, response, 512, 1232)
        for _ in range(2):
            until = monotonic() + 300 if ageing else None
            resolution = Resolution(response, "cache", Scope.EVERYONE, valid_until=until)
            table.offer(message, query, b"\x0a\0\0\1", reply, resolution, _CELL, False)
    return table, table.octets


def _measure(what: str, fill: Callable[[], tuple[SegmentedLru | FailureCache | PacketCache, int]]) -> None:
    """Fill a table and print its figures, in a process of its own, as memory freed before would serve this table."""
    if (child := os.fork()) != 0:
        os.waitpid(child, 0)
        return
    gc.collect()
    before = resident_megabytes(os.getpid())
    table, counted = fill()
    gc.collect()
    taken = (resident_megabytes(os.getpid()) - before) * 1e6
    each = len(table)
    print(f"{what:<28} {each:>6} entries: {taken / each:>5.0f} octets each resident, {counted / each:>5.0f} counted")
    os._exit(0)


def main() -> None:
    """Print a line for each sort of table."""
    _measure("cache, answers", lambda: _fill_table(_answer))
    _measure("cache, denials", lambda: _fill_table(_denial))
    _measure("cache, after a flood", lambda: _fill_table(_answer, 4 << 20, 10 * NAMES))
    _measure("cache, failures", lambda: _fill_failures(_MUCH, NAMES))
    _measure("cache, flood of failures", lambda: _fill_failures(4 << 20, 10 * NAMES))
    _measure("ready-made", lambda: _fill_hot(ageing=False))
    _measure("ready-made, counting down", lambda: _fill_hot(ageing=True))


if __name__ == "__main__":
    main()
