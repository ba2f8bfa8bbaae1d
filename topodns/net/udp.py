"""DNS over UDP for clients: one listener per socket, a batch of datagrams per wake-up of the loop.

`lookup` answers the hits of the packet cache, `miss` the rest. The socket and its batched I/O are arguments, so that
they outlive a reload.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final, Protocol

from topodns.dns.addresses import IPV4_MAPPED, IPV4_SIZE
from topodns.query.counters import Cell
from topodns.query.deferred import DeferredReply
from topodns.query.packet_entry import Slice2Bytes
from topodns.query.query_sample import QuerySample

DRAIN_LIMIT: Final = 1.0  # seconds that closing may continue to read under a load that never stops


DEFERRED_LIMIT: Final = 5.0  # seconds that closing waits for replies of upstreams

Miss = Callable[[bytes, bytes, int], bytes | DeferredReply | None]
"""(datagram, packed client address, port) -> the reply, None for no reply, or a deferred one. Must not raise."""

BatchDone = Callable[[int, float, Cell | None, Sequence[int], Sequence[int]], None]
"""Called after a batch with hits: (hits, their seconds together, counter cell of the last hit, sizes of the queries,
sizes of the replies with 0 for a miss)."""


Lookup = Callable[[Slice2Bytes, Sequence[int], Sequence[int], tuple[int, int]], tuple[list[int], Cell | None]]
"""(memory, starts, sizes, address span) of a batch -> the octets of each reply, with which a query in `memory` was
overwritten, 0 for a miss; and the counter cell of the last hit. No reply may be longer than `Batch.max_reply`: the
settings limit UDP payloads to 4,096 octets.
"""


_Sampled = tuple[int, int, bytes, bytes]  # slot, how many queries it counts for, datagram, packed client address


class Batch(Protocol):
    """The slots of one socket: datagrams are received into them, overwritten with replies, and sent."""

    @property
    def memory(self) -> Slice2Bytes: ...

    @property
    def starts(self) -> tuple[int, ...]:
        """Offset of each slot's datagram in `memory`."""

    @property
    def max_reply(self) -> int:
        """Most octets of a reply; a longer one is not sent."""

    @property
    def address_span(self) -> tuple[int, int]:
        """Offsets of the peer's address, relative to the start of the datagram: first, and last plus one."""

    @property
    def ports(self) -> Sequence[int]:
        """The source ports of the datagrams received last."""

    def receive(self) -> list[int]:
        """Receive into the first slots. Returns the datagrams' sizes, 0 for a dropped one; empty if there are none."""

    def send(self, lengths: Sequence[int]) -> None:
        """Send the first `lengths[i]` octets of slot i to its peer (0: nothing). A full send buffer drops the rest."""

    def peer(self, slot: int) -> object:
        """The sender and destination address of the datagram in this slot: for `send_to`, at any later time."""

    def send_to(self, replies: Sequence[tuple[object, bytes]]) -> None:
        """Send each reply to its peer. Overwrites the slots."""

    def fileno(self) -> int: ...

    def close(self) -> None: ...


class UdpListener:
    """Answers the queries of one socket. `clock`: monotonic seconds, with a resolution fine enough to time a batch."""

    def __init__(
        self,
        batch: Batch,
        lookup: Lookup,
        miss: Miss,
        batch_done: BatchDone,
        clock: Callable[[], float] = time.perf_counter,
        sample: QuerySample | None = None,
    ) -> None:
        self._batch = batch
        self._lookup, self._miss, self._batch_done = lookup, miss, batch_done
        self._clock = clock
        self._sample = sample or QuerySample()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._awaited = 0  # deferred replies
        self._deferred: list[tuple[object, bytes]] = []  # replies to send in the loop's next turn
        self._none_awaited = asyncio.Event()

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start reading."""
        self._loop = loop
        loop.add_reader(self._batch.fileno(), self._serve_batch)

    def swap(self, lookup: Lookup, miss: Miss, batch_done: BatchDone) -> None:
        """Use other functions from the next batch on, so that a reload loses no query."""
        self._lookup, self._miss, self._batch_done = lookup, miss, batch_done

    async def close(self) -> None:
        """Answer queries that have arrived, or arrive while deferred replies are awaited; then close the socket.

        Deferred replies are awaited for DEFERRED_LIMIT at most. Queries queued in a socket are lost when it closes,
        even if another process shares the port; so there is no await between finding the queue empty and closing.
        """
        if self._loop is None:
            self._batch.close()
            return
        deadline = self._clock() + DEFERRED_LIMIT
        await self._drain()
        while self._awaited and (left := deadline - self._clock()) > 0:
            self._none_awaited.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._none_awaited.wait(), left)
            await self._drain()
        self._loop.remove_reader(self._batch.fileno())
        self._loop = None
        self._send_deferred()
        self._batch.close()

    async def _drain(self) -> None:
        """Answer all queries that have arrived, for at most DRAIN_LIMIT seconds."""
        deadline = self._clock() + DRAIN_LIMIT
        while self._clock() < deadline:
            if not self._serve_batch():
                return
            await asyncio.sleep(0)

    def _serve_batch(self) -> bool:
        """Receive and answer one batch. Returns whether any datagram had arrived."""
        sizes = self._batch.receive()
        if not sizes:
            return False
        began = self._clock()
        batch, sample = self._batch, self._sample
        sampled: Sequence[_Sampled] = ()
        if len(sizes) < sample.left and began < sample.until:
            sample.left -= len(sizes)
        else:
            sampled = self._sampled(sizes, began)
        lengths, last_cell = self._lookup(batch.memory, batch.starts, sizes, batch.address_span)
        misses = lengths.count(0)
        hits = len(sizes) - misses
        if hits:
            self._batch.send(lengths)
            self._batch_done(hits, self._clock() - began, last_cell, sizes, lengths)
        if misses:
            made = self._answer_misses(sizes, lengths)
            self._batch.send(made)
            lengths = [hit or miss for hit, miss in zip(lengths, made, strict=True)] if sampled else lengths
        for slot, queries, message, address in sampled:
            start = batch.starts[slot]
            sample.add(began, queries, message, address, batch.memory[start : start + lengths[slot]])
        return True

    def _sampled(self, sizes: list[int], now: float) -> "list[_Sampled]":
        """The datagrams of this batch that are sampled, before replies overwrite them."""
        batch, sample = self._batch, self._sample
        first, last = batch.address_span
        if now >= sample.until:
            sample.redraw(now)
        found: list[_Sampled] = []
        slot = sample.left - 1
        while slot < len(sizes):
            queries, start = sample.advance(now), batch.starts[slot]
            message = batch.memory[start : start + sizes[slot]]
            found.append((slot, queries, message, batch.memory[start + first : start + last]))
            slot += sample.left
        sample.left = slot - len(sizes) + 1
        return found

    def _answer_misses(self, sizes: list[int], hit_lengths: list[int]) -> list[int]:
        """Write the replies to misses into their slots. Returns the lengths, 0 for none, a deferred reply, or a hit.

        `hit_lengths`: the lengths of the replies to the hits, 0 for a miss.
        """
        batch, miss, add_deferred = self._batch, self._miss, self._add_deferred
        memory, max_reply = batch.memory, batch.max_reply
        first, last = batch.address_span
        # As `dns.addresses.unmapped`, written out because each query that misses the packet cache comes here.
        maybe_mapped = last - first > IPV4_SIZE
        lengths = [0] * len(sizes)
        for slot, (start, size, answered, port) in enumerate(
            zip(batch.starts, sizes, hit_lengths, batch.ports, strict=False)
        ):
            if answered or not size:
                continue
            address = memory[start + first : start + last]
            if maybe_mapped:
                address = address.removeprefix(IPV4_MAPPED)
            reply = miss(memory[start : start + size], address, port)
            if reply is None:
                continue
            if not isinstance(reply, bytes):
                self._awaited += 1
                reply.deliver_to(add_deferred, batch.peer(slot))
            elif len(reply) <= max_reply:
                length = lengths[slot] = len(reply)
                memory[start : start + length] = reply
        return lengths

    def _add_deferred(self, peer: object, reply: bytes | None) -> None:
        """Queue a deferred reply. One turn of the loop often brings many from one upstream, which are sent together."""
        self._awaited -= 1
        if not self._awaited:
            self._none_awaited.set()
        if reply is None or self._loop is None or len(reply) > self._batch.max_reply:
            return
        if not self._deferred:
            self._loop.call_soon(self._send_deferred)
        self._deferred.append((peer, reply))

    def _send_deferred(self) -> None:
        deferred, self._deferred = self._deferred, []
        if deferred:
            self._batch.send_to(deferred)
