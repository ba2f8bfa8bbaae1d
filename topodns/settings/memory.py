"""How much memory may hold answers, in octets: of the whole process, whatever its Corefile says."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class MemoryLimits:
    """Of all `cache` directives together, answers with records apart from denials; and of the copies at hand.

    `unread` is for replies that wait for their clients to read on, over the TCP of one listener; `unread_each` of one
    connection.
    """

    answers: int
    denials: int  # random names, of which a flood is made, are denied
    ready_made: int  # all sockets together
    unread: int = 16 << 20
    unread_each: int = 256 << 10


SERVER: Final = MemoryLimits(24 << 20, 8 << 20, 32 << 20)
"""What a server may take: much, because what it serves may be a whole cluster."""
