"""Which message is the reply to a query, and ids."""

import pytest

from topodns.net.upstream.in_flight import RandomIds, is_reply

QUESTION = b"\3www\7Example\3org\0\0\x41\0\1"  # HTTPS, whose type is the letter A


def message(question: bytes, flags: bytes = b"\x81\x80", count: bytes = b"\0\1", rest: bytes = b"") -> bytes:
    return b"id" + flags + count + bytes(6) + question + rest


@pytest.mark.parametrize(
    "found",
    [
        pytest.param(message(QUESTION), id="as asked"),
        pytest.param(message(QUESTION, rest=b"records"), id="with records"),
        pytest.param(message(b"\3WWW\7eXAMPLE\3ORG\0\0\x41\0\1"), id="in another case"),
        pytest.param(message(QUESTION, b"\x87\x80"), id="truncated, authoritative"),
        pytest.param(message(QUESTION, b"\x81\x82"), id="SERVFAIL"),
    ],
)
def test_a_response_with_the_question_is_the_reply(found: bytes) -> None:
    assert is_reply(found, QUESTION)


@pytest.mark.parametrize(
    "found",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"id\x81\x80", id="part of a header"),
        pytest.param(message(b""), id="a header alone"),
        pytest.param(message(QUESTION[:-1]), id="part of the question"),
        pytest.param(message(QUESTION, b"\1\0"), id="QR is clear"),
        pytest.param(message(QUESTION, b"\xa1\x80"), id="another opcode"),
        pytest.param(message(QUESTION, count=b"\0\0"), id="QDCOUNT is 0"),
        pytest.param(message(QUESTION, count=b"\0\2"), id="QDCOUNT is 2"),
        pytest.param(message(b"\3www\7example\3com\0\0\x41\0\1"), id="another name"),
        pytest.param(message(b"\3www\7example\3org\4evil\0\0\x41\0\1"), id="a longer name"),
        pytest.param(message(b"\7example\3org\0\0\x41\0\1", rest=b"more"), id="a shorter name"),
        pytest.param(message(b"\3www\7example\3org\0\0\x61\0\1"), id="the type that is 0x41 as a small letter"),
        pytest.param(message(b"\3www\7example\3org\0\0\x41\0\3"), id="another class"),
        pytest.param(message(b"\xc0\x0c\0\x41\0\1", rest=QUESTION), id="a pointer for a name"),
    ],
)
def test_anything_else_is_no_reply(found: bytes) -> None:
    assert not is_reply(found, QUESTION)


def test_ids_are_two_random_octets_each_and_never_repeated() -> None:
    drawn: list[bytes] = []

    def randomness(octets: int) -> bytes:
        drawn.append(bytes((place + len(drawn)) % 251 for place in range(octets)))
        return drawn[-1]

    ids = RandomIds(randomness)
    seen = b"".join(ids.draw() for _ in range(5000))
    assert len(drawn) > 1
    assert seen == b"".join(drawn)[: len(seen)]


def test_ids_cover_their_whole_range() -> None:
    ids = RandomIds()
    drawn = {ids.draw() for _ in range(20_000)}
    assert len(drawn) > 15_000  # about 17,200 different ones of 65,536 are expected
    assert {each[0] for each in drawn} == {each[1] for each in drawn} == set(range(256))


@pytest.mark.parametrize(
    ("header", "taken"),
    [
        ("ab0181810000000000000000", True),
        ("ab0181840000000000000000", True),
        ("ab0181850000000000000000", True),
        ("ab0181820000000000000000", False),
        ("ab0181800000000000000000", False),
        ("ab0101010000000000000000", False),
        ("ab0181810001000000000000", False),
    ],
    ids=["FORMERR", "NOTIMP", "REFUSED", "SERVFAIL", "NOERROR", "a query", "a question announced"],
)
def test_a_bare_header_is_a_reply_where_it_says_that_the_query_was_not_understood(header: str, taken: bool) -> None:
    assert is_reply(bytes.fromhex(header), b"\3www\0\0\1\0\1") is taken
