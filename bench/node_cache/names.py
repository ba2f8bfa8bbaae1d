"""Names whose right answer can be told from the name, and the servers' Corefile that gives it."""

from collections.abc import Iterator
from itertools import count, islice
from typing import Final

from tests.support.stub_load import Question

ORIGINS: Final = ("cluster.local", "in-addr.arpa", "ip6.arpa", "example.com")  # one for each block of the template

# What does not begin with an n does not exist.
SERVER: Final = """\
.:53 {{
    bind {address}
    template IN A . {{
        match "^n(?P<a>[0-9]+)-(?P<b>[0-9]+)-(?P<c>[0-9]+)-t(?P<ttl>[0-9]+)[.]"
        answer "{{{{ .Name }}}} {{{{ .Group.ttl }}}} IN A 10.{{{{ .Group.a }}}}.{{{{ .Group.b }}}}.{{{{ .Group.c }}}}"
        fallthrough
    }}
    template ANY ANY . {{
        rcode NXDOMAIN
        authority ". 30 IN SOA ns.cluster.local. hostmaster.cluster.local. 1 7200 1800 86400 30"
    }}
}}
"""

_HOT: Final = 50
_numbers = count(1000)


def question(number: int, ttl: int, origin: str = ORIGINS[0]) -> Question:
    """The one of this number, below 2^24; its record lives so many seconds."""
    a, b, c = number.to_bytes(3, "big")
    return Question(f"n{a}-{b}-{c}-t{ttl}.{origin}", f"10.{a}.{b}.{c}")


def hot() -> Iterator[Question]:
    """A few that are asked again and again."""
    return (question(number % _HOT, 30) for number in count())


def fresh(ttl: int = 30) -> Iterator[Question]:
    """Such as were never asked for."""
    return (question(number, ttl) for number in _numbers)


def some_fresh(count: int, ttl: int) -> list[Question]:
    return list(islice(fresh(ttl), count))
