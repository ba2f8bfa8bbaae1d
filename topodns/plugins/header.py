"""The `header` directive: sets and clears header flags of queries on their way down, of responses on their way up."""

from topodns.dns.message import Flag, Query
from topodns.resolve.step import Client, Resolution
from topodns.settings.steps import Header


class HeaderFlags:
    """A wrapper for the responses, and `alter_query` for what the steps and wrappers below it see."""

    def __init__(self, settings: Header) -> None:
        self._settings = settings

    def alter_query(self, query: Query) -> Query:
        """The query with its flags set and cleared."""
        return query._replace(flags=(query.flags | self._settings.query_set) & ~self._settings.query_clear)

    def __call__(self, query: Query, client: Client, resolution: Resolution) -> Resolution:
        """The flags over whatever was decided below; `query` is the altered one, whose RD is copied."""
        response, settings = resolution.response, self._settings
        desired = query.flags & Flag.RD
        response.flags = (response.flags | desired | settings.response_set) & ~settings.response_clear
        response.cleared |= Flag.RD & ~desired
        response.cleared = (response.cleared & ~settings.response_set) | settings.response_clear
        return resolution
