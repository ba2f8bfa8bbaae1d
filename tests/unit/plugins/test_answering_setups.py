"""Directives that answer or change answers."""

from ipaddress import ip_network
from pathlib import Path

import pytest

from tests.support.corefile_settings import block_problem, only_block, settings
from topodns.dns.message import Flag
from topodns.dns.rrtype import RRType
from topodns.plugins.acl import Acl, AclAction, AclRule
from topodns.plugins.chaos import Chaos
from topodns.plugins.header import Header
from topodns.plugins.loadbalance.settings import Loadbalance, LoadbalancePolicy


@pytest.mark.parametrize("name", ["any", "whoami", "local", "minimal"])
def test_a_directive_that_is_only_its_name(name: str) -> None:
    assert (only_block(name).settings, only_block("").settings) == ({name: True}, {})
    assert block_problem(f"{name} x") == f"Corefile:2: '{name}' has the arguments 'x', expected none"


def test_local_may_say_the_default_only() -> None:
    assert only_block("local {\n localhost_prefix on\n}").settings.get("local")
    assert block_problem("local {\n localhost_prefix off\n}") == (
        "Corefile:3: CoreDNS has 'localhost_prefix off', topodns does not"
    )


@pytest.mark.parametrize(
    ("lines", "size"), [("bufsize", 1232), ("bufsize 512", 512), ("bufsize 4096", 4096), ("", None)]
)
def test_bufsize(lines: str, size: int | None) -> None:
    assert only_block(lines).settings.get("bufsize") == size


@pytest.mark.parametrize(("lines", "nsid"), [("nsid", ""), ("nsid a", "a"), ("nsid a  b", "a b"), ("", None)])
def test_nsid_is_all_its_arguments(lines: str, nsid: str | None) -> None:
    assert only_block(lines).settings.get("nsid") == nsid


@pytest.mark.parametrize(
    ("lines", "chaos"),
    [
        ("chaos", Chaos()),
        ("chaos CoreDNS-001", Chaos("CoreDNS-001")),
        ("chaos v1 miek bob miek", Chaos("v1", ("bob", "miek"))),
        (f"chaos {'v' * 256}", Chaos("v" * 255)),
        (f"chaos {'é' * 200}", Chaos("é" * 127)),  # two octets each
    ],
)
def test_chaos(lines: str, chaos: Chaos) -> None:
    assert only_block(lines).settings.get("chaos") == chaos


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("loadbalance", Loadbalance()),
        ("loadbalance round_robin", Loadbalance(LoadbalancePolicy.ROUND_ROBIN)),
        (
            "loadbalance {\n prefer 10.9.0.0/16 fd00::/8\n prefer 10.8.0.1\n}",
            Loadbalance(prefer=(ip_network("10.9.0.0/16"), ip_network("fd00::/8"), ip_network("10.8.0.1"))),
        ),
    ],
)
def test_loadbalance(lines: str, expected: Loadbalance) -> None:
    assert only_block(lines).settings.get("loadbalance") == expected


def test_loadbalance_by_weights(tmp_path: Path) -> None:
    (tmp_path / "weights").write_text("")
    path = str(tmp_path / "weights")
    found = only_block("loadbalance weighted weights {\n reload 0s\n prefer 10.0.0.0/8\n}", str(tmp_path)).settings.get(
        "loadbalance"
    )
    assert found == Loadbalance(LoadbalancePolicy.WEIGHTED, path, 0.0, (ip_network("10.0.0.0/8"),))
    assert only_block("loadbalance weighted weights", str(tmp_path)).settings.get("loadbalance") == Loadbalance(
        LoadbalancePolicy.WEIGHTED, path, 30.0
    )


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("response set ra aa", Header(response_set=Flag.RA | Flag.AA)),
        ("response set ra aa\nresponse clear rd", Header(response_set=Flag.RA | Flag.AA, response_clear=Flag.RD)),
        ("query set rd", Header(query_set=Flag.RD)),
        ("Query Clear RD", Header(query_clear=Flag.RD)),
        ("response set ra\nresponse clear ra", Header(response_clear=Flag.RA)),
        ("response clear aa\nresponse set aa\nquery set rd", Header(query_set=Flag.RD, response_set=Flag.AA)),
    ],
)
def test_header(lines: str, expected: Header) -> None:
    assert only_block(f"header {{\n{lines}\n}}").settings.get("header") == expected


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
        ("bufsize 511", "2: 'bufsize' has '511', expected a whole number from 512 to 4096"),
        ("bufsize 4097", "2: 'bufsize' has '4097', expected a whole number from 512 to 4096"),
        ("bufsize 1 2", "2: 'bufsize' has the arguments '1 2', expected one size at most"),
        ("nsid " + "x" * 256, "2: 'nsid' has 256 octets, expected at most 255"),
        ("nsid {\n x\n}", "3: found 'x', but 'nsid' has no options"),
        ("chaos {\n x\n}", "3: found 'x', but 'chaos' has no options"),
        ("any {\n x\n}", "3: found 'x', but 'any' has no options"),
        ("loadbalance random", "2: 'loadbalance' has 'random', expected round_robin or weighted"),
        (
            "loadbalance round_robin x",
            "2: 'loadbalance' has the arguments 'round_robin x', expected round_robin, or weighted FILE",
        ),
        ("loadbalance weighted", "2: 'loadbalance' has the arguments 'weighted', expected weighted and one file"),
        ("loadbalance weighted /nowhere", "2: cannot read '/nowhere': No such file or directory"),
        ("loadbalance {\n reload 5s\n}", "3: unknown option 'reload' of 'loadbalance', expected prefer"),
        ("loadbalance {\n prefer ten\n}", "3: 'prefer' has 'ten', expected an address or ADDRESS/LENGTH"),
        ("header", "2: 'header' has no line, expected query or response, set or clear, and flags"),
        ("header x {\n query set rd\n}", "2: 'header' has the arguments 'x', expected none"),
        ("header {\n set ra\n}", "3: unknown option 'set' of 'header', expected query or response"),
        ("header {\n query\n}", "3: 'query' has no argument, expected set or clear, and then flags: aa, ra or rd"),
        (
            "header {\n query set\n}",
            "3: 'query' has the arguments 'set', expected set or clear, and then flags: aa, ra or rd",
        ),
        ("header {\n query toggle rd\n}", "3: 'query' has 'toggle', expected set or clear"),
        ("header {\n response set tc\n}", "3: 'response' has 'tc', expected aa, ra or rd"),
        ("acl {\n alow\n}", "3: unknown action 'alow' of 'acl', did you mean 'allow'?"),
        ("acl {\n allow from x\n}", "3: 'allow' has 'from', expected type or net"),
        ("acl {\n block type\n}", "3: 'type' of 'block' has nothing after it, expected at least one word"),
        ("acl {\n block net type A\n}", "3: 'net' of 'block' has nothing after it, expected at least one word"),
        ("acl {\n block type AAAAA\n}", "3: unknown record type 'AAAAA', did you mean 'AAAA'?"),
        ("acl {\n block net 10.0.0.0/33\n}", "3: 'block' has '10.0.0.0/33', expected an address or ADDRESS/LENGTH"),
    ],
)
def test_a_wrong_line_is_refused(lines: str, expected: str) -> None:
    assert block_problem(lines) == f"Corefile:{expected}"


def test_a_record_type_without_a_neighbour_is_explained() -> None:
    assert block_problem("acl {\n block type TYPE65536\n}") == (
        "Corefile:3: unknown record type 'TYPE65536', expected a name such as AAAA or a number such as TYPE65"
    )
