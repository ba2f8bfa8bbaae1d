"""The `edns0` rules: EDNS options that the operator adds to queries, marked apart from those of the client.

A client's options never go to an upstream, since EDNS is hop by hop (RFC 6891 section 7); the operator's do. An answer
to a query with such options is valid only for queries with the same ones.
"""

from typing import Final, NamedTuple

from topodns.dns.message import Edns, Option, Query, Response
from topodns.dns.name import name_text, wire_labels
from topodns.plugins.rewrite.settings import OptionAction, OptionRule, OptionVariable, Subnet
from topodns.plugins.rewrite.transaction import Passage
from topodns.query.plugin import Client

_UDP_PAYLOAD_SIZE: Final = 4096  # CoreDNS's, in the OPT record that it adds for a rule
_ECS_HEADER: Final = 4  # octets of FAMILY, SOURCE PREFIX-LENGTH and SCOPE PREFIX-LENGTH
_SAME_FOR_ALL: Final = frozenset({OptionVariable.QNAME, OptionVariable.QTYPE})
_CHANGES_IF_FOUND: Final = {OptionAction.REPLACE: True, OptionAction.APPEND: False}


class OperatorOption(NamedTuple):
    """An option set by a rule. It compares equal to a plain tuple, which a client's option is."""

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

    def __call__(self, passage: Passage) -> bool:
        """Apply the rule; whether it matched. `unset` always matches, as in CoreDNS."""
        action, code = self._rule.action, self._rule.code
        options = () if passage.query.edns is None else passage.query.edns.options
        others = tuple(option for option in options if option[0] != code)
        if action is OptionAction.UNSET:
            _give(passage, others)
        else:
            found = len(others) < len(options)
            data = self._data(passage.query, passage.client) if _CHANGES_IF_FOUND.get(action, found) is found else None
            if data is None:
                return False
            _give(passage, (*others, OperatorOption(code, data)))
            passage.client_dependent |= not isinstance(self._rule.data, bytes) and self._rule.data not in _SAME_FOR_ALL
        passage.subnet_changed |= code == Option.CLIENT_SUBNET
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


def _without(options: tuple[tuple[int, bytes], ...], code: int) -> tuple[tuple[int, bytes], ...]:
    return tuple(option for option in options if option[0] != code)


def _give(passage: Passage, options: tuple[tuple[int, bytes], ...]) -> None:
    """Set the options of the query, with a new OPT record if it needs one."""
    edns = passage.query.edns
    if edns is None and options:
        edns = Edns(_UDP_PAYLOAD_SIZE, 0, False)
    if edns is not None:
        passage.query = passage.query._replace(edns=edns._replace(options=options))


def variable_data(variable: OptionVariable, query: Query, client: Client) -> bytes:
    """The value of any variable but SERVER_IP: names as spelled, numbers in two octets, addresses packed."""
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


def restore_subnet(response: Response, asked: Edns | None) -> None:
    """Remove the EDNS Client Subnet from the response unless the client sent one (RFC 7871 section 7.2.2).

    If it did and the plugins below answered with the option, its SCOPE PREFIX-LENGTH becomes the client's SOURCE
    PREFIX-LENGTH.
    """
    others = _without(response.options, Option.CLIENT_SUBNET)
    answered = len(others) < len(response.options)
    sent = None if asked is None else asked.option(Option.CLIENT_SUBNET)
    if answered and sent is not None and len(sent) >= _ECS_HEADER:
        source = sent[2:3]
        others = (*others, (Option.CLIENT_SUBNET, sent[:3] + source + sent[_ECS_HEADER:]))
    response.options = others
