"""The `nsid` directive: tells clients that ask which server answered (RFC 5001)."""

from topodns.dns.message import Option, Query
from topodns.resolve.step import Client, Resolution


class Nsid:
    """A wrapper. `identifier` is the directive's text; the empty one means `hostname`."""

    def __init__(self, identifier: str, hostname: str) -> None:
        self._option = (int(Option.NSID), (identifier or hostname).encode())

    def __call__(self, query: Query, client: Client, resolution: Resolution) -> Resolution:
        """The option on every response to a query that carries one, in place of any that is there already."""
        if query.edns is None or query.edns.option(Option.NSID) is None:
            return resolution
        response = resolution.response
        others = tuple(option for option in response.options if option[0] != Option.NSID)
        response.options = (*others, self._option)
        return resolution
