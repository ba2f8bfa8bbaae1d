"""What of an upstream's reply is believed: the records that the question was about, with sane TTLs.

A forwarder cannot tell true from false, but it can refuse what was not asked for (RFC 5452 section 6), so that a
reply never puts records of other names into a cache.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from topodns.dns.message import Ede, Edns, Option, RRClass, RRset, RRType
from topodns.dns.reply import Reply
from topodns.dns.wire import WireError

MAX_CHAIN: Final = 16  # CNAMEs in a row; a loop ends where it closes
# RFC 8767 section 4 recommends this cap. A longer one would pin a wrong record to caches for as long as it says.
MAX_TTL: Final = 7 * 86_400

_SIGN_BIT: Final = 1 << 31
_ANY: Final = int(RRType.ANY)
_CNAME: Final = int(RRType.CNAME)
_DNAME: Final = 39
_RRSIG: Final = int(RRType.RRSIG)
_NOT_FOLLOWED: Final = frozenset({_CNAME, _ANY})
_DELEGATING: Final = frozenset({int(RRType.SOA), int(RRType.NS)})
_PROVING: Final = frozenset({_RRSIG, int(RRType.NSEC), int(RRType.NSEC3), int(RRType.DS)})
_SIGNER: Final = 18  # where an RRSIG's RDATA has the name of who signed (RFC 4034 section 3.1)
# Where RDATA has the name that ADDITIONAL may say more about, and the types of what it may say.
_TARGETS: Final = {
    int(RRType.NS): 0,
    int(RRType.MX): 2,
    int(RRType.SRV): 6,
    int(RRType.SVCB): 2,
    int(RRType.HTTPS): 2,
}
_SAID_OF_TARGETS: Final = frozenset({int(RRType.A), int(RRType.AAAA), int(RRType.SVCB), int(RRType.HTTPS)})


Records = tuple[RRset, ...]


def clean(reply: Reply, dnssec_ok: bool) -> tuple[Records, Records, Records]:
    """What is kept of the three sections, in the order received; what only DNSSEC has a use for, if it was asked for.

    Owners are b"" where they are the question's name. Raises WireError for an answer that has nothing about the
    question, and for a chain that is longer than anybody needs: cut, it would be told as a name without records.
    """
    if not reply.authority and not reply.additional and _is_plain(reply):
        return reply.answer, (), ()
    cleaning = _Cleaning(reply, dnssec_ok)
    answer = cleaning.answer()
    if reply.answer and not answer:
        raise WireError("no record of the answer is about the question")
    # The name servers of what is answered help nobody behind a forwarder. Proofs do, and the SOA of a denial, which an
    # alias may end in (RFC 2308 section 2.1).
    answered = any(rrset.rtype == reply.qtype for rrset in answer)
    authority = () if answered and not dnssec_ok else cleaning.authority()
    return answer, authority, cleaning.additional((*answer, *authority))


def extended_error(edns: Edns) -> Ede | None:
    """The reason that the upstream gives (RFC 8914): the one thing in its OPT record that is for the client, too."""
    data = edns.option(Option.EXTENDED_ERROR) if edns.options else None
    if data is None or len(data) < 2:
        return None
    text = data[2:].rstrip(b"\0").decode(errors="replace")
    # It goes to the log as well, where a stranger's line ends would be forged lines.
    return Ede(int.from_bytes(data[:2], "big"), "".join(char if char.isprintable() else "?" for char in text))


def sane_ttl(ttl: int) -> int:
    """Between 0 and MAX_TTL; one whose highest bit is set means 0 (RFC 2181 section 8)."""
    if ttl <= MAX_TTL:
        return ttl
    return MAX_TTL if ttl < _SIGN_BIT else 0


def _is_plain(reply: Reply) -> bool:
    """Whether the answer is records of the question's name and type and nothing else, as most are."""
    qtype, qclass = reply.qtype, reply.qclass
    for owner, rtype, ttl, _, rclass in reply.answer:
        if owner or rtype != qtype or rclass != qclass or ttl > MAX_TTL:
            return False
    return True


class _Cleaning:
    """Names here are in wire form and lower case."""

    __slots__ = ("_answer", "_dnssec_ok", "_names", "_qname", "_reply")

    def __init__(self, reply: Reply, dnssec_ok: bool) -> None:
        self._reply = reply
        self._dnssec_ok = dnssec_ok
        self._qname = reply.qname.lower()
        self._answer = [_only_alias(rrset) for rrset in reply.answer if self._in_class(rrset)]
        self._names = self._chain()  # the question's name and what it is an alias of

    def _chain(self) -> list[bytes]:
        names = [self._qname]
        if self._reply.qtype in _NOT_FOLLOWED:
            return names
        aliases: dict[bytes, bytes] = {}
        for rrset in self._answer:
            if rrset.rtype == _CNAME:
                aliases.setdefault(self._owner(rrset), rrset.rdatas[0].lower())
        while (target := aliases.get(names[-1])) is not None and target not in names:
            if len(names) > MAX_CHAIN:
                raise WireError(f"more than {MAX_CHAIN} aliases in a row")
            names.append(target)
        return names

    def answer(self) -> Records:
        return _aged(rrset for rrset in self._answer if self._answers(rrset))

    def _answers(self, rrset: RRset) -> bool:
        owner, rtype, qtype = self._owner(rrset), rrset.rtype, self._reply.qtype
        if rtype == _DNAME and qtype not in _NOT_FOLLOWED:
            return any(_is_under(name, owner) for name in self._names)
        if rtype == _RRSIG and qtype not in (_RRSIG, _ANY):
            return self._dnssec_ok and any(_is_under(name, owner) for name in self._names)
        if owner not in self._names:
            return False
        if rtype == _CNAME and qtype not in _NOT_FOLLOWED:
            return rrset.rdatas[0].lower() in self._names  # not beyond the end of a chain that is cut
        return rtype == qtype or qtype == _ANY

    def authority(self) -> Records:
        """SOA and NS of origins that the chain's names are in; with DNSSEC, what those origins prove."""
        found = [rrset for rrset in self._reply.authority if self._in_class(rrset)]
        origins = {self._owner(rrset) for rrset in found if rrset.rtype in _DELEGATING}
        if self._dnssec_ok:
            origins |= {signer for rrset in found if rrset.rtype == _RRSIG for signer in self._signers(rrset)}
        origins = {origin for origin in origins if any(_is_under(name, origin) for name in self._names)}
        return _aged(rrset for rrset in found if self._delegates(rrset, origins))

    def _signers(self, rrset: RRset) -> Iterator[bytes]:
        """Who signed it: nobody signs what is not in their zone (RFC 4034 section 3.1.7)."""
        signers = (_name_in(rdata, _SIGNER) for rdata in rrset.rdatas)
        return (signer for signer in signers if _is_under(self._owner(rrset), signer))

    def _delegates(self, rrset: RRset, origins: set[bytes]) -> bool:
        owner = self._owner(rrset)
        if rrset.rtype in _DELEGATING:
            return owner in origins
        return self._dnssec_ok and rrset.rtype in _PROVING and any(_is_under(owner, origin) for origin in origins)

    def additional(self, kept: Iterable[RRset]) -> Records:
        """Addresses and services of the names that `kept` points to."""
        if not self._reply.additional:
            return ()
        pointing = [(_TARGETS[rrset.rtype], rrset.rdatas) for rrset in kept if rrset.rtype in _TARGETS]
        targets = {_name_in(rdata, at) for at, rdatas in pointing for rdata in rdatas}
        return _aged(
            rrset
            for rrset in self._reply.additional
            if self._in_class(rrset)
            and self._owner(rrset) in targets
            and (rrset.rtype in _SAID_OF_TARGETS or (self._dnssec_ok and rrset.rtype == _RRSIG))
        )

    def _owner(self, rrset: RRset) -> bytes:
        return rrset.owner.lower() or self._qname

    def _in_class(self, rrset: RRset) -> bool:
        return rrset.rclass == self._reply.qclass or self._reply.qclass == RRClass.ANY


def _is_under(name: bytes, origin: bytes) -> bool:
    """Whether `name` is `origin` or below it: they end alike, and `origin` begins where a label does."""
    if not origin or not name.endswith(origin):
        return False
    at, start = 0, len(name) - len(origin)
    while at < start:
        at += 1 + name[at]
    return at == start


def _only_alias(rrset: RRset) -> RRset:
    """A name has one CNAME at most (RFC 1034 section 3.6.2); of those that some servers give it, the first."""
    if rrset.rtype == _CNAME and len(rrset.rdatas) > 1:
        return rrset._replace(rdatas=rrset.rdatas[:1])
    return rrset


def _name_in(rdata: bytes, start: int) -> bytes:
    """The name that begins there; what is not one is no owner's."""
    at = start
    while at < len(rdata) and rdata[at]:
        at += 1 + rdata[at]
    return rdata[start : at + 1].lower()


def _aged(rrsets: Iterable[RRset]) -> Records:
    return tuple(rrset if rrset.ttl <= MAX_TTL else rrset._replace(ttl=sane_ttl(rrset.ttl)) for rrset in rrsets)
