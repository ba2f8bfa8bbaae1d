"""The response to a rewritten query: the rules' amendments in reverse order, then the client's own name and subnet."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from topodns.dns.message import Ede, EdeCode, Edns, Option, Query, Response, RRset
from topodns.dns.name import BadName, name_text, name_wire, parse_name, wire_labels
from topodns.dns.rrtype import Rcode, RRType
from topodns.dns.wire_format import POINTER_RECORD_HEAD_SIZE
from topodns.query.deferred import Deferred
from topodns.query.plugin import ANY_SIZE, Answered, Client, Resolution, Scope, settled

Rename = Callable[[str], str | None]
"""Maps a name to its new name, both as text; None if it does not change."""

LONGEST_BY_SHORTEST: Final = 15  # an SRV record has 2 + 10 + 6 octets and a target of 1 to 255

_PLUGIN: Final = "rewrite"
_ECS_HEADER: Final = 4  # octets of FAMILY, SOURCE PREFIX-LENGTH and SCOPE PREFIX-LENGTH
_NAPTR_STRINGS: Final = 3  # FLAGS, SERVICES and REGEXP, behind ORDER and PREFERENCE (RFC 3403 section 4.1)
_NAME_AT: Final[Mapping[int, int]] = {  # octet in the RDATA where the name for `answer value` begins
    RRType.NS: 0,
    RRType.CNAME: 0,
    RRType.SOA: 0,  # MNAME, not RNAME, as in CoreDNS
    RRType.PTR: 0,
    RRType.MX: 2,
    RRType.SRV: 6,
    RRType.NAPTR: 4,
    RRType.DNAME: 0,
}


@dataclass(slots=True)
class RewrittenResponse:
    """A response while amendments apply.

    If a name rule matched, no owner is b"" (the queried name) meanwhile: it is written in full.
    """

    resolution: Resolution
    # Octets of the answer after which the next value renaming may stop.
    limit: int = ANY_SIZE

    def replace(self, change: Callable[[RRset], RRset]) -> None:
        """Apply `change` to every RRset of every section."""
        response = self.resolution.response
        response.answer = tuple(map(change, response.answer))
        response.authority = tuple(map(change, response.authority))
        response.additional = tuple(map(change, response.additional))


Amendment = Callable[[RewrittenResponse], Deferred[None] | None]
"""A rule's change to the response; deferred only if `ResponseReverter.waits`. May raise BadName."""


@dataclass(frozen=True, slots=True)
class OwnerRenaming:
    """Renames the owners of all records."""

    rename: Rename

    def __call__(self, rewritten: RewrittenResponse) -> None:
        rewritten.replace(lambda rrset: rrset._replace(owner=renamed_wire(rrset.owner, self.rename)))


@dataclass(frozen=True, slots=True)
class ValueRenaming:
    """Renames the name in the RDATA of the record types that `Part.VALUE` lists."""

    rename: Rename

    def __call__(self, rewritten: RewrittenResponse) -> None:
        """Rename up to and including the first record with which the answer exceeds `limit` of the response, if any.

        The rest of the response, other sections too, is then dropped: the reply will be truncated, and renaming takes
        10 us a record. Lowers `limit` for the next renaming of values.
        """
        response, room = rewritten.resolution.response, rewritten.limit
        rewritten.limit //= LONGEST_BY_SHORTEST
        answer = []
        for rrset in response.answer:
            renamed, room = self._renamed(rrset, room)
            answer.append(renamed)
            if room < 0:
                response.answer, response.authority, response.additional = tuple(answer), (), ()
                return
        response.answer = tuple(answer)
        response.authority = tuple(self._renamed(rrset, ANY_SIZE)[0] for rrset in response.authority)
        response.additional = tuple(self._renamed(rrset, ANY_SIZE)[0] for rrset in response.additional)

    def _renamed(self, rrset: RRset, room: int) -> tuple[RRset, int]:
        """The RRset with the names in its RDATA renamed, and the octets left of `room`.

        It ends with the first record that does not fit; the octets left are then negative. An RRset of a type without
        names stays whole, so that a cached reply can rotate all its addresses.
        """
        rtype, rdatas = rrset.rtype, list[bytes]()
        if rtype not in _NAME_AT:
            return rrset, room - sum(map(len, rrset.rdatas)) - POINTER_RECORD_HEAD_SIZE * len(rrset.rdatas)
        for rdata in rrset.rdatas:
            rdatas.append(rename_value(rtype, rdata, self.rename))
            room -= POINTER_RECORD_HEAD_SIZE + len(rdatas[-1])
            if room < 0:
                break
        return rrset._replace(rdatas=tuple(rdatas)), room


def rename_value(rtype: int, rdata: bytes, rename: Rename) -> bytes:
    """RDATA of a type that `Part.VALUE` lists, with its name renamed. Raises BadName if the new name is invalid."""
    start = _NAME_AT[rtype]
    if rtype == RRType.NAPTR:
        for _ in range(_NAPTR_STRINGS):
            start += 1 + rdata[start]
    end = start
    while rdata[end]:
        end += 1 + rdata[end]
    end += 1
    return rdata[:start] + renamed_wire(rdata[start:end], rename) + rdata[end:]


def renamed_wire(wire: bytes, rename: Rename) -> bytes:
    """The new name of a wire-form name, in wire form; `wire` if it does not change. Raises BadName if it is invalid."""
    text = name_text(wire_labels(wire))
    renamed = rename(text)
    return wire if renamed is None or renamed == text else name_wire(parse_name(renamed))


@dataclass(frozen=True, slots=True)
class TtlBounds:
    """Clamps all TTLs to the range from `low` to `high` seconds, both inclusive."""

    low: int
    high: int

    def __call__(self, rewritten: RewrittenResponse) -> None:
        rewritten.replace(lambda rrset: rrset._replace(ttl=min(max(rrset.ttl, self.low), self.high)))


@dataclass(frozen=True, slots=True)
class RcodeChange:
    """Replaces the rcode `decided` by `instead`."""

    decided: int
    instead: int

    def __call__(self, rewritten: RewrittenResponse) -> None:
        response = rewritten.resolution.response
        if response.rcode == self.decided:
            response.rcode = self.instead


@dataclass(frozen=True, slots=True)
class OptionReverting:
    """The word `revert`: the response's first option `code` gets the data that the query's had before the rule; if the
    query had none (None), all such options are removed. A response without them stays as it is.
    """

    code: int
    before: bytes | None

    def __call__(self, rewritten: RewrittenResponse) -> None:
        response = rewritten.resolution.response
        at = next((at for at, option in enumerate(response.options) if option[0] == self.code), None)
        if at is None:
            return
        if self.before is None:
            response.options = tuple(option for option in response.options if option[0] != self.code)
        else:
            response.options = (*response.options[:at], (self.code, self.before), *response.options[at + 1 :])


_NEVER_SHORTER: Final = (TtlBounds, RcodeChange, OptionReverting)  # amendments that never shorten a response


@dataclass(slots=True)
class ResponseReverter:
    """Makes the response to the client's own `query` of the response to the rewritten query.

    The rules set the other fields while they rewrite the query: each that matches adds its amendments, and the flags
    say what else of the response must be changed back. CoreDNS has this class under the same name.
    """

    query: Query
    client: Client
    amendments: list[Amendment] = field(default_factory=list)  # in the order of the rules; applied in reverse
    renamed: bool = False  # a name rule matched
    waits: bool = False  # an amendment may be deferred
    client_dependent: bool = False  # the rewritten query has data of this client
    subnet_forwarded: bool = False  # the rewritten query forwards an EDNS Client Subnet, the client's or another

    @property
    def needed(self) -> bool:
        """Whether the response must be changed at all."""
        return bool(self.amendments) or self.renamed or self.client_dependent or self.subnet_forwarded

    @property
    def may_shorten(self) -> bool:
        """Whether an amendment may shorten names, so that more records fit than the plugins below reckon with."""
        for each in self.amendments:  # noqa: SIM110 - a generator costs more calls for each rewritten query
            if not isinstance(each, _NEVER_SHORTER):
                return True
        return False

    def revert(self, resolution: Resolution, rewritten: Query) -> Resolution:
        """The resolution of the query `rewritten` as one of the client's own. SERVFAIL if a new name is invalid.

        Only if `waits` is False: no amendment may be deferred.
        """
        response = self._amendable(resolution, rewritten)
        try:
            for amend in reversed(self.amendments):
                amend(response)
        except BadName as problem:
            return invalid_name(problem)
        return self._restored(resolution)

    async def revert_later(self, answered: Answered, rewritten: Query) -> Resolution:
        """As `revert`, for a deferred resolution or amendments that may be deferred."""
        resolution = await settled(answered)
        response = self._amendable(resolution, rewritten)
        try:
            for amend in reversed(self.amendments):
                waiting = amend(response)
                if waiting is not None:
                    await waiting
        except BadName as problem:
            return invalid_name(problem)
        return self._restored(resolution)

    def _amendable(self, resolution: Resolution, rewritten: Query) -> RewrittenResponse:
        """The response with its limit for value renamings. If a name rule matched, owners b"" are replaced by the name
        that they mean, the rewritten one.
        """
        limit = ANY_SIZE
        if not self.waits:
            # The first value renaming goes beyond the client's limit, since later ones may shorten the records.
            others = sum([isinstance(each, ValueRenaming) for each in self.amendments]) - 1
            limit = self.client.limit * LONGEST_BY_SHORTEST ** max(0, others)
        response = RewrittenResponse(resolution, limit)
        if self.renamed:
            asked = rewritten.spelling
            response.replace(lambda rrset: rrset if rrset.owner else rrset._replace(owner=asked))
        return response

    def _restored(self, resolution: Resolution) -> Resolution:
        """The resolution as one of the client's query, after the amendments.

        If a name rule matched, owners equal to the name that the client queried become b"". If an EDNS Client Subnet
        was forwarded, the response has the client's own or none. Scope.CLIENT if the rewritten query had data of this
        client.
        """
        if self.renamed:
            own = self.query.spelling.lower()  # length octets, at most 63, are no letters
            RewrittenResponse(resolution).replace(lambda rrset: _reowned(rrset, own))
        if self.subnet_forwarded:
            _restore_subnet(resolution.response, self.query.edns)
        if self.client_dependent:
            resolution.scope = Scope.CLIENT
        return resolution


def invalid_name(problem: BadName) -> Resolution:
    """SERVFAIL for a query in which, or in whose answer, a rule gives an invalid name."""
    ede = Ede(EdeCode.OTHER, f"rewrite gives no valid name: {problem}")
    return Resolution(Response(Rcode.SERVFAIL, flags=0, ede=ede), _PLUGIN, Scope.CLIENT)


def _reowned(rrset: RRset, own: bytes) -> RRset:
    return rrset._replace(owner=b"") if rrset.owner.lower() == own else rrset


def _restore_subnet(response: Response, asked: Edns | None) -> None:
    """Give the response the EDNS Client Subnet that the client sent, or none (RFC 7871 section 7.2.2).

    Its SCOPE PREFIX-LENGTH is its SOURCE PREFIX-LENGTH: a cached answer does not say for which subnets it holds, and a
    response without the option would hold for all of them (section 7.3).
    """
    others = tuple(option for option in response.options if option[0] != Option.CLIENT_SUBNET)
    sent = None if asked is None else asked.option(Option.CLIENT_SUBNET)
    if sent is not None and len(sent) >= _ECS_HEADER:
        source = sent[2:3]
        others = (*others, (Option.CLIENT_SUBNET, sent[:3] + source + sent[_ECS_HEADER:]))
    response.options = others
