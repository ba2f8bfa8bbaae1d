"""Self-probes: queries to our own listen addresses, as clients send them, and the decision on the redirect by their
replies.
"""

import asyncio
import socket
import time
from collections.abc import Sequence
from enum import Enum, auto
from ipaddress import IPv4Address, IPv6Address
from math import inf
from secrets import token_bytes
from typing import Final

from topodns.dns.name import Name, name_wire
from topodns.dnsserver.handler import PROBE_CLASS
from topodns.hostnet.reconciler import HostNetworkReconciler

Address = IPv4Address | IPv6Address

PATIENCE: Final = 0.4  # seconds until a self-probe times out: less than RENEWAL_INTERVAL
TRIES: Final = 8  # if another instance shares the port, probes go to either: in 1 of 256 rounds none to this one
ROUNDS: Final = 4  # of probes to detect another instance: in 1 of 256 rounds all of them reach this one
TRIAL_INTERVAL: Final = 30.0  # seconds between two trials of the redirect

_HEADER: Final = b"\1\0\0\1\0\0\0\0\0\0"
_TXT: Final = b"\0\x10"
_QR, _RCODE = 0x80, 0x0F
_MAX_REPLY: Final = 512


class ProbeResult(Enum):
    """The result of a probe: the sender of the reply, if there is one."""

    NO_REPLY = auto()
    OTHER_SERVER = auto()  # another instance, or the cluster DNS behind the same address
    THIS_INSTANCE = auto()


class SelfProbe:
    """Sends queries for `name`, which only the instance of this name answers with NOERROR."""

    def __init__(self, name: Name, port: int) -> None:
        self._question = _HEADER + name_wire(name) + _TXT + PROBE_CLASS.to_bytes(2, "big")
        self._port = port

    async def send(self, addresses: Sequence[Address], patience: float, tries: int = 1) -> list[frozenset[ProbeResult]]:
        """The set of results for each address, of `tries` queries each. All are sent at once over UDP.

        `patience`: seconds to wait for the replies. Timeouts together with replies mean that another instance shares
        the port and hangs.
        """
        results = await asyncio.gather(*(self._send(address, patience) for address in [*addresses] * tries))
        return [frozenset(results[at :: len(addresses)]) for at in range(len(addresses))]

    async def _send(self, address: Address, patience: float) -> ProbeResult:
        try:
            async with asyncio.timeout(patience):
                return await self._query(address)
        except (OSError, TimeoutError):
            return ProbeResult.NO_REPLY

    async def _query(self, address: Address) -> ProbeResult:
        loop, ident = asyncio.get_running_loop(), token_bytes(2)
        family = socket.AF_INET if address.version == 4 else socket.AF_INET6
        with socket.socket(family, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as sock:
            sock.connect((str(address), self._port))
            sock.send(ident + self._question)
            while True:
                reply = await loop.sock_recv(sock, _MAX_REPLY)
                if reply[:2] == ident and len(reply) > 3 and reply[2] & _QR:
                    return ProbeResult.OTHER_SERVER if reply[3] & _RCODE else ProbeResult.THIS_INSTANCE


class SelfCheck:
    """Decides by self-probes whether the redirect is renewed, and whether another instance has taken over."""

    def __init__(self, probe: SelfProbe, addresses: Sequence[Address], reconciler: HostNetworkReconciler) -> None:
        """`addresses`: the listen addresses, at least one."""
        self._probe, self._addresses, self._reconciler = probe, addresses, reconciler
        self._reached_while_off = False  # at some address a probe was answered here although the redirect was off
        self._last_trial = -inf  # monotonic seconds

    async def answered(self) -> bool:
        """Whether to redirect the node's DNS here now.

        True if for at least one address, this instance replies and no probe to that address is lost: a lost one would
        mean that another instance shares the port and hangs. Also true for a trial, see `_is_trial_due`. Takes at most
        PATIENCE.
        """
        tries = TRIES if self._reconciler.instance_registry.others() else 1
        results = await self._probe.send(self._addresses, PATIENCE, tries)
        if any(ProbeResult.THIS_INSTANCE in each for each in results) and not self._reconciler.is_redirecting():
            self._reached_while_off = True
        return (
            any(ProbeResult.THIS_INSTANCE in each and ProbeResult.NO_REPLY not in each for each in results)
            or self._is_trial_due()
        )

    async def has_successor(self) -> bool:
        """Whether another instance serves, and at some address both this one and another server reply to probes.

        The probes are needed as any process on the node could claim to be an instance. Takes at most ROUNDS times
        PATIENCE.
        """
        if self._reconciler.instance_registry.successor() is None:
            return False
        results: list[frozenset[ProbeResult]] = [frozenset()] * len(self._addresses)
        for _ in range(ROUNDS):
            latest = await self._probe.send(self._addresses, PATIENCE, TRIES)
            results = [before | each for before, each in zip(results, latest, strict=True)]
            if any({ProbeResult.THIS_INSTANCE, ProbeResult.OTHER_SERVER} <= each for each in results):
                return True
        return False

    def _is_trial_due(self) -> bool:
        """Whether to redirect for a trial; if True, the next trial is TRIAL_INTERVAL seconds later at the earliest.

        If all addresses are ClusterIPs, probes arrive here only while the redirect is on. Once one has arrived while it
        was off, no trial is needed any more.
        """
        now = time.monotonic()
        if self._reached_while_off or now < self._last_trial + TRIAL_INTERVAL:
            return False
        self._last_trial = now
        return True
