"""Whatever is written, another implementation reads as it was meant, and it is never too long."""

from itertools import chain

from dnslib import DNSRecord
from hypothesis import given
from hypothesis import strategies as st

from tests.support.dnslib_records import NAMES, record_of, records, rrsets
from topodns.dns.message import Ede, Edns, Option, Query, Response
from topodns.dns.rrtype import Rcode, RRType
from topodns.dns.wire_format import MAX_MESSAGE, MIN_UDP_PAYLOAD
from topodns.dns.wire_writer import write_response

sections = st.lists(rrsets(st.just(b"") | NAMES, 30), max_size=4).map(tuple)
extended_errors = st.none() | st.builds(Ede, st.integers(0, 65535), st.text(max_size=250))
options = st.lists(st.tuples(st.integers(0, 65535), st.binary(max_size=300)), max_size=3).map(tuple)
queries = st.builds(
    lambda spelling, flags, edns: Query(7, flags, (), spelling, 1, 1, edns, 0),
    NAMES,
    st.integers(0, 0x7FF),
    st.none() | st.builds(Edns, st.integers(0, 65535), st.just(0), st.booleans()),
)
responses = st.builds(
    Response,
    rcode=st.sampled_from([Rcode.NOERROR, Rcode.NXDOMAIN, Rcode.REFUSED]),
    answer=sections,
    authority=sections,
    additional=sections,
    ede=extended_errors,
    options=options,
)


@given(queries, responses, st.integers(MIN_UDP_PAYLOAD, 6000) | st.just(MAX_MESSAGE))
def test_dnslib_reads_the_records_that_were_meant_in_at_most_the_octets_allowed(
    query: Query, response: Response, limit: int
) -> None:
    data = write_response(query, response, limit, 1232)
    assert len(data) <= limit
    message = DNSRecord.parse(data)
    opt = [record for record in message.ar if record.rtype == RRType.OPT]
    assert len(opt) == (query.edns is not None)
    additional = [record for record in message.ar if record.rtype != RRType.OPT]
    read = [[record_of(record) for record in part] for part in (message.rr, message.auth, additional)]
    meant = [records(part, query.spelling) for part in (response.answer, response.authority, response.additional)]
    if not message.header.tc:
        assert read == meant
        return
    kept, all_meant = list(chain.from_iterable(read)), list(chain.from_iterable(meant))
    assert kept == all_meant[: len(kept)] != all_meant


@given(queries, extended_errors, options)
def test_dnslib_reads_the_edns_that_was_meant(
    query: Query, ede: Ede | None, sent: tuple[tuple[int, bytes], ...]
) -> None:
    response = Response(ede=ede, options=sent)
    message = DNSRecord.parse(write_response(query, response, MAX_MESSAGE, 1232))
    meant = [*sent]
    if ede is not None:
        text = ede.text.encode()[:200].decode(errors="ignore").encode()
        meant.append((Option.EXTENDED_ERROR, ede.code.to_bytes(2, "big") + text))
    if meant and not meant[-1][1]:
        meant.pop()  # dnslib overlooks a last option without data
    for opt in (record for record in message.ar if record.rtype == RRType.OPT):
        assert (opt.edns_len, opt.edns_ver) == (1232, 0)
        assert query.edns is not None
        assert bool(opt.edns_do) == query.edns.dnssec_ok
        assert [(option.code, option.data) for option in opt.rdata] == meant
