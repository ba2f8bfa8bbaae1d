"""Whether a server that was lost to a watch has come as far, once it is back, as what was seen of it before.

One whose etcd was restored grants a watch from where it has not come yet, and is silent in it.
"""

import asyncio
import logging
import math
from typing import Final

from topodns.edge.api_source.pages import NoPage
from topodns.edge.api_source.reader import Reader
from topodns.edge.api_source.retry_gate import SPACING
from topodns.edge.kube_api.contract import ApiError

log = logging.getLogger(__name__)

ENOUGH_TRIES: Final = 3  # in a row without an answer; from then on it is watched without one
UNSTEADY: Final = 60.0  # seconds: a server lost again sooner may well refuse the next watch, too

_NO_RESPONSE: Final = 0
_FORBIDDEN: Final = 403
_SERVER_ERROR: Final = 500  # and all above


class LookBack:
    """Of one kind. What it asks is dear to nobody: a list of one object."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._losses = 0  # of the server, when this was last known
        self._untold = 0  # tries in a row
        self._told_at = -math.inf

    @property
    def is_due(self) -> bool:
        return self._losses != self._reader.company.gate.losses

    def spare(self) -> None:
        """A whole list tells the same."""
        self._losses = self._reader.company.gate.losses

    async def is_behind(self) -> bool:
        """Ask. Raises ApiError; after each, `gives_up` wants to know."""
        losses = self._reader.company.gate.losses
        version = await self._reader.newest_version()
        self._losses, self._untold = losses, 0
        await self._keep_apart()
        behind = self._reader.ledger.is_behind(version)
        if behind:
            name = self._reader.progress.resource.name
            log.warning("plugin/kubernetes: the API server's %s: %s", name, self._reader.ledger.age(version))
        return behind

    def gives_up(self, error: ApiError) -> bool:
        """Whether to watch on all the same: the server is there, and has not said it several times.

        It is asked again before the next watch. Who may not list is never told, and does not ask again.
        """
        if error.status == _FORBIDDEN:
            self.spare()
        if not isinstance(error, NoPage) and error.status < _SERVER_ERROR:
            return False
        self._untold += 1
        return self._untold >= ENOUGH_TRIES

    async def _keep_apart(self) -> None:
        """Where only watches are refused, no two requests are to follow each other at once."""
        before, self._told_at = self._told_at, asyncio.get_running_loop().time()
        if self._told_at - before < UNSTEADY:
            await asyncio.sleep(SPACING)


def was_answered(error: ApiError) -> bool:
    """Whether it was this request that failed, and not the way to the server."""
    return isinstance(error, NoPage) or error.status != _NO_RESPONSE
