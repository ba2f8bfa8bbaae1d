"""Queries over UDP: one listener per socket, a batch of datagrams per wake-up of the loop.

What was asked before is answered here, one dictionary lookup each; the rest is `miss`'s. The socket and its batched
input and output are handed in, so that they outlive a reload.
"""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Final, Protocol

from topodns.resolve.course import Outcome
from topodns.resolve.hot import Entry
from topodns.resolve.tally import Cell

DRAIN_LIMIT: Final = 1.0  # seconds that closing may read on under a load that never stops

_MAPPED: Final = bytes(10) + b"\xff\xff"  # RFC 4291 section 2.5.5.2

LATE_LIMIT: Final = 5.0  # seconds that closing waits for what upstreams have been asked

Miss = Callable[[bytes, bytes, int], bytes | Outcome[bytes | None] | None]
"""(datagram, packed address, port) -> the reply, None for silence, or the outcome that will be one. Must not raise."""

BatchDone = Callable[[int, float, Cell | None], None]
"""(hits, seconds they took together, the cell of the last one), after a batch that had hits."""


class HotTable(Protocol):
    """The ready-made answers, by every octet after the id. Both dictionaries may be replaced between two batches.

    No answer may be longer than the batch's room: the settings keep UDP payloads to 4,096 octets.
    """

    @property
    def common(self) -> Mapping[bytes, Entry]: ...

    @property
    def views(self) -> Mapping[bytes, Mapping[bytes, Entry]]: ...


class Slice2Bytes(Protocol):
    """Memory whose slices are bytes."""

    def __getitem__(self, key: slice, /) -> bytes: ...

    def __setitem__(self, key: slice, value: bytes, /) -> None: ...


class Batch(Protocol):
    """A row of slots of one socket: received into, overwritten with replies, sent from."""

    @property
    def memory(self) -> Slice2Bytes: ...

    @property
    def starts(self) -> tuple[int, ...]:
        """Where each slot's datagram starts in `memory`."""

    @property
    def room(self) -> int:
        """Octets that a reply may have."""

    @property
    def address_span(self) -> tuple[int, int]:
        """Where the peer's address is, from the start of the datagram."""

    @property
    def port_span(self) -> tuple[int, int]: ...

    def receive(self) -> list[int]:
        """The sizes of the datagrams now in the first slots; 0 for one to be dropped. Empty: nothing came."""

    def send(self, lengths: Sequence[int]) -> None:
        """Send the first `lengths[i]` octets of slot i back; nothing where that is 0. What does not fit is dropped."""

    def peer(self, slot: int) -> object:
        """Who sent what is in this slot, and to which of our addresses: for `send_to`, at any later time."""

    def send_to(self, replies: Sequence[tuple[object, bytes]]) -> None:
        """Send each reply to its peer. Overwrites the slots."""

    def fileno(self) -> int: ...

    def close(self) -> None: ...


class UdpListener:
    """Answers the datagrams of one socket. `clock` is monotonic, in seconds and fine enough to time a batch."""

    def __init__(
        self,
        batch: Batch,
        table: HotTable,
        miss: Miss,
        batch_done: BatchDone,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._batch = batch
        self._table, self._miss, self._batch_done = table, miss, batch_done
        self._clock = clock
        self._loop: asyncio.AbstractEventLoop | None = None
        self._awaited = 0  # replies
        self._late: list[tuple[object, bytes]] = []  # replies that go out with the loop's next turn
        self._none_awaited = asyncio.Event()

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Read from now on."""
        self._loop = loop
        loop.add_reader(self._batch.fileno(), self._serve_batch)

    def swap(self, table: HotTable, miss: Miss, batch_done: BatchDone) -> None:
        """Answer from these from the next batch on: a reload, without a query lost."""
        self._table, self._miss, self._batch_done = table, miss, batch_done

    async def close(self) -> None:
        """Answer all that has arrived, and what arrives while upstreams are waited for; then close the socket.

        What is queued in a socket when it closes is lost, also where another process shares the port; so nothing
        waits between the look that finds it empty and the close.
        """
        if self._loop is None:
            self._batch.close()
            return
        deadline = self._clock() + LATE_LIMIT
        await self._drain()
        while self._awaited and (left := deadline - self._clock()) > 0:
            self._none_awaited.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._none_awaited.wait(), left)
            await self._drain()
        self._loop.remove_reader(self._batch.fileno())
        self._loop = None
        self._send_late()
        self._batch.close()

    async def _drain(self) -> None:
        """Answer all that has arrived."""
        deadline = self._clock() + DRAIN_LIMIT
        while self._clock() < deadline:
            if not self._serve_batch():
                return
            await asyncio.sleep(0)

    def _serve_batch(self) -> bool:
        """Whether anything had arrived."""
        sizes = self._batch.receive()
        if not sizes:
            return False
        began = self._clock()
        lengths, last_cell = self._answer_hot(sizes)
        misses = lengths.count(0)
        hits = len(sizes) - misses
        if hits:
            self._batch.send(lengths)
            self._batch_done(hits, self._clock() - began, last_cell)
        if misses:
            self._batch.send(self._answer_misses(sizes, lengths))
        return True

    def _answer_hot(self, sizes: list[int]) -> tuple[list[int], Cell | None]:
        """The lengths of the replies written, 0 for a miss; and the cell of the last entry met, outlived ones too."""
        memory = self._batch.memory
        common, views = self._table.common, self._table.views
        first, last = self._batch.address_span
        lengths: list[int] = []
        cell: Cell | None = None
        # The busiest lines of the program: everything in locals, one pass, no call that is not a dictionary's.
        for start, size in zip(self._batch.starts, sizes, strict=False):
            key = memory[start + 2 : start + size]
            entry = common.get(key)
            if entry is None:
                view = views.get(memory[start + first : start + last])
                entry = None if view is None else view.get(key)
                if entry is None:
                    lengths.append(0)
                    continue
            tail, cell, rotate = entry
            if rotate is not None:
                tail = rotate()
                if tail is None:
                    lengths.append(0)
                    continue
            cell[0] += 1  # type: ignore[operator]
            length = 2 + len(tail)  # type: ignore[arg-type]
            memory[start + 2 : start + length] = tail  # type: ignore[assignment]
            lengths.append(length)
        return lengths, cell

    def _answer_misses(self, sizes: list[int], hot: list[int]) -> list[int]:
        """The lengths of the replies to what was not hot, 0 for silence and for what is answered already."""
        memory, room, miss = self._batch.memory, self._batch.room, self._miss
        (first, last), (port_first, port_last) = self._batch.address_span, self._batch.port_span
        lengths = [0] * len(sizes)
        for slot, (start, size, answered) in enumerate(zip(self._batch.starts, sizes, hot, strict=False)):
            if answered or not size:
                continue
            address = memory[start + first : start + last].removeprefix(_MAPPED)
            port = int.from_bytes(memory[start + port_first : start + port_last], "big")
            reply = miss(memory[start : start + size], address, port)
            if isinstance(reply, Outcome):
                self._awaited += 1
                reply.then(partial(self._take_late, self._batch.peer(slot)))
                continue
            if reply is None or len(reply) > room:
                continue
            length = lengths[slot] = len(reply)
            memory[start : start + length] = reply
        return lengths

    def _take_late(self, peer: object, reply: bytes | None) -> None:
        """One turn of the loop often brings many replies from one upstream: they leave together at its end."""
        self._awaited -= 1
        if not self._awaited:
            self._none_awaited.set()
        if reply is None or self._loop is None or len(reply) > self._batch.room:
            return
        if not self._late:
            self._loop.call_soon(self._send_late)
        self._late.append((peer, reply))

    def _send_late(self) -> None:
        late, self._late = self._late, []
        if late:
            self._batch.send_to(late)
