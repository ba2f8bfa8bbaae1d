"""How much memory may hold answers, in octets: of the whole process, whatever its Corefile says."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class MemoryLimits:
    """Of all `cache` directives together, answers with records apart from denials; and of the copies at hand."""

    answers: int
    denials: int  # random names, of which a flood is made, are denied
    ready_made: int  # all sockets together


SERVER: Final = MemoryLimits(24 << 20, 8 << 20, 32 << 20)
"""What a server may take: much, because what it serves may be a whole cluster."""
