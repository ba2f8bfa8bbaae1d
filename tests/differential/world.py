"""The cluster that both servers watch: some 750 Services of every sort, 320 of them by chance."""

from collections.abc import Iterator, Sequence
from random import Random
from typing import Final

from tests.differential.place import HTTP, Place
from tests.differential.random_world import SEED, furnish
from tests.support.api_objects import Object, namespace, pod, service_import

NAMESPACES: Final = ("default", "red", "blue", "kube-system", "svc", "pod", "10-0-0-1", "ghost")
NO_OBJECT: Final = "ghost"  # a namespace of Services that has no Namespace object
EMPTY: Final = "void"  # a namespace with nothing in it

_HTTPS: Final = {"name": "https", "port": 443, "protocol": "TCP"}
_DNS: Final = {"name": "dns", "port": 53, "protocol": "UDP"}
_DNS_TCP: Final = {"name": "dns-tcp", "port": 53, "protocol": "TCP"}
_SIP: Final = {"name": "sip", "port": 5060, "protocol": "SCTP"}
_UNNAMED: Final = {"name": "", "port": 8080, "protocol": "TCP"}
_EVERY_PORT: Final = {"name": "any", "port": None, "protocol": "TCP"}


def cluster() -> list[Object]:
    """All objects, the same each time; with v1 Endpoints, of which the control plane makes slices (`mirroring`)."""
    made = [namespace(name) for name in (*NAMESPACES, EMPTY) if name != NO_OBJECT]
    for one in made:
        one["metadata"]["labels"] |= {"tenant": one["metadata"]["name"]}
    for number, name in enumerate(NAMESPACES, 1):
        place = Place(name, number)
        for make in (_virtual, _headless, _awkward, _unusual, _external, _pods, _imports):
            make(place)
        furnish(place, Random(f"{SEED} {name}"))
        made += place.objects
    made.append(pod("asker", "127.0.0.1", "n1", "red"))  # for who asks is a Pod to `autopath`
    return made


def _virtual(place: Place) -> None:
    for families in ("4", "6", "46", "64"):
        name = f"web-{families}"
        place.service(name, place.cluster_ips(families), (HTTP, _HTTPS))
        place.slice(name, place.endpoint(), place.endpoint(hostname="front"))
    place.service("mixed-ports", place.cluster_ips("46"), (HTTP, _DNS, _DNS_TCP, _SIP))
    place.slice("mixed-ports", place.endpoint(), ports=(HTTP, _DNS, _DNS_TCP, _SIP))
    place.service("unnamed", place.cluster_ips("4"), (_UNNAMED,))
    place.service("portless", place.cluster_ips("46"), ())
    place.service("deserted", place.cluster_ips("4"))
    place.service("starting", place.cluster_ips("4"))
    place.slice("starting", place.endpoint(ready=False))
    place.service("public", place.cluster_ips("4"), type="LoadBalancer", externalIPs=["203.0.113.9"])


def _headless(place: Place) -> None:
    place.service("db")
    place.slice("db", *(place.endpoint(hostname=f"db-{number}", **_pod(f"db-{number}")) for number in range(3)))
    place.service("cache")
    place.slice("cache", *(place.endpoint(**_pod(f"cache-{number}")) for number in range(4)))
    place.service("dual")
    place.slice("dual", place.endpoint(hostname="d0"), place.endpoint(), ports=(HTTP, _DNS))
    place.slice("dual", place.endpoint("6", hostname="d0"), place.endpoint("6"), family="IPv6", suffix="b")
    place.service("six")
    place.slice("six", place.endpoint("6"), place.endpoint("6", f"fd00:10:{place.number}:1::"), family="IPv6")
    place.service("unready")
    place.slice("unready", place.endpoint(ready=False), place.endpoint(ready=False, hostname="u0"))
    place.service("half-ready")
    place.slice("half-ready", place.endpoint(), place.endpoint(ready=False, hostname="h1"), place.endpoint(ready=None))
    place.service("early", publishNotReadyAddresses=True)
    leaving = {"ready": True, "serving": False, "terminating": True}
    place.slice("early", place.endpoint(hostname="e0"), place.endpoint() | {"conditions": leaving})
    place.service("no-slices")
    place.service("empty-slice")
    place.slice("empty-slice")
    place.service("large")
    place.slice("large", *(place.endpoint() for _ in range(70)))


def _awkward(place: Place) -> None:
    place.service("no-ports", ports=())
    place.slice("no-ports", place.endpoint(), ports=None)
    place.service("all-ports")
    place.slice("all-ports", place.endpoint(hostname="a0"), ports=(_EVERY_PORT,))
    place.service("unnamed-hdls", ports=(_UNNAMED,))
    place.slice("unnamed-hdls", place.endpoint(), place.endpoint(), ports=(_UNNAMED,))
    place.service("two-ports")
    place.slice("two-ports", place.endpoint(), ports=(HTTP,))
    place.slice("two-ports", place.endpoint(), ports=({**HTTP, "port": 8080}, _SIP), suffix="b")
    place.service("namesakes")
    place.slice("namesakes", place.endpoint(hostname="same"), place.endpoint(hostname="same"), place.endpoint())
    place.service("shared")  # the Pods of `cache`, once more
    place.slice("shared", *(place.endpoint(address=f"10.{place.number}.0.{number}") for number in (12, 13)))
    place.service("twice")
    twin = place.endpoint()
    place.slice("twice", twin)
    place.slice("twice", twin, suffix="b")
    place.service("undecided")  # one endpoint, ready in one slice and not in the other
    ready = place.endpoint()
    place.slice("undecided", {**ready, "conditions": {"ready": False}})
    place.slice("undecided", ready, suffix="b")
    place.service("long-names")
    place.slice("long-names", place.endpoint(**_pod("p" * 63)), place.endpoint(**_pod("p" * 64)))
    place.service("svc")
    place.slice("svc", place.endpoint(hostname="pod"))
    place.service("pod", place.cluster_ips("4"))
    place.service("http", place.cluster_ips("4"))
    place.slice("orphan", place.endpoint(hostname="o0"))  # of a Service that is not there
    place.slice("nobody", place.endpoint())
    del place.objects[-1]["metadata"]["labels"]["kubernetes.io/service-name"]


def _unusual(place: Place) -> None:
    """What the API accepts and no controller of Kubernetes writes."""
    own = f"{place.name}.svc.cluster.local"
    place.service("some-ports", ports=(HTTP,))
    place.slice("some-ports", place.endpoint(hostname="s0"), place.endpoint(), ports=(HTTP, _EVERY_PORT))
    place.slice("some-ports", place.endpoint(hostname="s1"), ports=(_EVERY_PORT,), suffix="b")
    place.slice("some-ports", place.endpoint(), ports=(), suffix="c")
    place.service("targets")
    targets = ({"kind": "Node", "name": "n1"}, {"kind": "VirtualMachine", "name": "Vm-1"}, {"kind": "Pod", "name": "p"})
    away = {"kind": "Pod", "name": "away", "namespace": "no-such"}
    place.slice("targets", *(place.endpoint(targetRef=target) for target in (*targets, away)))
    place.service("public-hdls", externalIPs=["203.0.113.10"], ports=())
    place.service("public-portless", place.cluster_ips("46"), (), externalIPs=["203.0.113.11", "2001:db8::11"])
    place.service("fqdn")
    place.slice("fqdn", place.endpoint(address="www.example.org"), family="FQDN")
    place.service("fqdns")
    place.slice(
        "fqdns",
        place.endpoint(address="www.example.org", hostname="f0"),
        place.endpoint(address="mail.example.org", **_pod("f1")),
        place.endpoint(address="asleep.example.org", ready=False),
        place.endpoint(address=f"db.{own}"),
        ports=(HTTP, _DNS),
        family="FQDN",
    )
    place.service("fqdn-inside")
    place.slice("fqdn-inside", place.endpoint(address=f"db.{own}"), ports=(), family="FQDN")
    place.service("fqdn-nowhere")
    place.slice("fqdn-nowhere", place.endpoint(address=f"no-such.{own}"), family="FQDN")
    place.service("fqdn-itself")
    place.slice("fqdn-itself", place.endpoint(address=f"fqdn-itself.{own}"), family="FQDN")
    place.service("fqdn-asleep")
    place.slice("fqdn-asleep", place.endpoint(address="www.example.org", ready=False), family="FQDN")
    place.service("fqdn-virtual", place.cluster_ips("4"))
    place.slice("fqdn-virtual", place.endpoint(address="www.example.org"), family="FQDN")


def _external(place: Place) -> None:
    own = f"{place.name}.svc.cluster.local"
    targets = {
        "out": "www.example.org",
        "out-dot": "www.example.org.",
        "out-under": "_srv._tcp.example.org",
        "to-web": f"web-46.{own}",
        "to-db": f"db.{own}",
        "to-host": f"db-0.db.{own}",
        "to-nowhere": f"no-such.{own}",
        "to-other": "web-4.default.svc.cluster.local",
        "chain-1": f"chain-2.{own}",
        "chain-2": f"chain-3.{own}",
        "chain-3": f"db.{own}",
        "chain-out": f"out.{own}",
        "loop-a": f"loop-b.{own}",
        "loop-b": f"loop-a.{own}",
        "loop-self": f"loop-self.{own}",
        "to-apex": "cluster.local",
        "to-ptr": "1.1.96.10.in-addr.arpa",
        "to-pod": f"10-1-0-1.{place.name}.pod.cluster.local",
        "literal": "192.0.2.7",
        "literal-6": "2001:db8::7",
    }
    for name, target in targets.items():
        place.external(name, target)


def _pods(place: Place) -> None:
    for number in range(1, 4):
        place.objects.append(pod(f"pod-{number}", f"10.{place.number}.0.{number}", "n1", place.name))
    for name in ("host-1", "host-2"):
        place.objects.append(pod(name, "192.0.2.50", "n1", place.name))  # the node's address, in each namespace
    place.objects.append(pod("done", f"10.{place.number}.9.9", "n1", place.name, phase="Succeeded"))
    dual = pod("dual", f"10.{place.number}.8.8", "n1", place.name)
    dual["status"]["podIPs"].append({"ip": f"fd00:10:{place.number}::88"})
    place.objects.append(dual)


def _imports(place: Place) -> None:
    place.objects.append(service_import("vip", [f"10.97.{place.number}.1", f"fd00:97::{place.number}"], place.name))
    place.service_import("far-db", {"type": "Headless", "ports": [HTTP]})
    for cluster_id in ("east", "west"):
        place.slice("derived", place.endpoint(hostname="f0"), place.endpoint(), suffix=cluster_id)
        labels = {
            "kubernetes.io/service-name": "derived",
            "multicluster.kubernetes.io/service-name": "far-db",
            "multicluster.kubernetes.io/source-cluster": cluster_id,
        }
        place.objects[-1]["metadata"]["labels"] = labels


def _pod(name: str) -> Object:
    return {"targetRef": {"kind": "Pod", "name": name}}


def of_kind(objects: Sequence[Object], kind: str) -> Iterator[Object]:
    return (one for one in objects if one["kind"] == kind)
