"""Asks all through a story and notes every answer that is wrong in any state of the API server.

That is: no answer at all; NXDOMAIN for a name that exists; an address that its Service never had; for some names also
no address; and SERVFAIL once the server has known the cluster.
"""

import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType

from tests.support.dns_messages import Reply
from tests.support.event_loops import PATIENCE, SLOWNESS
from tests.support.server_process import Server

PAUSE = 0.008  # seconds between two questions
TRY = 5.0 * SLOWNESS  # seconds until a question is asked again, as stub resolvers do


@dataclass(frozen=True, slots=True)
class Promise:
    """About one question, `NAME TYPE`: the addresses that ever were, and whether there is always at least one."""

    question: str
    ever: frozenset[str]
    never_empty: bool = True

    def broken_by(self, reply: Reply, synced: bool) -> str:
        """How; "" if it is kept."""
        if reply.rcode == "SERVFAIL" and not synced:
            return ""
        if reply.rcode != "NOERROR":
            return reply.rcode
        if not reply.data and self.never_empty:
            return "no address"
        strangers = set(reply.data) - self.ever
        return f"unheard of: {sorted(strangers)}" if strangers else ""


def promise(question: str, *ever: str, never_empty: bool = True) -> Promise:
    return Promise(question, frozenset(ever), never_empty)


class Witness:
    """A context manager; leaving it fails if a promise was broken. `asked` counts the answers.

    `tries`: how often a question is asked until there is an answer, as stub resolvers do.
    """

    def __init__(self, server: Server, promises: Sequence[Promise], source: str = "", tries: int = 1) -> None:
        self.asked = 0
        self.synced = False  # from when on SERVFAIL is no answer any more
        self._server = server
        self._promises = promises
        self._source = source
        self._tries = tries
        self._broken: list[str] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._ask_on, name="witness")

    def __enter__(self) -> "Witness":
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: object, trace: TracebackType | None) -> None:
        self.stop()
        if kind is None:
            assert not self._broken, "\n".join(self._broken[:20])
            assert self.asked, "nothing was asked"

    def stop(self) -> None:
        """Ask no more, as the server is to stop answering."""
        self._stop.set()
        self._thread.join()

    def _ask_on(self) -> None:
        while True:
            for each in self._promises:
                if self._stop.wait(PAUSE) and self.asked:
                    return
                self._ask(each)

    def _ask(self, each: Promise) -> None:
        synced, problem = self.synced, "no answer"
        for again in reversed(range(self._tries)):
            with suppress(OSError):
                patience = TRY if again else PATIENCE
                problem = each.broken_by(self._server.ask(each.question, self._source, patience=patience), synced)
                break
        self.asked += 1
        if problem:
            self._broken.append(f"{each.question}: {problem}")
