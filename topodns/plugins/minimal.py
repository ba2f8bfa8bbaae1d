"""The `minimal` directive: a positive answer goes out without its authority and additional sections."""

from topodns.dns.message import Query
from topodns.resolve.response_type import ResponseType, response_type
from topodns.resolve.step import Client, Resolution


def minimize(query: Query, client: Client, resolution: Resolution) -> Resolution:
    """A wrapper. Negatives keep their SOA (RFC 2308), delegations their NS, errors stay as they are."""
    response = resolution.response
    if response_type(query, response) is ResponseType.NOERROR:
        response.authority = response.additional = ()
    return resolution
