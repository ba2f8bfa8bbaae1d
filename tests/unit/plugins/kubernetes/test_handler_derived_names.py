"""Names that answers are made of, in any cluster: each is one that a message can have, and leads to its address.

A reply with a name of more than 255 octets cannot be read at all (RFC 1035 section 2.3.4), and a target of SRV or PTR
that is denied is of no use.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dnslib import DNSRecord
from hypothesis import HealthCheck, given
from hypothesis import settings as tries
from hypothesis import strategies as st

from tests.support.cluster_dig import settings
from tests.support.dns_messages import query
from tests.support.fast_path_sockets import Socket
from tests.support.model_builders import endpoint, endpoint_slice, namespace, packed, service
from topodns.cluster.model import Alias, ClusterObject, Endpoint, Kind, Replaced, Upserted
from topodns.cluster.state import ClusterState
from topodns.dns.name import name_text, reverse_name
from topodns.plugins.kubernetes.settings import KubernetesSettings

KINDS: frozenset[Kind] = frozenset(("Namespace", "Service", "ServiceImport", "EndpointSlice"))
CLIENT = packed("10.240.0.1")
MAX_NAME = 255

LONG = "l" * 63
ORIGINS = st.sampled_from(
    (
        "cluster.local.",
        "C.local.",
        f"{'o' * 50}.{'p' * 40}.example.",
        f"{LONG}.{LONG}.example.",
        f"{LONG}.{LONG}.{'m' * 52}.example.",
        f"{LONG}.{LONG}.{LONG}.{'n' * 50}.example.",
        f"{LONG}.{LONG}.{LONG}.{'n' * 61}.",
    )
)
NAMES = st.sampled_from(("a", "db", "s" * 63, "t" * 30))
HOSTNAMES = st.sampled_from(("", "", "h0", "H1", "h" * 63, "h.0"))
TARGETS = st.sampled_from(("", "", "pod-a", "static-a.example", "p" * 63, "p" * 64))
CLUSTERS = st.sampled_from(("east", "East", "c1.eu", "C1.EU", "c" * 63, ".".join("abcdefgh"), ""))
PORTS = st.sampled_from((("http:80",), ("http:80", "dns:53/UDP"), ("http:",), ("http:80", "all:"), ()))


@dataclass
class World:
    """A Service of one name in the cluster and in the cluster set, with these endpoints."""

    kubernetes: KubernetesSettings
    objects: Sequence[ClusterObject]
    addresses: set[bytes]
    below: str

    def questions(self) -> Iterator[str]:
        for origin in map(name_text, self.kubernetes.origins):
            for left in ("", "_http._tcp.", "_all._tcp.", "_tcp.", "www-example-org."):
                yield from (f"{left}{self.below}{origin} {qtype}" for qtype in ("SRV", "A", "AAAA"))
            yield from (f"{left}{origin} {qtype}" for left in ("", "no.such.") for qtype in ("SOA", "A"))
        yield from (f"{name_text(reverse_name(address))} PTR" for address in self.addresses)


@st.composite
def worlds(draw: st.DrawFn) -> World:
    space, name = draw(NAMES), draw(NAMES)
    endpoints: list[Endpoint] = []
    for at in range(draw(st.integers(1, 24))):
        target = draw(TARGETS)
        pod = draw(st.booleans())
        labels: dict[str, Any] = {
            "hostname": draw(HOSTNAMES),
            "pod": target if pod else "",
            "target": "" if pod else target,
        }
        endpoints.append(endpoint(f"10.0.0.{at}" if draw(st.booleans()) else f"fd00::{at + 1:x}", **labels))
    cut = draw(st.integers(0, len(endpoints)))
    objects: list[ClusterObject] = [namespace(space), service(name, space), service(name, space, imported=True)]
    for number, some in enumerate((endpoints[:cut], endpoints[cut:])):
        there: dict[str, Any] = {"name": f"local-{number}", "namespace": space, "ports": draw(PORTS)}
        aliases = [Alias("www.example.org")] if draw(st.integers(0, 4)) == 0 else []
        objects.append(endpoint_slice(name, *some, aliases=aliases, **there))
        there |= {"name": f"far-{number}", "imported": True, "cluster_id": draw(CLUSTERS)}
        objects.append(endpoint_slice(name, *some, **there))
    zone, clusterset = draw(ORIGINS), "set." + draw(ORIGINS.filter(lambda text: len(text) < 240))
    origins = (zone, clusterset, "in-addr.arpa.", "ip6.arpa.")
    kubernetes = settings(*origins, multicluster=[clusterset], endpoint_pod_names=draw(st.booleans()))
    return World(kubernetes, objects, {each.address for each in endpoints}, f"{name}.{space}.svc.")


def fits(question: str) -> bool:
    labels = question.split()[0].rstrip(".").split(".")
    return sum(len(label) + 1 for label in labels) < MAX_NAME


def names_in(message: DNSRecord) -> Iterator[Any]:
    for record in (*message.rr, *message.auth, *message.ar):
        yield record.rname
        yield from (
            getattr(record.rdata, field) for field in ("target", "label", "mname", "rname") if _has(record, field)
        )


def _has(record: Any, field: str) -> bool:
    return getattr(record.rdata, field, None) is not None


def octets(name: Any) -> int:
    return sum(len(label) + 1 for label in name.label) + 1


@tries(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(worlds(), st.booleans())
def test_every_name_has_at_most_255_octets_and_every_target_leads_to_its_address(world: World, udp: bool) -> None:
    state = ClusterState(KINDS, None, False, world.kubernetes.endpoint_pod_names)
    for kind in KINDS:
        state.apply(Replaced(kind, ()), 0)
    for each in world.objects:
        state.apply(Upserted(each), 0)
    fast, chain = (Socket(way, state, world.kubernetes, None, udp) for way in (True, False))

    def ask(question: str) -> DNSRecord:
        data = query(question, ident=7)
        wire = fast.ask(data, CLIENT)
        assert wire is not None
        assert wire == chain.ask(data, CLIENT), question
        message = DNSRecord.parse(wire)
        assert [name for name in names_in(message) if octets(name) > MAX_NAME] == [], question
        return message

    targets: dict[str, set[str]] = {}
    for question in filter(fits, world.questions()):
        message = ask(question)
        assert message.header.rcode in (0, 3), question
        for record in message.ar:
            if record.rtype in (1, 28):
                targets.setdefault(f"{record.rname} {'A' if record.rtype == 1 else 'AAAA'}", set()).add(
                    str(record.rdata)
                )
        if question.endswith(" PTR"):
            for record in message.rr:
                targets.setdefault(f"{record.rdata.label} A", set())
    for question, addresses in targets.items():
        message = ask(question)
        found = {str(record.rdata) for record in message.rr}
        assert message.header.rcode == 0, question
        assert addresses <= found or message.header.tc, question
