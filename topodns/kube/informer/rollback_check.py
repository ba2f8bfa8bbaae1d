"""Rollback check: after a lost watch, compare the server's resourceVersion with the last one seen before.

A server whose etcd was restored from a backup accepts a watch from a resourceVersion that it has not reached yet, and
sends nothing in it.
"""

import asyncio
import logging
import math
from typing import Final

from topodns.kube.client.contract import ApiError
from topodns.kube.informer.lister import Lister, NoPage
from topodns.kube.informer.retry import SPACING

log = logging.getLogger(__name__)


ENOUGH_TRIES: Final = 3  # checks in a row without an answer, after which the watch resumes unchecked
UNSTEADY: Final = 60.0  # seconds between checks: less means that watches keep failing

_NO_RESPONSE: Final = 0
_FORBIDDEN: Final = 403
_SERVER_ERROR: Final = 500  # and above


class LookBack:
    """The rollback check of one kind. One check costs a list with limit=1."""

    def __init__(self, reader: Lister) -> None:
        self._reader = reader
        self._losses = 0  # RetryGate.losses at the last check or list
        self._untold = 0  # checks without an answer, in a row
        self._told_at = -math.inf  # time of the last answer, in seconds of the loop's clock

    @property
    def is_due(self) -> bool:
        return self._losses != self._reader.peers.gate.losses

    def spare(self) -> None:
        """Skip the check that is due, for example before a complete list, which replaces it."""
        self._losses = self._reader.peers.gate.losses

    async def is_behind(self) -> bool:
        """Whether the server is behind the last seen version. Raises ApiError, to be passed to `gives_up`."""
        losses = self._reader.peers.gate.losses
        version = await self._reader.newest_version()
        self._losses, self._untold = losses, 0
        await self._keep_apart()
        behind = self._reader.ledger.is_behind(version)
        if behind:
            name = self._reader.progress.resource.name
            log.warning("plugin/kubernetes: the API server's %s: %s", name, self._reader.ledger.age(version))
        return behind

    def gives_up(self, error: ApiError) -> bool:
        """Whether to watch unchecked: the server is reachable, but ENOUGH_TRIES checks in a row had no answer.

        The check is repeated before the next watch. After a 403 (no permission to list) it is skipped until the next
        lost watch.
        """
        if error.status == _FORBIDDEN:
            self.spare()
        if not isinstance(error, NoPage) and error.status < _SERVER_ERROR:
            return False
        self._untold += 1
        return self._untold >= ENOUGH_TRIES

    async def _keep_apart(self) -> None:
        """Where only watches fail, keep SPACING between this check and the watch that follows."""
        before, self._told_at = self._told_at, asyncio.get_running_loop().time()
        if self._told_at - before < UNSTEADY:
            await asyncio.sleep(SPACING)


def was_answered(error: ApiError) -> bool:
    """Whether the server was reached, so that this request failed and not the connection."""
    return isinstance(error, NoPage) or error.status != _NO_RESPONSE
