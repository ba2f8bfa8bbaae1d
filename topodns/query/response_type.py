"""Response types (CoreDNS's `response.Type` and `response.Class`), for `minimal` and the query log."""

from enum import Enum
from typing import Final

from topodns.dns.message import Query, Response
from topodns.dns.rrtype import Rcode, RRType


class ResponseType(Enum):
    """CoreDNS's response types; the values are those of its log (`{/log/type}`)."""

    NOERROR = "NOERROR"
    NXDOMAIN = "NXDOMAIN"
    SERVER_ERROR = "SERVERERROR"  # SERVFAIL and NOTIMP
    NODATA = "NODATA"
    DELEGATION = "DELEGATION"
    META = "META"  # transfers
    OTHER_ERROR = "OTHERERROR"  # also: no reply was sent


class ResponseClass(Enum):
    """The values of `class` in the `log` directive, beside `all`."""

    SUCCESS = "success"
    DENIAL = "denial"
    ERROR = "error"


_TRANSFERS: Final = frozenset((RRType.AXFR, RRType.IXFR))
_CLASSES: Final = {
    ResponseType.NOERROR: ResponseClass.SUCCESS,
    ResponseType.DELEGATION: ResponseClass.SUCCESS,
    ResponseType.NXDOMAIN: ResponseClass.DENIAL,
    ResponseType.NODATA: ResponseClass.DENIAL,
}


def response_class(kind: ResponseType) -> ResponseClass:
    """The class of a response type: success, denial, or else error."""
    return _CLASSES.get(kind, ResponseClass.ERROR)


def response_type(query: Query, response: Response) -> ResponseType:
    """The type of this response to a query with opcode QUERY."""
    if query.qtype in _TRANSFERS:
        return ResponseType.META
    if response.rcode == Rcode.NOERROR:
        return _noerror_type(response)
    if response.rcode == Rcode.NXDOMAIN and not response.answer:
        return ResponseType.NXDOMAIN
    if response.rcode in (Rcode.SERVFAIL, Rcode.NOTIMP):
        return ResponseType.SERVER_ERROR
    return ResponseType.OTHER_ERROR


def _noerror_type(response: Response) -> ResponseType:
    if response.answer:
        return ResponseType.NOERROR
    authority = {rrset.rtype for rrset in response.authority}
    if RRType.SOA in authority:
        return ResponseType.NODATA
    return ResponseType.DELEGATION if RRType.NS in authority else ResponseType.NOERROR
