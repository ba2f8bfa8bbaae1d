"""A step of a chain that gives what a test says, and notes what it is asked."""

from topodns.dependency import Fact, service_fact
from topodns.dns.message import Query, Response, RRset
from topodns.dns.rrtype import Rcode, RRType
from topodns.query.plugin import Client, Dropped, Resolution, Scope

FACT = service_fact("default", "web")


class Scripted:
    """Answers each query with the same A records; the attributes may change at any time."""

    def __init__(self, *rdatas: bytes, scope: Scope = Scope.EVERYONE, facts: tuple[Fact, ...] = (FACT,)) -> None:
        self.rdatas = rdatas
        self.scope = scope
        self.facts = facts
        self.rcode: int = Rcode.NOERROR
        self.upstream = ""
        self.dropped = False
        self.asked: list[tuple[Query, Client]] = []

    def __call__(self, query: Query, client: Client) -> Resolution:
        self.asked.append((query, client))
        if self.dropped:
            raise Dropped("acl")
        answer = (RRset(b"", RRType.A, 5, self.rdatas),) if self.rdatas else ()
        return Resolution(Response(self.rcode, answer), "kubernetes", self.scope, self.facts, upstream=self.upstream)
