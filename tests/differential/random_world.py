"""Services by chance, from a seed, of the kinds that clusters hold: as an API server accepts and stores them.

Endpoints share addresses and hostnames, slices of one Service have different ports, targets are of any kind.
"""

import re
from collections.abc import Mapping, Sequence
from copy import deepcopy
from random import Random
from typing import Final

from tests.differential.mirroring import LEADER, SKIP
from tests.differential.place import Place
from tests.support.api_objects import Object

SERVICES: Final = 24  # of a namespace
SEED: Final = 29
NODE_ADDRESS: Final = "192.0.2.50"  # of Pods in the node's network, in each namespace

Port = dict[str, object]

_NUMBERED: Final[Sequence[Port]] = (
    {"name": "http", "port": 80, "protocol": "TCP"},
    {"name": "http", "port": 8080, "protocol": "TCP"},
    {"name": "dns", "port": 53, "protocol": "UDP"},
    {"name": "dns", "port": 53, "protocol": "TCP"},
    {"name": "sip", "port": 5060, "protocol": "SCTP"},
    {"name": "a-long-one-1234", "port": 65535, "protocol": "TCP"},
    {"name": "", "port": 8081, "protocol": "TCP"},
)
_ODD: Final[Sequence[Port]] = (
    {"name": "any", "port": None, "protocol": "TCP"},
    {"name": "any", "protocol": "UDP"},
    {"name": "", "protocol": "TCP"},
)
_TARGETS: Final[Sequence[Object]] = (
    {"kind": "Pod", "name": "plain"},
    {"kind": "Pod", "name": "other"},
    {"kind": "Pod", "name": "static-web-node1.example.org"},
    {"kind": "Pod", "name": "two.labels"},
    {"kind": "Pod", "name": "l" * 63},
    {"kind": "Pod", "name": "l" * 64},
    {"kind": "Node", "name": "node1"},
    {"kind": "Node", "name": "node1.example.org"},
    {"kind": "VirtualMachine", "name": "vm-1"},
    {"name": "no-kind"},
)
_HOSTNAMES: Final = ("", "", "", "h0", "h1", "h1", "h" * 63)
_CONDITIONS: Final[Sequence[Mapping[str, bool]]] = (
    *({"ready": True, "serving": True, "terminating": False},) * 4,
    {"ready": False, "serving": False, "terminating": False},
    {"ready": False, "serving": True, "terminating": True},
    {"ready": True},
    {"ready": False},
    {},
)
_CLUSTERS: Final = ("east", "East", "eu.west-1", "a_b")  # ids, which are values of labels
_FULL_NAMES: Final = ("www.example.org", "db.red.svc.cluster.local", "nothing.red.svc.cluster.local")


def furnish(place: Place, random: Random, number: int = SERVICES) -> None:
    """Add so many Services with all that belongs to them."""
    for at in range(number):
        name = random.choice((f"r{at}", f"r{at}", f"r{at}", f"r{at}-".ljust(63, "r")))
        _service(place, name, random)
        source = random.choice((_slices, _slices, _slices, _endpoints, _imported, _nothing))
        source(place, name, random)


def respelled(objects: Sequence[Object], random: Random) -> list[Object]:
    """The objects with leading zeros in some IPv4 addresses, which stored objects keep and Kubernetes reads as decimal
    (ParseIPSloppy).
    """
    return [_respelled(deepcopy(one), random) for one in objects]


def _service(place: Place, name: str, random: Random) -> None:
    more: dict[str, object] = {}
    if random.random() < 0.2:
        more["publishNotReadyAddresses"] = True
    if random.random() < 0.25:
        more["externalIPs"] = random.choice((["203.0.113.9"], ["203.0.113.10", "2001:db8::10"], ["2001:db8::11"]))
    ports = _apart(random.sample(_NUMBERED, random.randrange(4)))
    shape = random.choice(("headless", "headless", "headless", "virtual", "external"))
    if shape == "external":
        place.external(name, random.choice(_FULL_NAMES))
        place.objects[-1]["spec"] |= more
        return
    ips = place.cluster_ips(random.choice(("4", "6", "46", "64"))) if shape == "virtual" else ["None"]
    place.service(name, ips, ports, **more)


def _apart(ports: Sequence[Port], unnamed: bool = False) -> list[Port]:
    """These ports with names that they can have together: no two the same; `unnamed`: one of several may have none."""
    names: set[object] = set()
    made: list[Port] = []
    for at, port in enumerate(ports):
        name = port["name"]
        if name in names or (not name and len(ports) > 1 and not unnamed):
            name = f"p{at}"
        names.add(name)
        made.append({**port, "name": name})
    return made


def _nothing(place: Place, name: str, random: Random) -> None:
    """A Service without endpoints."""


def _slices(place: Place, name: str, random: Random) -> None:
    for number in range(random.randint(1, 3)):
        family = random.choice(("IPv4", "IPv4", "IPv4", "IPv6", "FQDN"))
        endpoints = [_endpoint(place, family, random) for _ in range(random.randrange(5))]
        place.slice(name, *endpoints, ports=_ports(random), family=family, suffix=f"s{number}")


def _imported(place: Place, name: str, random: Random) -> None:
    """A ServiceImport of this name, with slices of some clusters."""
    headless = {"type": "Headless", "ports": random.sample(_NUMBERED, 2)}
    place.service_import(name, headless)
    for cluster in random.sample(_CLUSTERS, 2):
        endpoints = [_endpoint(place, "IPv4", random) for _ in range(random.randint(1, 3))]
        place.slice(f"derived-{name}"[:63], *endpoints, ports=_ports(random), suffix=cluster.lower().replace("_", "-"))
        place.objects[-1]["metadata"]["labels"] = {
            "multicluster.kubernetes.io/service-name": name,
            "multicluster.kubernetes.io/source-cluster": cluster,
        }


def _endpoints(place: Place, name: str, random: Random) -> None:
    """v1 Endpoints, which the control plane mirrors, or does not."""
    metadata: Object = {"name": name, "namespace": place.name, "labels": {"app": name, "tier": f"t{len(name) % 2}"}}
    if random.random() < 0.2:
        metadata["labels"][SKIP] = random.choice(("true", "false"))
    if random.random() < 0.1:
        metadata["annotations"] = {LEADER: "{}"}
    large = random.random() < 0.05
    subsets = [_subset(place, random, 0) for _ in range(random.randint(1, 3))]
    # One of each list of ports, and no address that is ready and not ready: the control plane has the last one count.
    subsets = list({repr(subset.get("ports")): subset for subset in subsets}.values())
    for subset in subsets:
        ready = {one["ip"] for one in subset.get("addresses", ())}
        if lacking := [one for one in subset.pop("notReadyAddresses", ()) if one["ip"] not in ready]:
            subset["notReadyAddresses"] = lacking
    if large:  # alone, since the control plane chooses any 1,000 where several subsets have the same ports
        subsets = [_subset(place, random, 1100)]
    place.objects.append({"kind": "Endpoints", "apiVersion": "v1", "metadata": metadata, "subsets": subsets})


def _subset(place: Place, random: Random, more: int) -> Object:
    lists = {}
    for field in ("addresses", "notReadyAddresses"):
        if found := [_endpoint_address(place, random) for _ in range(random.randrange(4))]:
            lists[field] = found
    if more:
        lists["addresses"] = [{"ip": f"10.250.{at >> 8}.{at & 255}"} for at in range(more)]
    ports = _apart(random.sample(_NUMBERED, random.randrange(3)))
    return {**lists, **({"ports": ports} if ports else {})}


def _endpoint_address(place: Place, random: Random) -> Object:
    endpoint = _endpoint(place, random.choice(("IPv4", "IPv4", "IPv6")), random)
    return {
        "ip": endpoint["addresses"][0],
        **{key: endpoint[key] for key in ("hostname", "targetRef") if key in endpoint},
    }


def _endpoint(place: Place, family: str, random: Random) -> Object:
    """At an address that others have, too."""
    shared = random.randint(1, 6)
    own = {
        "IPv4": random.choice((f"10.{place.number}.200.{shared}", f"10.{place.number}.200.{shared}", NODE_ADDRESS)),
        "IPv6": f"fd00:10:{place.number}:200::{shared}",
        "FQDN": random.choice(_FULL_NAMES),
    }
    hostname = random.choice(_HOSTNAMES)
    return {
        "addresses": [own[family]],
        "conditions": dict(random.choice(_CONDITIONS)),
        **({"hostname": hostname} if hostname else {}),
        **({"targetRef": dict(random.choice(_TARGETS))} if random.random() < 0.6 else {}),
        **({"zone": random.choice(("eu-1a", "Rack.7"))} if random.random() < 0.5 else {}),
    }


def _ports(random: Random) -> list[Port] | None:
    if random.random() < 0.1:
        return random.choice((None, []))
    return _apart(random.sample((*_NUMBERED, *_ODD), random.randint(1, 3)), unnamed=True)


def _respelled(value: Object, random: Random) -> Object:
    spec = value.get("spec", {})
    for field in ("clusterIPs", "externalIPs"):
        if field in spec:
            spec[field] = [_with_zeros(ip, random) for ip in spec[field]]
    if spec.get("clusterIPs"):
        spec["clusterIP"] = spec["clusterIPs"][0]
    for endpoint in value.get("endpoints", ()):
        endpoint["addresses"] = [_with_zeros(ip, random) for ip in endpoint["addresses"]]
    for subset in value.get("subsets", ()):
        for address in (*subset.get("addresses", ()), *subset.get("notReadyAddresses", ())):
            address["ip"] = _with_zeros(address["ip"], random)
    for ip in value.get("status", {}).get("podIPs", ()):
        ip["ip"] = _with_zeros(ip["ip"], random)
    return value


def _with_zeros(address: str, random: Random) -> str:
    if random.random() < 0.7 or not re.fullmatch(r"\d+(\.\d+){3}", address):
        return address
    return ".".join(octet.zfill(random.choice((1, 2, 3))) for octet in address.split("."))
