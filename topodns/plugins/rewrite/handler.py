"""The `rewrite` plugin: applies the rules to a query; `response` adapts the response of the plugins below."""

from collections.abc import Iterable

from topodns.dns.message import Query
from topodns.dns.name import BadName
from topodns.plugins.rewrite.response import LONGEST_BY_SHORTEST, invalid_name
from topodns.plugins.rewrite.rules import RewrittenQuery, build_rule
from topodns.plugins.rewrite.settings import RewriteRule
from topodns.query.cname import Chase
from topodns.query.plugin import Answered, Below, Client, Resolution


class Rewriter:
    """All `rewrite` directives of a server block, in order.

    `chase` queries the listener for the new target of a CNAME; None leaves CNAMEs alone. `server_address` is the packed
    address that the listener is bound to, b"" for all addresses: rules with {server_ip} then never match, as in CoreDNS
    over UDP.
    """

    def __init__(self, rules: Iterable[RewriteRule], chase: Chase | None = None, server_address: bytes = b"") -> None:
        self._rules = [(build_rule(rule.change, chase, server_address), rule.continues) for rule in rules]

    def __call__(self, query: Query, client: Client, below: Below) -> Answered:
        """The resolution of the rewritten query, made one of the client's own query.

        If nothing of it is to be changed back, that of the plugins below. SERVFAIL if a rule gives an invalid name, in
        the query or in the response.
        """
        rewritten = RewrittenQuery(query, client)
        try:
            self._apply(rewritten)
        except BadName as problem:
            return invalid_name(problem)
        reverter = rewritten.reverter
        if not reverter.needed:
            return below(rewritten.query, client)
        if reverter.may_shorten:
            client = client._replace(limit=client.limit * LONGEST_BY_SHORTEST)
        answered = below(rewritten.query, client)
        if reverter.waits or not isinstance(answered, Resolution):
            return reverter.revert_later(answered, rewritten.query)
        return reverter.revert(answered, rewritten.query)

    def _apply(self, rewritten: RewrittenQuery) -> None:
        """Apply the rules up to the first match without `continues`."""
        for rule, continues in self._rules:
            if rule(rewritten) and not continues:
                break
