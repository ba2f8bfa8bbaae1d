"""Record types, classes and RCODEs: numbers and mnemonics of the IANA registry, and RFC 3597's TYPE<number>.

The constants are plain ints, because every query compares them: the members of an IntEnum cost twice as much.
"""

import re
from collections.abc import Mapping
from typing import Final


class RRType:
    """The record types that the code refers to. Other types are ints too: `QTYPES` has those with a mnemonic."""

    A: Final = 1
    NS: Final = 2
    MD: Final = 3
    MF: Final = 4
    CNAME: Final = 5
    SOA: Final = 6
    MB: Final = 7
    MG: Final = 8
    MR: Final = 9
    PTR: Final = 12
    HINFO: Final = 13
    MINFO: Final = 14
    MX: Final = 15
    TXT: Final = 16
    RP: Final = 17
    AFSDB: Final = 18
    RT: Final = 21
    PX: Final = 26
    AAAA: Final = 28
    LOC: Final = 29
    SRV: Final = 33
    NAPTR: Final = 35
    KX: Final = 36
    DNAME: Final = 39
    OPT: Final = 41
    DS: Final = 43
    RRSIG: Final = 46
    NSEC: Final = 47
    DNSKEY: Final = 48
    NSEC3: Final = 50
    NSEC3PARAM: Final = 51
    SVCB: Final = 64
    HTTPS: Final = 65
    IXFR: Final = 251
    AXFR: Final = 252
    ANY: Final = 255


class RRClass:
    """The classes (RFC 6895 section 3.2)."""

    IN: Final = 1
    CS: Final = 2
    CH: Final = 3
    HS: Final = 4
    NONE: Final = 254
    ANY: Final = 255


class Rcode:
    """The RCODEs (RFC 6895 section 2.3); 16 and above need EDNS. 16 is BADSIG in a TSIG record."""

    NOERROR: Final = 0
    FORMERR: Final = 1
    SERVFAIL: Final = 2
    NXDOMAIN: Final = 3
    NOTIMP: Final = 4
    REFUSED: Final = 5
    YXDOMAIN: Final = 6
    YXRRSET: Final = 7
    NXRRSET: Final = 8
    NOTAUTH: Final = 9
    NOTZONE: Final = 10
    DSOTYPENI: Final = 11
    BADVERS: Final = 16
    BADKEY: Final = 17
    BADTIME: Final = 18
    BADMODE: Final = 19
    BADNAME: Final = 20
    BADALG: Final = 21
    BADTRUNC: Final = 22
    BADCOOKIE: Final = 23


ADDRESS_TYPES: Final = frozenset({RRType.A, RRType.AAAA})


def members(constants: type) -> dict[str, int]:
    """The constants of a class such as `RRType`: name -> number, in the order of the class."""
    return {name: number for name, number in vars(constants).items() if name.isupper()}


_OTHER_TYPES: Final = """
    NULL 10  WKS 11  X25 19  ISDN 20  NSAP 22  NSAP-PTR 23  SIG 24  KEY 25  GPOS 27  NXT 30  EID 31  NIMLOC 32  ATMA 34
    CERT 37  A6 38  SINK 40  APL 42  SSHFP 44  IPSECKEY 45  DHCID 49  TLSA 52  SMIMEA 53  HIP 55  NINFO 56  RKEY 57
    TALINK 58  CDS 59  CDNSKEY 60  OPENPGPKEY 61  CSYNC 62  ZONEMD 63  DSYNC 66  HHIT 67  BRID 68  SPF 99  UINFO 100
    UID 101  GID 102  UNSPEC 103  NID 104  L32 105  L64 106  LP 107  EUI48 108  EUI64 109  NXNAME 128  TKEY 249
    TSIG 250  MAILB 253  MAILA 254  URI 256  CAA 257  AVC 258  DOA 259  AMTRELAY 260  RESINFO 261  WALLET 262  CLA 263
    IPN 264  TA 32768  DLV 32769
"""
_WORDS: Final = _OTHER_TYPES.split()

QTYPES: Final[Mapping[str, int]] = members(RRType) | {
    name: int(code) for name, code in zip(_WORDS[::2], _WORDS[1::2], strict=True)
}
QCLASSES: Final[Mapping[str, int]] = members(RRClass)
RCODES: Final[Mapping[str, int]] = members(Rcode) | {"NOTIMPL": Rcode.NOTIMP, "BADSIG": Rcode.BADVERS}  # as CoreDNS

TYPE_NAMES: Final[Mapping[int, str]] = {number: name for name, number in QTYPES.items()}
CLASS_NAMES: Final[Mapping[int, str]] = {number: name for name, number in QCLASSES.items()}
RCODE_NAMES: Final[Mapping[int, str]] = {number: name for name, number in members(Rcode).items()}
RCODE_LABELS: Final = tuple(RCODE_NAMES.get(rcode, "other") for rcode in range(4096))
"""The values of a label `rcode`, by RCODE, of which an upstream may send all: the mnemonic, or "other"."""

_NUMBERED: Final = re.compile(r"(TYPE|CLASS)([0-9]{1,5})")


def parse_qtype(text: str) -> int | None:
    """The type of a mnemonic, in any case, or of TYPE<number>; None if there is none."""
    name = text.upper()
    return QTYPES.get(name) or _numbered(name, "TYPE")


def parse_qclass(text: str) -> int | None:
    """The class of a mnemonic, in any case, or of CLASS<number>; None if there is none."""
    name = text.upper()
    return QCLASSES.get(name) or _numbered(name, "CLASS")


def _numbered(name: str, kind: str) -> int | None:
    """The number in the form TYPE<number> or CLASS<number> (RFC 3597 section 5), as `kind` says; None for others."""
    match = _NUMBERED.fullmatch(name)
    if match is None or match[1] != kind or int(match[2]) > 0xFFFF:
        return None
    return int(match[2])


def type_text(rtype: int) -> str:
    """The mnemonic of a type, or TYPE<number>."""
    return TYPE_NAMES.get(rtype) or f"TYPE{rtype}"


def class_text(rclass: int) -> str:
    """The mnemonic of a class, or CLASS<number>."""
    return CLASS_NAMES.get(rclass) or f"CLASS{rclass}"


def rcode_text(rcode: int) -> str:
    """The mnemonic of an RCODE, or its number, as in CoreDNS's logs."""
    return RCODE_NAMES.get(rcode) or str(rcode)


def parse_rcode(text: str) -> int | None:
    """The RCODE of a mnemonic, in any case; None if there is none."""
    return RCODES.get(text.upper())
