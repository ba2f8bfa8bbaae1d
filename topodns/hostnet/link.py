"""The link that carries the listen addresses: made or adopted, brought up, and taken away if it is ours."""

import errno
from collections.abc import Iterable
from typing import Final

from topodns.edge.host_network.errors import ErrorKind, HostNetworkError
from topodns.edge.host_network.plan import HostNetwork
from topodns.edge.host_network.rtnetlink import (
    CREATE,
    DELETE_ADDRESS,
    DELETE_LINK,
    EXCLUSIVE,
    NEW_ADDRESS,
    NEW_LINK,
    Link,
    Rtnetlink,
    write_address,
    write_link,
)
from topodns.settings.node_cache import IPAddress

KINDS: Final = ("dummy", "ifb", "bridge")  # what is tried in turn: not every kernel has the first
ALIAS: Final = "topodns"  # marks a link as ours

_NO_SUCH_KIND: Final = frozenset({errno.EOPNOTSUPP, errno.ENOTSUP})
_GONE: Final = frozenset({errno.ENODEV, errno.EADDRNOTAVAIL, errno.ENOENT})


def ensure_link(network: HostNetwork) -> bool:
    """Make the link, its addresses and its being up what is wished. Returns whether anything had to be done.

    A link of that name is adopted, whoever made it. Raises HostNetworkError.
    """
    name = network.interface
    try:
        with Rtnetlink() as kernel:
            link = kernel.link(name) or _create(kernel, name)
            if link.kind == "dummy" and not link.alias:  # as NodeLocal DNSCache leaves it behind
                kernel.change(NEW_LINK, write_link(link.index, alias=ALIAS))
            if not link.up:  # before the addresses: those of IPv6 do not outlive a link that is down
                kernel.change(NEW_LINK, write_link(link.index, up=True))
            there = kernel.addresses(link.index)
            missing = [address for address in network.local_addresses if address not in there]
            for address in missing:
                _add_address(kernel, link.index, address)
            return bool(missing) or not link.up
    except OSError as problem:
        raise _error(ErrorKind.INTERFACE_CHECK, f"link {name}", problem) from problem


def remove_link(network: HostNetwork) -> None:
    """Take away the link if it is ours, otherwise our addresses. Raises HostNetworkError."""
    name = network.interface
    try:
        with Rtnetlink() as kernel:
            link = kernel.link(name)
            if link is None:
                return
            if link.alias == ALIAS and link.kind in KINDS:
                _remove(kernel, DELETE_LINK, write_link(link.index))
            else:
                _remove_addresses(kernel, link.index, network.local_addresses)
    except OSError as problem:
        raise _error(ErrorKind.INTERFACE_CHECK, f"removing link {name}", problem) from problem


def _create(kernel: Rtnetlink, name: str) -> Link:
    refused: list[str] = []
    for kind in KINDS:
        try:
            kernel.change(NEW_LINK, write_link(name=name, kind=kind), CREATE | EXCLUSIVE)
            kernel.change(NEW_LINK, write_link(name=name, alias=ALIAS))  # only an existing link can be given one
        except OSError as problem:
            if problem.errno not in _NO_SUCH_KIND | {errno.EEXIST}:
                raise _error(ErrorKind.INTERFACE_ADD, f"adding link {name} of type {kind}", problem) from problem
            refused.append(f"{kind}: {problem.strerror}")
        if link := kernel.link(name):
            return link
    raise HostNetworkError(ErrorKind.INTERFACE_ADD, f"adding link {name}: {', '.join(refused)}")


def _add_address(kernel: Rtnetlink, index: int, address: IPAddress) -> None:
    try:
        kernel.change(NEW_ADDRESS, write_address(index, address), CREATE | EXCLUSIVE)
    except OSError as problem:
        if problem.errno == errno.EACCES:  # what the kernel says of IPv6 where it is switched off
            reason = f"adding address {address}: IPv6 is switched off on this node (net.ipv6.conf.default.disable_ipv6)"
            raise HostNetworkError(ErrorKind.INTERFACE_ADD, reason) from problem
        if problem.errno != errno.EEXIST:
            raise _error(ErrorKind.INTERFACE_ADD, f"adding address {address}", problem) from problem


def _remove_addresses(kernel: Rtnetlink, index: int, addresses: Iterable[IPAddress]) -> None:
    for address in addresses:
        _remove(kernel, DELETE_ADDRESS, write_address(index, address))


def _remove(kernel: Rtnetlink, kind: int, body: bytes) -> None:
    try:
        kernel.change(kind, body)
    except OSError as problem:
        if problem.errno not in _GONE:
            raise


def _error(kind: ErrorKind, what: str, problem: OSError) -> HostNetworkError:
    if problem.errno == errno.EPERM:
        return HostNetworkError(ErrorKind.PERMISSION, f"{what}: CAP_NET_ADMIN is missing")
    return HostNetworkError(kind, f"{what}: {problem.strerror or problem}")
