"""The link that carries the listen addresses: created or adopted, brought up, and removed if it is ours."""

import errno
from collections.abc import Iterable
from typing import Final

from topodns.hostnet.commands import ErrorKind, HostNetworkError, not_permitted
from topodns.hostnet.rules import HostNetwork
from topodns.netlink.messages import CREATE, EXCLUSIVE
from topodns.netlink.route import (
    DELETE_ADDRESS,
    DELETE_LINK,
    NEW_ADDRESS,
    NEW_LINK,
    IPAddress,
    Link,
    Rtnetlink,
    write_address,
    write_link,
)

KINDS: Final = ("dummy", "ifb", "bridge")  # tried in this order: not every kernel has the first
ALIAS: Final = "topodns"  # marks a link as ours

_NO_SUCH_KIND: Final = frozenset({errno.EOPNOTSUPP, errno.ENOTSUP})
_GONE: Final = frozenset({errno.ENODEV, errno.EADDRNOTAVAIL, errno.ENOENT})


def ensure_link(network: HostNetwork) -> bool:
    """Make sure that the link exists, is up and has the listen addresses. Returns whether anything was missing.

    An existing link of that name is adopted; a dummy link without alias, as of NodeLocal DNSCache, is ours from then
    on. Raises HostNetworkError.
    """
    name = network.interface
    try:
        with Rtnetlink() as kernel:
            link = kernel.link(name) or _create(kernel, name)
            if link.kind == "dummy" and not link.alias:  # left behind by NodeLocal DNSCache
                kernel.change(NEW_LINK, write_link(link.index, alias=ALIAS))
            if not link.up:  # before adding addresses: IPv6 addresses are lost on a link that is down
                kernel.change(NEW_LINK, write_link(link.index, up=True))
            there = {each.address for each in kernel.addresses() if each.index == link.index}
            missing = [address for address in network.local_addresses if address not in there]
            for address in missing:
                _add_address(kernel, link.index, address)
            return bool(missing) or not link.up
    except OSError as problem:
        raise _error(ErrorKind.INTERFACE_CHECK, f"link {name}", problem) from problem


def remove_link(network: HostNetwork, adopted: bool = True) -> None:
    """Remove the link if it is ours; else, if it was `adopted`, our addresses from it. Raises HostNetworkError."""
    name = network.interface
    try:
        with Rtnetlink() as kernel:
            link = kernel.link(name)
            if link is None:
                return
            if link.alias == ALIAS and link.kind in KINDS:
                _remove(kernel, DELETE_LINK, write_link(link.index))
            elif adopted:
                _remove_addresses(kernel, link.index, network.local_addresses)
    except OSError as problem:
        raise _error(ErrorKind.INTERFACE_CHECK, f"removing link {name}", problem) from problem


def _create(kernel: Rtnetlink, name: str) -> Link:
    refused: list[str] = []
    for kind in KINDS:
        try:
            kernel.change(NEW_LINK, write_link(name=name, kind=kind), CREATE | EXCLUSIVE)
            kernel.change(NEW_LINK, write_link(name=name, alias=ALIAS))  # an alias needs an existing link
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
        if problem.errno == errno.EACCES:  # the kernel's error for an IPv6 address while IPv6 is switched off
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
        return not_permitted(what)
    return HostNetworkError(kind, f"{what}: {problem.strerror or problem}")
