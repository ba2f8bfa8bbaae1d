"""Connects the instances of a node cache on one node: during an upgrade the old instance must not remove the link and
rules that the new one uses.

Each instance listens on the first free one of SLOTS abstract UNIX sockets (unix(7)), connects to the others, and stays
connected: a closed connection means that the instance has ended, SIGKILL included. The names belong to the network
namespace, so instances in separate containers see each other if they share the node's network.

Any process can bind such a name or connect to it. A peer counts as an instance only if SO_PEERCRED shows our own user
id, the same condition that the kernel has for sockets that share a port (SO_REUSEPORT, socket(7)). The peer's process
id is not used: it is 0 for a process of another PID namespace. The work is bounded: at most SLOTS connection attempts,
and per call of `poll` ACCEPTED accepted connections and READ messages of each peer.
"""

import logging
import os
import secrets
import select
import socket
import struct
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

log = logging.getLogger(__name__)


SLOTS: Final = 8  # instances that can be found at a time; an upgrade has two
ACCEPTED: Final = 8  # connections accepted per `poll`
READ: Final = 8  # messages of one peer read per `poll`
PATIENCE: Final = 1.0  # seconds to wait for the first state message of a peer; one that hangs sends none

_MOST: Final = 2 * SLOTS  # peer connections: two for each instance, if both connect at once
_BACKLOG: Final = 64
_SIZE: Final = 4096  # octets of a message
_CREDENTIALS: Final = struct.Struct("=iII")  # struct ucred: pid, uid, gid


@dataclass(frozen=True, slots=True)
class InstanceState:
    """State message of an instance to the others. `started` orders instances by age (CLOCK_BOOTTIME in nanoseconds,
    shifted by 32 bits, plus 32 random bits), `serves` says that it answers queries, `sockets` are the inodes of its
    listening sockets.
    """

    started: int
    serves: bool = False
    sockets: frozenset[int] = frozenset()


def encode_state(state: InstanceState) -> bytes:
    """Encode a state message; it fits in _SIZE octets for a few hundred sockets."""
    return f"{state.started} {int(state.serves)} {','.join(map(str, sorted(state.sockets)))}".encode()


def decode_state(message: bytes) -> InstanceState | None:
    """Decode a state message; None if it is malformed."""
    try:
        started, serves, sockets = message.decode("ascii").split(" ")
        return InstanceState(int(started), bool(int(serves)), frozenset(map(int, filter(None, sockets.split(",")))))
    except ValueError:
        return None


@dataclass(eq=False, slots=True)
class _Peer:
    """A connection to another instance: opened by us to its name (`outgoing`), or accepted.

    An accepted peer counts as an instance only after its first valid state message.
    """

    sock: socket.socket
    outgoing: bool
    state: InstanceState | None = None

    def receive(self) -> bool:
        """Read at most READ pending messages; `state` is then the last valid one. Returns False if the peer closed.

        Raises OSError.
        """
        with suppress(BlockingIOError):
            for _ in range(READ):
                message = self.sock.recv(_SIZE)
                if not message:
                    return False
                self.state = decode_state(message) or self.state
        return True


class InstanceRegistry:
    """Registration of this process as an instance that works on the link `interface`, from construction until `end`.

    Implements `net.reuseport.OtherInstances`. The constructor blocks up to 2 * PATIENCE if other instances hang; no
    other method blocks.
    """

    def __init__(self, interface: str) -> None:
        self._interface = interface
        self._state = InstanceState((time.clock_gettime_ns(time.CLOCK_BOOTTIME) << 32) + secrets.randbits(32))
        self._open: list[socket.socket] = []
        self._ended = False
        self._listener = _listen(interface)
        self._peers = list(_connect_all(interface, self._listener, PATIENCE))
        self._send_state(self._peers)
        if self._listener is None:
            log.warning("the names by which instances of a node cache find each other are all taken")
        self._await_states(time.monotonic() + PATIENCE)

    def announce(self) -> None:
        """Announce that this instance serves, so that another may hand over to it. Idempotent."""
        if not self._state.serves:
            self._set_state(replace(self._state, serves=True))

    def opened(self, sockets: Iterable[socket.socket]) -> None:
        """Add listening sockets of this instance; closed ones are dropped. A changed set is sent to the others."""
        self._open = [sock for sock in (*self._open, *sockets) if sock.fileno() != -1]
        inodes = frozenset(os.fstat(sock.fileno()).st_ino for sock in self._open)
        if inodes != self._state.sockets:
            self._set_state(replace(self._state, sockets=inodes))

    def poll(self) -> None:
        """Accept connections, read messages and drop closed peers. Call several times a second; never blocks."""
        if not self._ended:
            self._accept()
        gone = [peer for peer in self._peers if not _is_connected(peer)]
        for peer in gone:
            self._peers.remove(peer)
            peer.sock.close()

    def others(self) -> bool:
        """Whether another instance works on the link, serving or starting."""
        self.poll()
        return any(peer.outgoing or peer.state is not None for peer in self._peers)

    def successor(self) -> int | None:
        """The index of the socket that stays (`net.reuseport.leave_group`): 0 if an older instance serves, 1 if only
        younger ones do.

        None if no other instance serves.
        """
        self.poll()
        serving = [state.started for state in self._states() if state.serves]
        return int(min(serving) > self._state.started) if serving else None

    def own_sockets(self) -> frozenset[int]:
        """The inodes of this instance's listening sockets."""
        return self._state.sockets

    def others_sockets(self) -> frozenset[int]:
        """The inodes of the other instances' listening sockets."""
        self.poll()
        return frozenset().union(*(state.sockets for state in self._states()))

    def end(self) -> bool:
        """Stop being an instance: send and accept no more. Returns whether another instance serves.

        Of two instances that end at the same time, at least one gets False, so one of them cleans up.
        """
        self.poll()
        self._ended = True
        if self._listener is not None:
            self._listener.close()
        for peer in self._peers:
            with suppress(OSError):
                peer.sock.shutdown(socket.SHUT_WR)  # the peer sees EOF; we still see its own
        return self.successor() is not None

    def close(self) -> None:
        """Close all connections, after `end`. No other method may be called afterwards."""
        while self._peers:
            self._peers.pop().sock.close()

    def _states(self) -> Iterator[InstanceState]:
        return (peer.state for peer in self._peers if peer.state is not None)

    def _accept(self) -> None:
        if self._listener is None:
            self._listener = _listen(self._interface)
            if self._listener is None:
                return
            found = list(_connect_all(self._interface, self._listener, 0.0))
            self._send_state(found)
            self._peers += found
        with suppress(OSError):  # no more connections, or no more descriptors for them
            for _ in range(ACCEPTED):
                sock, _ = self._listener.accept()
                if len(self._peers) < _MOST and _user_of(sock) == os.geteuid():
                    sock.setblocking(False)
                    peer = _Peer(sock, outgoing=False)
                    self._send_state([peer])
                    self._peers.append(peer)
                else:
                    sock.close()

    def _set_state(self, state: InstanceState) -> None:
        self._state = state
        self._send_state(self._peers)

    def _send_state(self, peers: Iterable[_Peer]) -> None:
        for peer in peers:
            with suppress(OSError):  # the peer has ended, or its receive buffer is full
                peer.sock.send(encode_state(self._state))

    def _await_states(self, deadline: float) -> None:
        """Wait for the first state message of each outgoing peer, until `deadline` (time.monotonic) at most.

        Meanwhile accept peers and send them ours: instances that start at the same time wait for each other.
        """
        while silent := [peer.sock for peer in self._peers if peer.outgoing and peer.state is None]:
            left = deadline - time.monotonic()
            if left <= 0:
                return
            select.select(silent if self._listener is None else [*silent, self._listener], (), (), left)
            self.poll()


def any_instance_serves(interface: str) -> bool:
    """Whether an instance serves on the link `interface` now; for a process that is not an instance itself.

    Blocks up to PATIENCE if an instance hangs.
    """
    deadline = time.monotonic() + PATIENCE
    peers = list(_connect_all(interface, None, PATIENCE))
    try:
        waiting = peers
        while waiting and (left := deadline - time.monotonic()) > 0:
            select.select([peer.sock for peer in waiting], (), (), left)
            waiting = [peer for peer in waiting if _is_connected(peer) and peer.state is None]
        return any(peer.state is not None and peer.state.serves for peer in peers)
    finally:
        for peer in peers:
            peer.sock.close()


def _is_connected(peer: _Peer) -> bool:
    try:
        return peer.receive()
    except OSError:
        return False


def _socket_names(interface: str) -> Sequence[str]:
    return [f"\0topodns-host-network/{interface}/{slot}" for slot in range(SLOTS)]


def _listen(interface: str) -> socket.socket | None:
    """A listening socket at the first free name; None if all are taken or no descriptor is left."""
    for name in _socket_names(interface):
        try:
            sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_NONBLOCK)
        except OSError:  # no more descriptors
            return None
        try:
            sock.bind(name)
            sock.listen(_BACKLOG)
        except OSError:
            sock.close()
            continue
        return sock
    return None


def _connect_all(interface: str, own: socket.socket | None, patience: float) -> Iterator[_Peer]:
    """Connections to all listening instances of our own user, opened within `patience` seconds; `own` is skipped."""
    deadline = time.monotonic() + patience
    for name in _socket_names(interface):
        if own is not None and own.getsockname() == name.encode():
            continue
        sock = _connect(name, deadline - time.monotonic())
        if sock is None:
            continue
        user = _user_of(sock)
        if user == os.geteuid():
            yield _Peer(sock, outgoing=True)
            continue
        log.warning("the abstract socket @%s belongs to user %d, and not to a node cache of ours", name[1:], user)
        sock.close()


def _connect(name: str, patience: float) -> socket.socket | None:
    """A connection to a name; None if no process listens there, or if its backlog is full for `patience` seconds."""
    try:
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    except OSError:  # no more descriptors
        return None
    try:
        if patience > 0:
            seconds, rest = divmod(patience, 1.0)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("@ll", int(seconds), int(rest * 1e6)))
        else:
            sock.setblocking(False)
        sock.connect(name)
        sock.setblocking(False)
    except BlockingIOError:
        log.warning("too many connections wait at the abstract socket @%s: an instance there cannot be found", name[1:])
        sock.close()
        return None
    except OSError:
        sock.close()
        return None
    return sock


def _user_of(sock: socket.socket) -> int:
    """User id of the peer process, recorded by the kernel when it called listen or connect (SO_PEERCRED)."""
    return int(_CREDENTIALS.unpack(sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))[1])
