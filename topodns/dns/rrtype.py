"""The record types an operator may name (the IANA registry's mnemonics), and RFC 3597's TYPE<number> for the others."""

import re
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
    """The type that `text` names, in any case; None when it names none."""
    name = text.upper()
    if (match := _NUMBERED.fullmatch(name)) is not None:
        return int(match[1]) if int(match[1]) <= 0xFFFF else None
    return QTYPES.get(name)
