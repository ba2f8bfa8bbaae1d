"""The `acl` plugin: allows, blocks, filters or drops queries by source address and query type."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Final

from topodns.corefile.arguments import Network, network, no_body, record_type
from topodns.corefile.errors import hint, shown
from topodns.corefile.parser import Directive
from topodns.dns.addresses import NetworkList
from topodns.dns.message import Ede, EdeCode, Query, Response
from topodns.dns.name import Name, is_below_any, name_text
from topodns.dns.rrtype import Rcode
from topodns.metrics.registry import Published, Reading
from topodns.plugins.compatibility import Effect, differs
from topodns.plugins.context import Context
from topodns.plugins.plugin import Plugin, all_origins
from topodns.plugins.setup import BlockSetup, Install, MetricsSource, everywhere
from topodns.query.counters import server_label
from topodns.query.plugin import ChainPart, Client, Dropped, Resolution, Scope


class AclAction(Enum):
    ALLOW = "allow"
    BLOCK = "block"  # REFUSED with EDE Blocked
    FILTER = "filter"  # NOERROR without records, with EDE Filtered
    DROP = "drop"  # no reply


@dataclass(frozen=True, slots=True)
class AclRule:
    """One line of an `acl`. The first rule that matches decides; a query that matches none is allowed."""

    action: AclAction
    qtypes: frozenset[int] = frozenset()  # empty: every type
    networks: tuple[Network, ...] = ()  # empty: every source


@dataclass(frozen=True, slots=True)
class Acl:
    """One `acl` directive; a server block may have several, in order, each for its own origins."""

    origins: tuple[Name, ...]
    rules: tuple[AclRule, ...]


_ANY_WORD: Final = "*"
_ACL_ACTIONS: Final = {action.value: action for action in AclAction}


def parse_acl(directive: Directive, context: Context) -> tuple[Acl, ...]:
    """`acl [ZONES...] { ACTION [type QTYPE...] [net SOURCE...] }`, a rule in each line of the body, as one `Acl`.

    Actions, `type` and `net` may be in any letter case. Raises ConfigError.
    """
    rules = tuple(_acl_rule(line) for line in directive.body)
    return (Acl(context.origins_of(directive), rules),)


def _acl_rule(line: Directive) -> AclRule:
    no_body(line)
    action = _ACL_ACTIONS.get(line.name.lower())
    if action is None:
        expected = f"{hint(line.name, _ACL_ACTIONS)}{line.missing_brace}"
        raise line.error(f"unknown action {line.shown_name(_ACL_ACTIONS)} of 'acl'{expected}")
    sections = _acl_sections(line)
    qtypes, sources = sections["type"], sections["net"]
    return AclRule(
        action,
        frozenset() if _ANY_WORD in qtypes else frozenset(record_type(word, line.error) for word in qtypes),
        () if _ANY_WORD in sources else tuple(network(line, word) for word in sources),
    )


def _acl_sections(line: Directive) -> dict[str, list[str]]:
    """The words after `type` and after `net`, by these two keywords. Raises ConfigError for a keyword without words."""
    sections: dict[str, list[str]] = {"type": [], "net": []}
    section, words = "", 0
    for word in line.args:
        if word.lower() in sections:
            _refuse_empty_section(line, section, words)
            section, words = word.lower(), 0
        elif not section:
            raise line.error(f"'{line.name}' has {shown(word)}, expected type or net")
        else:
            sections[section].append(word)
            words += 1
    _refuse_empty_section(line, section, words)
    return sections


def _refuse_empty_section(line: Directive, section: str, words: int) -> None:
    if section and not words:
        raise line.error(f"'{section}' of '{line.name}' has nothing after it, expected at least one word")


_REFUSALS: Final = {
    AclAction.BLOCK: (Rcode.REFUSED, Ede(EdeCode.BLOCKED, "")),
    AclAction.FILTER: (Rcode.NOERROR, Ede(EdeCode.FILTERED, "")),
}


class AccessControl:
    """All `acl` directives of one server block, in order; one plugin, since an `allow` ends the search in all of them.

    `client_dependent`: some rule has a `net`, so that clients can share no answer of the plugins below.
    """

    def __init__(self, directives: Sequence[Acl]) -> None:
        self._directives = [(acl.origins, [_CompiledRule(rule) for rule in acl.rules]) for acl in directives]
        self.client_dependent = any(rule.networks for acl in directives for rule in acl.rules)
        self._scope = Scope.CLIENT if self.client_dependent else Scope.EVERYONE

    def __call__(self, query: Query, client: Client) -> Resolution | None:
        """None: allowed. `block` gives REFUSED, `filter` an empty NOERROR, both without AA. `drop` raises Dropped."""
        action = self._verdict(query, client)
        if action is AclAction.ALLOW:
            return None
        if action is AclAction.DROP:
            raise Dropped("acl")
        rcode, ede = _REFUSALS[action]
        return Resolution(Response(rcode, flags=0, ede=ede), "acl", self._scope)

    def _verdict(self, query: Query, client: Client) -> AclAction:
        for origins, rules in self._directives:
            if not is_below_any(query.qname, origins):
                continue
            for rule in rules:
                if rule.matches(query.qtype, client.address):
                    return rule.action
        return AclAction.ALLOW


class _CompiledRule:
    def __init__(self, rule: AclRule) -> None:
        self.action = rule.action
        self._qtypes = rule.qtypes
        self._networks = NetworkList(rule.networks) if rule.networks else None

    def matches(self, qtype: int, address: bytes) -> bool:
        if self._qtypes and qtype not in self._qtypes:
            return False
        return self._networks is None or address in self._networks


def _setup(settings: tuple[Acl, ...], block: BlockSetup) -> Install:
    access = AccessControl(settings)
    return everywhere(ChainPart(step=access, client_dependent=access.client_dependent))


def readings(source: MetricsSource) -> Iterator[Published]:
    yield Reading(
        "coredns_acl_allowed_requests",
        "Queries that acl let through.",
        "counter",
        ("server", "view"),
        lambda: _allowed(source).items(),
    )
    for rcode, verdict in (("REFUSED", "blocked"), ("NOERROR", "filtered"), ("", "dropped")):
        yield Reading(
            f"coredns_acl_{verdict}_requests",
            f"Queries {verdict} by acl.",
            "counter",
            ("server", "zone", "view"),
            partial(_stopped, source, rcode),
        )


def _allowed(source: MetricsSource) -> Counter[tuple[str, ...]]:
    """Queries that `acl` let through, by (server, view): all queries of blocks with `acl` but those that it stopped."""
    blocks = [prepared.block for prepared in source.blocks()]
    guarded = {
        (server_label((host, key.port)), name_text(key.origin), block.view_name)
        for block in blocks
        if PLUGIN.settings_of(block)
        for host in block.bound_hosts
        for key in block.keys
    }
    counts: Counter[tuple[str, ...]] = Counter()
    for counters in source.counters():
        for kind, times in counters.kinds():
            if (counters.server, kind.origin, kind.view) in guarded and kind.plugin != PLUGIN.name:
                counts[(counters.server, kind.view)] += times
    return counts


def _stopped(source: MetricsSource, rcode: str) -> Iterable[tuple[tuple[str, ...], float]]:
    """Queries that `acl` stopped with this rcode ("" without a reply), by (server, zone, view)."""
    counts: Counter[tuple[str, ...]] = Counter()
    for counters in source.counters():
        for kind, times in counters.kinds():
            if kind.plugin == PLUGIN.name and kind.rcode == rcode:
                counts[(counters.server, kind.origin, kind.view)] += times
    return counts.items()


PLUGIN: Final = Plugin(
    name="acl",
    coredns=differs(Effect.ANSWER, "the extended error goes only to clients that sent EDNS"),
    parse=parse_acl,
    zones=all_origins,
    setup=_setup,
    adds_up=True,
    metrics=readings,
)
