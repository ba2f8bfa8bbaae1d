"""The `edns0` rules: options that the operator adds to queries, and how a step below tells them from the client's.

Nothing that a client sent goes to an upstream, since EDNS is hop by hop (RFC 6891 section 7); what the operator set
does. And an answer to a query with such options is one for queries with the same ones only.
"""

from typing import Final, NamedTuple

from topodns.dns.message import Edns, Option, Query, Response
from topodns.dns.names import name_text, wire_labels
from topodns.resolve.rewrite.passage import Passage
from topodns.resolve.step import Client
from topodns.settings.rewrite import Action, OptionRule, Subnet, Variable

_UDP_PAYLOAD_SIZE: Final = 4096  # CoreDNS's, in the OPT record that it adds for a rule
_ECS_HEADER: Final = 4  # octets of FAMILY, SOURCE PREFIX-LENGTH and SCOPE PREFIX-LENGTH
_SAME_FOR_ALL: Final = frozenset({Variable.QNAME, Variable.QTYPE})
_CHANGES_IF_FOUND: Final = {Action.REPLACE: True, Action.APPEND: False}


class OperatorOption(NamedTuple):
    """An option of a query that a rule has set; equal to the tuple that any other option is."""

    code: int
    data: bytes


def operator_options(query: Query) -> tuple[OperatorOption, ...]:
    """The options that go with a question wherever it is sent, and set its answer apart in a cache."""
    if query.edns is None:
        return ()
    return tuple(option for option in query.edns.options if isinstance(option, OperatorOption))


class OptionChange:
    """A rule. `server_address` is the packed one that the socket is bound to, b"" where that is not one only."""

    def __init__(self, rule: OptionRule, server_address: bytes) -> None:
        self._rule = rule
        self._server_address = server_address

    def __call__(self, passage: Passage) -> bool:
        """Whether there was something to change, or to take away (which always counts, as in CoreDNS)."""
        action, code = self._rule.action, self._rule.code
        options = () if passage.query.edns is None else passage.query.edns.options
        others = tuple(option for option in options if option[0] != code)
        if action is Action.UNSET:
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
        """The option's data; None where the rule asks for what is not known."""
        data = self._rule.data
        if isinstance(data, bytes):
            return data
        if isinstance(data, Subnet):
            return subnet_data(client.address, data)
        if data is Variable.SERVER_IP:
            return self._server_address or None
        return variable_data(data, query, client)


def _without(options: tuple[tuple[int, bytes], ...], code: int) -> tuple[tuple[int, bytes], ...]:
    return tuple(option for option in options if option[0] != code)


def _give(passage: Passage, options: tuple[tuple[int, bytes], ...]) -> None:
    """The query with these options; it gets an OPT record where it has none and needs one."""
    edns = passage.query.edns
    if edns is None and options:
        edns = Edns(_UDP_PAYLOAD_SIZE, 0, False)
    if edns is not None:
        passage.query = passage.query._replace(edns=edns._replace(options=options))


def variable_data(variable: Variable, query: Query, client: Client) -> bytes:
    """The value of any variable but SERVER_IP: names as spelled, numbers in two octets, addresses packed."""
    match variable:
        case Variable.QNAME:
            return name_text(wire_labels(query.spelling)).encode("ascii")
        case Variable.QTYPE:
            return query.qtype.to_bytes(2, "big")
        case Variable.CLIENT_IP:
            return client.address
        case Variable.CLIENT_PORT:
            return client.port.to_bytes(2, "big")
        case Variable.PROTOCOL:
            return client.transport.encode("ascii")
        case Variable.SERVER_PORT:
            return client.local_port.to_bytes(2, "big")
        case Variable.SERVER_IP:
            raise ValueError("the address is the socket's, not the query's")


def subnet_data(address: bytes, subnet: Subnet) -> bytes:
    """An EDNS Client Subnet option for a query: as many octets as the prefix needs, zeros behind it (RFC 7871 6)."""
    family, bits = (1, subnet.ipv4_bits) if len(address) == 4 else (2, subnet.ipv6_bits)
    width = 8 * len(address)
    prefix = int.from_bytes(address, "big") >> (width - bits) << (width - bits)
    return bytes((0, family, bits, 0)) + prefix.to_bytes(len(address), "big")[: (bits + 7) // 8]


def restore_subnet(response: Response, asked: Edns | None) -> None:
    """Tell the client nothing of a subnet that it did not send (RFC 7871 section 7.2.2).

    Where it sent one, and the steps below have said for whom the answer is, that is true for just that subnet.
    """
    others = _without(response.options, Option.CLIENT_SUBNET)
    answered = len(others) < len(response.options)
    sent = None if asked is None else asked.option(Option.CLIENT_SUBNET)
    if answered and sent is not None and len(sent) >= _ECS_HEADER:
        source = sent[2:3]
        others = (*others, (int(Option.CLIENT_SUBNET), sent[:3] + source + sent[_ECS_HEADER:]))
    response.options = others
