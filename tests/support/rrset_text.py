"""RRsets as the lines of a zone file, so that expectations read like dig's output."""

from collections.abc import Callable, Iterable, Mapping
from ipaddress import ip_address
from struct import unpack

from topodns.dns.message import RRset
from topodns.dns.name import name_text, wire_labels
from topodns.dns.rrtype import TYPE_NAMES, RRType


def lines(rrsets: Iterable[RRset], qname: str) -> list[str]:
    """`owner TTL IN TYPE RDATA` for each record, in order. An owner of b"" is `qname`, as given."""
    return [f"{_head(each, qname)} {_READERS[each.rtype](rdata)}" for each in rrsets for rdata in each.rdatas]


def _head(rrset: RRset, qname: str) -> str:
    owner = _text(rrset.owner) if rrset.owner else qname
    return f"{owner} {rrset.ttl} IN {TYPE_NAMES[rrset.rtype]}"


def _text(name: bytes) -> str:
    return name_text(wire_labels(name))


def _address(rdata: bytes) -> str:
    return str(ip_address(rdata))


def _service(rdata: bytes) -> str:
    return " ".join(map(str, unpack("!HHH", rdata[:6]))) + " " + _text(rdata[6:])


def _start_of_authority(rdata: bytes) -> str:
    primary = rdata[: rdata.index(b"\0") + 1]
    mailbox = rdata[len(primary) : -20]
    return f"{_text(primary)} {_text(mailbox)} " + " ".join(map(str, unpack("!IIIII", rdata[-20:])))


def _strings(rdata: bytes) -> str:
    return f'"{rdata[1:].decode()}"'


_READERS: Mapping[int, Callable[[bytes], str]] = {
    RRType.A: _address,
    RRType.AAAA: _address,
    RRType.CNAME: _text,
    RRType.NS: _text,
    RRType.PTR: _text,
    RRType.SRV: _service,
    RRType.SOA: _start_of_authority,
    RRType.TXT: _strings,
}
