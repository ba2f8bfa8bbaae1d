"""The EndpointSlices that the control plane makes of v1 Endpoints: the rules of its mirroring controller.

Source: Kubernetes, pkg/controller/endpointslicemirroring (`shouldMirror`, `reconcile`, `desiredCalc`).
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from tests.support.api_objects import Object

MOST: Final = 1000  # addresses of a subset that are mirrored, and endpoints of a slice
SKIP: Final = "endpointslice.kubernetes.io/skip-mirror"
LEADER: Final = "control-plane.alpha.kubernetes.io/leader"


def as_slices(objects: Sequence[Object]) -> list[Object]:
    """The objects with slices in place of each Endpoints. One of a Service with a selector is taken for the Endpoints
    of its Pods, of which the endpoint controllers make the same endpoints and slices.
    """
    services = {_key(one) for one in objects if one["kind"] == "Service"}
    found: list[Object] = []
    for one in objects:
        if one["kind"] != "Endpoints":
            found.append(one)
        elif _key(one) in services and is_mirrored(one["metadata"]):
            found += _slices_of(one)
    return found


def is_mirrored(metadata: Mapping[str, Mapping[str, str]]) -> bool:
    return metadata.get("labels", {}).get(SKIP) != "true" and LEADER not in metadata.get("annotations", {})


def _key(value: Object) -> tuple[str, str]:
    return value["metadata"]["namespace"], value["metadata"]["name"]


def _slices_of(source: Object) -> Iterator[Object]:
    """A slice for each family and each list of ports; the last subset that has an endpoint says if it is ready."""
    endpoints: dict[tuple[str, str], dict[str, Object]] = {}  # by family and ports, then by identity
    ports: dict[str, Sequence[Object]] = {}
    for subset in source["subsets"]:
        key = json.dumps(subset.get("ports", []), sort_keys=True)
        ports[key] = subset.get("ports", [])
        addresses = [(one, True) for one in subset.get("addresses", ())]
        addresses += [(one, False) for one in subset.get("notReadyAddresses", ())]
        for address, ready in addresses[:MOST]:
            family = "IPv6" if ":" in address["ip"] else "IPv4"
            endpoint = _endpoint(address, ready)
            identity = json.dumps([endpoint["addresses"], endpoint.get("hostname"), _named(endpoint)])
            endpoints.setdefault((family, key), {})[identity] = endpoint
    for number, ((family, key), found) in enumerate(endpoints.items()):
        name = source["metadata"]["name"]
        labels = {**source["metadata"].get("labels", {}), "kubernetes.io/service-name": name}
        yield {
            "kind": "EndpointSlice",
            "apiVersion": "discovery.k8s.io/v1",
            "metadata": {
                "name": f"{name[:50]}-mirror{number}", "namespace": source["metadata"]["namespace"], "labels": labels
            },
            "addressType": family,
            "ports": list(ports[key]),
            "endpoints": list(found.values())[:MOST],
        }  # fmt: skip


def _endpoint(address: Object, ready: bool) -> Object:
    kept: Object = {key: address[key] for key in ("hostname", "nodeName", "targetRef") if key in address}
    return {"addresses": [_canonical(address["ip"])], "conditions": {"ready": ready}, **kept}


def _named(endpoint: Object) -> list[str]:
    target = endpoint.get("targetRef", {})
    return [target.get("namespace", ""), target.get("name", "")]


def _canonical(address: str) -> str:
    """The controller reads an address sloppily (leading zeros are decimal), and writes it anew."""
    return address if ":" in address else ".".join(str(int(octet)) for octet in address.split("."))
