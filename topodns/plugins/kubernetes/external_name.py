"""Services of type ExternalName: a CNAME record and, for A and AAAA queries, the records of its target.

`plugins.kubernetes.handler` follows a target under the origin, `query.cname` any other.
"""

from ipaddress import ip_address

from topodns.dns.message import RRset
from topodns.dns.name import BadName, Name, is_subdomain, name_wire, parse_name
from topodns.dns.rrtype import ADDRESS_TYPES, RRType
from topodns.plugins.kubernetes.records import Facts, found, name_error, no_data
from topodns.plugins.kubernetes.zone import KubernetesZone, ZoneQuestion
from topodns.query.plugin import Resolution


def respond(kubernetes: KubernetesZone, external_name: str, question: ZoneQuestion, facts: Facts) -> Resolution:
    """The CNAME to `external_name`; for A and AAAA with the target in `chase`; NODATA for other types.

    NODATA also for A and AAAA if the target is at or below the queried name. NXDOMAIN if `external_name` is an address
    or not a name.
    """
    target = target_of(external_name)
    if target is None:
        return name_error(facts)
    qtype = question.query.qtype
    cname = RRset(b"", RRType.CNAME, kubernetes.settings.ttl, (name_wire(target),))
    if qtype == RRType.CNAME:
        return found(facts, (cname,))
    if qtype not in ADDRESS_TYPES or is_subdomain(target, question.query.qname):
        return no_data(facts)
    resolution = found(facts, (cname,))
    resolution.chase = (target,)
    return resolution


def target_of(external_name: str) -> Name | None:
    """The name in a Service's externalName; None for an address, an empty or a malformed one."""
    try:
        ip_address(external_name)
    except ValueError:
        return _parsed(external_name)
    return None


def _parsed(text: str) -> Name | None:
    try:
        return parse_name(text) or None
    except BadName:
        return None
