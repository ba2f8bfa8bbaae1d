"""The `edns0` rules: EDNS options that the operator adds to queries, marked apart from those of the client.

A client's options never go to an upstream, since EDNS is hop by hop (RFC 6891 section 7); the operator's do. An answer
to a query with such options is valid only for queries with the same ones.
"""

from typing import Final, NamedTuple

from topodns.dns.message import Edns, Option, Query
from topodns.dns.name import name_text, wire_labels
from topodns.plugins.rewrite.rewritten_query import RewrittenQuery
from topodns.plugins.rewrite.settings import OptionAction, OptionRule, OptionVariable, Subnet
from topodns.query.plugin import Client

_UDP_PAYLOAD_SIZE: Final = 4096  # CoreDNS's, in the OPT record that it adds for a rule
_SAME_FOR_ALL: Final = frozenset({OptionVariable.QNAME, OptionVariable.QTYPE})
_CHANGES_IF_FOUND: Final = {OptionAction.REPLACE: True, OptionAction.APPEND: False}


class OperatorOption(NamedTuple):
    """An option set by a rule. A client's option is a plain tuple, which compares equal if code and data do."""

    code: int
    data: bytes


def operator_options(query: Query) -> tuple[OperatorOption, ...]:
    """The options set by rules, which are sent to upstreams and distinguish the query in caches."""
    if query.edns is None:
        return ()
    return tuple(option for option in query.edns.options if isinstance(option, OperatorOption))


class OptionChange:
    """An `edns0` rule. `server_address`: the packed address of the socket, b"" if it is not bound to a single one."""

    def __init__(self, rule: OptionRule, server_address: bytes) -> None:
        self._rule = rule
        self._server_address = server_address

    def __call__(self, rewritten: RewrittenQuery) -> bool:
        """Apply the rule, and return whether it matched. `unset` always matches, as in CoreDNS."""
        action, code, reverter = self._rule.action, self._rule.code, rewritten.reverter
        query = rewritten.query
        options = () if query.edns is None else query.edns.options
        others = tuple(option for option in options if option[0] != code)
        if action is OptionAction.UNSET:
            _set_options(rewritten, others)
        else:
            found = len(others) < len(options)
            data = self._data(query, rewritten.client) if _CHANGES_IF_FOUND.get(action, found) is found else None
            if data is None:
                return False
            _set_options(rewritten, (*others, OperatorOption(code, data)))
            reverter.client_dependent |= not isinstance(self._rule.data, bytes) and self._rule.data not in _SAME_FOR_ALL
        reverter.subnet_changed |= code == Option.CLIENT_SUBNET
        return True

    def _data(self, query: Query, client: Client) -> bytes | None:
        """The option's data; None if the rule's variable has no value."""
        data = self._rule.data
        if isinstance(data, bytes):
            return data
        if isinstance(data, Subnet):
            return subnet_data(client.address, data)
        if data is OptionVariable.SERVER_IP:
            return self._server_address or None
        return variable_data(data, query, client)


def _set_options(rewritten: RewrittenQuery, options: tuple[tuple[int, bytes], ...]) -> None:
    """Set the options of the query, with a new OPT record if it needs one."""
    edns = rewritten.query.edns
    if edns is None and options:
        edns = Edns(_UDP_PAYLOAD_SIZE, 0, False)
    if edns is not None:
        rewritten.query = rewritten.query._replace(edns=edns._replace(options=options))


def variable_data(variable: OptionVariable, query: Query, client: Client) -> bytes:
    """The value of any variable but SERVER_IP: name and protocol as text, numbers in two octets, addresses packed.

    Raises ValueError for SERVER_IP.
    """
    match variable:
        case OptionVariable.QNAME:
            return name_text(wire_labels(query.spelling)).encode("ascii")
        case OptionVariable.QTYPE:
            return query.qtype.to_bytes(2, "big")
        case OptionVariable.CLIENT_IP:
            return client.address
        case OptionVariable.CLIENT_PORT:
            return client.port.to_bytes(2, "big")
        case OptionVariable.PROTOCOL:
            return client.transport.encode("ascii")
        case OptionVariable.SERVER_PORT:
            return client.local_port.to_bytes(2, "big")
        case OptionVariable.SERVER_IP:
            raise ValueError("the address is the socket's, not the query's")


def subnet_data(address: bytes, subnet: Subnet) -> bytes:
    """Data of an EDNS Client Subnet option: the prefix in the fewest octets, padded with zero bits (RFC 7871 6)."""
    family, bits = (1, subnet.ipv4_bits) if len(address) == 4 else (2, subnet.ipv6_bits)
    width = 8 * len(address)
    prefix = int.from_bytes(address, "big") >> (width - bits) << (width - bits)
    return bytes((0, family, bits, 0)) + prefix.to_bytes(len(address), "big")[: (bits + 7) // 8]
