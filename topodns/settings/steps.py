"""The directives that answer or change answers: one dataclass each, named after its directive."""

from dataclasses import dataclass
from enum import Enum
from ipaddress import IPv4Network, IPv6Network

from topodns.dns.names import Name


class AclAction(Enum):
    ALLOW = "allow"
    BLOCK = "block"  # REFUSED with EDE Blocked
    FILTER = "filter"  # NOERROR without records, with EDE Filtered
    DROP = "drop"  # no answer at all


@dataclass(frozen=True, slots=True)
class AclRule:
    """The first rule that matches decides; none: allowed."""

    action: AclAction
    qtypes: frozenset[int] = frozenset()  # empty: every type
    networks: tuple[IPv4Network | IPv6Network, ...] = ()  # empty: every source


@dataclass(frozen=True, slots=True)
class Acl:
    """One `acl` directive; a block may have several, in order, each for its own origins."""

    origins: tuple[Name, ...]
    rules: tuple[AclRule, ...]


class LoadbalancePolicy(Enum):
    ROUND_ROBIN = "round_robin"
    WEIGHTED = "weighted"


@dataclass(frozen=True, slots=True)
class Loadbalance:
    policy: LoadbalancePolicy = LoadbalancePolicy.ROUND_ROBIN
    weight_file: str = ""  # of WEIGHTED
    reload: float = 30.0  # seconds between looks at weight_file; 0: never
    prefer: tuple[IPv4Network | IPv6Network, ...] = ()  # addresses inside come first


@dataclass(frozen=True, slots=True)
class Header:
    """Flags (`Flag` bits) to set and clear. Queries: before the steps below it; responses: after them."""

    query_set: int = 0
    query_clear: int = 0
    response_set: int = 0
    response_clear: int = 0


@dataclass(frozen=True, slots=True)
class Chaos:
    version: str = ""  # "" means topodns's own
    authors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LogRule:
    """One `log` directive: names under `origin`, in `format`, for the classes given."""

    origins: tuple[Name, ...]
    format: str
    classes: frozenset[str]  # of: success, denial, error, all
