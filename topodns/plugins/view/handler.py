"""What a server block with a `view` has: which queries it takes."""

from topodns.dns.message import Query
from topodns.resolve.step import Client
from topodns.resolve.view.compiler import compile_expression
from topodns.resolve.view.functions import Question
from topodns.settings.view import View


class ViewFilter:
    """True of the queries that a view is for. Never raises."""

    def __init__(self, view: View, listens_on: str) -> None:
        """`listens_on` is the one address that the block is bound to, as text; "" is every address.

        Which of them a query came to is not known then; server_ip() is "::", as it is in CoreDNS over UDP.
        Raises BadExpression for what the parser of the directive has refused already.
        """
        self._server_ip = listens_on or "::"
        self._expressions = tuple(map(compile_expression, view.expressions))
        self.of_client = any(expression.of_client for expression in self._expressions)

    def __call__(self, query: Query, client: Client) -> bool:
        question = Question(query, client, self._server_ip)
        return all(expression.holds(question) for expression in self._expressions)
