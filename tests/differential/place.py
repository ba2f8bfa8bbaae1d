"""One namespace of the cluster, which hands out addresses and gathers objects."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from tests.support.api_objects import Object

TOPOLOGY_ZONES: Final = ("eu-1a", "eu-1b", "Rack.7", "")
HTTP: Final = {"name": "http", "port": 80, "protocol": "TCP"}

Ports = Sequence[Mapping[str, object]]


@dataclass
class Place:
    """One namespace, which hands out addresses."""

    name: str
    number: int
    services: int = 0
    endpoints: int = 0
    objects: list[Object] = field(default_factory=list)

    def cluster_ips(self, families: str) -> list[str]:
        self.services += 1
        at = {"4": f"10.96.{self.number}.{self.services}", "6": f"fd00:96::{self.number}:{self.services:x}"}
        return [at[family] for family in families]

    def service(self, name: str, ips: Sequence[str] = ("None",), ports: Ports = (HTTP,), **spec: object) -> None:
        """Headless unless it has ClusterIPs."""
        whole = {"type": "ClusterIP", "clusterIP": ips[0], "clusterIPs": list(ips), "ports": list(ports), **spec}
        metadata = {"name": name, "namespace": self.name, "labels": {"app": name, "tier": f"t{len(name) % 2}"}}
        self.objects.append({"kind": "Service", "apiVersion": "v1", "metadata": metadata, "spec": whole})

    def external(self, name: str, target: str) -> None:
        metadata = {"name": name, "namespace": self.name, "labels": {"app": name, "tier": "t0"}}
        spec = {"type": "ExternalName", "externalName": target}
        self.objects.append({"kind": "Service", "apiVersion": "v1", "metadata": metadata, "spec": spec})

    def endpoint(self, family: str = "4", address: str = "", ready: bool | None = True, **more: object) -> Object:
        """With an address of its own unless one is given."""
        self.endpoints += 1
        own = {"4": f"10.{self.number}.{self.endpoints >> 8}.{self.endpoints & 255}"}
        own["6"] = f"fd00:10:{self.number}::{self.endpoints:x}"
        conditions = {} if ready is None else {"ready": ready, "serving": ready, "terminating": False}
        zone = TOPOLOGY_ZONES[self.endpoints % len(TOPOLOGY_ZONES)]
        placed = {"zone": zone} if zone else {}
        return {"addresses": [address or own[family]], "conditions": conditions, "nodeName": "n1", **placed, **more}

    def slice(
        self, service: str, *endpoints: Object, ports: Ports | None = (HTTP,), family: str = "IPv4", suffix: str = "a"
    ) -> None:
        metadata = {
            "name": f"{service}-{suffix}",
            "namespace": self.name,
            "labels": {"kubernetes.io/service-name": service, "app": service, "tier": f"t{len(service) % 2}"},
        }
        self.objects.append(
            {
                "kind": "EndpointSlice",
                "apiVersion": "discovery.k8s.io/v1",
                "metadata": metadata,
                "addressType": family,
                "endpoints": list(endpoints),
                **({} if ports is None else {"ports": list(ports)}),
            }
        )

    def service_import(self, name: str, spec: Mapping[str, object]) -> None:
        metadata = {"name": name, "namespace": self.name}
        api_version = "multicluster.x-k8s.io/v1alpha1"
        self.objects.append({"kind": "ServiceImport", "apiVersion": api_version, "metadata": metadata, "spec": spec})
