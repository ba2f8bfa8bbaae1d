"""Values of queries and responses."""

from topodns.dns.message import Edns, Flag, Option, Response, RRset
from topodns.dns.rrtype import Rcode, RRClass


def test_of_options_with_one_code_the_first_counts() -> None:
    edns = Edns(1232, 0, False, ((Option.COOKIE, b"a"), (Option.NSID, b""), (Option.COOKIE, b"b")))
    assert (edns.option(Option.COOKIE), edns.option(Option.NSID), edns.option(Option.CLIENT_SUBNET)) == (
        b"a",
        b"",
        None,
    )


def test_a_response_is_an_authoritative_noerror_without_records() -> None:
    response = Response()
    assert (response.rcode, response.flags, response.answer, response.ede) == (Rcode.NOERROR, Flag.AA, (), None)


def test_records_are_of_the_internet_class() -> None:
    assert RRset(b"", 1, 5, (bytes(4),)).rclass == RRClass.IN
