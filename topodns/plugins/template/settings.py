"""The `template` directive: which questions are answered with what text."""

from dataclasses import dataclass

from topodns.dns.names import Name

ANY_CLASS = 255
ANY_TYPE = 255


@dataclass(frozen=True, slots=True)
class Template:
    """One `template` directive; a block may have several, asked in order.

    `answer`, `additional` and `authority` are Go templates, one for each record.
    """

    qclass: int  # ANY_CLASS: every class
    qtype: int  # ANY_TYPE: every type
    origins: tuple[Name, ...]
    patterns: tuple[str, ...] = ()  # of the name as lower-case text with final dot; empty: every name
    answer: tuple[str, ...] = ()
    additional: tuple[str, ...] = ()
    authority: tuple[str, ...] = ()
    rcode: int = 0
    ede: tuple[int, str] | None = None  # code and text of the Extended DNS Error (RFC 8914)
    fallthrough: tuple[Name, ...] = ()  # origins below which a name that matches no pattern goes on; root: all
