"""Plain questions, which both fast paths take: one question, with EDNS without options or without EDNS."""

from typing import Final

from topodns.dns.message import Flag
from topodns.dns.wire_format import DNSSEC_OK, pack_header_without_id

FLAGS: Final = [rd | ad | cd for rd in (0, Flag.RD) for ad in (0, Flag.AD) for cd in (0, Flag.CD)]
"""All that the flags of a plain question may be."""

HEADS: Final = {pack_header_without_id(flags, 1, 0, 0, opt): (flags, opt) for flags in FLAGS for opt in (0, 1)}
"""The rest of a plain question's header after its id -> its flags, and the number of OPT records that follow."""

OPT_BEGIN: Final = b"\0\0\x29"
"""The first octets of an OPT record, before its payload size: the root as owner, and the type."""

OPT_ENDS: Final = {b"\0\0\0\0\0\0": 0, b"\0\0\x80\0\0\0": DNSSEC_OK}
"""The octets of an OPT record after its payload size (no extended rcode, version 0, no options) -> the DO bit."""
