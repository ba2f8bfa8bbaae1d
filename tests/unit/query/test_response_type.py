import pytest

from tests.support.query_builders import ask
from topodns.dns.message import Response, RRset
from topodns.dns.rrtype import Rcode, RRType
from topodns.query.response_type import ResponseType, response_class, response_type

A = (RRset(b"", RRType.A, 5, (b"\x0a\0\0\1",)),)
NS = (RRset(b"", RRType.NS, 5, (b"\2ns\0",)),)
SOA = (RRset(b"", RRType.SOA, 5, (b"\0\0" + bytes(20),)),)


@pytest.mark.parametrize(
    ("qtype", "response", "kind", "class_name"),
    [
        pytest.param(RRType.A, Response(answer=A), "NOERROR", "success", id="an answer"),
        pytest.param(RRType.A, Response(answer=A, authority=SOA), "NOERROR", "success", id="an answer and the SOA"),
        pytest.param(RRType.A, Response(), "NOERROR", "success", id="nothing at all"),
        pytest.param(RRType.A, Response(additional=A), "NOERROR", "success", id="only additional records"),
        pytest.param(RRType.A, Response(authority=SOA), "NODATA", "denial", id="no answer but the SOA"),
        pytest.param(RRType.A, Response(authority=NS + SOA), "NODATA", "denial", id="the SOA beside NS"),
        pytest.param(RRType.A, Response(authority=NS), "DELEGATION", "success", id="no answer but NS"),
        pytest.param(RRType.A, Response(Rcode.NXDOMAIN, authority=SOA), "NXDOMAIN", "denial", id="no such name"),
        pytest.param(RRType.A, Response(Rcode.NXDOMAIN), "NXDOMAIN", "denial", id="no such name, no SOA"),
        pytest.param(
            RRType.A, Response(Rcode.NXDOMAIN, answer=A), "OTHERERROR", "error", id="no such name behind data"
        ),
        pytest.param(RRType.A, Response(Rcode.SERVFAIL), "SERVERERROR", "error", id="SERVFAIL"),
        pytest.param(RRType.A, Response(Rcode.NOTIMP), "SERVERERROR", "error", id="NOTIMP"),
        pytest.param(RRType.A, Response(Rcode.REFUSED), "OTHERERROR", "error", id="REFUSED"),
        pytest.param(RRType.AXFR, Response(Rcode.REFUSED), "META", "error", id="a transfer"),
    ],
)
def test_responses_are_classified_as_in_coredns(qtype: int, response: Response, kind: str, class_name: str) -> None:
    found = response_type(ask("example.", qtype), response)
    assert found is ResponseType(kind)
    assert response_class(found).value == class_name
