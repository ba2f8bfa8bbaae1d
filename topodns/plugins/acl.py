"""The `acl` plugin: allows, blocks, filters or drops queries by query type, source address, and the client's Pod."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Final

from topodns.cluster.api_names import is_subdomain
from topodns.cluster.label_selector import BadSelector, Selector, parse_selector
from topodns.cluster.model import Pod
from topodns.corefile.arguments import Network, network, no_body, record_type
from topodns.corefile.errors import hint, listed, shown
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
from topodns.query.deferred import Deferred, Outcome
from topodns.query.metadata import CLIENT_LABEL, CLIENT_NAMESPACE
from topodns.query.plugin import ChainPart, Client, Dropped, Resolution, Scope

if TYPE_CHECKING:
    from topodns.plugins.kubernetes.client_pods import ClientPods


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
    namespaces: frozenset[str] = frozenset()  # of the client's Pod; empty: every client
    selectors: tuple[Selector, ...] = ()  # of which one matches the labels of the client's Pod; empty: every client

    @property
    def by_pod(self) -> bool:
        """Whether the rule is for clients that are Pods."""
        return bool(self.namespaces or self.selectors)

    @property
    def labels(self) -> Iterator[str]:
        """The labels of metadata that the rule reads."""
        if self.namespaces:
            yield CLIENT_NAMESPACE
        for selector in self.selectors:
            yield from (f"{CLIENT_LABEL}{each.key}" for each in selector.requirements)


@dataclass(frozen=True, slots=True)
class Acl:
    """One `acl` directive; a server block may have several, in order, each for its own origins."""

    origins: tuple[Name, ...]
    rules: tuple[AclRule, ...]


_ANY_WORD: Final = "*"
_ACL_ACTIONS: Final = {action.value: action for action in AclAction}


def parse_acl(directive: Directive, context: Context) -> tuple[Acl, ...]:
    """`acl [ZONES...] { ACTION [type QTYPE...] [net SOURCE...] [namespace NAME...] [label SELECTOR...] }`, a rule in
    each line of the body, as one `Acl`.

    Actions and keywords may be in any letter case. Raises ConfigError.
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
        frozenset(_namespace(line, word) for word in sections["namespace"]),
        tuple(_selector(line, word) for word in sections["label"]),
    )


def _namespace(line: Directive, word: str) -> str:
    if not is_subdomain(word) or "." in word:
        raise line.error(f"'namespace' has {shown(word)}, expected the name of a namespace")
    return word


def _selector(line: Directive, word: str) -> Selector:
    try:
        return parse_selector(word)
    except BadSelector as problem:
        raise line.error(f"'label' has {shown(word)}, expected a selector like app=web: {problem}") from None


def _acl_sections(line: Directive) -> dict[str, list[str]]:
    """The words after each keyword. Raises ConfigError for a keyword without words."""
    sections: dict[str, list[str]] = {keyword: [] for keyword in ("type", "net", "namespace", "label")}
    section, words = "", 0
    for word in line.args:
        if word.lower() in sections:
            _refuse_empty_section(line, section, words)
            section, words = word.lower(), 0
        elif not section:
            raise line.error(f"'{line.name}' has {shown(word)}, expected {listed(sections)}")
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


_NOT_READY: Final = Ede(EdeCode.NOT_READY, "acl: the Pods of the cluster are not known yet")


class AccessControl:
    """All `acl` directives of one server block, in order; one plugin, since an `allow` ends the search in all of them.

    `scope`: the clients that can share answers of the plugins below; CLIENT if some rule has a `net`. `pods`: those of
    the clients, for rules with a namespace or a label; None: no client is a Pod.
    """

    def __init__(
        self, directives: Sequence[Acl], pods: "ClientPods | None" = None, scope: Scope = Scope.EVERYONE
    ) -> None:
        """`scope`: as far as rules by Pods narrow it."""
        self._directives = [(acl.origins, [_CompiledRule(rule) for rule in acl.rules]) for acl in directives]
        self._pods = pods
        self.scope = Scope.CLIENT if any(rule.networks for acl in directives for rule in acl.rules) else scope

    def __call__(self, query: Query, client: Client) -> Resolution | Deferred[Resolution | None] | None:
        """None: allowed. `block` gives REFUSED, `filter` an empty NOERROR, both without AA. `drop` raises Dropped.

        Where it depends on the client's Pod: SERVFAIL while Pods are unknown, as no verdict may be wrong, and a wait
        for one that is too new to be known. A node cache gets REFUSED in place of no reply, for which it would take the
        server for dead.
        """
        first = next(self._candidates(query, client), None)
        if first is None:
            return None
        if not first.by_pod or self._pods is None:
            return self._act(self._verdict(query, client, None))
        if not self._pods.complete:
            return Resolution(Response(Rcode.SERVFAIL, flags=0, ede=_NOT_READY), "acl", Scope.CLIENT)
        pod = self._pods.of(query, client)
        if pod is None and (arrival := self._pods.arrival(query, client)) is not None:
            return self._after(arrival, self._pods, query, client)
        return self._act(self._by_pod(query, client, pod, self._pods))

    async def _after(
        self, arrival: Outcome[None], pods: "ClientPods", query: Query, client: Client
    ) -> Resolution | None:
        await arrival
        return self._act(self._by_pod(query, client, pods.of(query, client), pods))

    def _by_pod(self, query: Query, client: Client, pod: Pod | None, pods: "ClientPods") -> AclAction:
        action = self._verdict(query, client, pod)
        dropped = action is AclAction.DROP and pods.is_forwarded(query, client)
        return AclAction.BLOCK if dropped else action

    def _candidates(self, query: Query, client: Client) -> Iterator["_CompiledRule"]:
        """The rules that match, as far as the client's Pod does not matter, in order."""
        for origins, rules in self._directives:
            if is_below_any(query.qname, origins):
                yield from (rule for rule in rules if rule.may_match(query.qtype, client.address))

    def _verdict(self, query: Query, client: Client, pod: Pod | None) -> AclAction:
        for rule in self._candidates(query, client):
            if rule.matches(pod):
                return rule.action
        return AclAction.ALLOW

    def _act(self, action: AclAction) -> Resolution | None:
        if action is AclAction.ALLOW:
            return None
        if action is AclAction.DROP:
            raise Dropped("acl")
        rcode, ede = _REFUSALS[action]
        return Resolution(Response(rcode, flags=0, ede=ede), "acl", self.scope)


class _CompiledRule:
    def __init__(self, rule: AclRule) -> None:
        self.action = rule.action
        self.by_pod = rule.by_pod
        self._rule = rule
        self._qtypes = rule.qtypes
        self._networks = NetworkList(rule.networks) if rule.networks else None

    def may_match(self, qtype: int, address: bytes) -> bool:
        """Whether type and source match, so that only the client's Pod may still be another one."""
        if self._qtypes and qtype not in self._qtypes:
            return False
        return self._networks is None or address in self._networks

    def matches(self, pod: Pod | None) -> bool:
        """Whether the rule is for this Pod, None for a client that is none. A client that is no Pod has no labels, not
        even one that a selector wants to be absent.
        """
        if not self.by_pod:
            return True
        rule = self._rule
        if pod is None or (rule.namespaces and pod.namespace not in rule.namespaces):
            return False
        labels = dict(pod.labels)
        return not rule.selectors or any(selector.matches(labels) for selector in rule.selectors)


def labels(settings: tuple[Acl, ...]) -> frozenset[str]:
    """The labels of metadata that the rules read."""
    return frozenset(label for acl in settings for rule in acl.rules for label in rule.labels)


def _check(directive: Directive, settings: tuple[Acl, ...], present: Collection[str]) -> None:
    """Raise ConfigError for rules by Pods in a server block that knows none."""
    missing = [name for name in ("metadata", "kubernetes") if name not in present]
    if missing and labels(settings):
        raise directive.error(
            f"'acl' has 'namespace' or 'label' in a server block without '{missing[0]}', expected it: rules by the "
            "client's Pod need metadata and kubernetes"
        )


def _setup(settings: tuple[Acl, ...], block: BlockSetup) -> Install:
    pods = block.cluster.client_pods if block.cluster is not None else None
    access = AccessControl(settings, pods, block.vary_by_labels(labels(settings)))
    return everywhere(ChainPart(step=access, scope=access.scope))


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
        (server_label(key.at(host)), name_text(key.origin), block.view_name)
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
    coredns=differs(
        Effect.ANSWER,
        "the extended error goes only to clients that sent EDNS; `namespace` and `label` are topodns's own: CoreDNS "
        "refuses them",
    ),
    parse=parse_acl,
    zones=all_origins,
    setup=_setup,
    adds_up=True,
    check=_check,
    labels=labels,
    metrics=readings,
)
