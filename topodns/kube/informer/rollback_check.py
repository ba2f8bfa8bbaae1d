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


MAX_TRIES: Final = 3  # checks in a row without an answer, after which the watch resumes unchecked
UNSTEADY: Final = 60.0  # seconds between checks: less means that watches keep failing

_NO_RESPONSE: Final = 0
_FORBIDDEN: Final = 403
_SERVER_ERROR: Final = 500  # and above


class RollbackCheck:
    """The rollback check of one kind. One check costs a list with limit=1."""

    def __init__(self, lister: Lister) -> None:
        self._lister = lister
        self._losses = 0  # RetryGate.losses at the last check or list
        self._unanswered = 0  # checks without an answer, in a row
        self._answered_at = -math.inf  # time of the last answer, in seconds of the loop's clock

    @property
    def is_due(self) -> bool:
        return self._losses != self._lister.shared.gate.losses

    def skip(self) -> None:
        """Skip the check that is due, for example before a complete list, which replaces it."""
        self._losses = self._lister.shared.gate.losses

    async def is_behind(self) -> bool:
        """Whether the server is behind the last seen version. Raises ApiError, to be passed to `gives_up`."""
        losses = self._lister.shared.gate.losses
        version = await self._lister.newest_version()
        self._losses, self._unanswered = losses, 0
        await self._keep_spacing()
        behind = self._lister.sync.is_behind(version)
        if behind:
            name = self._lister.progress.resource.name
            log.warning("plugin/kubernetes: the API server's %s: %s", name, self._lister.sync.lag(version))
        return behind

    def gives_up(self, error: ApiError) -> bool:
        """Whether to watch unchecked: the server is reachable, but MAX_TRIES checks in a row got 5xx or no usable page.

        The check stays due before the next watch. After a 403 (no permission to list) the result is False, and no check
        is due until another watch is lost.
        """
        if error.status == _FORBIDDEN:
            self.skip()
        if not isinstance(error, NoPage) and error.status < _SERVER_ERROR:
            return False
        self._unanswered += 1
        return self._unanswered >= MAX_TRIES

    async def _keep_spacing(self) -> None:
        """Sleep for SPACING if the previous check was answered less than UNSTEADY ago: the server is there, but watches
        keep failing.
        """
        before, self._answered_at = self._answered_at, asyncio.get_running_loop().time()
        if self._answered_at - before < UNSTEADY:
            await asyncio.sleep(SPACING)


def was_answered(error: ApiError) -> bool:
    """Whether the server was reached, so that this request failed and not the connection."""
    return isinstance(error, NoPage) or error.status != _NO_RESPONSE
