"""Which message is the reply to a query (RFC 5452 section 9.1), and ids that nobody can guess. Nothing waits here."""

import os
from collections.abc import Callable
from typing import Final

HEADER: Final = 12
_TAIL: Final = 4  # type and class
_BARE_ERRORS: Final = frozenset({1, 4, 5})  # FORMERR, NOTIMP, REFUSED
_ONE: Final = b"\0\1"
_DRAWN: Final = 4096  # octets of randomness at once: asking the kernel costs more than all the rest


def question_of(message: bytes) -> bytes:
    """The question section of a query with one question."""
    at = HEADER
    while message[at]:
        at += 1 + message[at]
    return message[HEADER : at + 1 + _TAIL]


def is_reply(message: bytes, question: bytes) -> bool:
    """Whether a message is a response with this very question, however its name is spelled (RFC 4343).

    A name in a question has nothing before it to point to, so octets can be compared. The id is the caller's business.
    """
    end = HEADER + len(question)
    if len(message) == HEADER:
        return _is_bare_error(message)
    if len(message) < end or message[2] & 0xF8 != 0x80 or message[4:6] != _ONE:  # QR set, opcode QUERY
        return False
    found = message[HEADER:end]
    # Only the name may be lower-cased: in the type, octet 0x41 is another letter than 0x61.
    return found == question or (
        found[-_TAIL:] == question[-_TAIL:] and found[:-_TAIL].lower() == question[:-_TAIL].lower()
    )


def _is_bare_error(header: bytes) -> bool:
    """Whether this is all that a server says which cannot make anything of a query (RFC 8906 section 3.1.3)."""
    return header[2] & 0xF8 == 0x80 and header[3] & 0x0F in _BARE_ERRORS and not any(header[4:])


class RandomIds:
    """Message ids, two octets each, straight from the kernel's random numbers."""

    __slots__ = ("_at", "_drawn", "_randomness")

    def __init__(self, randomness: Callable[[int], bytes] = os.urandom) -> None:
        self._randomness = randomness
        self._drawn, self._at = b"", 0

    def draw(self) -> bytes:
        at = self._at
        if at == len(self._drawn):
            self._drawn, at = self._randomness(_DRAWN), 0
        self._at = at + 2
        return self._drawn[at : at + 2]
