"""The `rewrite` directive: what is asked of the steps below, in place of what the client asked, and what it gets back.

Names are compared and replaced as text, as CoreDNS does: lower case, in presentation format, with the final dot. So a
fragment need not end where a label ends.
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
class Match:
    """Which names a rule is for. `text` is a regular expression (`settings.pattern`) or what is compared with."""

    comparison: Comparison
    text: str


class Part(Enum):
    """What of a record an `answer` rule renames."""

    OWNER = "name"
    VALUE = "value"  # the name in the RDATA of CNAME, DNAME, MX, NAPTR, NS, PTR, SOA (its MNAME) and SRV


@dataclass(frozen=True, slots=True)
class AnswerRule:
    """A name that `pattern` finds becomes `replacement`, with {1} and so on replaced by what the groups found."""

    part: Part
    pattern: str
    replacement: str


@dataclass(frozen=True, slots=True)
class NameRule:
    """`replacement` takes the place of what matched; of a regular expression, of the whole name, with {1} and so on.

    `auto`: names in the answer are turned back, owners and values.
    """

    match: Match
    replacement: str
    auto: bool = False
    answers: tuple[AnswerRule, ...] = ()


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
    """The TTLs in the response are kept within `low` and `high`, seconds."""

    match: Match
    low: int
    high: int


@dataclass(frozen=True, slots=True)
class RcodeRule:
    match: Match
    decided: int
    instead: int


@dataclass(frozen=True, slots=True)
class CnameRule:
    """`match` is for the target of a CNAME in the answer; the replacement is made as a `NameRule`'s."""

    match: Match
    replacement: str


class Action(Enum):
    SET = "set"
    APPEND = "append"  # unless there is such an option
    REPLACE = "replace"  # if there is such an option
    UNSET = "unset"


class Variable(Enum):
    """What an option's data may be taken from: names as text, the rest as it is on the wire."""

    QNAME = "{qname}"
    QTYPE = "{qtype}"
    CLIENT_IP = "{client_ip}"
    CLIENT_PORT = "{client_port}"
    PROTOCOL = "{protocol}"
    SERVER_IP = "{server_ip}"
    SERVER_PORT = "{server_port}"


@dataclass(frozen=True, slots=True)
class Subnet:
    """The client's address cut to so many bits, as an EDNS Client Subnet (RFC 7871 section 6)."""

    ipv4_bits: int
    ipv6_bits: int


@dataclass(frozen=True, slots=True)
class OptionRule:
    """What becomes of one option of the query; clients never find it in the response."""

    action: Action
    code: int
    data: bytes | Variable | Subnet = b""


Change = NameRule | TypeRule | ClassRule | TtlRule | RcodeRule | CnameRule | OptionRule


@dataclass(frozen=True, slots=True)
class RewriteRule:
    """One directive. Rules are tried in order until one matches that is not `continues`."""

    change: Change
    continues: bool = False
