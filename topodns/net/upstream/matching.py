"""Which message is the reply to a query (RFC 5452 section 9.1), and ids that nobody can guess. Nothing waits here."""

import os
from collections.abc import Callable
from itertools import chain, repeat
from struct import iter_unpack
from typing import Final

HEADER: Final = 12
_TAIL: Final = 4  # type and class
_BARE_ERRORS: Final = frozenset({1, 4, 5})  # FORMERR, NOTIMP, REFUSED
_ONE: Final = b"\0\1"
_DRAWN: Final = 4096  # octets of randomness at once: asking the kernel costs more than all the rest


def is_reply(message: bytes, question: bytes) -> bool:
    """Whether a message is a response with this very question, however its name is spelled (RFC 4343).

    A name in a question has nothing before it to point to, so octets can be compared. The id is the caller's business.
    """
    end = HEADER + len(question)
    found = message[HEADER:end]
    if found != question:  # rare: most servers send back the octets that they got
        if len(message) == HEADER:
            return _is_bare_error(message)
        # Only the name may be lower-cased: in the type, octet 0x41 is another letter than 0x61.
        if found[-_TAIL:] != question[-_TAIL:] or found[:-_TAIL].lower() != question[:-_TAIL].lower():
            return False
    return message[2] & 0xF8 == 0x80 and message[4:6] == _ONE  # QR set, opcode QUERY


def _is_bare_error(header: bytes) -> bool:
    """Whether this is all that a server says which cannot make anything of a query (RFC 8906 section 3.1.3)."""
    return header[2] & 0xF8 == 0x80 and header[3] & 0x0F in _BARE_ERRORS and not any(header[4:])


class RandomIds:
    """Message ids, two octets each, straight from the kernel's random numbers."""

    __slots__ = ("draw",)

    def __init__(self, randomness: Callable[[int], bytes] = os.urandom) -> None:
        drawn = (iter_unpack("2s", randomness(_DRAWN)) for _ in repeat(None))
        self.draw: Callable[[], bytes] = chain.from_iterable(chain.from_iterable(drawn)).__next__
        """A new one."""
