"""Detects sockets of other processes that receive DNS at the listen addresses: other instances, or foreign ones.

A process with our user id (root in the chart; a Pod with hostNetwork may have one) can join a port that we share
(SO_REUSEPORT, socket(7)), and the kernel then gives it a part of the queries. This cannot be prevented, only detected.
"""

import logging
from collections.abc import Iterable
from typing import Final

from topodns.hostnet.instances import InstanceRegistry
from topodns.hostnet.rules import HostNetwork
from topodns.netlink.sock_diag import BoundSocket, sockets_at

log = logging.getLogger(__name__)


INSTANCE: Final = "instance"  # announced by another instance over a connection of our own user
FOREIGN: Final = "foreign"


class PortWatch:
    """Counts the sockets of other processes that receive DNS at the listen addresses.

    Call `list_sockets` in a worker thread (some 100 us in the kernel), then `update` in the event loop.
    """

    def __init__(self, network: HostNetwork, instance_registry: InstanceRegistry) -> None:
        self._network, self._instance_registry = network, instance_registry
        self._unknown: frozenset[int] = frozenset()  # inodes found by the previous `update`
        self._foreign: frozenset[int] = frozenset()
        self._is_unsupported = False
        self.counts: dict[str, int] | None = None  # sockets by INSTANCE and FOREIGN; None: not known

    def list_sockets(self) -> list[BoundSocket] | None:
        """All sockets at the listen addresses, ours too; None if the kernel cannot list them, which is logged once."""
        try:
            return sockets_at(self._network.local_addresses, self._network.port)
        except OSError as problem:
            if not self._is_unsupported:
                log.warning("cannot find out whether other programs share the port of DNS: %s", problem)
            self._is_unsupported = True
            return None

    def is_taken(self, found: Iterable[BoundSocket] | None) -> bool:
        """Whether `list_sockets` found a socket that is not our own; True if unknown (None)."""
        return found is None or not self._instance_registry.own_sockets().issuperset(each.inode for each in found)

    def update(self, found: Iterable[BoundSocket] | None) -> None:
        """Set `counts` from the result of `list_sockets`, and log new foreign sockets.

        A socket that no instance has announced counts as foreign from the second update in a row that finds it, since
        an instance opens its sockets a moment before it announces them; at the first one it is not counted.
        """
        if found is None:
            self.counts = None
            return
        others = [each for each in found if each.inode not in self._instance_registry.own_sockets()]
        instances = self._instance_registry.others_sockets()
        unknown = [each for each in others if each.inode not in instances]
        foreign = [each for each in unknown if each.inode in self._unknown]
        self._unknown = frozenset(each.inode for each in unknown)
        self.counts = {INSTANCE: len(others) - len(unknown), FOREIGN: len(foreign)}
        self._log_changes(foreign)

    def _log_changes(self, foreign: list[BoundSocket]) -> None:
        before, self._foreign = self._foreign, frozenset(each.inode for each in foreign)
        for each in foreign:
            if each.inode not in before:
                log.warning(
                    "another program takes a part of the questions to %s port %d: a %s socket of user %d, inode %d",
                    each.address, self._network.port, each.protocol, each.uid, each.inode,
                )  # fmt: skip
        if before and not foreign:
            log.info("no other program takes questions to the listen addresses any more")
