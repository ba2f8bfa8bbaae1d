"""The rules of `acl`."""

from ipaddress import ip_network

import pytest

from tests.support.corefile_settings import block_problem, only_block, settings
from topodns.dns.rrtype import RRType
from topodns.plugins.acl import Acl, AclAction, AclRule


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
        ("acl {\n allow from x\n}", "3: 'allow' has 'from', expected type or net"),
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
