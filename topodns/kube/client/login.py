"""Keeps the credentials fresh: read again when they are a minute old, and at once when they were refused.

Bound service account tokens live for an hour and are rewritten in place; certificates are rotated under the same name.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable

from topodns.edge.kube_api.access import Access, checked, file_states
from topodns.edge.kube_api.contract import ApiError, Deadlines
from topodns.edge.kube_api.service_account import ServiceAccount
from topodns.settings.kubernetes import ApiSettings

log = logging.getLogger(__name__)

Source = Callable[[bool], Awaitable[Access]]
"""Reads the access anew; the argument says whether what it gave last was refused. Raises ApiError."""


def source_of(settings: ApiSettings, account: ServiceAccount, deadlines: Deadlines) -> Source:
    """Where these settings take their access from."""
    if settings.kubeconfig:
        from topodns.edge.kube_api.kubeconfig import Kubeconfig  # imports what only a kubeconfig needs

        return Kubeconfig(settings.kubeconfig, settings.context, deadlines.login).load

    async def from_files(_: bool) -> Access:
        return _endpoint(settings) if settings.endpoint else account.access()

    return from_files


def _endpoint(settings: ApiSettings) -> Access:
    certificate, key, ca = settings.tls or ("", "", "")
    files = file_states((certificate, key, ca))
    return Access(settings.endpoint, "", ca, certificate, key, files=files)


class Login:
    """The current access to one API server."""

    def __init__(self, source: Source, max_age: float) -> None:
        self._source = source
        self._max_age = max_age  # seconds
        self._access: Access | None = None
        self._read_at = 0.0
        self._one_at_a_time = asyncio.Lock()  # an exec plugin takes its time, and every kind's watch asks

    async def access(self) -> Access:
        """What to ask with. Raises ApiError where there is none yet."""
        if (access := self._current()) is not None:
            return access
        async with self._one_at_a_time:
            return self._current() or await self._read(refused=False)

    async def renew(self, refused: Access) -> Access:
        """What to ask with after the API server did not take `refused`: an equal one when there is nothing else."""
        async with self._one_at_a_time:
            if self._access is refused:
                return await self._read(refused=True)
            return self._access or refused

    def _current(self) -> Access | None:
        access = self._access
        if access is None or time.monotonic() - self._read_at >= self._max_age or time.time() >= access.expires:
            return None
        return access

    async def _read(self, refused: bool) -> Access:
        """The access anew; the one we have where it cannot be read, since that may be good for a while."""
        try:
            access = checked(await self._source(refused))
        except ApiError as problem:
            if self._access is None:
                raise
            log.warning("the credentials for the API server stay as they are: %s", problem)
            return self._access
        self._read_at = time.monotonic()
        if self._access is None or access != self._access:  # else the same object: `renew` and TLS contexts go by it
            self._access = access
        return self._access
