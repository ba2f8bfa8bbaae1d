"""A question about names of a cluster, and its answer, as values: every rule of this folder takes the one and gives the
other.

`plugins.kubernetes.handler` makes the question of a query, and a `Resolution` of the answer, which plugins above may
change; `dnsserver.fast_kubernetes` makes the question of octets, and octets of the answer.
"""

from collections.abc import Mapping
from enum import Enum, auto
from typing import Final, NamedTuple

from topodns.dependency import Fact, namespace_fact, node_fact, service_fact
from topodns.dns.message import Ede, Edns, Flag, Query, Response, RRset
from topodns.dns.name import Name, name_wire
from topodns.dns.rrtype import Rcode, RRType
from topodns.plugins.kubernetes.parse import Fixed, NamespaceNode, PodName, SchemaName
from topodns.plugins.kubernetes.zone import Origin
from topodns.query.plugin import Client, Resolution, Scope
from topodns.topology.claim_trust import Claim
from topodns.topology.select import Location, Selection

PLUGIN: Final = "kubernetes"

Facts = tuple[Fact, ...]

NameOrAddress = SchemaName | bytes | None
"""A name of the schema, or the packed address of a reverse name; None: neither."""


class ZoneQuestion(NamedTuple):
    """What answers under an origin depend on, beside the state of the cluster."""

    labels: Name  # of the qname, in front of the origin
    qtype: int
    address: bytes  # of the client, packed
    limit: int  # octets of the reply; SRV records beyond it are not made, but for the first
    origin: Origin
    origin_wire: bytes  # in the query's spelling, which answers repeat
    edns: Edns | None = None
    claim: Claim | None = None  # of the EDNS options, if it was read already

    @property
    def qname(self) -> Name:
        return self.labels + self.origin.name


class Missing(Enum):
    """What a rule looked for and did not find, so that the name does not exist."""

    NAME = auto()  # a name of the schema
    ADDRESS = auto()  # a Service or endpoint at the address of a reverse name
    NAMESPACE = auto()  # the namespace, or an option that exposes it
    PODS = auto()  # names of Pods: `pods disabled`
    POD_ADDRESS = auto()  # an address in the name of a Pod
    POD = auto()  # a Pod with the address
    SERVICE = auto()
    EXTERNAL_NAME = auto()  # an externalName that is a DNS name
    BELOW_EXTERNAL_NAME = auto()  # names below a Service of type ExternalName
    ZONES = auto()  # zone-scoped names, which only headless Services have
    ENDPOINT = auto()  # a ready endpoint of this name
    READY = auto()  # a ready endpoint
    PORT = auto()  # a port of this name and protocol, with a ready endpoint


class Answer(NamedTuple):
    """What a cluster has for one name, type and client. By default NODATA: the name exists (RFC 2308 section 2.2)."""

    rcode: int = Rcode.NOERROR
    rdatas: tuple[bytes, ...] = ()  # of records of the type queried, owned by the name queried
    ttl: int = 0  # seconds, of these records
    additional: tuple[RRset, ...] = ()
    targets: tuple[Name, ...] = ()  # of CNAME records beside them, to be followed
    selection: Selection | None = None  # the topology decision, if one was made
    location: Location | None = None  # of the client; None: it did not matter
    claimed: bool = False  # whether the query makes a claim about the location
    ede: Ede | None = None
    missing: Missing | None = None  # of NXDOMAIN, and of SERVFAIL in its place
    facts: Facts = ()  # dependencies, beside those of the name


NO_DATA: Final = Answer()
NAME_ERRORS: Final[Mapping[Missing, Answer]] = {each: Answer(Rcode.NXDOMAIN, missing=each) for each in Missing}


def scope_and_facts(answer: Answer, name: NameOrAddress) -> tuple[Scope, Facts]:
    """(The clients that get the same answer to this name, all dependencies of the answer)."""
    facts = answer.facts
    if name is not None and not isinstance(name, (bytes, Fixed)):
        namespace = namespace_fact(name.namespace)
        if isinstance(name, (PodName, NamespaceNode)) or answer.missing is Missing.NAMESPACE:
            facts = (namespace, *facts)
        else:
            facts = (namespace, service_fact(name.namespace, name.service), *facts)
    location = answer.location
    if location is None:
        return Scope.EVERYONE, facts
    if location.node_name:
        facts = (*facts, node_fact(location.node_name))
    # A claim that is not trusted counts as well: the same octets from another source may be trusted.
    return Scope.CLIENT if answer.claimed else Scope.NODE, facts


def resolution_of(answer: Answer, qtype: int, cname_ttl: int, name: NameOrAddress = None) -> Resolution:
    """The resolution of the answer to this name with its records of this type.

    `cname_ttl`: seconds, of the CNAME records to its targets.
    """
    rcode, rdatas, ttl, additional, targets, selection, location, _, ede, _, _ = answer
    records: tuple[RRset, ...] = (RRset(b"", qtype, ttl, rdatas),) if rdatas else ()
    if targets:
        records += (RRset(b"", RRType.CNAME, cname_ttl, tuple(map(name_wire, targets))),)
    response = Response(rcode, records, (), additional, 0 if rcode == Rcode.REFUSED else Flag.AA, ede=ede)
    scope, facts = scope_and_facts(answer, name)
    return Resolution(
        response=response,
        plugin=PLUGIN,
        scope=scope,
        facts=facts,
        selection=selection,
        location=location,
        chase=targets,
    )


def question_of(query: Query, client: Client, origin: Origin) -> ZoneQuestion:
    """The query relative to `origin`, which its qname is at or below."""
    # Labels have the same length in any spelling, so the origin has the same number of octets at the end of the name.
    origin_wire = query.spelling[-len(origin.wire) :]
    labels = query.qname[: len(query.qname) - len(origin.name)]
    return ZoneQuestion(
        labels=labels,
        qtype=query.qtype,
        address=client.address,
        limit=client.limit,
        origin=origin,
        origin_wire=origin_wire,
        edns=query.edns,
    )
