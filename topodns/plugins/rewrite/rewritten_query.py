"""A query while the rules rewrite it, and what they require of its response."""

from topodns.dns.message import Query
from topodns.dns.name import name_text, name_wire, parse_name
from topodns.plugins.rewrite.response import ResponseReverter
from topodns.query.plugin import Client


class RewrittenQuery:
    """The query as rewritten by the rules so far; `name` is its name as lower-case text with the final dot.

    `reverter` collects the changes to its response.
    """

    __slots__ = ("client", "name", "query", "reverter")

    def __init__(self, query: Query, client: Client) -> None:
        self.query = query
        self.client = client
        self.name = name_text(query.qname)
        self.reverter = ResponseReverter(query, client)

    def rename(self, name: str) -> None:
        """Set the query's name, and note it for the response (`renamed`). Raises BadName if it is invalid."""
        labels = parse_name(name)
        self.query = self.query._replace(qname=labels, spelling=name_wire(labels))
        self.name = name_text(labels)
        self.reverter.renamed = True
