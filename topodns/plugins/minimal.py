"""The `minimal` plugin: removes the authority and additional sections of positive answers."""

from topodns.dns.message import Query
from topodns.query.plugin import Client, Resolution
from topodns.query.response_type import ResponseType, response_type


def minimize(query: Query, client: Client, resolution: Resolution) -> Resolution:
    """Negative answers keep their SOA (RFC 2308), referrals their NS records; errors stay as they are."""
    response = resolution.response
    if response_type(query, response) is ResponseType.NOERROR:
        response.authority = response.additional = ()
    return resolution
