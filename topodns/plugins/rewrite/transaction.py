"""State of one query while the rules rewrite it, and of its response while their amendments apply."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from topodns.dns.message import Query, RRset
from topodns.dns.name import name_text, name_wire, parse_name
from topodns.query.deferred import Deferred
from topodns.query.plugin import ANY_SIZE, Client, Resolution

LONGEST_BY_SHORTEST: Final = 15  # an SRV record has 2 + 10 + 6 octets and a target of 1 to 255


@dataclass(slots=True)
class Returning:
    """A response to which amendments apply. With `Passage.renamed`, all owners are spelled out meanwhile."""

    resolution: Resolution
    # Octets of the answer after which the next value renaming may stop.
    limit: int = ANY_SIZE

    def replace(self, change: Callable[[RRset], RRset]) -> None:
        """Apply `change` to every RRset of every section."""
        response = self.resolution.response
        response.answer = tuple(map(change, response.answer))
        response.authority = tuple(map(change, response.authority))
        response.additional = tuple(map(change, response.additional))


Amendment = Callable[[Returning], Deferred[None] | None]
"""A rule's change to the response; deferred only if `Passage.waits`. May raise BadName."""


@dataclass(slots=True)
class Passage:
    """The query as rewritten by the rules so far."""

    query: Query
    client: Client
    name: str  # of the query: lower-case text with the final dot
    amendments: list[Amendment] = field(default_factory=list)  # in the order of the rules; applied in reverse
    renamed: bool = False  # a name rule matched
    waits: bool = False  # an amendment may be deferred
    client_dependent: bool = False  # the rewritten query has data of this client
    subnet_changed: bool = False  # the EDNS Client Subnet may differ from the client's
    asked_with_edns: bool = field(init=False)  # the client's query had an OPT record

    def __post_init__(self) -> None:
        self.asked_with_edns = self.query.edns is not None

    def rename(self, name: str) -> None:
        """Set the query's name. Raises BadName if it is invalid."""
        labels = parse_name(name)
        self.query = self.query._replace(qname=labels, spelling=name_wire(labels))
        self.name = name_text(labels)
        self.renamed = True

    @property
    def leaves_traces(self) -> bool:
        """Whether the response must be adapted."""
        return bool(self.amendments) or self.renamed or self.client_dependent or self.subnet_changed
