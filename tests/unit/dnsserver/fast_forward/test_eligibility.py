"""Server blocks and origins that have a fast path to `forward`."""

import pytest

from tests.support.chains import set_up
from tests.support.corefile_settings import only_block
from topodns.dns.name import ROOT, parse_name
from topodns.dnsserver.fast_forward.eligibility import make_fast_route


@pytest.mark.parametrize(
    ("directives", "open_"),
    [
        ("", True),
        ("errors\nhealth\nready\nprometheus\nreload\nloop\nloadbalance\ncache 30", True),
        ("log", False),
        ("acl {\nblock net 10.0.0.0/8\n}", False),
        ("rewrite name a.example b.example", False),
        ("hosts {\n192.0.2.1 a.example\nfallthrough\n}", False),
        ("template IN AAAA . {\nrcode NXDOMAIN\n}", False),
        ("forward example 192.0.2.9", False),
        ("nsid", False),
        ("minimal", False),
        ("header {\nresponse set ra\n}", False),
        ("cache 30 example", False),
        ("cache 30 {\ndisable success example\n}", False),
        ("whoami", False),
        ("any", False),
        ("local", False),
        ("chaos", False),
    ],
)
def test_the_short_way_is_open_where_no_other_step_has_a_say(directives: str, open_: bool) -> None:
    prepared = set_up(only_block(f"forward . 192.0.2.1\n{directives}"))
    assert (make_fast_route(prepared, ROOT, "dns://:53") is not None) is open_


@pytest.mark.parametrize(
    ("forward", "origin", "open_"),
    [
        ("forward . 192.0.2.1 192.0.2.2 {\npolicy sequential\nmax_concurrent 5\n}", ".", True),
        ("forward . 192.0.2.1", "cluster.local.", True),
        ("forward . 192.0.2.1\ncache 30 cluster.local", "cluster.local.", True),
        ("forward . 192.0.2.1\ncache 30 svc.cluster.local", "cluster.local.", False),
        ("forward local 192.0.2.1", "cluster.local.", True),
        ("forward example 192.0.2.1", ".", False),
        ("forward . 192.0.2.1 {\nexcept example\n}", ".", False),
    ],
)
def test_the_short_way_is_for_a_forward_of_everything(forward: str, origin: str, open_: bool) -> None:
    assert (make_fast_route(set_up(only_block(forward)), parse_name(origin), "dns://:53") is not None) is open_
