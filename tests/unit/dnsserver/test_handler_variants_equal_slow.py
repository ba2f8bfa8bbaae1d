"""In any server block, a variant of a kept question gets the octets that the steps would give it."""

from pathlib import Path
from random import Random

import pytest

from tests.support.corefile_settings import settings
from tests.support.deferred_results import at_once
from tests.support.demo import ROOT
from tests.support.dns_messages import DO, NODE_IDENTITY, RD, Opt, query, subnet
from tests.support.generation_builder import assembly, read_whole
from tests.support.in_memory_server import ready_made
from tests.support.model_builders import packed
from topodns.app.generation import Generation
from topodns.dnsserver.handler import Handler
from topodns.dnsserver.packet_cache.lookup import variant_entry
from topodns.dnsserver.packet_cache.table import PacketCache
from topodns.query.counters import QueryCounters

PORT = 40212
ON_NODE, IN_POD, STRANGER = map(packed, ("127.10.0.5", "127.10.1.100", "192.0.2.9"))

KUBERNETES = (
    f"kubernetes cluster.local in-addr.arpa {{\nmanifests {ROOT / 'config' / 'demo' / 'cluster'}\npods verified\n}}"
)
CLUSTER = f"{KUBERNETES}\ntopology {{\nlocate nodes slices pods\n}}"
HOSTS = "hosts {\n192.0.2.1 a.example b.example\n192.0.2.2 a.example\n2001:db8::1 a.example\nttl 60\n}"
ZONE = """
$ORIGIN zone.example.
$TTL 60
@ IN SOA ns.zone.example. root.zone.example. 1 2 3 4 5
@ IN NS ns
ns IN A 192.0.2.1
web IN A 192.0.2.2
web IN AAAA 2001:db8::2
alias IN CNAME web
*.wild IN A 192.0.2.3
mail IN MX 5 web
old IN DNAME new.zone.example.
x.new IN A 192.0.2.4
sub IN NS ns.sub
ns.sub IN A 192.0.2.5
"""

CLUSTER_NAMES = [
    *("cache.shop.svc.cluster.local. A", "cache.shop.svc.cluster.local. AAAA", "cache.shop.svc.cluster.local. SRV"),
    *("nothing.shop.svc.cluster.local. A", "db.data.svc.cluster.local. A", "db-0.db.data.svc.cluster.local. A"),
    *("db-near.data.svc.cluster.local. A", "kubernetes.default.svc.cluster.local. A", "svc.cluster.local. A"),
    *("cluster.local. SOA", "cluster.local. NS", "ns.dns.cluster.local. A", "dns-version.cluster.local. TXT"),
    *("50.1.10.127.in-addr.arpa. PTR", "1.1.1.1.in-addr.arpa. PTR", "cache.shop.svc.cluster.local. TYPE65"),
    "cache.shop.svc.cluster.local.shop.svc.cluster.local. A",
]
CASES = {
    "a cluster": (CLUSTER, CLUSTER_NAMES, True),
    "no topology": (KUBERNETES, CLUSTER_NAMES, True),
    "around a cluster": (
        f"{CLUSTER}\nminimal\nheader {{\nresponse set ra\n}}\nnsid here\nany\nlocal",
        CLUSTER_NAMES,
        True,
    ),
    "acl": (f"acl {{\nblock net 192.0.2.0/24\n}}\n{CLUSTER}", CLUSTER_NAMES, False),
    "dns64": (f"dns64 {{\nallow_ipv4\n}}\n{CLUSTER}", CLUSTER_NAMES, True),
    "autopath": (
        f"{CLUSTER}\nautopath @kubernetes",
        [*CLUSTER_NAMES, *(f"db.data.{namespace}.svc.cluster.local. AAAA" for namespace in ("shop", "default"))],
        True,
    ),
    "k8s_external": (
        f"{CLUSTER}\nk8s_external example.org",
        ["kubernetes.default.example.org. A", "web.shop.example.org. A", "example.org. SOA", "no.shop.example.org. A"],
        True,
    ),
    "names rewritten": (
        "rewrite name suffix .example. .svc.cluster.local. answer auto\n"
        f"rewrite name exact old.cluster.local. nothing.shop.svc.cluster.local.\n{CLUSTER}",
        ["cache.shop.example. A", "nothing.shop.example. A", "cache.shop.svc.cluster.local. A", "old.cluster.local. A"],
        True,
    ),
    "options rewritten": (f"rewrite edns0 local set 0xffee 0x61\n{CLUSTER}", CLUSTER_NAMES[:4], False),
    "hosts": (HOSTS, ["a.example. A", "b.example. A", "b.example. AAAA", "1.2.0.192.in-addr.arpa. PTR"], True),
    "file": (
        "file zone zone.example",
        [
            f"{name}zone.example. {rtype}"
            for name in ("", "web.", "alias.", "x.wild.", "mail.", "x.old.", "no.", "a.sub.", "a.b.wild.")
            for rtype in ("A", "AAAA", "MX", "SOA", "NS")
        ],
        True,
    ),
    "template": (
        'template IN A {\nmatch "^(?P<a>[a-z]+)[.]"\nanswer "{{ .Question.Name }} 60 IN A 192.0.2.1"\n'
        'additional "x. 60 IN TXT {{ .Question.Name }}"\n}',
        ["a.example. A", "example. A"],
        True,
    ),
    "whoami": ("whoami", ["a.example. A"], False),
    "chaos": ("chaos", ["version.bind. CH TXT"], True),
}


class Listener:
    """One socket's handler of a generation. `ask` finds ready-made replies, `ask_anew` never does."""

    def __init__(self, generation: Generation, transport: str) -> None:
        ((_, blocks),) = generation.tables.items()
        self.udp = transport == "udp"
        self.variants = 0
        self.handler = Handler(
            blocks,
            PacketCache(generation.view_key, Random(0), lambda: 0.0),
            QueryCounters("dns://:53", transport, "1"),
            lambda: 0.0,
            53,
        )

    def ask(self, data: bytes, address: bytes) -> bytes | None:
        table = self.handler.table
        self.variants += variant_entry(table, data[2:], address) is not None
        ready = ready_made(table, data, address) if self.udp else None
        return ready or at_once(self.handler.answer(data, address, PORT))

    def ask_anew(self, data: bytes, address: bytes) -> bytes | None:
        self.handler.table.clear()
        return at_once(self.handler.answer(data, address, PORT))


def varied(question: str, rng: Random) -> bytes:
    """The question in some spelling, with some EDNS options or none."""
    name, *rest = question.split()
    if rng.random() < 0.6:
        name = "".join(rng.choice((char, char.upper())) for char in name)
    unread = [(10, rng.randbytes(8)), (12, bytes(rng.randrange(9))), (4711, rng.randbytes(3))]
    read = [(3, b""), (11, b""), (NODE_IDENTITY, b"node-b2"), subnet("10.0.0.0/8")]
    options = rng.sample(unread, rng.randrange(4)) + rng.sample(read, rng.random() < 0.2)
    opt = rng.choice((None, Opt(options=options), Opt(options=options), Opt(512, options), Opt(flags=DO)))
    return query(" ".join((name, *rest)), opt, rng.choice((RD, RD, RD, 0)), ident=rng.randrange(1 << 16))


@pytest.fixture
def zone_directory(tmp_path: Path) -> Path:
    (tmp_path / "zone").write_text(ZONE)
    return tmp_path


@pytest.mark.parametrize("transport", ["udp", "tcp"])
@pytest.mark.parametrize("case", CASES)
def test_a_variant_gets_the_octets_that_the_steps_give(case: str, transport: str, zone_directory: Path) -> None:
    lines, names, has_variants = CASES[case]
    built = settings(f". {{\n{lines}\n}}\n", str(zone_directory))
    generation = read_whole(assembly("here"), built)
    warm, cold = (Listener(generation, transport) for _ in range(2))
    rng = Random(1)
    for _ in range(400):
        data, address = varied(rng.choice(names), rng), rng.choice((ON_NODE, IN_POD, STRANGER))
        assert warm.ask(data, address) == cold.ask_anew(data, address), (data, address)
    assert (warm.variants > 0) == has_variants
    assert len(warm.handler.table) <= len(names) * 4 * 2 * 3  # OPT records, RD, and where the client is
