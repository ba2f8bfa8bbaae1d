"""Behaviours of a faulty upstream: one function for each fault, and ways to put them together."""

import struct
from collections.abc import Callable
from typing import Final

from tests.support.faulty_upstream import ANSWER, Act, Asked, Behaviour
from topodns.dns.tcp_framing import frame
from topodns.dns.wire_format import MAX_MESSAGE

_QR_RD_RA: Final = 0x8180
_TC: Final = 0x0200
_TXT: Final = 16
_LARGEST_TXT: Final = 13 + 255  # octets of a record with one string

Lie = Callable[[bytes], bytes]
"""A query -> a message that is no reply to it."""


def question_of(message: bytes) -> bytes:
    at = 12
    while message[at]:
        at += 1 + message[at]
    return message[12 : at + 5]


def reply_to(message: bytes, address: str = ANSWER, flags: int = _QR_RD_RA, question: bytes = b"") -> bytes:
    """A reply with one A record of the name that was asked for; an AAAA record (IPv4-mapped) where that was."""
    rtype, rdata = 1, bytes(map(int, address.split(".")))
    if question_of(message)[-4:-2] == b"\0\x1c":
        rtype, rdata = 28, bytes(10) + b"\xff\xff" + rdata
    head = message[:2] + struct.pack("!5H", flags, 1, 1, 0, 0)
    return head + (question or question_of(message)) + struct.pack("!HHHIH", 0xC00C, rtype, 1, 60, len(rdata)) + rdata


def answers(asked: Asked) -> list[Act]:
    return [Act(lambda: asked.channel.send(reply_to(asked.message)))]


def silent(_: Asked) -> list[Act]:
    return []


def resets(asked: Asked) -> list[Act]:
    return [Act(asked.channel.reset)]


def closes(asked: Asked) -> list[Act]:
    return [Act(asked.channel.close)]


def half_a_reply(asked: Asked) -> list[Act]:
    """Half of it, and the end of the stream."""
    whole = frame(reply_to(asked.message))
    return [Act(lambda: asked.channel.send_raw(whole[: len(whole) // 2])), Act(asked.channel.close)]


def slow(seconds: float) -> Behaviour:
    return lambda asked: [Act(act.do, seconds) for act in answers(asked)]


def says(lie: Lie) -> Behaviour:
    """The lie and nothing else."""
    return lambda asked: [Act(lambda: asked.channel.send(lie(asked.message)))]


def says_first(lie: Lie) -> Behaviour:
    """The lie, then the truth."""
    return lambda asked: [*says(lie)(asked), *answers(asked)]


def says_from(host: str) -> Behaviour:
    """A reply with 192.0.2.66 from another port of this address; then the true one."""

    def forge(asked: Asked) -> list[Act]:
        forged = reply_to(asked.message, "192.0.2.66")
        return [Act(lambda: asked.channel.send_from(host, forged)), *answers(asked)]

    return forge


def one_after_another(*behaviours: Behaviour) -> Behaviour:
    """Each message meets the next one, from then on the last one."""
    left = list(behaviours)
    return lambda asked: (left.pop(0) if len(left) > 1 else left[0])(asked)


def backwards(number: int) -> Behaviour:
    """Keeps so many messages, then answers them all, the last one first."""
    kept: list[Asked] = []

    def behave(asked: Asked) -> list[Act]:
        kept.append(asked)
        if len(kept) < number:
            return []
        acts = [act for each in reversed(kept) for act in answers(each)]
        kept.clear()
        return acts

    return behave


def once_all_are_there(number: int) -> Behaviour:
    """Answers the queries of a batch once so many different questions are there; a repeated one of an earlier batch at
    once. So a query that is sent twice, because the machine was slow, does not count twice.
    """
    kept: dict[bytes, list[Asked]] = {}
    answered: set[bytes] = set()

    def behave(asked: Asked) -> list[Act]:
        question = question_of(asked.message)
        if question in answered:
            return answers(asked)
        kept.setdefault(question, []).append(asked)
        if len(kept) < number:
            return []
        acts = [act for waiting in kept.values() for each in waiting for act in answers(each)]
        answered.update(kept)
        kept.clear()
        return acts

    return behave


def dripping(asked: Asked) -> list[Act]:
    """The reply, one octet at a time."""
    octets = frame(reply_to(asked.message))
    return [
        Act(lambda octet=bytes([octet]): asked.channel.send_raw(octet), after=place / 1000)  # type: ignore[misc]
        for place, octet in enumerate(octets)
    ]


def wrong_id(message: bytes) -> bytes:
    return reply_to(bytes([message[0] ^ 0x55]) + message[1:], "192.0.2.66")


def wrong_name(message: bytes) -> bytes:
    return reply_to(message, "192.0.2.66", question=b"\4evil\7example\0" + question_of(message)[-4:])


def wrong_type(message: bytes) -> bytes:
    return reply_to(message, "192.0.2.66", question=question_of(message)[:-4] + b"\0\x1c\0\1")


def longer_name(message: bytes) -> bytes:
    """The name that was asked for is how this one starts."""
    question = question_of(message)
    return reply_to(message, "192.0.2.66", question=question[:-5] + b"\4evil\0" + question[-4:])


def shorter_name(message: bytes) -> bytes:
    question = question_of(message)
    return reply_to(message, "192.0.2.66", question=question[1 + question[0] :])


def no_question(message: bytes) -> bytes:
    return message[:2] + struct.pack("!5H", _QR_RD_RA, 0, 0, 0, 0)


def the_query_itself(message: bytes) -> bytes:
    """QR is clear."""
    return message


def garbage(message: bytes) -> bytes:
    return message[:2] + b"\xff" * 40


def other_case(message: bytes) -> bytes:
    return reply_to(message, question=question_of(message)[:-4].swapcase() + question_of(message)[-4:])


def truncated(message: bytes) -> bytes:
    return message[:2] + struct.pack("!5H", _QR_RD_RA | _TC, 1, 0, 0, 0) + question_of(message)


def as_large_as_can_be(message: bytes) -> bytes:
    """A reply of 65,535 octets, in TXT records."""
    question = question_of(message)
    full, rest = divmod(MAX_MESSAGE - 12 - len(question), _LARGEST_TXT)
    sizes = [_LARGEST_TXT] * full
    if rest:  # shared with the last one, or it might be too small for a record
        shared = sizes.pop() + rest
        sizes += [shared // 2, shared - shared // 2]
    records = b"".join(_txt(size) for size in sizes)
    return message[:2] + struct.pack("!5H", _QR_RD_RA, 1, len(sizes), 0, 0) + question + records


def _txt(size: int) -> bytes:
    text = b"x" * (size - 13)
    return struct.pack("!HHHIHB", 0xC00C, _TXT, 1, 60, len(text) + 1, len(text)) + text


LIES = (wrong_id, wrong_name, wrong_type, longer_name, shorter_name, no_question, the_query_itself, garbage)
"""What is no reply to the question, however it looks."""
