"""The entry of a packet cache: a ready-made reply, its counter, the query variants that it answers."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from topodns.query.counters import Cell


@dataclass(frozen=True, slots=True)
class Variants:
    """The queries that an entry answers beside its own: with other EDNS options; with `spellings`, also with other
    letter case of the name.
    """

    spellings: bool


# (reply without its id; the counter cell; if it rotates or ages, its maker: a function that makes the reply, or gives
# None once expired; the query variants that it answers, None: the plain form only)
Entry = tuple[bytes | None, Cell, Callable[[], bytes | None] | None, Variants | None]
View = dict[bytes, Entry]


class Slice2Bytes(Protocol):
    """Memory whose slices are bytes, such as mmap, with the queries of a batch, which their replies overwrite."""

    def __getitem__(self, key: slice, /) -> bytes: ...

    def __setitem__(self, key: slice, value: bytes, /) -> None: ...
