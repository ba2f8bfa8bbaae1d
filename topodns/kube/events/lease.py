"""Leader election of the replica that writes Events, by a Lease acquired only when there is an Event to write.

As in client-go's leader election no two clocks are compared: a Lease has expired when this replica has seen it
unchanged for its leaseDurationSeconds.
"""

import time
from collections.abc import Callable
from typing import Final

from topodns.kube.client.contract import ApiError, KubeApi, read_body
from topodns.kube.events.bodies import LeaseRecord, decode_lease, lease_body, renewed_body

NAME: Final = "topodns-events"
NAMESPACE: Final = "kube-system"  # outside of a Pod; in one, the Pod's namespace is used
DURATION: Final = 15  # seconds that the Lease is valid without renewal
SURE: Final = 4.0  # seconds after acquisition without renewal; the rest of DURATION is for requests then begun

_NOT_FOUND, _CONFLICT = 404, 409


class Lease:
    """The Lease as seen by one replica, `holder`.

    `clock`: seconds, in which a suspend of this host counts, since the Lease expires for the other replicas meanwhile.
    """

    def __init__(self, namespace: str, holder: str, clock: Callable[[], float]) -> None:
        self._namespace = namespace
        self._holder = holder
        self._clock = clock
        self._collection = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
        self._path = f"{self._collection}/{NAME}"
        self._sure_until = 0.0
        self._version = ""  # resourceVersion last seen; `_seen_at`: when first seen, by `clock`
        self._seen_at = 0.0

    async def hold(self, api: KubeApi) -> float:
        """Acquire or renew the Lease. Returns 0.0 when held, else the seconds to wait before a retry. Raises ApiError.

        Within SURE seconds after it was acquired or renewed, no request is sent.
        """
        began = self._clock()
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
        """The seconds until another replica's Lease expires; 0.0 where it can be acquired."""
        if found.holder in ("", self._holder):
            return 0.0
        if found.version != self._version:
            self._version, self._seen_at = found.version, now
        return max(0.0, self._seen_at + found.seconds - now)
