"""Beside CoreDNS on the same cluster, asked the same questions by the same pod: without topology they do not differ."""

from collections.abc import Iterator

import pytest

from tests.cluster.conftest import Serve
from tests.kubelab.programs import COREDNS
from tests.support.dns_messages import Opt
from tests.support.kube.client_pods import Askers
from tests.support.kube.cluster import Place
from tests.support.kube.objects import headless, metadata, pod, pod_spec, sleeping_container, workload
from tests.support.kube.query_pods import Asker
from tests.support.kube.server_pods import Server
from tests.support.kube.waiting import becomes

COREFILE = """\
.:53 {
    errors
    ready
    kubernetes cluster.local in-addr.arpa ip6.arpa {
        pods insecure
    }
}
"""

# NAMESPACE is the test's, IP and IP6 a pod's addresses with dashes, REVERSE the first as a reverse name.
QUESTIONS = [
    "kubernetes.default.svc.cluster.local A",
    "kubernetes.default.svc.cluster.local AAAA",
    "kubernetes.default.svc.cluster.local SRV",
    "_https._tcp.kubernetes.default.svc.cluster.local SRV",
    "1.0.96.10.in-addr.arpa PTR",
    "virtual.NAMESPACE.svc.cluster.local A",
    "virtual.NAMESPACE.svc.cluster.local AAAA",
    "virtual.NAMESPACE.svc.cluster.local SRV",
    "virtual.NAMESPACE.svc.cluster.local TXT",
    "_web._tcp.virtual.NAMESPACE.svc.cluster.local SRV",
    "_no._tcp.virtual.NAMESPACE.svc.cluster.local SRV",
    "db.NAMESPACE.svc.cluster.local A",
    "db.NAMESPACE.svc.cluster.local AAAA",
    "db.NAMESPACE.svc.cluster.local SRV",
    "_http._tcp.db.NAMESPACE.svc.cluster.local SRV",
    "_http._udp.db.NAMESPACE.svc.cluster.local SRV",
    "db-0.db.NAMESPACE.svc.cluster.local A",
    "db-0.db.NAMESPACE.svc.cluster.local AAAA",
    "db-7.db.NAMESPACE.svc.cluster.local A",
    "DB-0.Db.NAMESPACE.svc.cluster.local A",
    "IP.loner.NAMESPACE.svc.cluster.local A",
    "IP6.loner.NAMESPACE.svc.cluster.local AAAA",
    "REVERSE PTR",
    "elsewhere.NAMESPACE.svc.cluster.local A",
    "elsewhere.NAMESPACE.svc.cluster.local CNAME",
    "empty.NAMESPACE.svc.cluster.local A",
    "no-such.NAMESPACE.svc.cluster.local A",
    "NAMESPACE.svc.cluster.local A",
    "no-such-namespace.svc.cluster.local A",
    "svc.cluster.local A",
    "cluster.local A",
    "cluster.local SOA",
    "IP.NAMESPACE.pod.cluster.local A",
    "IP6.NAMESPACE.pod.cluster.local AAAA",
    "no-address.NAMESPACE.pod.cluster.local A",
    "dns-version.cluster.local TXT",
    "9.9.9.10.in-addr.arpa PTR",
    "example.org A",
]


@pytest.fixture(scope="module")
def coredns(serve: Serve) -> Iterator[Server]:
    with serve("coredns", COREFILE, image=f"localhost/coredns:{COREDNS.version}") as server:
        yield server


@pytest.fixture(scope="module")
def topodns(serve: Serve) -> Iterator[Server]:
    with serve("plain", COREFILE, node="node2") as server:
        yield server


@pytest.fixture
def furnished(place: Place) -> Place:
    """Services of every sort; pods of a StatefulSet, and a lone one."""
    ports = [{"name": "web", "port": 80}, {"name": "dns", "port": 53, "protocol": "UDP"}]
    virtual = {"ports": ports, "selector": {"app": "db"}, "ipFamilyPolicy": "RequireDualStack"}
    outside = {"type": "ExternalName", "externalName": "example.org"}
    place.create(
        {"apiVersion": "v1", "kind": "Service", "metadata": metadata("virtual"), "spec": virtual},
        {"apiVersion": "v1", "kind": "Service", "metadata": metadata("elsewhere"), "spec": outside},
        headless("db", ipFamilyPolicy="RequireDualStack"),
        headless("loner", ipFamilyPolicy="RequireDualStack"),
        headless("empty"),
        workload("StatefulSet", "db", {"replicas": 2, "serviceName": "db"}, pod_spec(sleeping_container())),
        pod("loner", "loner", sleeping_container()),
    )
    place.pods_once_ready("loner", 1)
    place.pods_once_ready("db", 2)
    return place


def questions(place: Place) -> list[str]:
    (loner,) = place.pods("loner")
    ipv4, ipv6 = loner.ips
    words = {
        "NAMESPACE": place.name,
        "IP6": ipv6.replace(":", "-"),
        "IP": ipv4.replace(".", "-"),
        "REVERSE": ".".join([*reversed(ipv4.split(".")), "in-addr.arpa"]),
    }
    asked = []
    for question in QUESTIONS:
        for word, value in words.items():
            question = question.replace(word, value)
        asked.append(question)
    return asked


def facts(asker: Asker, question: str, server: Server, opt: Opt | None) -> dict[str, object]:
    """All that a reply says but the order of records and the SOA's serial, which is each server's own time."""
    reply = asker.ask(question, server.pod.ip, opt=opt)
    sections = (reply.answer, reply.authority, reply.additional)
    return {
        "rcode": reply.rcode,
        "flags": reply.flag_names,
        "sections": [sorted(_without_serial(line) for line in section) for section in sections],
        "size": reply.edns_size if reply.options is not None else None,
    }


def _without_serial(record: str) -> str:
    words = record.split()
    return " ".join(words[:6] + words[7:] if words[3] == "SOA" else words)


@pytest.mark.parametrize("opt", [None, Opt()], ids=["without EDNS", "with EDNS"])
def test_every_reply_is_that_of_coredns(
    coredns: Server, topodns: Server, furnished: Place, askers: Askers, opt: Opt | None
) -> None:
    asker, asked = askers["node3"], questions(furnished)
    becomes(lambda: len(asker.addresses(furnished.fqdn("db"), to=coredns.pod.ip)), 2)
    expected = {question: facts(asker, question, coredns, opt) for question in asked}
    becomes(lambda: {question: facts(asker, question, topodns, opt) for question in asked}, expected, patience=10)
