"""Matching of replies to queries (RFC 5452 section 9.1), and unpredictable message ids. No I/O."""

import os
from collections.abc import Callable
from itertools import chain, repeat
from struct import iter_unpack
from typing import Final

HEADER: Final = 12
_TAIL: Final = 4  # type and class
_BARE_ERRORS: Final = frozenset({1, 4, 5})  # FORMERR, NOTIMP, REFUSED
_ONE: Final = b"\0\1"
_DRAWN: Final = 4096  # octets of randomness per system call, which costs more than everything else here


def is_reply(message: bytes, question: bytes) -> bool:
    """Whether a message is a response with this question section, compared without case (RFC 4343), or a bare error.

    A name in the question has no compression pointers, since no name precedes it, so octets can be compared. The caller
    compares the id.
    """
    found = message[HEADER : HEADER + len(question)]
    if found != question:  # rare: most servers return the same octets
        if len(message) == HEADER:
            return _is_bare_error(message)
        # Only the name may be lower-cased: in the type, octet 0x41 is another letter than 0x61.
        if found[-_TAIL:] != question[-_TAIL:] or found[:-_TAIL].lower() != question[:-_TAIL].lower():
            return False
    return message[2] & 0xF8 == 0x80 and message[4:6] == _ONE  # QR set, opcode QUERY


def _is_bare_error(header: bytes) -> bool:
    """Whether a header alone is the error of a server that could not parse the query (RFC 8906 section 3.1.3)."""
    return header[2] & 0xF8 == 0x80 and header[3] & 0x0F in _BARE_ERRORS and not any(header[4:])


class RandomIds:
    """Message ids, two octets each, from the kernel's random number generator."""

    __slots__ = ("draw",)

    def __init__(self, randomness: Callable[[int], bytes] = os.urandom) -> None:
        drawn = (iter_unpack("2s", randomness(_DRAWN)) for _ in repeat(None))
        self.draw: Callable[[], bytes] = chain.from_iterable(chain.from_iterable(drawn)).__next__
        """Returns a new id."""
