"""A `cache` over a scripted upstream, with a clock: for stories in which time passes."""

from ipaddress import ip_address

from tests.support.dns_messages import DO, RD, Opt
from tests.support.dns_messages import query as message
from tests.support.virtual_timers import VirtualTimers
from topodns.dns.message import Flag, Query, Response, RRset
from topodns.dns.name import name_wire, parse_name
from topodns.dns.rrtype import RCODE_NAMES, Rcode, RRType
from topodns.dns.wire_reader import read_query
from topodns.plugins.cache.handler import ResponseCache
from topodns.plugins.cache.settings import Cache
from topodns.query.counters import CacheHit
from topodns.query.deferred import Outcome, pursue
from topodns.query.plugin import Answered, Client, Resolution, Scope, settled

CLIENT = Client(bytes((10, 244, 1, 7)), 40_000, "udp")
ADDRESSES = frozenset({RRType.A, RRType.AAAA})


def wire(name: str) -> bytes:
    return name_wire(parse_name(name))


def addresses(ttl: int, *texts: str, owner: bytes = b"") -> RRset:
    return RRset(owner, RRType.A, ttl, tuple(ip_address(text).packed for text in texts))


def alias(ttl: int, target: str, owner: bytes = b"") -> RRset:
    return RRset(owner, RRType.CNAME, ttl, (wire(target),))


def soa(ttl: int, minimum: int, owner: str = "example.") -> RRset:
    numbers = b"".join(number.to_bytes(4, "big") for number in (1, 7200, 1800, 86400, minimum))
    return RRset(wire(owner), RRType.SOA, ttl, (wire("ns.example.") + wire("admin.example.") + numbers,))


def positive(ttl: int = 300, *texts: str) -> Response:
    return Response(answer=(addresses(ttl, *(texts or ("192.0.2.1",))),), flags=Flag.RA)


def denied(rcode: int = Rcode.NXDOMAIN, ttl: int = 300, minimum: int = 3600) -> Response:
    return Response(rcode, authority=(soa(ttl, minimum),), flags=Flag.RA)


def failed(rcode: int = Rcode.SERVFAIL) -> Response:
    return Response(rcode, flags=Flag.RA)


def question(text: str, flags: int = RD, dnssec: bool = False) -> Query:
    return read_query(message(text, Opt(flags=DO) if dnssec else None, flags))


class Upstream:
    """The step below the cache: a forward whose upstream answers `says`; None: nothing yet, see `reply`."""

    def __init__(self, says: Response | None) -> None:
        self.says = says
        self.name = "192.0.2.53:53"  # "": what it says comes from memory
        self.raises: Exception | None = None
        self.asked: list[tuple[Query, Client]] = []
        self._waiting: list[Outcome[Resolution]] = []

    def __call__(self, query: Query, client: Client) -> Answered:
        self.asked.append((query, client))
        if self.raises is not None:
            raise self.raises
        if self.says is not None and not self.name:
            return self._resolution(self.says)
        outcome: Outcome[Resolution] = Outcome()
        self._waiting.append(outcome)
        if self.says is not None:
            self.reply(self.says)
        return _wait(outcome)

    def reply(self, *responses: Response) -> None:
        """Those that wait get these answers, in the order in which they asked."""
        for response in responses:
            self._waiting.pop(0).settle(self._resolution(response))

    def _resolution(self, said: Response) -> Resolution:
        own = Response(said.rcode, said.answer, said.authority, said.additional, said.flags)
        return Resolution(own, "forward", Scope.CLIENT, upstream=self.name)


async def _wait(outcome: Outcome[Resolution]) -> Resolution:
    return await outcome


class Story:
    """Questions to one cache. An answer reads `192.0.2.1 300 upstream`: data or rcode, TTL, and where it came from."""

    def __init__(self, settings: Cache | None = None, says: Response | None = None) -> None:
        self.timers = VirtualTimers()
        self.cache = ResponseCache(settings or Cache(), self.timers)
        self.upstream = Upstream(says)
        self.resolutions: list[Resolution] = []
        self.answers: list[str] = []

    @property
    def times_asked(self) -> int:
        """How often the upstream was asked."""
        return len(self.upstream.asked)

    def ask(self, text: str = "www.example. A", flags: int = RD, dnssec: bool = False) -> str:
        """The answer; "" where it is still to come, as the next one of `answers`."""
        count = len(self.answers)
        pursue(settled(self.cache(question(text, flags, dnssec), CLIENT, self.upstream)), self._answered)
        return self.answers[-1] if len(self.answers) > count else ""

    def after(self, seconds: float, text: str = "www.example. A") -> str:
        """The answer so much later."""
        self.timers.advance(seconds)
        return self.ask(text)

    @property
    def last(self) -> Resolution:
        return self.resolutions[-1]

    def _answered(self, resolution: Resolution) -> None:
        self.resolutions.append(resolution)
        self.answers.append(shown(resolution))


def shown(resolution: Resolution) -> str:
    """All records have one TTL, or it reads `mixed`."""
    response = resolution.response
    rrsets = (*response.answer, *response.authority, *response.additional)
    data = [str(ip_address(rdata)) for rrset in response.answer if rrset.rtype in ADDRESSES for rdata in rrset.rdatas]
    ttls = {rrset.ttl for rrset in rrsets}
    ttl = "mixed" if len(ttls) > 1 else str(*ttls)
    hit = resolution.detail
    source = ("stale" if hit.stale else hit.type) if isinstance(hit, CacheHit) else "upstream"
    words = [*(data or [RCODE_NAMES[response.rcode] if response.rcode else "NODATA"]), ttl, source]
    return " ".join(word for word in words if word)
