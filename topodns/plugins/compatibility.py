"""Verdicts on directives for reports about a Corefile of CoreDNS 1.14.7, and directives that topodns does not have.

`PLUGIN.coredns` has the verdict on a directive of topodns. All others are in COREDNS_ONLY, in ELSEWHERE, or unknown,
perhaps misspelt: `unknown_problem` and `unknown_row` decide which. docs/reference/differences-from-coredns.md says
more, about answers too. Texts have no full stop: reports print them in a line.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from topodns.corefile.errors import nearest
from topodns.corefile.parser import Directive
from topodns.plugins.order import ORDER


class DirectiveVerdict(Enum):
    """The verdict on a directive, an option or a Corefile; its value is the word in reports."""

    SAME = "same"
    DIFFERS = "differs"
    UNSUPPORTED = "not supported"
    REFUSED = "refused"  # topodns has the directive, and rejects this line
    UNCHECKED = "not looked at"
    WARNING = "warning"  # nothing is wrong, but part of the input was missing and not checked


class Effect(Enum):
    """What a difference changes for clients; its value is a heading of reports, the gravest first."""

    ANSWER = "can change an answer"
    BOUNDS = "changes bounds or timing"
    NOTHING = "changes no answer, bound or timing"


@dataclass(frozen=True, slots=True)
class Row:
    """The verdict on one directive or option. `text`: the difference, or the replacement. `effect`: of a difference.

    Options without a row are the same, as far as the directive's parser accepts them.
    """

    verdict: DirectiveVerdict
    text: str = ""
    options: Mapping[str, "Row"] = field(default_factory=dict)
    effect: Effect = Effect.NOTHING


def differs(effect: Effect, text: str, **options: Row) -> Row:
    return Row(DirectiveVerdict.DIFFERS, text, options, effect)


def same(**options: Row) -> Row:
    return Row(DirectiveVerdict.SAME, "", options)


def unsupported(instead: str) -> Row:
    return Row(DirectiveVerdict.UNSUPPORTED, instead)


OURS: Final = "topodns's own: CoreDNS refuses it, so take it out before going back"
_SIGNED: Final = "sign the zone with another name server, and `forward` its name to there"
_CLOUD: Final = "`forward` the zone to the cloud's resolver, or export it and serve it with `file`"
_ENCRYPTED: Final = "put a proxy that ends the encryption in front of a dns:// block, or leave the block to CoreDNS"
_PRIMARY: Final = "`forward` the zone to its primary server"

COREDNS_ONLY: Final[Mapping[str, Row]] = {  # in the order of CoreDNS's plugin.cfg
    "root": unsupported("write the paths of files in full: relative ones start at the Corefile's directory"),
    "geoip": unsupported("distinguish clients with `view` and incidr(), or in the cluster with `topology`"),
    "proxyproto": unsupported("let the load balancer keep the source address (externalTrafficPolicy: Local)"),
    "quic": unsupported(_ENCRYPTED),
    "grpc_server": unsupported(_ENCRYPTED),
    "https": unsupported(_ENCRYPTED),
    "https3": unsupported(_ENCRYPTED),
    "trace": unsupported("take it out; `log` has the duration of each query, and metrics have their distribution"),
    "shed": unsupported("take it out: the number of queries under way is limited anyway"),
    "dnstap": unsupported("take it out, and use `log`, or capture the packets"),
    "tsig": unsupported("take it out; keep others away with `acl` or a NetworkPolicy"),
    "dnssec": unsupported(_SIGNED),
    "transfer": unsupported("take it out: transfers are REFUSED; let secondaries read the file that the zone is in"),
    "route53": unsupported(_CLOUD),
    "azure": unsupported(_CLOUD),
    "clouddns": unsupported(_CLOUD),
    "auto": unsupported("write one `file` for each zone"),
    "secondary": unsupported(_PRIMARY),
    "etcd": unsupported("`forward` the zone to a CoreDNS that has etcd, or write its records into `hosts` or `file`"),
    "grpc": unsupported("`forward` to the server's DNS port"),
    "erratic": unsupported("take it out: it is for tests of clients"),
    "on": unsupported("run the command beside the server, as a sidecar or an init container"),
    "sign": unsupported(_SIGNED),
    "nomad": unsupported("`forward` the zone to a CoreDNS that has nomad"),
}
"""The directives that only CoreDNS has: for each the verdict "not supported", with the replacement."""

NAMES: Final = (*ORDER, *COREDNS_ONLY)
"""The directives of topodns and CoreDNS, of which an unknown word may be a slip."""

ELSEWHERE: Final[Mapping[str, str]] = {
    "alternate": "use `failover` or `next` of `forward`",
    "fanout": "use `forward`, which asks a second upstream when the first is slow",
    "federation": "CoreDNS dropped it in 1.7; take it out",
    "k8s_gateway": "use `k8s_external` for Services, and `template` for Ingresses",
    "proxy": "CoreDNS dropped it in 1.5; write `forward`",
    "records": "write the records into `hosts` or `file`",
    "unbound": "`forward` to a resolver that runs beside this server",
}
"""External plugins in use in clusters, and directives of old CoreDNS versions: the replacement for each."""

TRANSPORTS: Final[Mapping[str, str]] = dict.fromkeys(("https", "https3", "quic", "grpc"), _ENCRYPTED)
"""Schemes of server blocks that only CoreDNS has: the replacement for each."""


def unknown_problem(directive: Directive) -> str:
    """The text of the ConfigError for a directive that is not in ORDER: the replacement, or the nearest known name."""
    name = directive.name
    if name in COREDNS_ONLY:
        return f"CoreDNS has the directive '{name}', topodns does not: {COREDNS_ONLY[name].text}"
    if name in ELSEWHERE:
        return f"topodns has no directive '{name}': {ELSEWHERE[name]}"
    near = _nearest_directive(name)
    guess = f", did you mean '{near}'?" if near else ", expected one of those that 'topodns -plugins' lists"
    name = directive.shown_name(NAMES)
    return f"found {name}{guess}" if not directive.name else f"unknown directive {name}{guess}"


def unknown_row(name: str) -> Row:
    """The verdict "not supported" on a directive that is not in ORDER, for the report about a Corefile of CoreDNS."""
    if name in COREDNS_ONLY:
        return COREDNS_ONLY[name]
    if name in ELSEWHERE:
        return unsupported(ELSEWHERE[name])
    near = _nearest_directive(name)
    guess = f"; did you mean '{near}'?" if near else "; take it out, or `forward` its names to a server that has it"
    return unsupported(f"CoreDNS itself has no such directive, so it is an external plugin or a slip{guess}")


def is_known(name: str) -> bool:
    """Whether this is the name of a directive of topodns, of CoreDNS, or of a well-known external plugin."""
    return name in ORDER or name in COREDNS_ONLY or name in ELSEWHERE


def _nearest_directive(name: str) -> str | None:
    return nearest(name, NAMES)
