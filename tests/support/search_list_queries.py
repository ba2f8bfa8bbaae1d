"""Queries of Pods with a search list, and the answers of `autopath` to them, wherever it runs.

In a cluster with the namespaces shop and prod and the Services web (of shop, 10.96.0.1) and api (of prod, 10.96.0.2),
on hosts whose own list is corp.example. Outside there are example.com (192.0.2.1) and x.y.corp.example (192.0.2.3).
"""

from collections.abc import Mapping, Sequence
from typing import Final

from tests.support.cluster_dig import ZoneText

SHOP: Final = ZoneText("shop.svc.cluster.local.", ttl=60)
FOUND: Final[Mapping[str, Sequence[str]]] = {
    "a name outside": ("example.com A", "CNAME example.com.", "example.com. A 192.0.2.1"),
    "a Service of another namespace": (
        "api.prod A",
        "api.prod.shop.svc.cluster.local. 5 IN CNAME api.prod.svc.cluster.local.",
        "api.prod.svc.cluster.local. 5 IN A 10.96.0.2",
    ),
    "a Service of another namespace, with svc": (
        "api.prod.svc A",
        "api.prod.svc.shop.svc.cluster.local. 5 IN CNAME api.prod.svc.cluster.local.",
        "api.prod.svc.cluster.local. 5 IN A 10.96.0.2",
    ),
    "a name in a domain of the host": ("x.y A", "CNAME x.y.corp.example.", "x.y.corp.example. A 192.0.2.3"),
    "the client's spelling": (
        "Example.COM.Shop.svc.cluster.local. A",
        "CNAME Example.COM.",
        "Example.COM. A 192.0.2.1",
    ),
    "a name that is there itself": ("web A", "web.shop.svc.cluster.local. 5 IN A 10.96.0.1"),
    "a name without records of the type": ("example.com TXT", "NOERROR"),
    "a name that is nowhere": ("example.net A", "NXDOMAIN"),
    "no namespace": ("example.com.svc.cluster.local. A", "NXDOMAIN"),
    "no search list at all": ("example.com.cluster.local. A", "NXDOMAIN"),
}
"""Questions, and the records of their answers as in a zone file of SHOP."""

OWN: Final[Mapping[str, str]] = {
    "a Pod of a StatefulSet": "app-0.app.shop.svc.cluster.local. A",
    "its IPv6 address": "app-0.app.shop.svc.cluster.local. AAAA",
    "an endpoint without a name": "10-0-0-7.app.shop.svc.cluster.local. A",
    "one with an IPv6 address": "fd00-10--a.app.shop.svc.cluster.local. A",
    "a port": "_http._tcp.app.shop.svc.cluster.local. SRV",
    "its address": "_http._tcp.app.shop.svc.cluster.local. A",
    "a protocol": "_tcp.app.shop.svc.cluster.local. SRV",
    "an endpoint of a Service that is there": "web-7.web.shop.svc.cluster.local. A",
    "its name beside it": "other.web.shop.svc.cluster.local. A",
}
"""Names that may be an endpoint's or a port's, of Services that are not there or have no such endpoint."""
