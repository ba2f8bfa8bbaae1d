"""JSON of the written API objects (Event, Lease), and decoding of the Lease and Service lists read. Pure.

Events use the core group, not events.k8s.io, which has the same store: the latter rejects the timestamps that kubectl
shows, and does not exist before Kubernetes 1.19, while `spec.topologyKeys` does.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, Final

from topodns.kube.client.contract import ApiError
from topodns.topology.findings import Finding

REASONS: Final = {
    "invalid": "TopologyPolicyInvalid",
    "misplaced": "TopologyPolicyMisplaced",
    "left_out": "ObjectsLeftOut",
}
"""The reason of an Event by the kind of finding; other kinds cause no Event."""

COMPONENT: Final = "topodns"
MAX_MESSAGE: Final = 1024  # characters, by API convention

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class LeaseRecord:
    """A Lease as read. `holder` is "" where it has none; `version` is its resourceVersion."""

    version: str
    holder: str
    seconds: float  # validity without renewal; 0.0 where the Lease has none
    content: Json


def event_body(finding: Finding, uid: str, instance: str, now: float) -> bytes:
    """An Event on the Service with this uid; `now` in seconds since the epoch, `instance` names the replica.

    Its name has a hash of its content, so that a duplicate from any replica is rejected (409) while the first exists.
    The uid is needed because kubectl selects the Events of an object by it.
    """
    reason, (namespace, name) = REASONS[finding.kind], finding.service
    digest = sha256("\0".join((uid, reason, finding.text)).encode()).hexdigest()
    time = f"{datetime.fromtimestamp(now, UTC):%Y-%m-%dT%H:%M:%SZ}"
    content = {
        "kind": "Event",
        "apiVersion": "v1",
        "metadata": {"name": f"{name}.{digest[:16]}", "namespace": namespace},
        "involvedObject": {"kind": "Service", "apiVersion": "v1", "namespace": namespace, "name": name, "uid": uid},
        "type": "Warning",
        "reason": reason,
        "message": finding.text if len(finding.text) <= MAX_MESSAGE else f"{finding.text[: MAX_MESSAGE - 1]}…",
        "source": {"component": COMPONENT},
        "reportingComponent": COMPONENT,
        "reportingInstance": instance,
        "firstTimestamp": time,
        "lastTimestamp": time,
        "count": 1,
    }
    return json.dumps(content).encode()


def decode_uid(body: bytes) -> str:
    """The uid of the first object of a list of Services in JSON, "" for an empty list. Raises ApiError."""
    items = _decoded(body).get("items") or []
    try:
        return str(items[0]["metadata"]["uid"]) if items else ""
    except (KeyError, TypeError):
        raise ApiError(0, "the list of Services cannot be read") from None


def decode_lease(body: bytes) -> LeaseRecord:
    """The Lease in a JSON body: version, holder, duration in seconds (0.0 if missing), and the whole content.

    Raises ApiError if the body is no JSON object with metadata.
    """
    return lease_record(_decoded(body))


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


def lease_body(namespace: str, name: str, holder: str, seconds: int, now: float) -> bytes:
    """A new Lease, to be created; `now` in seconds since the epoch."""
    return json.dumps(new_lease(namespace, name, holder, seconds, now)).encode()


def new_lease(namespace: str, name: str, holder: str, seconds: int, now: float) -> Json:
    """A new Lease as an object to be encoded; `seconds`: its duration, `now`: seconds since the epoch."""
    return {
        "kind": "Lease",
        "apiVersion": "coordination.k8s.io/v1",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {**_held(holder, seconds, now), "acquireTime": _micro_time(now), "leaseTransitions": 0},
    }


def renewed_body(record: LeaseRecord, holder: str, seconds: int, now: float) -> bytes:
    """The Lease renewed or acquired by `holder`; rejected (409) if it was changed after it was read."""
    return json.dumps(renewed_lease(record, holder, seconds, now)).encode()


def renewed_lease(record: LeaseRecord, holder: str, seconds: int, now: float) -> Json:
    """The Lease renewed or acquired by `holder`, as an object to be encoded; see `renewed_body`."""
    spec = {**(record.content.get("spec") or {}), **_held(holder, seconds, now)}
    if record.holder != holder:
        transitions = spec.get("leaseTransitions")
        spec["acquireTime"] = _micro_time(now)
        spec["leaseTransitions"] = transitions + 1 if isinstance(transitions, int) else 1
    return {**record.content, "spec": spec}


def released_lease(record: LeaseRecord, now: float) -> Json:
    """The Lease without a holder, so that another replica need not wait until it expires; in the form of client-go."""
    return {**record.content, "spec": {**(record.content.get("spec") or {}), **_held("", 1, now)}}


def _held(holder: str, seconds: int, now: float) -> Json:
    return {"holderIdentity": holder, "leaseDurationSeconds": seconds, "renewTime": _micro_time(now)}


def _micro_time(now: float) -> str:
    return f"{datetime.fromtimestamp(now, UTC):%Y-%m-%dT%H:%M:%S.%fZ}"


def _decoded(body: bytes) -> Json:
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict):
        raise ApiError(0, "the response is no JSON object")
    return content
