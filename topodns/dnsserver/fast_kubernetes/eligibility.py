"""Eligibility for the fast path to `kubernetes`: the origins of a server block that have one."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from topodns.dns.message import DEFAULT_UDP_SIZE
from topodns.dns.name import Name, is_subdomain, name_text
from topodns.dnsserver.packet_cache.table import block_variants
from topodns.plugins.bufsize import PLUGIN as BUFSIZE
from topodns.plugins.kubernetes.handler import ClusterZone
from topodns.plugins.kubernetes.zone import KubernetesZone, Origin
from topodns.plugins.loadbalance.handler import LoadBalancer
from topodns.plugins.order import ORDER
from topodns.plugins.plugin import FastPath, load
from topodns.plugins.setup import BlockSetup
from topodns.query.packet_entry import Variants
from topodns.query.plugin import ChainPart


@dataclass(frozen=True, slots=True, eq=False)
class FastZone:
    """An origin of `kubernetes` with a fast path, in one server block."""

    kubernetes: KubernetesZone
    origin: Origin
    balancer: LoadBalancer | None
    label: str  # the server block's origin, for metrics
    payload_size: int
    variants: Variants | None  # the query variants that the block allows


def make_fast_zones(prepared: BlockSetup, origin: Name, parts: Iterable[ChainPart]) -> Iterator[FastZone]:
    """The origins of the block's `kubernetes` with a fast path, of those that are at or below this origin of the block.

    There are none if a directive bars the fast path (`FastPath.BARRED`) of those that see a query before `kubernetes`,
    or if `loadbalance` orders by weight or by network. `parts`: those of the block for the listener.
    """
    above = ORDER[: ORDER.index("kubernetes")]
    if any(load(name).fast_path is FastPath.BARRED for name in prepared.block.directives if name in above):
        return
    balancer = prepared.first(LoadBalancer)
    if balancer is not None and not balancer.round_robin:
        return
    payload_size = BUFSIZE.settings_of(prepared.block) or DEFAULT_UDP_SIZE
    variants = block_variants(prepared.block)
    for step in (part.step for part in parts):
        if isinstance(step, ClusterZone):
            for served in fast_origins(step.kubernetes):
                if is_subdomain(served.name, origin):
                    yield FastZone(
                        kubernetes=step.kubernetes,
                        origin=served,
                        balancer=balancer,
                        label=name_text(origin),
                        payload_size=payload_size,
                        variants=variants,
                    )


def fast_origins(kubernetes: KubernetesZone) -> Iterator[Origin]:
    """The origins of the directive that are not reverse, the root, or above another one, and of whose names
    `fallthrough` passes on none.
    """
    fallthrough = kubernetes.settings.fallthrough
    for name, origin in kubernetes.origins.by_name.items():
        if (
            name
            and not origin.reverse
            and not any(is_subdomain(each, name) or is_subdomain(name, each) for each in fallthrough)
            and not any(is_subdomain(each, name) for each in kubernetes.origins.by_name if each != name)
        ):
            yield origin
