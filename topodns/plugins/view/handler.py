"""The filter of a server block with `view`: which queries the block takes."""

from topodns.dns.message import Query
from topodns.plugins.view.expression import compile_expression
from topodns.plugins.view.functions import ViewQuery
from topodns.plugins.view.settings import View
from topodns.query.metadata import ReaderOf, without_metadata
from topodns.query.plugin import Client, Scope


class ViewFilter:
    """A predicate: whether all expressions of the view are true for a query. Never raises."""

    def __init__(
        self,
        view: View,
        listens_on: str,
        reader_of: ReaderOf = without_metadata,
        scope: Scope = Scope.EVERYONE,
    ) -> None:
        """`listens_on` is the address that the block is bound to, as text; "" for all addresses. `reader_of` and
        `scope` are those of the labels that the view reads.

        With "", the destination address of a query is unknown, and server_ip() is "::", as in CoreDNS over UDP.
        Raises BadExpression, but not for a `View` from `parse_view`.
        """
        self._server_ip = listens_on or "::"
        self._expressions = tuple(compile_expression(text, reader_of) for text in view.expressions)
        self.scope = Scope.CLIENT if any(expression.of_client for expression in self._expressions) else scope

    def __call__(self, query: Query, client: Client) -> bool:
        question = ViewQuery(query, client, self._server_ip)
        return all(expression.holds(question) for expression in self._expressions)
