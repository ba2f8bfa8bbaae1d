"""Records of a reply that are kept, as lines of a zone file; the question is for www.example.org unless it says so.

Whatever an upstream sends, only records about the question are kept. Of a forwarder that stands in front of a server
with `rewrite name`, data arrives whatever names that leaves on records.
"""

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.support.chains import chain_of
from tests.support.corefile_settings import only_block
from tests.support.forward_with_upstreams import ForwardScene
from tests.support.query_builders import ask, client
from tests.support.scripted_upstream import Behaviour, says
from topodns.dns.message import Ede, Edns, Option, RRset
from topodns.dns.name import name_text, name_wire, parse_name, wire_labels
from topodns.dns.response_reader import UpstreamReply, read_reply
from topodns.dns.rrtype import TYPE_NAMES, RRType
from topodns.dns.wire_reader import WireError, read_query
from topodns.dns.wire_writer import write_response
from topodns.plugins.forward.handler import Outgoing
from topodns.plugins.forward.sanitize import MAX_TTL, clean, extended_error
from topodns.query.cname import MAX_CHAIN
from topodns.query.plugin import Resolution

Lines = Sequence[str]


def reply(
    answer: Lines = (),
    authority: Lines = (),
    additional: Lines = (),
    qtype: int = RRType.A,
    name: str = "www.example.org",
) -> UpstreamReply:
    message = b"id" + Outgoing().question_message(ask(name, qtype))
    return read_reply(says(*answer, authority=authority, additional=additional)(message))


def shown(rrsets: Sequence[RRset], name: str = "www.example.org.") -> list[str]:
    """`OWNER TYPE` of each RRset."""
    return [f"{owner_of(rrset, name)} {TYPE_NAMES[rrset.rtype]}" for rrset in rrsets]


def owner_of(rrset: RRset, name: str) -> str:
    return name_text(wire_labels(rrset.owner)) if rrset.owner else name


A_OF_WWW = "www.example.org. 300 IN A 192.0.2.7"
ANSWERS: dict[str, tuple[int, Lines, Lines]] = {
    "nothing": (RRType.A, [], []),
    "the records asked for": (RRType.A, [A_OF_WWW, "www.example.org. 300 IN A 192.0.2.8"], ["www.example.org. A"]),
    "in another case": (RRType.A, ["WWW.example.ORG. 300 IN A 192.0.2.7"], ["www.example.org. A"]),
    "another name beside them": (RRType.A, [A_OF_WWW, "bank.example. 300 IN A 192.0.2.66"], ["www.example.org. A"]),
    "another type": (RRType.A, [A_OF_WWW, "www.example.org. 300 IN AAAA 2001:db8::1"], ["www.example.org. A"]),
    "an alias": (
        RRType.A,
        ["www.example.org. 300 IN CNAME w.cdn.example.", "w.cdn.example. 60 IN A 192.0.2.7"],
        ["www.example.org. CNAME", "w.cdn.example. A"],
    ),
    "an alias after what it leads to": (
        RRType.A,
        ["w.cdn.example. 60 IN A 192.0.2.7", "www.example.org. 300 IN CNAME W.CDN.example."],
        ["www.example.org. CNAME", "w.cdn.example. A"],
    ),
    "a chain in reverse": (
        RRType.A,
        [
            "c.example. 60 IN A 192.0.2.7",
            "b.example. 300 IN CNAME c.example.",
            "a.example. 300 IN CNAME b.example.",
            "www.example.org. 300 IN CNAME a.example.",
        ],
        ["www.example.org. CNAME", "a.example. CNAME", "b.example. CNAME", "c.example. A"],
    ),
    "a chain of two, and one that is not of it": (
        RRType.A,
        [
            "www.example.org. 300 IN CNAME a.example.",
            "a.example. 300 IN CNAME b.example.",
            "c.example. 300 IN CNAME b.example.",
            "b.example. 60 IN A 192.0.2.7",
            "c.example. 60 IN A 192.0.2.66",
        ],
        ["www.example.org. CNAME", "a.example. CNAME", "b.example. A"],
    ),
    "an alias of nothing": (RRType.A, ["www.example.org. 300 IN CNAME a.example."], ["www.example.org. CNAME"]),
    "an alias asked for, which is not followed": (
        RRType.CNAME,
        ["www.example.org. 300 IN CNAME a.example.", "a.example. 300 IN CNAME b.example."],
        ["www.example.org. CNAME"],
    ),
    "a loop of two": (
        RRType.A,
        ["www.example.org. 300 IN CNAME a.example.", "a.example. 300 IN CNAME www.example.org."],
        ["www.example.org. CNAME", "a.example. CNAME"],
    ),
    "an alias of itself": (
        RRType.A,
        ["www.example.org. 300 IN CNAME www.example.org."],
        ["www.example.org. CNAME"],
    ),
    "two aliases of one name, of which the first counts": (
        RRType.A,
        [
            "www.example.org. 300 IN CNAME a.example.",
            "www.example.org. 300 IN CNAME b.example.",
            "a.example. 60 IN A 192.0.2.7",
            "b.example. 60 IN A 192.0.2.8",
        ],
        ["www.example.org. CNAME", "a.example. A"],
    ),
    "a DNAME above, and the CNAME made of it": (
        RRType.A,
        [
            "example.org. 300 IN DNAME example.net.",
            "www.example.org. 300 IN CNAME www.example.net.",
            "www.example.net. 60 IN A 192.0.2.7",
        ],
        ["example.org. DNAME", "www.example.org. CNAME", "www.example.net. A"],
    ),
    "a DNAME above, without the CNAME made of it": (
        RRType.A,
        ["example.org. 300 IN DNAME example.net.", "www.example.net. 60 IN A 192.0.2.7"],
        ["example.org. DNAME", "www.example.org. CNAME", "www.example.net. A"],
    ),
    "a DNAME above a name of the chain": (
        RRType.A,
        [
            "example.com. 300 IN DNAME example.net.",
            "w.example.net. 60 IN A 192.0.2.7",
            "www.example.org. 300 IN CNAME w.example.com.",
        ],
        ["www.example.org. CNAME", "example.com. DNAME", "w.example.com. CNAME", "w.example.net. A"],
    ),
    "a DNAME of others": (
        RRType.A,
        ["example.com. 300 IN DNAME example.net.", A_OF_WWW],
        ["www.example.org. A"],
    ),
    "one other name, which a server that rewrites names has looked up instead": (
        RRType.A,
        ["web.shop.example. 300 IN A 192.0.2.7", "WEB.shop.example. 60 IN A 192.0.2.8"],
        ["www.example.org. A", "www.example.org. A"],
    ),
    "an alias of such a name": (
        RRType.A,
        [
            "web.shop.example. 300 IN CNAME w.cdn.example.",
            "w.cdn.example. 60 IN A 192.0.2.7",
            "bank.example. 300 IN A 192.0.2.66",
        ],
        ["www.example.org. CNAME", "w.cdn.example. A"],
    ),
    "everything that the name has, where everything was asked for": (
        RRType.ANY,
        [A_OF_WWW, 'www.example.org. 300 IN TXT "x"', "bank.example. 300 IN A 192.0.2.66"],
        ["www.example.org. A", "www.example.org. TXT"],
    ),
}


@pytest.mark.parametrize(("qtype", "answer", "kept"), ANSWERS.values(), ids=ANSWERS)
def test_n15_the_answer_is_the_chain_of_the_question(qtype: int, answer: Lines, kept: Lines) -> None:
    if "DNAME" in " ".join(answer):
        answer = [line for line in answer if "DNAME" not in line]
        found = with_dname(
            reply(answer, qtype=qtype), "example.com." if "example.org. DNAME" not in kept else "example.org."
        )
    else:
        found = reply(answer, qtype=qtype)
    assert shown(clean(found, False)[0]) == kept


def with_dname(found: UpstreamReply, owner: str) -> UpstreamReply:
    """dnslib knows no DNAME."""
    dname = RRset(name_wire(parse_name(owner)), 39, 300, (name_wire(("example", "net")),))
    return found._replace(answer=(dname, *found.answer))


def test_the_cname_of_a_dname_has_its_ttl_and_the_rest_of_the_name() -> None:
    """RFC 6672 section 3.1; stub resolvers know no DNAME."""
    found = with_dname(reply(["a.b.example.net. 60 IN A 192.0.2.7"], name="A.b.example.org"), "example.org.")
    cname = clean(found, False)[0][1]
    assert (cname.owner, cname.ttl, cname.rdatas) == (b"", 300, (name_wire(("a", "b", "example", "net")),))


def test_a_dname_that_makes_too_long_a_name_leads_nowhere() -> None:
    """The server should have answered YXDOMAIN (RFC 6672 section 2.2)."""
    found = reply(name=".".join(["a" * 60] * 4))
    dname = RRset(found.qname[61 * 3 :], RRType.DNAME, 300, (name_wire(("b" * 63, "c" * 63)),))
    assert [rrset.rtype for rrset in clean(found._replace(answer=(dname,)), False)[0]] == [RRType.DNAME]


def test_a_signature_stays_with_its_records_when_a_chain_is_put_in_order() -> None:
    found = reply(["a.example. 60 IN A 192.0.2.7", "www.example.org. 300 IN CNAME a.example."])
    address, alias = found.answer
    signed = (address, signature("a.example.", 1, "example."), alias, signature("www.example.org.", 5, "example.org."))
    answer = clean(found._replace(answer=signed), True)[0]
    assert shown(answer) == ["www.example.org. CNAME", "www.example.org. RRSIG", "a.example. A", "a.example. RRSIG"]


def test_a_chain_may_have_sixteen_aliases_and_no_more() -> None:
    names = ["www.example.org.", *(f"n{n}.example." for n in range(1, MAX_CHAIN + 2))]
    aliases = [f"{one} 300 IN CNAME {other}" for one, other in pairwise(names)]
    whole = clean(reply([*aliases[:MAX_CHAIN], f"{names[MAX_CHAIN]} 300 IN A 192.0.2.7"]), False)[0]
    assert shown(whole) == [*(f"{name} CNAME" for name in names[:MAX_CHAIN]), f"{names[MAX_CHAIN]} A"]
    with pytest.raises(WireError, match="more than 16 aliases in a row"):
        clean(reply([*aliases, f"{names[-1]} 300 IN A 192.0.2.7"]), False)


SOA = "300 IN SOA ns.example.org. root.example.org. 1 2 3 4 5"
AUTHORITIES: dict[str, tuple[Lines, Lines, Lines]] = {
    "the SOA above": ([], [f"example.org. {SOA}"], ["example.org. SOA"]),
    "the SOA of the name itself": ([], [f"www.example.org. {SOA}"], ["www.example.org. SOA"]),
    "the root's": ([], [f". {SOA}"], [". SOA"]),
    "a SOA below": ([], [f"a.www.example.org. {SOA}"], []),
    "a SOA beside": ([], [f"example.com. {SOA}"], []),
    "a name that only ends alike": ([], [f"ample.org. {SOA}"], []),
    "above what the name is an alias of": (
        ["www.example.org. 300 IN CNAME a.example.net."],
        [f"example.net. {SOA}", f"example.com. {SOA}"],
        ["example.net. SOA"],
    ),
    "name servers": ([], ["org. 300 IN NS ns.example.", "com. 300 IN NS ns.example."], ["org. NS"]),
    "the name servers of what is answered": ([A_OF_WWW], ["org. 300 IN NS ns.example."], []),
    "anything else": ([], ["example.org. 300 IN A 192.0.2.66", 'www.example.org. 300 IN TXT "x"'], []),
}


@pytest.mark.parametrize(("answer", "authority", "kept"), AUTHORITIES.values(), ids=AUTHORITIES)
def test_authority_is_about_origins_that_the_chain_is_in(answer: Lines, authority: Lines, kept: Lines) -> None:
    assert shown(clean(reply(answer, authority), False)[1]) == kept


ADDITIONALS: dict[str, tuple[int, Lines, Lines, Lines]] = {
    "the address of a mail server": (
        RRType.MX,
        ["www.example.org. 300 IN MX 10 Mail.example.org."],
        ["mail.example.org. 300 IN A 192.0.2.25", "bank.example. 300 IN A 192.0.2.66"],
        ["mail.example.org. A"],
    ),
    "the addresses of a service": (
        RRType.SRV,
        ["www.example.org. 300 IN SRV 0 5 80 a.example."],
        ["a.example. 300 IN A 192.0.2.1", "a.example. 300 IN AAAA 2001:db8::1", 'a.example. 300 IN TXT "x"'],
        ["a.example. A", "a.example. AAAA"],
    ),
    "of an address": (RRType.A, [A_OF_WWW], ["ns.example.org. 300 IN A 192.0.2.53"], []),
}


@pytest.mark.parametrize(("qtype", "answer", "additional", "kept"), ADDITIONALS.values(), ids=ADDITIONALS)
def test_additional_is_about_names_that_the_rest_points_to(
    qtype: int, answer: Lines, additional: Lines, kept: Lines
) -> None:
    assert shown(clean(reply(answer, (), additional, qtype), False)[2]) == kept


def test_glue_goes_with_the_name_servers_that_are_kept() -> None:
    authority = ["org. 300 IN NS ns.example.", "com. 300 IN NS ns.evil.example."]
    additional = ["ns.example. 300 IN A 192.0.2.53", "ns.evil.example. 300 IN A 192.0.2.66"]
    assert shown(clean(reply((), authority, additional), False)[2]) == ["ns.example. A"]


def test_a_service_binding_points_to_its_target() -> None:
    target = name_wire(("svc", "example"))
    address = RRset(target, RRType.A, 300, (b"\xc0\0\2\1",))
    other = RRset(name_wire(("bank", "example")), RRType.A, 300, (b"\xc0\0\2\x42",))
    binding = RRset(b"", RRType.HTTPS, 300, (b"\0\1" + target + b"\0\1\0\3\2h2",))
    found = reply(qtype=RRType.HTTPS)._replace(answer=(binding,), additional=(address, other))
    assert clean(found, False) == ((binding,), (), (address,))


@pytest.mark.parametrize("rtype", [RRType.HTTPS, RRType.SVCB])
def test_a_service_binding_to_the_root_points_to_its_owner(rtype: int) -> None:
    """RFC 9460 section 2.5.2, as in `cloudflare.com. HTTPS 1 . alpn=h2`."""
    binding = RRset(b"", rtype, 300, (b"\0\1\0\0\1\0\3\2h2",))
    address = RRset(b"", RRType.A, 300, (b"\xc0\0\2\1",))
    other = RRset(name_wire(("bank", "example")), RRType.A, 300, (b"\xc0\0\2\x42",))
    found = reply(qtype=rtype)._replace(answer=(binding,), additional=(address, other))
    assert clean(found, False) == ((binding,), (), (address,))


@pytest.mark.parametrize("rdata", [b"", b"\0", b"\0\1", b"\0\1\x3fa"])
def test_a_service_binding_without_a_target_points_nowhere(rdata: bytes) -> None:
    binding = RRset(b"", RRType.HTTPS, 300, (rdata,))
    address = RRset(name_wire(("a", "example")), RRType.A, 300, (b"\xc0\0\2\1",))
    found = reply(qtype=RRType.HTTPS)._replace(answer=(binding,), additional=(address,))
    assert clean(found, False) == ((binding,), (), ())


def signature(owner: str, covered: int, signer: str) -> RRset:
    name = b"" if owner == "www.example.org." else name_wire(parse_name(owner))
    rdata = covered.to_bytes(2, "big") + bytes(16) + name_wire(parse_name(signer)) + b"signature"
    return RRset(name, RRType.RRSIG, 300, (rdata,))


def proof(owner: str) -> RRset:
    return RRset(name_wire(parse_name(owner)), RRType.NSEC, 300, (name_wire(("z", "org")) + b"\0\1\x40",))


def test_signatures_are_for_clients_that_want_dnssec() -> None:
    signed = reply([A_OF_WWW])
    signed = signed._replace(answer=(*signed.answer, signature("www.example.org.", RRType.A, "example.org")))
    assert shown(clean(signed, True)[0]) == ["www.example.org. A", "www.example.org. RRSIG"]
    assert shown(clean(signed, False)[0]) == ["www.example.org. A"]


def test_proofs_of_origins_that_the_chain_is_in_are_for_clients_that_want_dnssec() -> None:
    denied = reply((), [f"example.org. {SOA}"])
    proofs = (
        signature("example.org.", RRType.SOA, "example.org"),
        proof("a.example.org."),
        signature("a.example.org.", RRType.NSEC, "example.org"),
        proof("a.example.com."),
    )
    denied = denied._replace(authority=(*denied.authority, *proofs))
    kept = ["example.org. SOA", "example.org. RRSIG", "a.example.org. NSEC", "a.example.org. RRSIG"]
    assert shown(clean(denied, True)[1]) == kept
    assert shown(clean(denied, False)[1]) == ["example.org. SOA"]


def test_the_proof_of_a_wildcard_is_kept_without_a_soa() -> None:
    expanded = reply([A_OF_WWW])
    proofs = (proof("a.example.org."), signature("a.example.org.", RRType.NSEC, "example.org"))
    expanded = expanded._replace(authority=proofs)
    assert shown(clean(expanded, True)[1]) == ["a.example.org. NSEC", "a.example.org. RRSIG"]


@pytest.mark.parametrize(
    ("ttl", "kept"),
    [(0, 0), (1, 1), (MAX_TTL, MAX_TTL), (MAX_TTL + 1, MAX_TTL), (2**31 - 1, MAX_TTL), (2**31, 0), (2**32 - 1, 0)],
)
@pytest.mark.parametrize("beside", [(), ("bank.example. 300 IN A 192.0.2.66",)], ids=["alone", "with others"])
def test_ttls_are_cut_to_a_week(ttl: int, kept: int, beside: Lines) -> None:
    found = reply([f"www.example.org. {ttl} IN A 192.0.2.7", *beside])
    assert [rrset.ttl for rrset in clean(found, False)[0]] == [kept]


def test_records_of_another_class_are_dropped() -> None:
    found = reply(["www.example.org. 300 CH A 192.0.2.66", "www.example.org. 300 IN A 192.0.2.7"])
    assert [(rrset.rclass, rrset.rdatas) for rrset in clean(found, False)[0]] == [(1, (b"\xc0\0\2\x07",))]


@pytest.mark.parametrize(
    ("data", "ede"),
    [
        (b"\0\x09no DNSKEY", Ede(9, "no DNSKEY")),
        (b"\0\x09", Ede(9, "")),
        (b"\0\x09with a NUL\0", Ede(9, "with a NUL")),
        (b"\0\x09two\nlines \xff", Ede(9, "two?lines \ufffd")),
        (b"\0", None),
    ],
)
def test_the_upstream_s_reason_is_passed_on_in_print(data: bytes, ede: Ede | None) -> None:
    edns = Edns(1232, 0, False, ((Option.COOKIE, b"12345678"), (Option.EXTENDED_ERROR, data)))
    assert extended_error(edns) == ede


def test_without_a_reason_there_is_none() -> None:
    assert extended_error(Edns(1232, 0, False, ((Option.COOKIE, b"12345678"),))) is None


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


HOSTS = """
hosts {
    10.96.10.20 web.shop.svc.cluster.local
    10.96.10.21 web.shop.svc.cluster.local
    fd00::20 web.shop.svc.cluster.local
}
template IN TXT svc.cluster.local {
    answer "{{ .Name }} 60 IN CNAME text.example."
    answer "text.example. 60 IN TXT words"
}
"""
RULES = {
    "prefix web. web.shop.": "web.svc.cluster.local",
    "suffix .test.io .shop.svc.cluster.local": "web.test.io",
    "substring .front. .shop.": "web.front.svc.cluster.local",
    r"regex (.*)\.test\.io {1}.shop.svc.cluster.local": "web.test.io",
    r"regex ^(web)\.(shop)\.example\.$ {1}.{2}.svc.cluster.local": "web.shop.example",
    "exact web.test.io web.shop.svc.cluster.local": "web.test.io",
}
ANSWER_RULES = (
    "",
    "answer auto",
    r"answer name (.*)\.svc\.cluster\.local {1}.elsewhere.example",
    "answer value web y.example",
)


def server(lines: str) -> Behaviour:
    """A server block as an upstream."""
    chain = chain_of(only_block(lines))

    def reply(message: bytes) -> bytes:
        query = read_query(message)
        resolution = chain.resolve(query, client())
        assert isinstance(resolution, Resolution)
        return write_response(query, resolution.response, 1232, 1232)

    return reply


def data(rrsets: tuple[RRset, ...], qtype: int) -> list[bytes]:
    return sorted(rdata for rrset in rrsets if rrset.rtype == qtype for rdata in rrset.rdatas)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("answer", ANSWER_RULES)
@pytest.mark.parametrize("qtype", [RRType.A, RRType.AAAA, RRType.TXT])
def test_the_data_of_a_server_that_rewrites_names_arrives(rule: str, answer: str, qtype: int) -> None:
    direct = chain_of(only_block(HOSTS)).resolve(ask("web.shop.svc.cluster.local", qtype), client())
    assert isinstance(direct, Resolution)
    scene = ForwardScene(server(f"rewrite name {rule} {answer}\n{HOSTS}"))
    for name in (RULES[rule], RULES[rule].upper()):
        answered = scene.asked_and_answered(ask(name, qtype)).resolution.response
        assert data(answered.answer, qtype) == data(direct.response.answer, qtype) != []
        assert answered.answer[0].owner == b"", "a stub resolver that compares names ignores it"
