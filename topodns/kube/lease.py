"""Leases of the API server (coordination.k8s.io/v1), by which replicas agree on the one that writes.

As in client-go's leader election no two clocks are compared: a Lease has expired for a replica that has seen it
unchanged for its leaseDurationSeconds.
"""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from topodns.kube.client.contract import ApiError, KubeApi, read_body

LEASE_SECONDS: Final = 15  # for which others leave a Lease alone that is not renewed
SURE: Final = 4.0  # seconds after `Lease.hold` without renewal; the rest of LEASE_SECONDS is for requests then begun

LEASE_NAMESPACE: Final = "kube-system"  # of processes outside of a Pod; in one, its namespace

_NOT_FOUND, _CONFLICT = 404, 409

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class LeaseRecord:
    """A Lease as read. `holder` is "" where it has none; `version` is its resourceVersion."""

    version: str
    holder: str
    seconds: float  # validity without renewal; 0.0 where the Lease has none
    content: Json


def decode_lease(body: bytes) -> LeaseRecord:
    """The Lease in a JSON body: version, holder, duration in seconds (0.0 if missing), and the whole content.

    Raises ApiError if the body is no JSON object with metadata.
    """
    return lease_record(decoded_object(body))


def lease_record(content: Json) -> LeaseRecord:
    """The record of a Lease that is parsed from JSON; see `decode_lease`. Raises ApiError if it has no metadata."""
    metadata, spec = content.get("metadata"), content.get("spec") or {}
    if not isinstance(metadata, dict) or not isinstance(spec, dict):
        raise ApiError(0, "the Lease cannot be read")
    seconds = spec.get("leaseDurationSeconds")
    return LeaseRecord(
        str(metadata.get("resourceVersion", "")),
        str(spec.get("holderIdentity") or ""),
        float(seconds) if isinstance(seconds, int) else 0.0,
        content,
    )


def new_lease(namespace: str, name: str, holder: str, now: float) -> Json:
    """A new Lease as an object to be encoded; `now`: seconds since the epoch."""
    return {
        "kind": "Lease",
        "apiVersion": "coordination.k8s.io/v1",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {**_held(holder, LEASE_SECONDS, now), "acquireTime": _micro_time(now), "leaseTransitions": 0},
    }


def renewed_lease(record: LeaseRecord, holder: str, now: float) -> Json:
    """The Lease renewed or acquired by `holder`, as an object to be encoded.

    Its update is rejected (409) if it was changed after it was read.
    """
    spec = {**(record.content.get("spec") or {}), **_held(holder, LEASE_SECONDS, now)}
    if record.holder != holder:
        transitions = spec.get("leaseTransitions")
        spec["acquireTime"] = _micro_time(now)
        spec["leaseTransitions"] = transitions + 1 if isinstance(transitions, int) else 1
    return {**record.content, "spec": spec}


def released_lease(record: LeaseRecord, now: float) -> Json:
    """The Lease without a holder, so that another replica need not wait until it expires; in the form of client-go."""
    return {**record.content, "spec": {**(record.content.get("spec") or {}), **_held("", 1, now)}}


class OthersLease:
    """The expiry, for the replica `holder`, of a Lease that others hold."""

    def __init__(self, holder: str) -> None:
        self._holder = holder
        self._version = ""  # resourceVersion last seen; `_seen_at`: when it was first seen
        self._seen_at = 0.0

    def expires_in(self, found: LeaseRecord, now: float, least: float = 0.0) -> float:
        """The seconds until this replica may acquire the Lease as read `now`; 0.0 where it may now.

        `least`: its duration if that is shorter.
        """
        if found.holder in ("", self._holder):
            return 0.0
        if found.version != self._version:
            self._version, self._seen_at = found.version, now
        return max(0.0, self._seen_at + max(found.seconds, least) - now)


class Lease:
    """The Lease of the replica `holder`, which acquires it only while it has something to write.

    `clock`: seconds, in which a suspend of this host counts, since the Lease expires for the other replicas meanwhile.
    """

    def __init__(self, namespace: str, name: str, holder: str, clock: Callable[[], float]) -> None:
        self._namespace, self._name = namespace, name
        self._holder = holder
        self._clock = clock
        self._collection = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
        self._path = f"{self._collection}/{name}"
        self._sure_until = 0.0
        self._others = OthersLease(holder)

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
            return float(LEASE_SECONDS)  # another replica was faster
        if not wait:
            self._sure_until = began + SURE
        return wait

    async def _acquire(self, api: KubeApi, now: float) -> float:
        found = await self._read(api)
        if found is None:
            lease = new_lease(self._namespace, self._name, self._holder, time.time())
            await api.send("POST", self._collection, json.dumps(lease).encode())
            return 0.0
        wait = self._others.expires_in(found, now)
        if not wait:
            lease = renewed_lease(found, self._holder, time.time())
            await api.send("PUT", self._path, json.dumps(lease).encode())
        return wait

    async def _read(self, api: KubeApi) -> LeaseRecord | None:
        try:
            return decode_lease(await read_body(api, self._path))
        except ApiError as error:
            if error.status != _NOT_FOUND:
                raise
            return None


def decoded_object(body: bytes) -> Json:
    """The JSON object of a response. Raises ApiError."""
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict):
        raise ApiError(0, "the response is no JSON object")
    return content


def _held(holder: str, seconds: int, now: float) -> Json:
    return {"holderIdentity": holder, "leaseDurationSeconds": seconds, "renewTime": _micro_time(now)}


def _micro_time(now: float) -> str:
    return f"{datetime.fromtimestamp(now, UTC):%Y-%m-%dT%H:%M:%S.%fZ}"
