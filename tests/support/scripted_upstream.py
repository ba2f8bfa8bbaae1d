"""An upstream in memory with the answers and delays of a test."""

import struct
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from dnslib import AAAA, RD, RR, A, DNSHeader, DNSRecord

from tests.support.dns_messages import Opt
from topodns.dns.message import Flag
from topodns.dns.rrtype import Rcode
from topodns.query.deferred import Timer, Timers
from topodns.query.upstream import Carrier, Failure, Transport, UpstreamQuery

Behaviour = Callable[[bytes], bytes | Failure | None]
"""The message -> what comes of it; None is silence."""

_PROBE: Final = b"\0\0\x02\0\x01"  # . IN NS


class Asked(NamedTuple):
    message: bytes
    transport: Transport
    timeout: float


class ScriptedUpstream:
    """An `Upstream`. Each question meets the next behaviour, from then on the last one.

    `. IN NS` is a probe, and answered unless `probes_fail`.
    """

    def __init__(self, name: str, timers: Timers, *behaviours: Behaviour, delay: float = 0.0) -> None:
        self.name = name
        self.delay = delay
        self.asked: list[Asked] = []
        self.probes: list[Asked] = []
        self.probes_fail = False
        self.carriers: dict[Transport, Carrier] = {}
        self._timers = timers
        self._behaviours = list(behaviours)

    def behave(self, *behaviours: Behaviour) -> None:
        self._behaviours = list(behaviours)

    def exchange(self, query: UpstreamQuery, transport: Transport, timeout: float, now: float) -> None:
        message = b"\0\0" + query.message
        assert message[12:].startswith(query.question), "another question than the message's"
        assert query.carrier is None, "sent already"
        assert now == self._timers.time()
        asked = Asked(message, transport, timeout)
        if message[12:17] == _PROBE:
            self.probes.append(asked)
            self._settle(query, None if self.probes_fail else says()(message), 0.0, timeout)
            return
        self.asked.append(asked)
        behave = self._behaviours.pop(0) if len(self._behaviours) > 1 else self._behaviours[0]
        self._settle(query, behave(message), self.delay, timeout)

    def _settle(self, query: UpstreamQuery, result: bytes | Failure | None, delay: float, timeout: float) -> None:
        late = result is None or delay > timeout
        if late:
            result, delay = Failure("i/o timeout", True), timeout

        def settle() -> None:
            query.carrier = None
            assert result is not None
            query.on_reply(result)

        if delay or late:
            query.carrier = _Carrier(self._timers.call_later(delay, settle))
        else:
            settle()

    def close(self) -> None:
        """Nothing to let go."""


class _Carrier:
    """The transport of one query in flight, which can be cancelled."""

    def __init__(self, timer: Timer) -> None:
        self._timer = timer

    def exchange(self, query: UpstreamQuery, timeout: float, now: float) -> None:
        raise AssertionError("no query is sent twice")

    def on_due(self, query: UpstreamQuery, now: float) -> None:
        raise AssertionError("no deadlines here")

    def cancel(self, query: UpstreamQuery) -> None:
        query.carrier = None
        self._timer.cancel()


def silent(_: bytes) -> None:
    """Nothing ever comes."""


def refuses(_: bytes) -> Failure:
    return Failure("connection refused", False)


def garbage(message: bytes) -> bytes:
    """Announces a record that is not there."""
    return message[:2] + b"\x81\x80\0\x01\0\x01\0\0\0\0" + message[12:]


def whatever(message: bytes) -> bytes:
    """A reply with one record, of whatever name and type is asked for."""
    question = DNSRecord.parse(message).q
    rdata = {1: A("192.0.2.7"), 28: AAAA("2001:db8::7")}.get(question.qtype, RD(b"\1x"))
    record = DNSRecord(DNSHeader(id=0, qr=1, ra=1), q=question)
    record.add_answer(RR(question.qname, question.qtype, ttl=300, rdata=rdata))
    return bytes(record.pack())


def says(
    *answer: str,
    rcode: int = Rcode.NOERROR,
    flags: int = Flag.RA,
    authority: Sequence[str] = (),
    additional: Sequence[str] = (),
    opt: Opt | None = None,
) -> Callable[[bytes], bytes]:
    """A reply with these records, each a line such as `www.example. 300 IN A 192.0.2.1`."""

    def reply(message: bytes) -> bytes:
        question = DNSRecord.parse(message).q
        record = DNSRecord(DNSHeader(id=0), q=question)
        for add, lines in ((record.add_answer, answer), (record.add_auth, authority), (record.add_ar, additional)):
            add(*(rr for line in lines for rr in RR.fromZone(line)))
        octets = bytearray(record.pack())
        copied = struct.unpack_from("!H", message, 2)[0] & (Flag.RD | Flag.CD)
        struct.pack_into("!H", octets, 2, Flag.QR | copied | flags | rcode & 0x0F)
        if opt is not None:
            octets[11] += 1
            octets += opt.wire()
        return bytes(octets)

    return reply
