"""A rule set is written like the directive: `a.example { block type A net 10.0.0.0/8 }`."""

from ipaddress import ip_network

import pytest

from tests.support.chains import process
from tests.support.cluster_dig import query_of
from tests.support.corefile_settings import block_problem, only_block, settings
from tests.support.deferred_results import at_once
from tests.support.exposition_samples import counted, only, scraped
from tests.support.plugin_metrics import shown
from tests.support.query_builders import ask, client
from topodns.dns.message import Ede, EdeCode, Response
from topodns.dns.name import parse_name
from topodns.dns.rrtype import QTYPES, Rcode, RRType
from topodns.plugins.acl import AccessControl, Acl, AclAction, AclRule
from topodns.plugins.setup import BlockSetup
from topodns.query.counters import QueryCounters, ReplyKind
from topodns.query.plugin import Dropped, Resolution, Scope


def directive(text: str) -> Acl:
    origins, body = text.rstrip("} ").split("{")
    rules = tuple(rule(line) for line in body.split(";"))
    return Acl(tuple(parse_name(origin) for origin in origins.split()), rules)


def rule(line: str) -> AclRule:
    action, *words = line.split()
    qtypes, networks, section = set(), [], ""
    for word in words:
        if word in ("type", "net"):
            section = word
        elif section == "type":
            qtypes.add(QTYPES[word])
        else:
            networks.append(ip_network(word))
    return AclRule(AclAction(action), frozenset(qtypes), tuple(networks))


def verdict(directives: list[str], question: str, address: str) -> str:
    step = AccessControl([directive(text) for text in directives])
    try:
        resolution = at_once(step(query_of(question), client(address)))
    except Dropped:
        return "dropped"
    if resolution is None:
        return "allowed"
    return "blocked" if resolution.response.rcode == Rcode.REFUSED else "filtered"


CASES = {
    "no rule matches: allowed": ([". { block net 10.0.0.0/8 }"], "www.example. A", "192.0.2.1", "allowed"),
    "a source inside": ([". { block net 10.0.0.0/8 }"], "www.example. A", "10.9.9.9", "blocked"),
    "no net: everyone": ([". { filter type TXT }"], "www.example. TXT", "192.0.2.1", "filtered"),
    "another type": ([". { filter type TXT }"], "www.example. A", "192.0.2.1", "allowed"),
    "one of several types": ([". { block type A MX }"], "www.example. MX", "192.0.2.1", "blocked"),
    "one of several nets": ([". { drop net 10.0.0.0/8 192.0.2.0/24 }"], "www.example. A", "192.0.2.1", "dropped"),
    "type and net must both match": (
        [". { block type TXT net 10.0.0.0/8 }"],
        "www.example. TXT",
        "192.0.2.1",
        "allowed",
    ),
    "the first match decides, not the longest net": (
        [". { block net 10.0.0.0/8 ; allow net 10.1.0.0/16 }"],
        "www.example. A",
        "10.1.0.1",
        "blocked",
    ),
    "an exception goes first": (
        [". { allow net 10.1.0.0/16 ; block net 10.0.0.0/8 }"],
        "www.example. A",
        "10.1.0.1",
        "allowed",
    ),
    "allow list": ([". { allow net 10.1.0.0/16 ; block }"], "www.example. A", "192.0.2.1", "blocked"),
    "below the origin": (["a.example { block }"], "www.a.example. A", "10.0.0.1", "blocked"),
    "the origin itself, any case": (["a.example { block }"], "A.Example. A", "10.0.0.1", "blocked"),
    "outside the origin": (["a.example { block }"], "b.example. A", "10.0.0.1", "allowed"),
    "one of several origins": (["a.example b.example { block }"], "b.example. A", "10.0.0.1", "blocked"),
    "the next directive is asked too": (
        [". { block net 10.0.0.0/8 }", ". { drop type TXT }"],
        "www.example. TXT",
        "192.0.2.1",
        "dropped",
    ),
    "allow ends all directives": ([". { allow }", ". { block }"], "www.example. A", "10.0.0.1", "allowed"),
    "IPv6": ([". { block net 2001:db8:1::/48 }"], "www.example. A", "2001:db8:1::9", "blocked"),
    "IPv6 outside": ([". { block net 2001:db8:1::/48 }"], "www.example. A", "2001:db8:2::9", "allowed"),
}


@pytest.mark.parametrize(("directives", "question", "address", "expected"), CASES.values(), ids=CASES)
def test_the_first_matching_rule_decides(directives: list[str], question: str, address: str, expected: str) -> None:
    assert verdict(directives, question, address) == expected


@pytest.mark.parametrize(
    ("action", "rcode", "ede"),
    [("block", Rcode.REFUSED, EdeCode.BLOCKED), ("filter", Rcode.NOERROR, EdeCode.FILTERED)],
)
def test_a_refusal_carries_its_extended_error_and_no_aa(action: str, rcode: int, ede: int) -> None:
    step = AccessControl([directive(f". {{ {action} }}")])
    expected = Resolution(Response(rcode, flags=0, ede=Ede(ede, "")), "acl", Scope.EVERYONE)
    assert step(ask("www.example."), client()) == expected


def test_an_answer_that_depends_on_the_source_is_not_shared() -> None:
    step = AccessControl([directive(". { block type TXT ; filter net 10.0.0.0/8 }")])
    refusal = at_once(step(ask("www.example.", RRType.TXT), client("192.0.2.1")))
    assert step.scope is Scope.CLIENT
    assert refusal is not None
    assert refusal.scope == Scope.CLIENT


def test_rules_by_type_alone_are_the_same_for_every_client() -> None:
    assert AccessControl([directive(". { block type TXT }")]).scope is Scope.EVERYONE


def answered(server: str, *plugins: str, origin: str = ".", view: str = "") -> QueryCounters:
    """One query at this listener for each of these plugins, which answered it."""
    kinds = (ReplyKind(origin, "A", "NOERROR", plugin, False, "", "", 0, 0, view) for plugin in plugins)
    return counted(((kind, 1) for kind in kinds), into=QueryCounters(server, "udp", "1"))


def test_allowed_queries_are_counted_for_the_listeners_of_blocks_with_acl_only() -> None:
    corefile = """
        . {
            bind 127.0.0.1 127.0.0.2
            acl
            whoami
        }
        . a.example:5454 {
            bind 127.0.0.3
            view inside {
                expr true
            }
            acl
            whoami
        }
        .:5353 {
            bind 127.0.0.1
            whoami
        }
        . {
            bind 127.0.0.3
            whoami
        }
    """
    blocks = [BlockSetup(process(), block) for block in settings(corefile).blocks]
    counters = [
        answered("dns://127.0.0.1:53", "whoami", "acl", "whoami"),
        answered("dns://127.0.0.2:53", "whoami"),
        answered("dns://127.0.0.1:5353", "whoami"),
        answered("dns://127.0.0.3:53", "whoami"),
        answered("dns://127.0.0.3:53", "whoami", view="inside"),
        answered("dns://127.0.0.3:5454", "whoami", origin="a.example.", view="inside"),
    ]
    assert shown("acl", "coredns_acl_allowed_requests_total", blocks=blocks, counters=counters) == {
        '{server="dns://127.0.0.1:53",view=""}': 2,
        '{server="dns://127.0.0.2:53",view=""}': 1,
        '{server="dns://127.0.0.3:53",view="inside"}': 1,
        '{server="dns://127.0.0.3:5454",view="inside"}': 1,
    }


CLUSTER = ReplyKind("cluster.local.", "A", "NOERROR", "kubernetes", False, "", "", 1, 1)
PLACE = 'server="dns://:53",view="",zone="cluster.local."'


def test_a_drop_by_forward_is_not_counted_for_acl() -> None:
    counters = [counted([(CLUSTER._replace(rcode="", plugin="forward", response_bucket=0), 4)])]
    assert list(only(scraped(*counters), "coredns_dns_requests_total").values()) == [4]
    assert shown("acl", "coredns_acl_dropped_requests_total", counters=counters) == {}


def test_a_drop_by_acl_is_counted_for_acl() -> None:
    counters = [counted([(CLUSTER._replace(rcode="", plugin="acl", response_bucket=0), 4)])]
    assert shown("acl", "coredns_acl_dropped_requests_total", counters=counters) == {f"{{{PLACE}}}": 4}


def test_acl_verdicts_are_counted_by_verdict() -> None:
    blocked, filtered = (CLUSTER._replace(rcode=rcode, plugin="acl") for rcode in ("REFUSED", "NOERROR"))
    refused_by_policy = CLUSTER._replace(rcode="REFUSED")
    counters = [counted([(blocked, 3), (filtered, 2), (refused_by_policy, 7), (CLUSTER, 9)])]
    assert shown("acl", "coredns_acl_blocked_requests_total", counters=counters) == {f"{{{PLACE}}}": 3}
    assert shown("acl", "coredns_acl_filtered_requests_total", counters=counters) == {f"{{{PLACE}}}": 2}
    assert shown("acl", "coredns_acl_dropped_requests_total", counters=counters) == {}


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ("allow", AclRule(AclAction.ALLOW)),
        ("block", AclRule(AclAction.BLOCK)),
        ("FILTER", AclRule(AclAction.FILTER)),
        ("drop type A net 10.0.0.0/8", AclRule(AclAction.DROP, frozenset({1}), (ip_network("10.0.0.0/8"),))),
        (
            "block type A aaaa type MX TYPE65534 CAA",
            AclRule(AclAction.BLOCK, frozenset({RRType.A, RRType.AAAA, RRType.MX, 65534, 257})),
        ),
        (
            "allow net 10.0.0.1 fd00::1 NET 192.168.1.7/16",
            AclRule(
                AclAction.ALLOW,
                networks=(ip_network("10.0.0.1/32"), ip_network("fd00::1/128"), ip_network("192.168.0.0/16")),
            ),
        ),
        ("drop net ::ffff:10.0.0.0/104", AclRule(AclAction.DROP, networks=(ip_network("10.0.0.0/8"),))),
        ("block type ANY net *", AclRule(AclAction.BLOCK, frozenset({255}))),
        ("block net 10.0.0.0/8 type *", AclRule(AclAction.BLOCK, networks=(ip_network("10.0.0.0/8"),))),
    ],
)
def test_acl_rules(line: str, rule: AclRule) -> None:
    assert only_block(f"acl {{\n{line}\n}}").settings.get("acl") == (Acl(((),), (rule,)),)


def test_acls_add_up_each_for_its_own_zones() -> None:
    block = settings("a.org b.org {\n acl c.org 10.0.0.0/8 {\n  drop\n  allow\n }\n acl\n}").blocks[0]
    own, rest = block.settings["acl"]
    assert own == Acl((("c", "org"), ("10", "in-addr", "arpa")), (AclRule(AclAction.DROP), AclRule(AclAction.ALLOW)))
    assert rest == Acl((("a", "org"), ("b", "org")), ())


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("acl {\n alow\n}", "3: unknown action 'alow' of 'acl', did you mean 'allow'?"),
        ("acl {\n allow from x\n}", "3: 'allow' has 'from', expected type, net, namespace or label"),
        ("acl {\n block type\n}", "3: 'type' of 'block' has nothing after it, expected at least one word"),
        ("acl {\n block net type A\n}", "3: 'net' of 'block' has nothing after it, expected at least one word"),
        ("acl {\n block type AAAAA\n}", "3: unknown record type 'AAAAA', did you mean 'AAAA'?"),
        ("acl {\n block net 10.0.0.0/33\n}", "3: 'block' has '10.0.0.0/33', expected a prefix length from 0 to 32"),
    ],
)
def test_a_wrong_line_is_refused(lines: str, expected: str) -> None:
    assert block_problem(lines) == f"Corefile:{expected}"


def test_a_record_type_without_a_neighbour_is_explained() -> None:
    assert block_problem("acl {\n block type TYPE65536\n}") == (
        "Corefile:3: unknown record type 'TYPE65536', expected a name such as AAAA or a number such as TYPE65"
    )
