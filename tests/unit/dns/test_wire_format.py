"""Layout of DNS messages: sizes that agree with what is packed, and octets as in RFC 1035."""

import pytest

from tests.support.dns_messages import Opt, query
from topodns.dns import wire_format as form


def test_sizes_are_those_of_what_is_packed() -> None:
    assert len(form.pack_header(1, 2, 3, 4, 5, 6)) == form.HEADER_SIZE
    assert len(form.pack_header_without_id(2, 3, 4, 5, 6)) == form.HEADER_SIZE - 2
    assert len(form.pack_question_tail(1, 1)) == form.QUESTION_TAIL_SIZE
    assert len(form.pack_root_record_head(0, 1, 1, 5, 4)) == form.ROOT_RECORD_HEAD_SIZE == 1 + form.RECORD_HEAD_SIZE
    assert len(form.pack_pointer_record_head(0, 1, 1, 5, 4)) == form.POINTER_RECORD_HEAD_SIZE
    assert len(form.pack_option_head(3, 0)) == form.OPTION_HEAD_SIZE


def test_a_query_is_read_by_its_offsets() -> None:
    message = query("a. AAAA", Opt(size=1232, flags=form.DNSSEC_OK), flags=0x0100, ident=7)
    assert form.unpack_header(message) == (7, 0x0100, 1, 0, 0, 1)
    assert form.unpack_record_counts(message, form.COUNTS_AT) == (0, 0, 1)
    tail = form.HEADER_SIZE + len(b"\1a\0")
    assert form.unpack_question_tail(message, tail) == (28, 1)
    opt = tail + form.QUESTION_TAIL_SIZE
    assert form.unpack_root_record_head(message, opt) == (0, 41, 1232, form.DNSSEC_OK, 0)
    assert form.unpack_record_head(message, opt + 1) == (41, 1232, form.DNSSEC_OK, 0)


def test_the_pointer_to_the_question_s_name_is_c00c() -> None:
    assert form.QNAME_POINTER == 0xC00C
    assert (form.POINTER >> 8, form.POINTER | form.MAX_OFFSET) == (form.POINTER_OCTET, 0xFFFF)


@pytest.mark.parametrize(
    ("udp", "accepted", "limit"),
    [(False, 0, 65535), (False, 1232, 65535), (True, 0, 512), (True, 511, 512), (True, 1000, 1000), (True, 4096, 1232)],
)
def test_a_reply_is_limited_by_client_and_server_and_by_512_octets_over_udp(
    udp: bool, accepted: int, limit: int
) -> None:
    assert form.reply_limit(udp, accepted, 1232) == limit
