"""Sanitizing of upstream replies: only records that belong to the question are kept, with TTLs within bounds.

A forwarder cannot verify data, but it can drop records that the query did not ask for (RFC 5452 section 6), so that a
reply never puts records of other names into a cache.
"""

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from topodns.dns.message import Ede, Edns, Option, RRset
from topodns.dns.name import MAX_WIRE, is_below_wire
from topodns.dns.response_reader import UpstreamReply
from topodns.dns.rrtype import RRClass, RRType
from topodns.dns.wire_reader import WireError
from topodns.query.cname import MAX_CHAIN
from topodns.query.plugin import forwarded_options

# Seconds. RFC 8767 section 4 recommends this cap; without it, caches would keep a wrong record as long as its TTL.
MAX_TTL: Final = 7 * 86_400

_SIGN_BIT: Final = 1 << 31
_NOT_FOLLOWED: Final = frozenset({RRType.CNAME, RRType.ANY})
_DELEGATING: Final = frozenset({RRType.SOA, RRType.NS})
_PROVING: Final = frozenset({RRType.RRSIG, RRType.NSEC, RRType.NSEC3, RRType.DS})
_SIGNER: Final = 18  # octet at which the signer's name begins in the RDATA of RRSIG (RFC 4034 section 3.1)
# Octet of the RDATA at which the target begins whose records ADDITIONAL may hold, and the types of those records.
_TARGETS: Final = {
    RRType.NS: 0,
    RRType.MX: 2,
    RRType.SRV: 6,
    RRType.SVCB: 2,
    RRType.HTTPS: 2,
}
_BINDING: Final = frozenset({RRType.SVCB, RRType.HTTPS})
_TARGET_TYPES: Final = _BINDING | {RRType.A, RRType.AAAA}

Records = tuple[RRset, ...]


class Wanted(NamedTuple):
    """What the client of a query may get of a reply, beside plain records."""

    dnssec_ok: bool  # the query has DO: DNSSEC records
    codes: frozenset[int] = frozenset()  # EDNS options with these codes, which the query forwards


PLAIN_RECORDS: Final = Wanted(False)
DNSSEC_RECORDS: Final = Wanted(True)


def wanted_of(edns: Edns | None) -> Wanted:
    """What a query with this OPT record may get."""
    codes = frozenset(code for code, _ in forwarded_options(edns))
    dnssec_ok = edns is not None and edns.dnssec_ok
    return Wanted(dnssec_ok, codes) if codes else DNSSEC_RECORDS if dnssec_ok else PLAIN_RECORDS


def clean(reply: UpstreamReply, dnssec_ok: bool) -> tuple[Records, Records, Records]:
    """The records kept of the three sections, in the order received; DNSSEC records only with `dnssec_ok`.

    A chain of aliases comes in its own order, with the CNAME made of a DNAME: stub resolvers such as glibc's read
    an answer from its begin to its end once (RFC 1034 section 4.3.2, RFC 6672 section 3.4). An owner equal to the
    question's name is b"". If no record of the answer section is about the question, the name of its first record
    counts as the question's (`_renamed`). Raises WireError if then still none is, and for more than MAX_CHAIN
    aliases: a chain cut short would be answered as NODATA.
    """
    if not reply.authority and not reply.additional and _is_plain(reply):
        return reply.answer, (), ()
    cleaning = _Cleaning(reply, dnssec_ok)
    answer = cleaning.answer()
    if reply.answer and not answer:
        cleaning = _Cleaning(_renamed(reply), dnssec_ok)
        answer = cleaning.answer()
        if not answer:
            raise WireError("no record of the answer is about the question")
    # The NS records of a positive answer are of no use behind a forwarder. Proofs are, and so is the SOA of a denial,
    # in which a chain of aliases may end (RFC 2308 section 2.1).
    answered = any(rrset.rtype == reply.qtype for rrset in answer)
    authority = () if answered and not dnssec_ok else cleaning.authority()
    return answer, authority, cleaning.additional((*answer, *authority))


def _renamed(reply: UpstreamReply) -> UpstreamReply:
    """The reply with the question's name in place of the owner of its first answer.

    A server that looks up another name than the client's leaves that name on the records: `rewrite name regex` without
    `answer` of CoreDNS, and of topodns. The records that it gives are meant for the question, but passed on with their
    own name they would be ignored by stub resolvers that compare names (glibc).
    """
    first = reply.answer[0].owner.lower()
    answer = tuple(rrset._replace(owner=b"") if rrset.owner.lower() == first else rrset for rrset in reply.answer)
    return reply._replace(answer=answer)


def extended_error(edns: Edns) -> Ede | None:
    """The upstream's extended error (RFC 8914), which the client gets in any case; None without.

    Characters that cannot be printed become "?".
    """
    data = edns.option(Option.EXTENDED_ERROR) if edns.options else None
    if data is None or len(data) < 2:
        return None
    text = data[2:].rstrip(b"\0").decode(errors="replace")
    # The text is also logged, where line ends in it would forge log lines.
    return Ede(int.from_bytes(data[:2], "big"), "".join(char if char.isprintable() else "?" for char in text))


def sane_ttl(ttl: int) -> int:
    """The TTL capped at MAX_TTL; 0 if its highest bit is set (RFC 2181 section 8)."""
    if ttl <= MAX_TTL:
        return ttl
    return MAX_TTL if ttl < _SIGN_BIT else 0


def _is_plain(reply: UpstreamReply) -> bool:
    """Whether all records of the answer have the question's name, type and class and a TTL in range, as most do."""
    qtype, qclass = reply.qtype, reply.qclass
    for owner, rtype, ttl, _, rclass in reply.answer:
        if owner or rtype != qtype or rclass != qclass or ttl > MAX_TTL:
            return False
    return True


class _Cleaning:
    """Filters the sections of one reply. Names are in wire form and lower case."""

    __slots__ = ("_answer", "_dnssec_ok", "_names", "_qname", "_reply")

    def __init__(self, reply: UpstreamReply, dnssec_ok: bool) -> None:
        self._reply = reply
        self._dnssec_ok = dnssec_ok
        self._qname = reply.qname.lower()
        self._answer = [_only_alias(rrset) for rrset in reply.answer if self._in_class(rrset)]
        self._names = self._chain()  # the question's name and the targets of its chain
        if len(self._names) > 1:
            self._answer.sort(key=self._place)

    def _chain(self) -> list[bytes]:
        names = [self._qname]
        if self._reply.qtype in _NOT_FOLLOWED:
            return names
        aliases: dict[bytes, bytes] = {}
        for rrset in self._answer:
            if rrset.rtype == RRType.CNAME:
                aliases.setdefault(self._owner(rrset), rrset.rdatas[0].lower())
        while (target := aliases.get(names[-1]) or self._below_dname(names[-1])) and target not in names:
            if len(names) > MAX_CHAIN:
                raise WireError(f"more than {MAX_CHAIN} aliases in a row")
            names.append(target)
        return names

    def _below_dname(self, name: bytes) -> bytes | None:
        """The alias of a name below the owner of a DNAME, whose CNAME this adds (RFC 6672 section 3.1); else None."""
        for rrset in self._answer:
            owner = self._owner(rrset)
            if rrset.rtype == RRType.DNAME and name != owner and is_below_wire(name, owner):
                target = name[: -len(owner)] + rrset.rdatas[0].lower()
                if len(target) > MAX_WIRE:
                    return None
                shown = b"" if name == self._qname else name
                self._answer.append(RRset(shown, RRType.CNAME, rrset.ttl, (target,), rrset.rclass))
                return target
        return None

    def _place(self, rrset: RRset) -> tuple[int, bool]:
        """Orders the chain: at each name first the DNAME above it, with its signature, then the records of the name."""
        owner = self._owner(rrset)
        if owner in self._names:
            return self._names.index(owner), True
        below = (at for at, name in enumerate(self._names) if is_below_wire(name, owner))
        return next(below, len(self._names)), False

    def answer(self) -> Records:
        return _capped(rrset for rrset in self._answer if self._answers(rrset))

    def _answers(self, rrset: RRset) -> bool:
        owner, rtype, qtype = self._owner(rrset), rrset.rtype, self._reply.qtype
        if rtype == RRType.DNAME and qtype not in _NOT_FOLLOWED:
            return any(is_below_wire(name, owner) for name in self._names)
        if rtype == RRType.RRSIG and qtype not in (RRType.RRSIG, RRType.ANY):
            return self._dnssec_ok and any(is_below_wire(name, owner) for name in self._names)
        if owner not in self._names:
            return False
        if rtype == RRType.CNAME and qtype not in _NOT_FOLLOWED:
            return rrset.rdatas[0].lower() in self._names  # nothing behind the end of a loop that was cut
        return rtype == qtype or qtype == RRType.ANY

    def authority(self) -> Records:
        """SOA and NS of zones that contain names of the chain; with DNSSEC, also the proofs of those zones."""
        found = [rrset for rrset in self._reply.authority if self._in_class(rrset)]
        origins = {self._owner(rrset) for rrset in found if rrset.rtype in _DELEGATING}
        if self._dnssec_ok:
            origins |= {signer for rrset in found if rrset.rtype == RRType.RRSIG for signer in self._signers(rrset)}
        origins = {origin for origin in origins if any(is_below_wire(name, origin) for name in self._names)}
        return _capped(rrset for rrset in found if self._delegates(rrset, origins))

    def _signers(self, rrset: RRset) -> Iterator[bytes]:
        """The signers' names, without those of zones that do not contain the owner (RFC 4034 section 3.1.7)."""
        signers = (_name_in(rdata, _SIGNER) for rdata in rrset.rdatas)
        return (signer for signer in signers if is_below_wire(self._owner(rrset), signer))

    def _delegates(self, rrset: RRset, origins: set[bytes]) -> bool:
        owner = self._owner(rrset)
        if rrset.rtype in _DELEGATING:
            return owner in origins
        return self._dnssec_ok and rrset.rtype in _PROVING and any(is_below_wire(owner, origin) for origin in origins)

    def additional(self, kept: Iterable[RRset]) -> Records:
        """A, AAAA, SVCB and HTTPS records (with DNSSEC, RRSIG) of the names that records in `kept` point to."""
        if not self._reply.additional:
            return ()
        targets = {target for rrset in kept if rrset.rtype in _TARGETS for target in self._targets(rrset)}
        return _capped(
            rrset
            for rrset in self._reply.additional
            if self._in_class(rrset)
            and self._owner(rrset) in targets
            and (rrset.rtype in _TARGET_TYPES or (self._dnssec_ok and rrset.rtype == RRType.RRSIG))
        )

    def _targets(self, rrset: RRset) -> Iterator[bytes]:
        for rdata in rrset.rdatas:
            target = _name_in(rdata, _TARGETS[rrset.rtype])
            # RFC 9460 section 2.5.2: "." stands for the owner of the binding.
            yield self._owner(rrset) if target == b"\0" and rrset.rtype in _BINDING else target

    def _owner(self, rrset: RRset) -> bytes:
        return rrset.owner.lower() or self._qname

    def _in_class(self, rrset: RRset) -> bool:
        return rrset.rclass == self._reply.qclass or self._reply.qclass == RRClass.ANY


def _only_alias(rrset: RRset) -> RRset:
    """The RRset; of several CNAMEs only the first.

    A name has at most one (RFC 1034 section 3.6.2), but some servers send more.
    """
    if rrset.rtype == RRType.CNAME and len(rrset.rdatas) > 1:
        return rrset._replace(rdatas=rrset.rdatas[:1])
    return rrset


def _name_in(rdata: bytes, start: int) -> bytes:
    """The name at octet `start` in lower case; malformed RDATA gives octets that equal no owner."""
    at = start
    while at < len(rdata) and rdata[at]:
        at += 1 + rdata[at]
    return rdata[start : at + 1].lower()


def _capped(rrsets: Iterable[RRset]) -> Records:
    return tuple(rrset if rrset.ttl <= MAX_TTL else rrset._replace(ttl=sane_ttl(rrset.ttl)) for rrset in rrsets)
