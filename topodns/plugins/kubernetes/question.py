"""A question about names of a cluster, and its answer, as values: every rule of this folder takes the one and gives the
other.

`plugins.kubernetes.answer` makes the question of a query, `plugins.kubernetes.handler` a `Resolution` of the answer,
which plugins above may change; `dnsserver.fast_kubernetes` makes the question of octets, and octets of the answer.

An answer may be SERVFAIL with the extended error Not Ready (RFC 8914 section 4.15), in place of one that may be wrong.
While the watches are incomplete or denied, the objects that are not known may exist: NXDOMAIN would be cached by
clients, and may be false. So may those for names of Services of which objects are left out
(`cluster.namespace_budget`).
"""

from collections.abc import Iterable, Mapping
from enum import Enum, auto
from typing import Final, NamedTuple, TypeVar

from topodns.cluster.known_kinds import Restored
from topodns.cluster.model import EndpointPort, ServicePort
from topodns.cluster.state import ClusterState
from topodns.dependency import Fact
from topodns.dns.message import Ede, EdeCode, Edns, RRset
from topodns.dns.name import Name
from topodns.dns.rrtype import Rcode
from topodns.plugins.kubernetes.zone import Origin
from topodns.topology.claims import Claim
from topodns.topology.select import UNLOCATED_REASONS, Location, Selection

Facts = tuple[Fact, ...]

SCHEMA_VERSION: Final = "1.1.0"
SERVICE_LABELS: Final = 3  # <service>.<namespace>.svc
NEAR: Final = "_near"  # as a label in front of a Service: its endpoints by topology keys, its own or the usual ones
ALL: Final = "_all"  # all its ready endpoints

_Port = TypeVar("_Port", ServicePort, EndpointPort)


class Fixed(Enum):
    """Names that exist under every origin, in any cluster."""

    APEX = "apex"
    DNS = "dns"  # an empty non-terminal, above ns.dns
    NS_DNS = "ns.dns"  # the primary server in the SOA
    DNS_VERSION = "dns-version"
    SVC = "svc"
    POD = "pod"


class NamespaceNode(NamedTuple):
    """`<namespace>.svc` or `<namespace>.pod`: holds no records, exists with its namespace."""

    namespace: str
    pods: bool


class ServiceName(NamedTuple):
    """A Service, or a name below it: an endpoint, a port with its protocol, an endpoint of one cluster.

    `port` and `protocol` are without their underscores; "" matches any. A `cluster` of several labels has dots. `view`
    is NEAR or ALL for `_near.SERVICE` and `_all.SERVICE` and names below them, else "".
    """

    namespace: str
    service: str
    endpoint: str = ""
    port: str = ""
    protocol: str = ""
    cluster: str = ""
    view: str = ""


class ZonalName(NamedTuple):
    """`<topology zone>.pin|prefer._zone.<service>.<namespace>.svc` (CoreDNS 1.14.7, option `zonal`)."""

    namespace: str
    service: str
    topology_zone: str  # may span labels, since a label value may hold dots; lower-case
    prefer: bool  # without endpoints in the topology zone: True is all endpoints, False is NODATA


class PodName(NamedTuple):
    """`<dashed address>.<namespace>.pod`; up to two labels in front of it are ignored, as in CoreDNS."""

    namespace: str
    label: str


SchemaName = Fixed | NamespaceNode | ServiceName | ZonalName | PodName

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
    VIEW = auto()  # `_near` and `_all`, which only headless Services have
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


MAX_STALE_TTL: Final = 5  # seconds, of an answer made of a snapshot

_INCOMPLETE: Final = Ede(EdeCode.NOT_READY, "the state of the cluster is not complete yet")
_LEFT_OUT: Final = Ede(EdeCode.NOT_READY, "objects of this namespace are left out: it has too many or too large ones")

NO_DATA: Final = Answer()
NAME_ERRORS: Final[Mapping[Missing, Answer]] = {each: Answer(Rcode.NXDOMAIN, missing=each) for each in Missing}
NOT_READY: Final = Answer(Rcode.SERVFAIL, ede=_INCOMPLETE)  # the watches are incomplete or denied
LEFT_OUT: Final = Answer(Rcode.SERVFAIL, ede=_LEFT_OUT)  # objects of the name's namespace are left out


def confirmed(answer: Answer, restored: Restored | None) -> Answer:
    """The answer while kinds of the state have no complete list. `restored`: those that are of a snapshot.

    SERVFAIL instead of NXDOMAIN, with the same dependencies. Every other answer of a snapshot is a stale one (RFC 8914
    section 4.4), of MAX_STALE_TTL at most; but SERVFAIL where a client has no location, which may be newer than the
    snapshot.
    """
    if answer.rcode == Rcode.NXDOMAIN:
        ede = _INCOMPLETE if restored is None else _ede_of(restored, "the name is not in it")
        return NOT_READY._replace(ede=ede, missing=answer.missing, facts=answer.facts)
    if restored is None or answer.rcode == Rcode.SERVFAIL:
        return answer
    selection = answer.selection
    if selection is not None and not answer.rdatas and selection.reason in UNLOCATED_REASONS:
        ede = _ede_of(restored, "the client's location is not in it")
        return NOT_READY._replace(ede=ede, location=answer.location, claimed=answer.claimed, facts=answer.facts)
    return answer._replace(
        ttl=min(answer.ttl, MAX_STALE_TTL),
        additional=tuple(rrset._replace(ttl=min(rrset.ttl, MAX_STALE_TTL)) for rrset in answer.additional),
        ede=_ede_of(restored, answer.ede.text if answer.ede is not None else "", EdeCode.STALE_ANSWER),
    )


def ttl_now(ttl: int, state: ClusterState) -> int:
    """The TTL, in seconds, of records of a state that have this one while it is live."""
    return ttl if state.restored is None else min(ttl, MAX_STALE_TTL)


def _ede_of(restored: Restored, text: str, code: int = EdeCode.NOT_READY) -> Ede:
    return Ede(code, f"snapshot of {restored.since}{f': {text}' if text else ''}")


def matching(ports: Iterable[_Port], name: ServiceName) -> list[_Port]:
    """The ports that the name selects; case is ignored, because the name is lower-case."""
    return [
        port
        for port in ports
        if (not name.port or port.name.lower() == name.port)
        and (not name.protocol or port.protocol.lower() == name.protocol)
    ]
