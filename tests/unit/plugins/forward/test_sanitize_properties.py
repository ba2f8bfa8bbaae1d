"""Whatever an upstream sends, only records about the question are kept."""

from hypothesis import example, given
from hypothesis import strategies as st

from tests.support.query_builders import ask
from tests.support.scripted_upstream import says
from topodns.dns.message import RRset
from topodns.dns.name import name_wire
from topodns.dns.response_reader import UpstreamReply, read_reply
from topodns.dns.rrtype import RRType
from topodns.dns.wire_reader import WireError
from topodns.plugins.forward.messages import Outgoing
from topodns.plugins.forward.sanitize import MAX_CHAIN, MAX_TTL, clean

QNAME = name_wire(("www", "example", "org"))
OWNERS = [b"", *map(name_wire, [("a", "example"), ("B", "example"), ("example", "org"), ("org",), ()])]
NAMES = [QNAME, *OWNERS[1:]]
TYPES = [1, 2, 5, 6, 15, 28, 33, 39, 43, 46, 47, 50, 64, 65, 255, 65280]


def rdata(rtype: int, name: bytes, raw: bytes) -> bytes:
    """As `read_reply` lets it through: where a type has a name, there is one."""
    before = {RRType.MX: 2, RRType.SRV: 6}.get(rtype, 0)
    return bytes(before) + name if rtype in (2, 5, 15, 33, 39) else raw


rrsets = st.builds(
    lambda owner, rtype, ttl, names, raw, rclass: RRset(
        owner, rtype, ttl, tuple(rdata(rtype, name, raw) for name in names), rclass
    ),
    st.sampled_from(OWNERS),
    st.sampled_from(TYPES),
    st.integers(0, 2**32 - 1),
    st.lists(st.sampled_from(NAMES), min_size=1, max_size=2),
    st.binary(max_size=24) | st.sampled_from(NAMES).map(lambda name: bytes(18) + name),
    st.sampled_from([1, 1, 1, 3]),
)
sections = st.lists(rrsets, max_size=5).map(tuple)
replies = st.builds(
    lambda qtype, answer, authority, additional: UpstreamReply(
        0, 0, QNAME, qtype, 1, answer, authority, additional, None
    ),
    st.sampled_from(TYPES),
    sections,
    sections,
    sections,
)


def chain(answer: tuple[RRset, ...]) -> set[bytes]:
    """The names that CNAMEs lead to from the question's."""
    names, name = {QNAME}, QNAME
    for _ in answer:
        for rrset in answer:
            if rrset.rtype == RRType.CNAME and (rrset.owner.lower() or QNAME) == name:
                name = rrset.rdatas[0].lower()
                names.add(name)
                break
    return names


@given(replies, st.booleans())
def test_kept_records_were_received_and_are_of_the_chain(reply: UpstreamReply, dnssec_ok: bool) -> None:
    try:
        answer, _, _ = clean(reply, dnssec_ok)
    except WireError:
        return
    names = chain(answer)
    for rrset in answer:
        owner = rrset.owner.lower() or QNAME
        assert owner in names or (rrset.rtype in (39, 46) and any(name.endswith(owner) for name in names))
    assert len(names) <= MAX_CHAIN + 1


SIGNED_ELSEWHERE = (RRset(b"", 43, 0, (b"",), 1), RRset(OWNERS[1], 46, 0, (bytes(18) + QNAME,), 1))


@example(UpstreamReply(0, 0, QNAME, 1, 1, (), SIGNED_ELSEWHERE, (), None), True)
@given(replies, st.booleans())
def test_cleaning_clean_records_changes_nothing(reply: UpstreamReply, dnssec_ok: bool) -> None:
    try:
        once = clean(reply, dnssec_ok)
    except WireError:
        return
    again = reply._replace(answer=once[0], authority=once[1], additional=once[2])
    assert clean(again, dnssec_ok) == once
    assert all(0 <= rrset.ttl <= MAX_TTL and rrset.rclass == 1 for section in once for rrset in section)


def test_a_real_reply_is_kept_whole() -> None:
    lines = "www.example.org. 300 IN CNAME a.example.", "a.example. 60 IN A 192.0.2.7"
    message = b"id" + Outgoing().question_message(ask("www.example.org"))
    reply = read_reply(says(*lines, authority=["example. 60 IN NS ns.example."])(message))
    assert clean(reply, True) == (reply.answer, reply.authority, reply.additional)
