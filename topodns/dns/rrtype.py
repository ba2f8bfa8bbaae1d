"""Record types, classes and RCODEs: mnemonics of the IANA registry, and RFC 3597's TYPE<number> for other types."""

import re
from collections.abc import Mapping
from enum import IntEnum
from typing import Final

_REGISTRY: Final = """
    A 1  NS 2  MD 3  MF 4  CNAME 5  SOA 6  MB 7  MG 8  MR 9  NULL 10  PTR 12  HINFO 13  MINFO 14  MX 15  TXT 16  RP 17
    AFSDB 18  X25 19  ISDN 20  RT 21  NSAP-PTR 23  SIG 24  KEY 25  PX 26  GPOS 27  AAAA 28  LOC 29  NXT 30  EID 31
    NIMLOC 32  SRV 33  ATMA 34  NAPTR 35  KX 36  CERT 37  DNAME 39  OPT 41  APL 42  DS 43  SSHFP 44  IPSECKEY 45
    RRSIG 46  NSEC 47  DNSKEY 48  DHCID 49  NSEC3 50  NSEC3PARAM 51  TLSA 52  SMIMEA 53  HIP 55  NINFO 56  RKEY 57
    TALINK 58  CDS 59  CDNSKEY 60  OPENPGPKEY 61  CSYNC 62  ZONEMD 63  SVCB 64  HTTPS 65  SPF 99  UINFO 100  UID 101
    GID 102  UNSPEC 103  NID 104  L32 105  L64 106  LP 107  EUI48 108  EUI64 109  NXNAME 128  TKEY 249  TSIG 250
    IXFR 251  AXFR 252  MAILB 253  MAILA 254  ANY 255  URI 256  CAA 257  AVC 258  DOA 259  AMTRELAY 260  RESINFO 261
    WALLET 262  TA 32768  DLV 32769
"""
_WORDS: Final = _REGISTRY.split()

QTYPES: Final[dict[str, int]] = {name: int(code) for name, code in zip(_WORDS[::2], _WORDS[1::2], strict=True)}
_NUMBERED: Final = re.compile(r"TYPE([0-9]{1,5})")


def parse_qtype(text: str) -> int | None:
    """The type of a mnemonic, in any case, or of TYPE<number>; None if there is none."""
    name = text.upper()
    if (match := _NUMBERED.fullmatch(name)) is not None:
        return int(match[1]) if int(match[1]) <= 0xFFFF else None
    return QTYPES.get(name)


_RCODE_REGISTRY: Final = """
    NOERROR 0  FORMERR 1  SERVFAIL 2  NXDOMAIN 3  NOTIMP 4  NOTIMPL 4  REFUSED 5  YXDOMAIN 6  YXRRSET 7  NXRRSET 8
    NOTAUTH 9  NOTZONE 10  DSOTYPENI 11  BADVERS 16  BADKEY 17  BADTIME 18  BADMODE 19  BADNAME 20  BADALG 21
    BADTRUNC 22  BADCOOKIE 23
"""
_RCODE_WORDS: Final = _RCODE_REGISTRY.split()

RCODES: Final[dict[str, int]] = {
    name: int(code) for name, code in zip(_RCODE_WORDS[::2], _RCODE_WORDS[1::2], strict=True)
}


def parse_rcode(text: str) -> int | None:
    """The RCODE of a mnemonic, in any case; None if there is none."""
    return RCODES.get(text.upper())


class Rcode(IntEnum):
    """The RCODEs in use (RFC 6895 section 2.3); 16 and above need EDNS."""

    NOERROR = 0
    FORMERR = 1
    SERVFAIL = 2
    NXDOMAIN = 3
    NOTIMP = 4
    REFUSED = 5
    BADVERS = 16


class RRType(IntEnum):
    """The record types that the code refers to; any other type is a plain int."""

    A = 1
    NS = 2
    CNAME = 5
    SOA = 6
    PTR = 12
    HINFO = 13
    MX = 15
    TXT = 16
    AAAA = 28
    SRV = 33
    NAPTR = 35
    OPT = 41
    DS = 43
    RRSIG = 46
    NSEC = 47
    DNSKEY = 48
    NSEC3 = 50
    SVCB = 64
    HTTPS = 65
    IXFR = 251
    AXFR = 252
    ANY = 255


class RRClass(IntEnum):
    IN = 1
    CH = 3
    HS = 4
    ANY = 255


TYPE_NAMES: Final[Mapping[int, str]] = {int(t): t.name for t in RRType}
RCODE_NAMES: Final[Mapping[int, str]] = {int(r): r.name for r in Rcode}
