"""Who of the replicas writes: the holder of a Lease, which is asked for only when there is something to write.

As in client-go's leader election no two clocks are compared: a Lease has run out when we have seen it unchanged for as
long as its holder said that it would last.
"""

import asyncio
import time
from typing import Final

from topodns.edge.kube_api.contract import ApiError, KubeApi
from topodns.edge.service_events.objects import LeaseRecord, decode_lease, lease_body, renewed_body
from topodns.edge.service_events.reading import read_body

NAME: Final = "topodns-events"
NAMESPACE: Final = "kube-system"  # where topodns is in no Pod, whose namespace it would be
DURATION: Final = 15  # seconds that the Lease lasts without us
SURE: Final = 4.0  # seconds after asking for which it is ours without asking again; the rest is for what we then begin

_NOT_FOUND, _CONFLICT = 404, 409


class Lease:
    """The Lease as seen by one replica, `holder`."""

    def __init__(self, namespace: str, holder: str) -> None:
        self._namespace = namespace
        self._holder = holder
        self._collection = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
        self._path = f"{self._collection}/{NAME}"
        self._sure_until = 0.0
        self._version = ""  # of the Lease when it was last seen, and since when it has been that
        self._seen_at = 0.0

    async def hold(self, api: KubeApi) -> float:
        """0.0 when it is ours; else the seconds after which it may be, if asked for again. Raises ApiError."""
        began = asyncio.get_running_loop().time()
        if began < self._sure_until:
            return 0.0
        try:
            wait = await self._acquire(api, began)
        except ApiError as error:
            if error.status != _CONFLICT:
                raise
            return float(DURATION)  # another replica was faster
        if not wait:
            self._sure_until = began + SURE
        return wait

    async def _acquire(self, api: KubeApi, now: float) -> float:
        found = await self._read(api)
        if found is None:
            body = lease_body(self._namespace, NAME, self._holder, DURATION, time.time())
            await api.send("POST", self._collection, body)
            return 0.0
        wait = self._others(found, now)
        if not wait:
            await api.send("PUT", self._path, renewed_body(found, self._holder, DURATION, time.time()))
        return wait

    async def _read(self, api: KubeApi) -> LeaseRecord | None:
        try:
            return decode_lease(await read_body(api, self._path))
        except ApiError as error:
            if error.status != _NOT_FOUND:
                raise
            return None

    def _others(self, found: LeaseRecord, now: float) -> float:
        """The seconds for which it is somebody else's."""
        if found.holder in ("", self._holder):
            return 0.0
        if found.version != self._version:
            self._version, self._seen_at = found.version, now
        return max(0.0, self._seen_at + found.seconds - now)
