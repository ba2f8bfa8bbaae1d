"""Deadlines of a client's TCP connection (RFC 7766 section 6.2.3). The listener's sweep closes connections past theirs.

| event | deadline, in seconds of `net.tcp_limits.TcpLimits` from the event |
|---|---|
| accepted; a read that leaves no incomplete message; deferred replies written | `idle`, or a DSO session's own |
| a read that leaves an incomplete message | `message`; unchanged if this message had begun earlier |
| the server stops reading, to answer what it has read | `idle` |
| it reads on | `message` if an incomplete message is left, else `idle` |
| the write buffer is full | `write` |
| the write buffer has drained | `idle` |
| the listener closes | `awaited` if replies of upstreams are awaited, else `message`; never later than before |

The server's own delays count against no client: while it reads nothing no message is late, and where the sweep itself
comes late, deadlines that are not fixed are postponed by as much.

Once a connection is to close as soon as nothing is left to answer, its deadline is fixed.
"""

from dataclasses import replace

from topodns.net.tcp_limits import TcpLimits
from topodns.query.deferred import Timers


class ConnectionDeadline:
    """The deadline of one connection; each method sets it for an event of the table above, unless it is `fixed`.

    `idle`, `message`, `write` and `awaited` are numbers of seconds in TcpLimits. `at`: the time on the clock of
    `timers`.
    """

    __slots__ = ("_limits", "_timers", "at", "fixed")

    def __init__(self, limits: TcpLimits, timers: Timers) -> None:
        self._limits, self._timers = limits, timers
        self.at = timers.time() + limits.idle
        self.fixed = False  # no event changes the deadline: the connection closes as soon as nothing is left to answer

    def data_read(self, pending: int, continued: bool) -> None:
        """Set the deadline after a read: `message` if an incomplete message of `pending` octets is left, `idle` if 0.

        `continued`: the message had begun before this read; then nothing changes, since its deadline counts from its
        first octet, so that a client gains nothing by sending slowly.
        """
        if self.fixed:
            return
        if pending == 0:
            self.at = self._timers.time() + self._limits.idle
        elif not continued:
            self.at = self._timers.time() + self._limits.message

    def reading_stops(self) -> None:
        """Set the deadline to `idle` from now: the rest of a message may have arrived, but is not read."""
        self.replies_written()

    def reading_resumes(self, pending: int) -> None:
        """Set the deadline to `message` from now if an incomplete message of `pending` octets is left, else `idle`."""
        self.data_read(pending, continued=False)

    def postpone(self, seconds: float) -> None:
        """Set the deadline so much later: the process stood still meanwhile."""
        if not self.fixed:
            self.at += seconds

    def buffer_full(self) -> None:
        """Set the deadline to `write` from now: the write buffer is full."""
        if not self.fixed:
            self.at = self._timers.time() + self._limits.write

    def hold_open(self, seconds: float) -> None:
        """Use another `idle` from now on: that of a DSO session (RFC 8490 section 6)."""
        self._limits = replace(self._limits, idle=seconds)
        self.replies_written()

    def replies_written(self) -> None:
        """Set the deadline to `idle` from now.

        The write buffer has drained, or deferred replies were written to a client that reads.
        """
        if not self.fixed:
            self.at = self._timers.time() + self._limits.idle

    def listener_closes(self, awaited: bool) -> None:
        """Set the deadline to `awaited` from now, or `message` if no replies of upstreams are awaited.

        An earlier deadline stays.
        """
        if not self.fixed:
            longest = self._limits.awaited if awaited else self._limits.message
            self.at = min(self.at, self._timers.time() + longest)
