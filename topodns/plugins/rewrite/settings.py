"""Settings of the `rewrite` directive: the rules that rewrite queries to the plugins below, and their responses.

Names are compared and replaced as text, as in CoreDNS: lower case, in presentation format, with the final dot. So a
fragment need not end at a label boundary.
"""

from dataclasses import dataclass
from enum import Enum


class Comparison(Enum):
    EXACT = "exact"
    PREFIX = "prefix"
    SUFFIX = "suffix"
    SUBSTRING = "substring"
    REGEX = "regex"


@dataclass(frozen=True, slots=True)
class NameMatch:
    """The names to which a rule applies. `text` is a regular expression (`query.regex`), a name or part of a name."""

    comparison: Comparison
    text: str


class Part(Enum):
    """The part of a record that an `answer` rule renames."""

    OWNER = "name"
    VALUE = "value"  # the name in the RDATA of CNAME, DNAME, MX, NAPTR, NS, PTR, SOA (its MNAME) and SRV


@dataclass(frozen=True, slots=True)
class AnswerRule:
    """A name in the response in which `pattern` matches is replaced, as a whole, by `replacement`.

    {N} in the replacement becomes the text of group N.
    """

    part: Part
    pattern: str
    replacement: str


@dataclass(frozen=True, slots=True)
class NameRule:
    """`replacement` replaces the matched text; for a regular expression the whole name, with {N} as in `AnswerRule`.

    `auto`: owners and names in RDATA of the response are renamed back, as they always are for an exact match.
    """

    match: NameMatch
    replacement: str
    auto: bool = False
    answers: tuple[AnswerRule, ...] = ()

    @property
    def names_records(self) -> bool:
        """Whether the response's records get a name of the client's: an exact match is always renamed back."""
        renamed = self.auto or self.match.comparison is Comparison.EXACT
        return renamed or any(rule.part is Part.OWNER for rule in self.answers)


@dataclass(frozen=True, slots=True)
class TypeRule:
    asked: int
    instead: int


@dataclass(frozen=True, slots=True)
class ClassRule:
    asked: int
    instead: int


@dataclass(frozen=True, slots=True)
class TtlRule:
    """TTLs in responses to queries for a name that matches are clamped to `low`..`high` seconds, both inclusive."""

    match: NameMatch
    low: int
    high: int


@dataclass(frozen=True, slots=True)
class RcodeRule:
    match: NameMatch
    decided: int
    instead: int


@dataclass(frozen=True, slots=True)
class CnameRule:
    """`match` applies to the targets of CNAMEs in the answer; `replacement` is as in `NameRule`."""

    match: NameMatch
    replacement: str


class OptionAction(Enum):
    SET = "set"
    APPEND = "append"  # a subnet or a variable only without such an option, as in CoreDNS
    REPLACE = "replace"  # only with such an option
    UNSET = "unset"


class OptionVariable(Enum):
    """Sources of an option's data: the name and the protocol as text, the others in wire format."""

    QNAME = "{qname}"
    QTYPE = "{qtype}"
    CLIENT_IP = "{client_ip}"
    CLIENT_PORT = "{client_port}"
    PROTOCOL = "{protocol}"
    SERVER_IP = "{server_ip}"
    SERVER_PORT = "{server_port}"


@dataclass(frozen=True, slots=True)
class MetadataVariable:
    """The value of a label of metadata, as text."""

    label: str


@dataclass(frozen=True, slots=True)
class Subnet:
    """An EDNS Client Subnet (RFC 7871 section 6): the client's address truncated to this number of bits."""

    ipv4_bits: int
    ipv6_bits: int


@dataclass(frozen=True, slots=True)
class OptionRule:
    """A change of one EDNS option of the query. `revert` takes it back in the response."""

    action: OptionAction
    code: int
    data: bytes | OptionVariable | MetadataVariable | Subnet = b""
    revert: bool = False


Change = NameRule | TypeRule | ClassRule | TtlRule | RcodeRule | CnameRule | OptionRule


@dataclass(frozen=True, slots=True)
class RewriteRule:
    """One directive. Rules are tried in order; the first match without `continues` ends the search."""

    change: Change
    continues: bool = False
