"""The text of `nsid`."""

import pytest

from tests.support.corefile_settings import block_problem, only_block
from tests.support.query_builders import ask, client
from topodns.dns.message import Edns, Option, Response
from topodns.plugins.nsid import Nsid
from topodns.query.plugin import Resolution

ASKS_NSID = Edns(1232, 0, False, ((Option.COOKIE, b"12345678"), (Option.NSID, b"")))
COOKIE = (Option.COOKIE, b"x" * 16)


def options(identifier: str, edns: Edns | None, before: tuple[tuple[int, bytes], ...] = ()) -> object:
    resolution = Resolution(Response(options=before), "kubernetes")
    return Nsid(identifier, "dns-0")(ask("example.", edns=edns), client(), resolution).response.options


def test_a_client_that_asks_gets_the_identifier() -> None:
    assert options("Use The Force", ASKS_NSID) == ((3, b"Use The Force"),)


def test_without_an_identifier_it_is_the_host_name() -> None:
    assert options("", ASKS_NSID) == ((3, b"dns-0"),)


@pytest.mark.parametrize("edns", [None, Edns(1232, 0, False), Edns(1232, 0, False, ((Option.COOKIE, b"12345678"),))])
def test_a_client_that_does_not_ask_gets_no_identifier(edns: Edns | None) -> None:
    assert options("me", edns) == ()


def test_it_replaces_another_servers_identifier_and_leaves_other_options() -> None:
    assert options("me", ASKS_NSID, ((3, b"upstream"), COOKIE)) == (COOKIE, (3, b"me"))


@pytest.mark.parametrize(("lines", "nsid"), [("nsid", ""), ("nsid a", "a"), ("nsid a  b", "a b"), ("", None)])
def test_nsid_is_all_its_arguments(lines: str, nsid: str | None) -> None:
    assert only_block(lines).settings.get("nsid") == nsid


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("nsid " + "x" * 256, "2: 'nsid' has 256 octets, expected at most 255"),
        ("nsid {\n x\n}", "3: found 'x', but 'nsid' has no options"),
    ],
)
def test_a_wrong_line_is_refused(lines: str, expected: str) -> None:
    assert block_problem(lines) == f"Corefile:{expected}"
