"""The client in a query's EDNS options: topodns's node identity and client address, and EDNS Client Subnet (RFC 7871).

Reads the claims, echoes the subnet, and says to a node cache for which clients an answer is; `topology.claims` decides
which claims count.
"""

from typing import Final

from topodns.cluster.api_names import MAX_SUBDOMAIN, is_subdomain
from topodns.dns.message import Edns, Option
from topodns.query.plugin import BadOption
from topodns.topology.claims import Claim

NO_CLAIM: Final = Claim()

MAX_NODE_NAME: Final = MAX_SUBDOMAIN

_ADDRESS_SIZES: Final = frozenset({4, 16})  # octets of a packed address
_ADDRESS_BITS: Final = {1: 32, 2: 128}  # by FAMILY, the IANA address family number
_NO_FAMILY: Final = 0  # with no address: `dig +subnet=0` sends it to disclose no subnet
_HEADER_SIZE: Final = 4  # octets of FAMILY, SOURCE PREFIX-LENGTH and SCOPE PREFIX-LENGTH
_SCOPE_AT: Final = 3


def read_claim(edns: Edns, subnet_enabled: bool = True) -> Claim:
    """The claim in the query. Raises BadOption on a malformed ECS. An invalid node name is ignored.

    Without `subnet_enabled`, ECS is not read, not even to check it: for sources that `ClaimTrust.trusts` rejects.
    """
    if not edns.options:
        return NO_CLAIM
    node_name = _node_name(edns)
    client = _client(edns)
    data = edns.option(Option.CLIENT_SUBNET) if subnet_enabled else None
    if node_name is None and data is None:
        return NO_CLAIM
    return Claim(node_name, None if data is None else _subnet(data), client)


def ecs_reply(edns: Edns, scope_prefix: int) -> tuple[int, bytes] | None:
    """The ECS option (code, data) of the reply to a query whose ECS `read_claim` accepted; None without ECS.

    `scope_prefix` is the prefix length that the answer depends on (Location.prefix_length), 0 if the answer is the same
    for all clients. FAMILY, SOURCE PREFIX-LENGTH and ADDRESS are echoed unchanged (RFC 7871 section 7.2.1).
    """
    data = edns.option(Option.CLIENT_SUBNET)
    if data is None:
        return None
    return Option.CLIENT_SUBNET, data[:_SCOPE_AT] + bytes((scope_prefix,)) + data[_HEADER_SIZE:]


def _node_name(edns: Edns) -> str | None:
    """The node name in the node identity option; None without one, or if it is not a DNS-1123 subdomain.

    Several options with different names give None: all but one are forged or stale, and which one is unknowable.
    """
    claimed = {data for code, data in edns.options if code == Option.NODE_IDENTITY}
    if len(claimed) != 1:
        return None
    name = claimed.pop().decode("latin-1")  # so that octets that are no ASCII are none of a name either
    return name if is_subdomain(name) else None


def _client(edns: Edns) -> bytes | None:
    """The packed address in the option CLIENT_POD; None without one, for several, and for another size."""
    named = {data for code, data in edns.options if code == Option.CLIENT_POD}
    address = named.pop() if len(named) == 1 else b""
    return address if len(address) in _ADDRESS_SIZES else None


def _subnet(data: bytes) -> tuple[bytes, int] | None:
    """The (address, prefix length) in an ECS option (RFC 7871 section 6); None for prefix length 0: no location.

    The address is packed and filled with zero bits. Raises BadOption.
    """
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
    """Raise BadOption unless ADDRESS has exactly the octets that the prefix needs, and zero bits after the prefix."""
    size = (prefix_length + 7) // 8
    if len(address) != size:
        raise BadOption(f"ECS with {len(address)} address octets for a prefix of {prefix_length}, {size} expected")
    padding = size * 8 - prefix_length
    if padding and address[-1] & ((1 << padding) - 1):
        raise BadOption(f"ECS with address bits behind its prefix of {prefix_length}")
