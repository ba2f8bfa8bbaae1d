"""What a flight ends with."""

from dataclasses import dataclass

from topodns.dns.message import Ede, RRset


@dataclass(slots=True)  # not frozen: one is made per question, and that takes four times as long
class Answer:
    """What came of a flight. Where nothing came, it `failed`, `rcode` is SERVFAIL, and `upstream` names all asked."""

    rcode: int
    flags: int
    answer: tuple[RRset, ...] = ()
    authority: tuple[RRset, ...] = ()
    additional: tuple[RRset, ...] = ()
    ede: Ede | None = None
    upstream: str = ""
    failed: bool = False
    plain: bool = False  # NOERROR and one RRset with the name and type of the question, whole, and nothing beside it
