"""The cluster of the comparison, as Kubernetes objects and as static zones with the same names.

It is that of `bench.cluster` and two headless Services without topology keys, of 100 and of 1,000 endpoints. Names of
Pods are those of `pods insecure`, where each address has one; the zones have those of the loads.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from socket import inet_ntoa
from typing import Final

from bench.cluster import (
    ENDPOINTS_EACH,
    MANY,
    MANY_ENDPOINTS,
    NODES,
    NODES_WITH_ONE,
    SERVICES,
    Object,
    cluster_objects,
    service,
    slices,
)

ORIGIN: Final = "cluster.local"
SIZES: Final = (100, 1_000)
TTL: Final = 30  # seconds, as in kubeadm's Corefile

_PLACE: Final = SERVICES * ENDPOINTS_EACH + MANY_ENDPOINTS + NODES_WITH_ONE  # of endpoints that `bench.cluster` has


def sized_name(endpoints: int) -> str:
    """The name of the headless Service without keys that has so many endpoints."""
    return f"sized{endpoints}.ns0.svc.{ORIGIN}"


def pod_name(number: int) -> str:
    """One of 16,777,216 different names of Pods."""
    address = inet_ntoa((0x7F000000 | number).to_bytes(4, "big"))
    return f"{address.replace('.', '-')}.ns0.pod.{ORIGIN}"


def objects() -> Iterator[Object]:
    yield from cluster_objects()
    for size in SIZES:
        label, namespace, *_ = sized_name(size).split(".")
        yield service(namespace, label, "None")
        yield from slices(namespace, label, [number % NODES for number in range(size)], _PLACE)


def addresses(made: Iterable[Object]) -> Mapping[str, list[str]]:
    """The IPv4 addresses of each Service's name: its ClusterIP, or those of its ready endpoints."""
    of_slices: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    services: dict[tuple[str, str], str] = {}
    for one in made:
        metadata = one["metadata"]
        if one["kind"] == "Service":
            services[metadata["namespace"], metadata["name"]] = one["spec"]["clusterIP"]
        elif one["kind"] == "EndpointSlice":
            key = metadata["namespace"], metadata["labels"]["kubernetes.io/service-name"]
            of_slices[key] += [endpoint["addresses"][0] for endpoint in one["endpoints"]]
    return {
        f"{name}.{namespace}.svc.{ORIGIN}": of_slices[namespace, name] if address == "None" else [address]
        for (namespace, name), address in services.items()
    }


def records(made: Iterable[Object], pods: Iterable[int]) -> Iterator[tuple[str, str]]:
    """Names with an address each: of all Services but the largest, and of the Pods with these numbers.

    The largest is in no load, and unbound takes 4,096 of its endpoints at most.
    """
    for name, found in addresses(made).items():
        if name != MANY:
            yield from ((name, address) for address in found)
    for number in pods:
        yield pod_name(number), inet_ntoa((0x7F000000 | number).to_bytes(4, "big"))


def write_zone(path: Path, content: Iterable[tuple[str, str]]) -> Path:
    """Write the zone cluster.local as a master file (RFC 1035 section 5); its path."""
    head = (
        f"$ORIGIN {ORIGIN}.\n$TTL {TTL}\n"
        f"@ IN SOA ns.dns hostmaster 1 7200 1800 86400 {TTL}\n"
        "@ IN NS ns.dns\nns.dns IN A 127.0.0.1\n"
    )
    path.write_text(head + "".join(f"{name}. IN A {address}\n" for name, address in content))
    return path


def write_local_data(path: Path, content: Iterable[tuple[str, str]]) -> Path:
    """Write the same as unbound's `local-zone` and `local-data`; the path of the file to include."""
    soa = f"{ORIGIN}. {TTL} IN SOA ns.dns.{ORIGIN}. hostmaster.{ORIGIN}. 1 7200 1800 86400 {TTL}"
    lines = (f"local-data: '{name}. {TTL} IN A {address}'\n" for name, address in content)
    path.write_text(f"local-zone: {ORIGIN}. static\nlocal-data: '{soa}'\n" + "".join(lines))
    return path
