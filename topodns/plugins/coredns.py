"""Compatibility of each directive of CoreDNS 1.14.7, for reports about a Corefile: data, no logic.

`docs/differences-from-coredns.md` says more, about answers too. Texts have no full stop: reports print them in a line.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final


class DirectiveVerdict(Enum):
    """The verdict on a directive, an option or a Corefile; its value is the word in reports."""

    SAME = "same"
    DIFFERS = "differs"
    UNSUPPORTED = "not supported"
    REFUSED = "refused"  # topodns has the directive, and rejects this line
    UNCHECKED = "not looked at"
    WARNING = "warning"  # nothing is wrong, but part of the input was missing and not checked


@dataclass(frozen=True, slots=True)
class Row:
    """The verdict on one directive or option. `text`: the difference, or the replacement.

    Options without a row are the same, as far as the directive's parser accepts them.
    """

    verdict: DirectiveVerdict
    text: str = ""
    options: Mapping[str, "Row"] = field(default_factory=dict)


def _differs(text: str, **options: Row) -> Row:
    return Row(DirectiveVerdict.DIFFERS, text, options)


def _same(**options: Row) -> Row:
    return Row(DirectiveVerdict.SAME, "", options)


def _unsupported(instead: str) -> Row:
    return Row(DirectiveVerdict.UNSUPPORTED, instead)


_OURS: Final = "topodns's own: CoreDNS refuses it, so take it out before going back"
_NO_RATE: Final = "read and without effect: topodns sends an API server too few requests for a limit"
_SIGNED: Final = "sign the zone with another name server, and `forward` its name to there"
_CLOUD: Final = "`forward` the zone to the cloud's resolver, or export it and serve it with `file`"
_ENCRYPTED: Final = "put a proxy that ends the encryption in front of a dns:// block, or leave the block to CoreDNS"
_PRIMARY: Final = "`forward` the zone to its primary server"
_TLS_UPSTREAM: Final = "write tls://ADDRESS: most such servers speak DNS over TLS too"

DIRECTIVES: Final[Mapping[str, Row]] = {  # in the order of CoreDNS's plugin.cfg
    "root": _unsupported("write the paths of files in full: relative ones start at the Corefile's directory"),
    "metadata": _differs("nothing is published: {/LABEL} of `log` is - and .Meta of `template` is empty"),
    "geoip": _unsupported("tell clients apart with `view` and incidr(), or in the cluster with `topology`"),
    "cancel": _same(),
    "proxyproto": _unsupported("let the load balancer keep the source address (externalTrafficPolicy: Local)"),
    "quic": _unsupported(_ENCRYPTED),
    "grpc_server": _unsupported(_ENCRYPTED),
    "https": _unsupported(_ENCRYPTED),
    "https3": _unsupported(_ENCRYPTED),
    "timeouts": _same(),
    "multisocket": _differs("one socket is opened whatever the number, and the log says so; run more replicas"),
    "reload": _differs("health, ready and metrics listen on while it reloads, and a cluster that stays is kept"),
    "nsid": _same(),
    "bufsize": _same(),
    "bind": _same(),
    "debug": _differs(
        "the log says more, and extended errors name upstreams; a bug in one query never ends the process"
    ),
    "trace": _unsupported("take it out; `log` has the duration of each query, and metrics have their distribution"),
    "ready": _same(),
    "health": _same(),
    "pprof": _differs("read and checked, but nothing listens: there is no Go program to profile"),
    "shed": _unsupported("take it out: the number of queries under way is limited anyway"),
    "prometheus": _same(
        runtime_metrics=_unsupported("take it out: there is no Go runtime; process_* metrics are always there"),
        tls=_unsupported("take it out, and put a proxy that speaks TLS in front of the metrics"),
    ),
    "errors": _differs(
        "a line is logged for each SERVFAIL, at most 10 a second",
        stacktrace=_differs("tracebacks are logged with and without it"),
    ),
    "log": _differs("{rsize} is what was sent, after compression; metadata of other plugins is -"),
    "dnstap": _unsupported("take it out, and use `log`, or capture the packets"),
    "local": _same(),
    "dns64": _differs("AAAA records stay where there is no A record, and errors stay errors"),
    "any": _same(),
    "chaos": _differs("VERSION is topodns's own where none is given, and there are no AUTHORS then"),
    "loadbalance": _differs("beyond 64 addresses only the start and the first 64 are left to chance"),
    "tsig": _unsupported("take it out; keep others away with `acl` or a NetworkPolicy"),
    "rewrite": _differs(
        "the question in a response is always the client's own, variables from metadata are refused, and the EDNS "
        "option 0xffee is topodns's node identity"
    ),
    "autopath": _differs(
        "@kubernetes reads the namespace off the name, so that Pods need not be watched, and works in front of a "
        "cluster's DNS, too"
    ),
    "acl": _differs("the extended error goes only to clients that sent EDNS"),
    "cache": _differs(
        "only what `forward` got is kept: answers from the cluster, files and templates are never old; TTL 0 is not "
        "kept, and what is asked for often is not pushed out by what is not",
        serve_stale=_differs(
            "what is left out is RFC 8767's: a TTL of 30s, 30s between tries to refresh, 1.8s of waiting in `verify`"
        ),
        success=_differs("the limit is on octets as well"),
        denial=_differs("the limit is on octets as well"),
    ),
    "header": _same(),
    "dnssec": _unsupported(_SIGNED),
    "tls": _unsupported(_ENCRYPTED),
    "minimal": _same(),
    "template": _differs(
        "functions are Go's own and parseInt, .Meta is empty, and define, template and block are refused",
        var=_unsupported("write the value into the templates"),
        expr=_unsupported("use `match`, or `view` for what depends on the client"),
    ),
    "transfer": _unsupported("take it out: transfers are REFUSED; let secondaries read the file that the zone is in"),
    "hosts": _differs("an address that stands twice for one name is given once"),
    "route53": _unsupported(_CLOUD),
    "azure": _unsupported(_CLOUD),
    "clouddns": _unsupported(_CLOUD),
    "k8s_external": _differs("a load balancer's hostname is one CNAME; names are SERVFAIL until the cluster is known"),
    "kubernetes": _differs(
        "a name that may exist is SERVFAIL while watches are incomplete, and UDP answers are at most 1232 octets",
        manifests=_differs(_OURS),
        apiserver_qps=_differs(_NO_RATE),
        apiserver_burst=_differs(_NO_RATE),
        apiserver_max_inflight=_differs(_NO_RATE),
    ),
    "file": _differs("without DNSSEC; every change of the file counts, whatever its SOA's serial is"),
    "auto": _unsupported("write one `file` for each zone"),
    "secondary": _unsupported(_PRIMARY),
    "etcd": _unsupported("`forward` the zone to a CoreDNS that has etcd, or write its records into `hosts` or `file`"),
    "loop": _differs("what loops while serving gets SERVFAIL until it is gone; what plainly will is refused at load"),
    "forward": _differs(
        "with random and round_robin a second upstream is asked after 0.5s, a query takes 4s at most, equal questions "
        "are asked once, and a client has at most 256 of them under way; max_age 0 is 30s to 60s here",
        doh_method=_unsupported(_TLS_UPSTREAM),
        resolver=_unsupported("write the addresses of the upstreams: names of theirs are not looked up"),
    ),
    "grpc": _unsupported("`forward` to the server's DNS port"),
    "erratic": _unsupported("take it out: it is for tests of clients"),
    "whoami": _same(),
    "on": _unsupported("run the command beside the server, as a sidecar or an init container"),
    "sign": _unsupported(_SIGNED),
    "view": _differs("expressions are on one query and its client: no metadata(), variables or predicates"),
    "nomad": _unsupported("`forward` the zone to a CoreDNS that has nomad"),
    "topology": _differs(_OURS),
}

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

TRANSPORTS: Final[Mapping[str, str]] = dict.fromkeys(("tls", "https", "https3", "quic", "grpc"), _ENCRYPTED)
"""Schemes of server blocks that only CoreDNS has: the replacement for each."""
