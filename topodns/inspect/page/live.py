"""Live updates of the page: the changes of a cluster's snapshot, at most two a second, to every open page."""

import asyncio
import json
import logging
from collections.abc import Mapping
from typing import Final

from topodns.inspect.page.html import HEADERS
from topodns.inspect.page.snapshot import EVERY, Snapshot, SnapshotMaker
from topodns.net.http_server.messages import HttpStream

log = logging.getLogger(__name__)

MAX_EVENT: Final = 64 << 10  # octets; of a larger change the page is asked to fetch the whole state
KEEPALIVE: Final = 15.0  # seconds without an event, after which a comment is sent
_RETRY: Final = 1000  # milliseconds until a browser connects again

_HELLO: Final = f"retry: {_RETRY}\nevent: hello\ndata: {{}}\n\n".encode()
_RESET: Final = b"event: reset\ndata: {}\n\n"
_COMMENT: Final = b": the stream is open\n\n"


class LiveUpdates:
    """The event streams of one cluster. Nothing is computed while none is open.

    A stream holds one event. If a client has not read the last one when the next is due, it gets none of those that
    follow, and a `reset` once it has; a client that reads nothing for 10 s is dropped (`AdminLimits.reply`).
    """

    def __init__(self, maker: SnapshotMaker) -> None:
        self._maker = maker
        self._streams: dict[HttpStream, str] = {}  # the client's address
        self._behind: set[HttpStream] = set()  # have missed an event
        self._task: asyncio.Task[None] | None = None

    @property
    def streams(self) -> int:
        """The number of open streams."""
        return len(self._streams)

    def streams_of(self, peer: str) -> int:
        """The number of open streams of this client address (text)."""
        return sum(each == peer for each in self._streams.values())

    def open(self, peer: str) -> HttpStream:
        """A new stream of a client at this address.

        Its first event `hello` asks the page to fetch the whole state; so does `reset` later.
        """
        stream = HttpStream("text/event-stream", HEADERS, self._ended, _HELLO)
        self._streams[stream] = peer
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run(), name="topology page, live")
        return stream

    def close(self) -> None:
        """End all streams."""
        for stream in list(self._streams):
            stream.close()

    def _ended(self, stream: HttpStream) -> None:
        self._streams.pop(stream, None)
        self._behind.discard(stream)

    async def _run(self) -> None:
        """Send changes, until no stream is open."""
        sent: Snapshot | None = None
        quiet = 0.0  # seconds since the last event
        try:
            while self._streams:
                snapshot = await self._latest()
                event = change_event(sent, snapshot) if sent is not None and sent is not snapshot else b""
                sent = snapshot
                quiet = 0.0 if event else quiet + EVERY
                if quiet >= KEEPALIVE:
                    event, quiet = _COMMENT, 0.0
                self._send_all(event)
                await asyncio.sleep(EVERY)
            self._maker.forget()
        except Exception:
            log.exception("bug: the live updates of the topology page ended")
            self.close()

    async def _latest(self) -> Snapshot:
        """The latest snapshot. While it waits for other work, as for a long what-if, comments keep the streams open."""
        task = self._maker.latest()
        while not (await asyncio.wait({task}, timeout=KEEPALIVE))[0]:
            self._send_all(_COMMENT)
        return task.result()

    def _send_all(self, event: bytes) -> None:
        for stream in list(self._streams):
            self._send(stream, event)

    def _send(self, stream: HttpStream, event: bytes) -> None:
        if stream in self._behind:
            if stream.send(_RESET):
                self._behind.discard(stream)
        elif event and not stream.send(event):
            self._behind.add(stream)


def change_event(before: Snapshot, after: Snapshot) -> bytes:
    """The server-sent event that leads from one snapshot to another: `reset` if it is too large.

    Its data is a JSON object: `from` and `to` are revisions, `rows` those that are new or differ, `gone` the names of
    those that are not there any more, `summary` and `nodes` are there if they differ.
    """
    rows = [text for name, text in after.rows.items() if before.rows.get(name) != text]
    if sum(map(len, rows)) > MAX_EVENT:
        return _RESET
    gone = json.dumps([name for name in before.rows if name not in after.rows])
    parts: Mapping[str, str] = {
        "from": str(before.revision),
        "to": str(after.revision),
        "rows": f"[{','.join(rows)}]",
        "gone": gone,
        "summary": after.summary if before.summary != after.summary else "",
        "nodes": after.nodes if before.nodes != after.nodes else "",
    }
    data = ",".join(f'"{name}":{value}' for name, value in parts.items() if value)
    event = f"event: change\ndata: {{{data}}}\n\n".encode()
    return event if len(event) <= MAX_EVENT else _RESET
