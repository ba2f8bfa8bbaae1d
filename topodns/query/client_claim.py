"""What a query's EDNS options claim about its client: our node identity and EDNS Client Subnet (RFC 7871).

Reads claims and echoes the subnet; whether a claim is believed is `cluster.locate`'s decision.
"""

import re
from typing import Final

from topodns.cluster.locate import Claim
from topodns.dns.message import Edns, Option
from topodns.resolve.step import BadOption

NO_CLAIM: Final = Claim()

_MAX_NODE_NAME: Final = 253
_NODE_NAME: Final = re.compile(rb"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*")

_ADDRESS_BITS: Final = {1: 32, 2: 128}  # by FAMILY, an address family number of IANA
_NO_FAMILY: Final = 0  # with nothing behind it: how `dig +subnet=0` says that it tells nothing
_HEADER_SIZE: Final = 4  # octets of FAMILY, SOURCE PREFIX-LENGTH and SCOPE PREFIX-LENGTH
_SCOPE_AT: Final = 3


def read_claim(edns: Edns, subnet_enabled: bool = True) -> Claim:
    """What the client claims. Raises BadOption on a malformed ECS, which is not even looked at unless enabled.

    Enabled means for this source: `Locator.trusts`. A node identity that is no node name is no claim.
    """
    if not edns.options:
        return NO_CLAIM
    node_name = _node_name(edns)
    data = edns.option(Option.CLIENT_SUBNET) if subnet_enabled else None
    if node_name is None and data is None:
        return NO_CLAIM
    return Claim(node_name, None if data is None else _subnet(data))


def ecs_reply(edns: Edns, scope_prefix: int) -> tuple[int, bytes] | None:
    """The ECS option of the reply to a query whose ECS `read_claim` took; None where it has none.

    `scope_prefix` is the prefix length that the answer depends on (Location.prefix_length), 0 where the answer is the
    same for everyone. FAMILY, SOURCE PREFIX-LENGTH and ADDRESS come back as they were sent (RFC 7871 section 7.2.1).
    """
    data = edns.option(Option.CLIENT_SUBNET)
    if data is None:
        return None
    return int(Option.CLIENT_SUBNET), data[:_SCOPE_AT] + bytes((scope_prefix,)) + data[_HEADER_SIZE:]


def _node_name(edns: Edns) -> str | None:
    """The node name in the node identity option; None without one, or where it is not a DNS-1123 subdomain.

    Of several that differ, all but one are forged or stale, and nobody can say which: no claim.
    """
    claimed = {data for code, data in edns.options if code == Option.NODE_IDENTITY}
    if len(claimed) != 1:
        return None
    data = claimed.pop()
    if len(data) > _MAX_NODE_NAME or not _NODE_NAME.fullmatch(data):
        return None
    return data.decode("ascii")


def _subnet(data: bytes) -> tuple[bytes, int] | None:
    """The subnet in an ECS option of a query (RFC 7871 section 6); None for one of length 0, which tells nothing."""
    if len(data) < _HEADER_SIZE:
        raise BadOption(f"ECS of {len(data)} octets, at least {_HEADER_SIZE} expected")
    family, prefix_length, scope, address = int.from_bytes(data[:2], "big"), data[2], data[3], data[_HEADER_SIZE:]
    if scope:
        raise BadOption(f"ECS with scope prefix length {scope} in a query, 0 expected")
    bits = 0 if family == _NO_FAMILY else _ADDRESS_BITS.get(family)
    if bits is None:
        raise BadOption(f"ECS of address family {family}, 1 or 2 expected")
    if prefix_length > bits:
        raise BadOption(f"ECS with source prefix length {prefix_length}, at most {bits} expected")
    _check_address(address, prefix_length)
    return (address.ljust(bits // 8, b"\0"), prefix_length) if prefix_length else None


def _check_address(address: bytes, prefix_length: int) -> None:
    """Raise BadOption unless ADDRESS has just the octets that the prefix needs, and zeros behind the prefix."""
    size = (prefix_length + 7) // 8
    if len(address) != size:
        raise BadOption(f"ECS with {len(address)} address octets for a prefix of {prefix_length}, {size} expected")
    padding = size * 8 - prefix_length
    if padding and address[-1] & ((1 << padding) - 1):
        raise BadOption(f"ECS with address bits behind its prefix of {prefix_length}")
