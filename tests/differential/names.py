"""The names that a cluster's objects give rise to (Kubernetes DNS schema 1.1.0), and names that nearly are such."""

from collections.abc import Callable, Mapping, Sequence
from ipaddress import ip_address
from random import Random
from typing import Final

from tests.differential.world import EMPTY, NAMESPACES, of_kind
from tests.support.api_objects import Object

Labels = tuple[bytes, ...]
"""A name, leaf first, without the root."""

CLUSTER: Final = (b"cluster", b"local")
CLUSTERSET: Final = (b"clusterset", b"local")
EXTERNAL: Final = (b"k8s", b"example", b"org")

_WORDS: Final = (
    *(
        b"*",
        b"any",
        b"_tcp",
        b"_udp",
        b"tcp",
        b"_http",
        b"http",
        b"_",
        b"__tcp",
        b"_sctp",
        b"svc",
        b"pod",
        b"ns",
        b"dns",
    ),
    *(b"dns-version", b"_zone", b"pin", b"prefer", b"default", b"no-such", b"web-4", b"db", b"10-0-0-1", b"1", b"-"),
    *(b"x" * 63, b"a.b", b"a b", b"\\", b'"', b"\0", b"\xc3\xbc", b"\xff", b"@", b"$", b"a\\.b", b"xn--bcher-kva"),
)
_OTHER_ORIGINS: Final = ((b"local",), (b"cluster", b"locall"), (b"example", b"org"), CLUSTERSET, ())


def text_labels(text: str) -> Labels:
    return tuple(label.encode() for label in text.split(".") if label)


def existing(objects: Sequence[Object]) -> Mapping[str, Sequence[Labels]]:
    """By sort; those of ServiceImports are under CLUSTERSET, those of `k8s_external` under EXTERNAL, all others under
    CLUSTER or reverse.
    """
    services = [(_name(one), one) for one in of_kind(objects, "Service")]
    return {
        "nodes": _nodes(),
        "services": [(*key, b"svc", *CLUSTER) for key, _ in services],
        "ports": [
            *(name for key, one in services for name in _port_names(key, one["spec"].get("ports", ()))),
            *(name for one in of_kind(objects, "EndpointSlice") for name in _slice_port_names(one)),
        ],
        "endpoints": [name for one in of_kind(objects, "EndpointSlice") for name in _endpoint_names(one)],
        "zonal": [name for key, _ in services for name in _zonal_names(key)],
        "pods": [name for one in of_kind(objects, "Pod") for name in _pod_names(one)],
        "reverse": [*_reverse_names(objects), (b"in-addr", b"arpa"), (b"ip6", b"arpa"), (b"10", b"in-addr", b"arpa")],
        "external": [name for key, one in services for name in _external_names(key, one)],
        "imports": [name for one in of_kind(objects, "ServiceImport") for name in _import_names(_name(one))],
    }


def under(names: Sequence[Labels], origin: Labels) -> list[Labels]:
    """The names with `origin` in place of CLUSTER; those that are too long then are left out."""
    size = len(CLUSTER)
    moved = [(*name[:-size], *origin) if name[-size:] == CLUSTER else name for name in names]
    return [name for name in moved if sum(len(label) + 1 for label in name) < 255]


def _name(value: Object) -> tuple[bytes, bytes]:
    metadata = value["metadata"]
    return metadata["name"].encode(), metadata["namespace"].encode()


def _nodes() -> list[Labels]:
    """Names that hold nothing of a Service."""
    fixed = ((), (b"svc",), (b"pod",), (b"ns", b"dns"), (b"dns",), (b"dns-version",))
    namespaces = [(name.encode(), kind) for name in (*NAMESPACES, EMPTY) for kind in (b"svc", b"pod")]
    return [(*name, *CLUSTER) for name in (*fixed, *namespaces)]


def _port_names(key: tuple[bytes, bytes], ports: Sequence[Object]) -> list[Labels]:
    given = [*ports, {"name": "http", "protocol": "TCP"}]
    named = [(port.get("name", "").encode() or b"_", port.get("protocol", "TCP").lower().encode()) for port in given]
    return [(b"_" + name, b"_" + protocol, *key, b"svc", *CLUSTER) for name, protocol in named]


def _slice_port_names(slice_: Object) -> list[Labels]:
    """Of the Service that the slice says it belongs to; also where that has no such port."""
    service = slice_["metadata"]["labels"].get("kubernetes.io/service-name")
    key = (str(service).encode(), slice_["metadata"]["namespace"].encode())
    return _port_names(key, slice_.get("ports") or ()) if service is not None else []


def _endpoint_names(slice_: Object) -> list[Labels]:
    service = slice_["metadata"]["labels"].get("kubernetes.io/service-name")
    if service is None:
        return []
    below = (service.encode(), slice_["metadata"]["namespace"].encode(), b"svc", *CLUSTER)
    labels = [label for endpoint in _some(slice_["endpoints"]) for label in _endpoint_labels(endpoint)]
    dotted = [(*label.split(b"."), *below) for label in labels if b"." in label]  # as some take the name of a Pod
    return [*((label, *below) for label in labels), *dotted]


def _some(endpoints: Sequence[Object]) -> Sequence[Object]:
    """All of them, but of hundreds the first and the last."""
    return endpoints if len(endpoints) < 100 else (*endpoints[:5], *endpoints[-5:])


def _endpoint_labels(endpoint: Object) -> list[bytes]:
    """All that the endpoint could be called, whatever it is called."""
    named = [endpoint.get("hostname", ""), endpoint.get("targetRef", {}).get("name", "")]
    labels = [*named, *map(dashed, endpoint["addresses"])]
    return [label.encode() for label in labels if 0 < len(label) < 64]


def dashed(address: str) -> str:
    label = address.replace(".", "-").replace(":", "-")
    return f"{label}0" if label.endswith("-") else label


def _zonal_names(key: tuple[bytes, bytes]) -> list[Labels]:
    zones = ((b"eu-1a",), (b"EU-1B",), (b"rack", b"7"), (b"none",))
    return [(*zone, how, b"_zone", *key, b"svc", *CLUSTER) for zone in zones for how in (b"pin", b"prefer")]


def _pod_names(pod: Object) -> list[Labels]:
    below = (pod["metadata"]["namespace"].encode(), b"pod", *CLUSTER)
    own = [dashed(ip["ip"]).encode() for ip in pod["status"]["podIPs"]]
    odd = (b"1-2-3-4", b"fd00--1", b"--1", b"1-2-3", b"--ffff-1-2-3-4", b"01-2-3-4", b"1-2-3-256", b"a--b--c", b"--")
    return [(label, *below) for label in (*own, *odd)]


def _reverse_names(objects: Sequence[Object]) -> list[Labels]:
    ips = [ip for one in of_kind(objects, "Service") for ip in one["spec"].get("clusterIPs", ()) if ip != "None"]
    slices = (one for one in of_kind(objects, "EndpointSlice") if one["addressType"] != "FQDN")
    ips += [ip for one in slices for endpoint in _some(one["endpoints"]) for ip in endpoint["addresses"]]
    ips += [ip for one in of_kind(objects, "Service") for ip in one["spec"].get("externalIPs", ())]
    return [text_labels(ip_address(ip).reverse_pointer) for ip in ips]


def _import_names(key: tuple[bytes, bytes]) -> list[Labels]:
    left: list[Labels] = [(), (b"_http", b"_tcp"), (b"_dns", b"_udp"), (b"f0",), (b"east",), (b"http", b"tcp")]
    clusters = [text_labels(one) for one in ("east", "west", "East", "EAST", "eu.west-1", "a_b")]
    left += [(label, *cluster) for cluster in clusters for label in (b"f0", b"h0", b"h1")]
    return [(*labels, *key, b"svc", *CLUSTERSET) for labels in left]


def _external_names(key: tuple[bytes, bytes], service: Object) -> list[Labels]:
    ports = [name[:2] for name in _port_names(key, service["spec"].get("ports", ()))]
    return [(*left, *key, *EXTERNAL) for left in ((), *ports, (b"h0",), (b"10-1-200-1",))]


def nearly(labels: Labels, random: Random) -> Labels:
    """The name with one thing about it changed."""
    return random.choice(_CHANGES)(labels, random)


def _without_one(labels: Labels, random: Random) -> Labels:
    at = random.randrange(len(labels) + 1)
    return labels[:at] + labels[at + 1 :]


def _without_first(labels: Labels, random: Random) -> Labels:
    return labels[random.randint(1, 3) :]


def _with_one_before(labels: Labels, random: Random) -> Labels:
    return (*random.choices(_WORDS, k=random.randint(1, 3)), *labels)


def _with_one_within(labels: Labels, random: Random) -> Labels:
    at = random.randrange(len(labels) + 1)
    return (*labels[:at], random.choice(_WORDS), *labels[at:])


def _with_one_replaced(labels: Labels, random: Random) -> Labels:
    at = random.randrange(max(1, len(labels) - 2))
    return (*labels[:at], random.choice((*_WORDS, *(name.encode() for name in NAMESPACES))), *labels[at + 1 :])


def _in_other_case(labels: Labels, random: Random) -> Labels:
    return tuple(bytes(random.choice((octet, *bytes((octet,)).upper())) for octet in label) for label in labels)


def _with_other_underscores(labels: Labels, random: Random) -> Labels:
    changed = [label.lstrip(b"_") if random.random() < 0.5 else b"_" + label[:62] for label in labels[:2]]
    return (*(label or b"_" for label in changed), *labels[2:])


def _with_a_slip(labels: Labels, random: Random) -> Labels:
    if not labels:
        return (b"x",)
    at = random.randrange(len(labels))
    label = bytearray(labels[at])
    label[random.randrange(len(label))] = random.choice(b"abc019-_.* \\\0\xe4")
    return (*labels[:at], bytes(label), *labels[at + 1 :])


def _elsewhere(labels: Labels, random: Random) -> Labels:
    return labels[:-2] + random.choice(_OTHER_ORIGINS)


def _very_long(labels: Labels, random: Random) -> Labels:
    """As long as a name may be, or nearly."""
    room = 254 - sum(len(label) + 1 for label in labels) - random.randrange(3)
    before = []
    while room > 1:
        size = min(63, room - 1)
        before.append(b"l" * size)
        room -= size + 1
    return (*before, *labels)


_CHANGES: Final[Sequence[Callable[[Labels, Random], Labels]]] = (
    *(_without_one, _without_first, _with_one_before, _with_one_within, _with_one_replaced, _with_one_replaced),
    *(_in_other_case, _with_other_underscores, _with_a_slip, _elsewhere, _very_long),
)
