"""Settings of the `template` directive: the queries it answers, and the templates of the records."""

from dataclasses import dataclass

from topodns.dns.name import Name

ANY_CLASS = 255
ANY_TYPE = 255


@dataclass(frozen=True, slots=True)
class Template:
    """One `template` directive; a server block may have several, tried in order.

    `answer`, `additional` and `authority` are Go templates, one per record.
    """

    qclass: int  # ANY_CLASS: every class
    qtype: int  # ANY_TYPE: every type
    origins: tuple[Name, ...]
    patterns: tuple[str, ...] = ()  # matched with the name as lower-case text with final dot; empty: every name
    answer: tuple[str, ...] = ()
    additional: tuple[str, ...] = ()
    authority: tuple[str, ...] = ()
    rcode: int = 0
    ede: tuple[int, str] | None = None  # code and text of the Extended DNS Error (RFC 8914)
    fallthrough: tuple[Name, ...] = ()  # zones in which a name that matches no pattern goes on; root: all
