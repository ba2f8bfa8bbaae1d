"""A query on its way down through the rules, and what they want done to its response."""

from collections.abc import Callable
from dataclasses import dataclass, field

from topodns.dns.message import Query, RRset
from topodns.dns.names import name_text, name_wire, parse_name
from topodns.resolve.course import Course
from topodns.resolve.step import Client, Resolution


@dataclass(slots=True)
class Returning:
    """A response on its way up. Where `Passage.renamed`, all owners are spelled out until the end."""

    resolution: Resolution

    def replace(self, change: Callable[[RRset], RRset]) -> None:
        """Every RRset of every section, changed."""
        response = self.resolution.response
        response.answer = tuple(map(change, response.answer))
        response.authority = tuple(map(change, response.authority))
        response.additional = tuple(map(change, response.additional))


Amendment = Callable[[Returning], Course[None] | None]
"""What a rule does to the response; a course only where `Passage.waits`. May raise BadName."""


@dataclass(slots=True)
class Passage:
    """The query as the rules so far have left it."""

    query: Query
    client: Client
    name: str  # of the query: lower-case text with the final dot
    amendments: list[Amendment] = field(default_factory=list)  # in the order of the rules; carried out in reverse
    renamed: bool = False  # a name rule matched
    waits: bool = False  # one of the amendments may have to wait
    client_dependent: bool = False  # the query has what other clients' queries have not
    subnet_changed: bool = False  # the EDNS Client Subnet is not what the client sent
    asked_with_edns: bool = field(init=False)  # by the client itself

    def __post_init__(self) -> None:
        self.asked_with_edns = self.query.edns is not None

    def rename(self, name: str) -> None:
        """Raises BadName where that is no name."""
        labels = parse_name(name)
        self.query = self.query._replace(qname=labels, spelling=name_wire(labels))
        self.name = name_text(labels)
        self.renamed = True

    @property
    def leaves_traces(self) -> bool:
        """Whether the response must be seen to on its way back."""
        return bool(self.amendments) or self.renamed or self.client_dependent or self.subnet_changed
