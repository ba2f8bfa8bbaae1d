"""The name server of an origin, `ns1.<apex>.<origin>`: SOA and NS records of the origin, and its addresses."""

from typing import Final

from topodns.dns.message import RRset
from topodns.dns.name import MAX_WIRE, Name, label_wire
from topodns.dns.rrtype import RRType
from topodns.dns.soa import MAILBOX, soa_rrset
from topodns.plugins.k8s_external.services import addresses_of
from topodns.plugins.k8s_external.zone import K8sExternalZone
from topodns.plugins.kubernetes.other_names import services_behind
from topodns.plugins.kubernetes.question import NAME_ERRORS, NO_DATA, Answer, Facts, Missing, ZoneQuestion
from topodns.plugins.kubernetes.records import address_type, glue

_SERVER: Final = "ns1"  # one name for all name servers


def soa(external: K8sExternalZone, origin_wire: bytes) -> RRset:
    """The SOA of an origin, given in the query's spelling. Its TTL is the option `ttl`, also above 300 s."""
    apex, ttl = label_wire(external.settings.apex), external.settings.ttl
    serial = external.kubernetes.state.external.serial
    return soa_rrset(origin_wire, serial, ttl, label_wire(_SERVER) + apex, MAILBOX + apex, ttl)


def at_apex(external: K8sExternalZone, question: ZoneQuestion) -> Answer:
    """The answer at the origin itself: NS with the server's addresses, or NODATA for other types but SOA."""
    name = label_wire(_SERVER) + label_wire(external.settings.apex) + question.origin_wire
    if question.qtype != RRType.NS or len(name) > MAX_WIRE:
        return NO_DATA
    addresses, facts = _server_addresses(external)
    ttl = external.settings.ttl
    return Answer(rdatas=(name,), ttl=ttl, additional=glue(((name, each) for each in addresses), ttl), facts=facts)


def below_apex(external: K8sExternalZone, labels: Name, qtype: int) -> Answer:
    """The answer to a name at or below `<apex>.<origin>`; `labels` are those before the origin.

    `ns1.<apex>` has the server's addresses, `<apex>` no records; other names do not exist.
    """
    if len(labels) == 1:
        return NO_DATA
    if len(labels) > 2 or labels[0] != _SERVER:
        return NAME_ERRORS[Missing.NAME]
    addresses, facts = _server_addresses(external)
    of_type = tuple(each for each in addresses if address_type(each) == qtype)
    return Answer(rdatas=of_type, ttl=external.settings.ttl, facts=facts)


def _server_addresses(external: K8sExternalZone) -> tuple[tuple[bytes, ...], Facts]:
    """The packed addresses of `ns1.<apex>`, and their dependencies.

    They are those of `addresses_of` for each Service with this server as a ready endpoint; without such, its own.
    """
    behind, facts = services_behind(external.kubernetes)
    if not behind:
        return external.kubernetes.own_addresses, facts
    return tuple(dict.fromkeys(each for service in behind for each in addresses_of(external, service))), facts
