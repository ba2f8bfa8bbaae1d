"""Records as text, for people: what `explain` prints. The one importer of dnslib, off the hot path."""

from dnslib import DNSRecord

from topodns.dns.message import RCODE_NAMES, RRType


def reply_sections(reply: bytes) -> dict[str, list[str]]:
    """The records of a message by section, each as one line of zone-file text, in order; without OPT."""
    message = DNSRecord.parse(reply)
    sections = {"answer": message.rr, "authority": message.auth, "additional": message.ar}
    return {
        name: [_one_line(str(record.toZone())) for record in records if record.rtype != RRType.OPT]
        for name, records in sections.items()
    }


def reply_rcode(reply: bytes) -> str:
    """The rcode's name, without the bits that EDNS adds."""
    rcode = reply[3] & 0x0F
    return RCODE_NAMES.get(rcode, f"RCODE{rcode}")


def _one_line(text: str) -> str:
    return " ".join(text.split())
