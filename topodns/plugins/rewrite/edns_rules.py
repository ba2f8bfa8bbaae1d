"""The `edns0` rules: EDNS options of queries, which the plugins below see and `forward` sends to its upstreams."""

from typing import Final

from topodns.dns.message import Edns, Option, Query
from topodns.dns.name import name_text, wire_labels
from topodns.plugins.rewrite.response import OptionReverting
from topodns.plugins.rewrite.rewritten_query import RewrittenQuery
from topodns.plugins.rewrite.settings import OptionAction, OptionRule, OptionVariable, Subnet
from topodns.query.forwarded_options import ForwardedOption
from topodns.query.plugin import Client

_UDP_PAYLOAD_SIZE: Final = 4096  # CoreDNS's, in the OPT record that it adds for a rule
_SAME_FOR_ALL: Final = frozenset({OptionVariable.QNAME, OptionVariable.QTYPE})

_Options = tuple[tuple[int, bytes], ...]


class OptionChange:
    """An `edns0` rule. `server_address`: the packed address of the socket, b"" if it is not bound to a single one."""

    def __init__(self, rule: OptionRule, server_address: bytes) -> None:
        self._rule = rule
        self._server_address = server_address

    def __call__(self, rewritten: RewrittenQuery) -> bool:
        """Apply the rule, and return whether it matched.

        As in CoreDNS, the query then has an OPT record even if no option changed, except where the rule's variable has
        no value.
        """
        rule, query, reverter = self._rule, rewritten.query, rewritten.reverter
        data = self._data(query, rewritten.client)
        if data is None:
            return False
        edns = query.edns or Edns(_UDP_PAYLOAD_SIZE, 0, False)
        options, matched = _changed(edns.options, rule, data)
        rewritten.query = query._replace(edns=edns._replace(options=options))
        if rule.action is OptionAction.UNSET:
            return True
        reverter.subnet_forwarded |= rule.code == Option.CLIENT_SUBNET
        if matched:
            reverter.client_dependent |= not isinstance(rule.data, bytes) and rule.data not in _SAME_FOR_ALL
            if rule.revert:
                reverter.amendments.append(OptionReverting(rule.code, edns.option(rule.code)))
        return matched

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


def _changed(options: _Options, rule: OptionRule, data: bytes) -> tuple[_Options, bool]:
    """The options after the rule, and whether it matched. `unset` always matches, as in CoreDNS.

    `append` keeps an option of the client and sends it on. As in CoreDNS, constant data is appended nevertheless.
    """
    code, new = rule.code, ForwardedOption(rule.code, data)
    found = any(option[0] == code for option in options)
    match rule.action:
        case OptionAction.UNSET:
            return tuple(option for option in options if option[0] != code), True
        case OptionAction.APPEND:
            kept = tuple(ForwardedOption(*option) if option[0] == code else option for option in options)
            return (kept, False) if found and not isinstance(rule.data, bytes) else ((*kept, new), True)
        case OptionAction.REPLACE if not found:
            return options, False
        case _:
            at = next((at for at, option in enumerate(options) if option[0] == code), len(options))
            return (*options[:at], new, *(option for option in options[at:] if option[0] != code)), True


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
