import pytest

from tests.support.query_builders import ask, client
from topodns.dns.message import Response, RRset
from topodns.dns.rrtype import Rcode, RRType
from topodns.plugins.minimal import minimize
from topodns.query.plugin import Resolution

A = (RRset(b"", RRType.A, 5, (b"\x0a\0\0\1",)),)
GLUE = (RRset(b"\2ns\0", RRType.A, 5, (b"\x0a\0\0\2",)),)
NS = (RRset(b"", RRType.NS, 5, (b"\2ns\0",)),)
SOA = (RRset(b"", RRType.SOA, 5, (b"\0\0" + bytes(20),)),)


def minimized(response: Response) -> Response:
    return minimize(ask("example."), client(), Resolution(response, "kubernetes")).response


def test_a_positive_answer_loses_authority_and_additional() -> None:
    assert minimized(Response(answer=A, authority=NS, additional=GLUE)) == Response(answer=A)


@pytest.mark.parametrize(
    ("rcode", "authority"),
    [(Rcode.NOERROR, SOA), (Rcode.NXDOMAIN, SOA), (Rcode.NOERROR, NS), (Rcode.SERVFAIL, SOA), (Rcode.REFUSED, ())],
    ids=["NODATA", "NXDOMAIN", "delegation", "SERVFAIL", "REFUSED"],
)
def test_negatives_delegations_and_errors_stay_whole(rcode: int, authority: tuple[RRset, ...]) -> None:
    assert minimized(Response(rcode, authority=authority, additional=GLUE)) == Response(
        rcode, authority=authority, additional=GLUE
    )
