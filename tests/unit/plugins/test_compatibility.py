"""Verdicts on CoreDNS's directives and options."""

import pytest

from tests.support.corefile_settings import block_problem
from topodns.corefile.parser import Directive
from topodns.plugins.compatibility import (
    COREDNS_ONLY,
    ELSEWHERE,
    DirectiveVerdict,
    unknown_problem,
    unknown_row,
    unsupported,
)
from topodns.plugins.order import ORDER
from topodns.plugins.plugin import load

# CoreDNS 1.14.7's, in its order.
PLUGIN_CFG = """
    root metadata geoip cancel proxyproto quic grpc_server https https3 timeouts multisocket reload nsid bufsize bind
    debug trace ready health pprof shed prometheus errors log dnstap local dns64 any chaos loadbalance tsig rewrite
    autopath acl cache header dnssec tls minimal template transfer hosts route53 azure clouddns k8s_external kubernetes
    file auto secondary etcd loop forward grpc erratic whoami on sign view nomad
"""


def _directive(name: str) -> Directive:
    return Directive(name, (), (), "Corefile", 1)


def test_every_directive_of_coredns_has_a_row_in_its_order() -> None:
    """But for `cache`, which is lower in topodns, and `topology` and `push`, which CoreDNS does not have."""
    assert {*ORDER, *COREDNS_ONLY} == {*PLUGIN_CFG.split(), "topology", "push"}
    assert not COREDNS_ONLY.keys() & set(ORDER)
    shared = [name for name in PLUGIN_CFG.split() if name in ORDER and name != "cache"]
    assert [name for name in ORDER if name not in ("cache", "topology", "push")] == shared


def test_every_directive_of_topodns_is_supported() -> None:
    assert not [name for name in ORDER if load(name).coredns.verdict is DirectiveVerdict.UNSUPPORTED]


def test_every_directive_that_only_coredns_has_names_its_replacement() -> None:
    for name, row in COREDNS_ONLY.items():
        assert row.verdict is DirectiveVerdict.UNSUPPORTED
        assert block_problem(f"    {name}") == (
            f"Corefile:2: CoreDNS has the directive '{name}', topodns does not: {row.text}"
        )


def test_a_plugin_that_is_not_coredns_s_own_says_it_too() -> None:
    assert block_problem("    proxy . 10.0.0.1") == (
        "Corefile:2: topodns has no directive 'proxy': CoreDNS dropped it in 1.5; write `forward`"
    )


@pytest.mark.parametrize(
    ("name", "problem", "text"),
    [
        (
            "dnssec",
            "CoreDNS has the directive 'dnssec', topodns does not: "
            "sign the zone with another name server, and `forward` its name to there",
            "sign the zone with another name server, and `forward` its name to there",
        ),
        (
            "unbound",
            "topodns has no directive 'unbound': `forward` to a resolver that runs beside this server",
            "`forward` to a resolver that runs beside this server",
        ),
        (
            "forwad",
            "unknown directive 'forwad', did you mean 'forward'?",
            "CoreDNS itself has no such directive, so it is an external plugin or a slip; did you mean 'forward'?",
        ),
        (
            "dnsec",
            "unknown directive 'dnsec', did you mean 'dnssec'?",
            "CoreDNS itself has no such directive, so it is an external plugin or a slip; did you mean 'dnssec'?",
        ),
        (
            "xyzzy",
            "unknown directive 'xyzzy', expected one of those that 'topodns -plugins' lists",
            "CoreDNS itself has no such directive, so it is an external plugin or a slip; "
            "take it out, or `forward` its names to a server that has it",
        ),
    ],
    ids=["only CoreDNS's", "an external plugin's", "a slip", "a slip of only CoreDNS's", "unlike any"],
)
def test_a_directive_that_topodns_does_not_have_is_refused_and_reported_with_advice(
    name: str, problem: str, text: str
) -> None:
    assert unknown_problem(_directive(name)) == problem
    assert unknown_row(name) == unsupported(text)


def test_a_word_that_may_be_a_secret_is_not_repeated() -> None:
    secret = "s3cr3tt0kenofmanylettersanddigits"
    assert unknown_problem(_directive(secret)).startswith(
        "unknown directive '…' (33 characters, not shown), expected one of"
    )


def test_no_row_says_that_it_differs_without_saying_how() -> None:
    rows = [*COREDNS_ONLY.values(), *(load(name).coredns for name in ORDER)]
    rows = [row for directive in rows for row in (directive, *directive.options.values())]
    assert [row for row in rows if (row.verdict is DirectiveVerdict.SAME) is bool(row.text)] == []
    assert not ELSEWHERE.keys() & {*ORDER, *COREDNS_ONLY}
