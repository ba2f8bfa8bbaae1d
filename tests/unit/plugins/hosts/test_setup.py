import pytest

from tests.support.corefile_settings import block_problem, only_block
from tests.support.model_builders import packed
from topodns.dns.name import ROOT
from topodns.plugins.hosts.settings import Hosts
from topodns.plugins.hosts.table import HostEntry

EXAMPLE = ("example",)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("hosts", Hosts((ROOT,))),
        ("hosts /lists/ads", Hosts((ROOT,), "/lists/ads")),
        ("hosts /h example 10.0.0.0/8", Hosts((EXAMPLE, ("10", "in-addr", "arpa")), "/h")),
        ("hosts {\n ttl 60\n no_reverse\n reload 0\n}", Hosts((ROOT,), ttl=60, reverse=False, reload=0.0)),
        ("hosts {\n reload 1m30s\n fallthrough\n}", Hosts((ROOT,), reload=90.0, fallthrough=(ROOT,))),
        (
            "hosts {\n fallthrough_unsupported\n fallthrough example\n}",
            Hosts((ROOT,), fallthrough=(EXAMPLE,), fallthrough_unsupported=True),
        ),
        (
            "hosts {\n 10.0.0.1 A.Example b\n ::1 c\n fallthrough\n ttl 5\n}",
            Hosts(
                (ROOT,),
                inline=(HostEntry(packed("10.0.0.1"), (("a", "example"), ("b",))), HostEntry(packed("::1"), (("c",),))),
                fallthrough=(ROOT,),
                ttl=5,
            ),
        ),
    ],
)
def test_hosts(lines: str, expected: Hosts) -> None:
    assert only_block(lines).settings.get("hosts") == expected


def test_a_relative_file_is_beside_the_corefile_and_need_not_exist() -> None:
    hosts = only_block("hosts custom/hosts", "/etc/coredns").settings.get("hosts")
    assert hosts is not None
    assert hosts.file == "/etc/coredns/custom/hosts"


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        ("hosts\nhosts", "Corefile:3: "),
        ("hosts {\n falltrough\n}", "Corefile:3: found 'falltrough', expected an address and its names, or an option"),
        ("hosts {\n falltrough\n}", "or an option; did you mean 'fallthrough'?"),
        (
            "hosts {\n x y\n}",
            "Corefile:3: found 'x', expected an address and its names, or an option: ttl, ",
        ),
        ("hosts {\n 10.0.0.300 a\n}", "Corefile:3: found '10.0.0.300', expected an IP address and its names"),
        ("hosts {\n fd00:::1 a\n}", "Corefile:3: found 'fd00:::1', expected an IP address and its names"),
        ("hosts {\n 10.0.0.1\n}", "Corefile:3: found only '10.0.0.1', expected an address and its names"),
        ("hosts {\n 10.0.0.1 a..b\n}", "Corefile:3: empty label in 'a..b'"),
        ("hosts {\n fallthrough\n 10.0.0.1 a\n}", "Corefile:4: found an entry after 'fallthrough'"),
        ("hosts {\n ttl 0\n}", "Corefile:3: 'ttl' has '0', expected a whole number from 1 to 65535"),
        ("hosts {\n ttl 1\n ttl 2\n}", "Corefile:4: found 'ttl' again, first at Corefile:3"),
        ("hosts {\n reload\n}", "Corefile:3: 'reload' has no argument, expected a duration"),
        ("hosts {\n reload soon\n}", "Corefile:3: 'reload' has 'soon', expected a duration"),
        ("hosts {\n fallthrough_unsupported\n}", "Corefile:2: 'fallthrough_unsupported' widens 'fallthrough'"),
        ("hosts {\n fallthrough_unsupported example\n}", "Corefile:3: 'fallthrough_unsupported' has the arguments"),
        ("hosts {\n no_reverse yes\n}", "Corefile:3: 'no_reverse' has the arguments 'yes', expected none"),
        ("hosts {\n 10.0.0.1 a {\n b\n }\n}", "Corefile:4: found 'b', but '10.0.0.1' has no options"),
    ],
)
def test_lines_that_hosts_refuses(lines: str, problem: str) -> None:
    assert problem in block_problem(lines)
