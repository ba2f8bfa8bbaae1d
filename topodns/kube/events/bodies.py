"""JSON of the Events that are written, and the uid in the lists of Services that are read. Pure.

Events use the core group, not events.k8s.io, which has the same store: the latter rejects the timestamps that kubectl
shows, and does not exist before Kubernetes 1.19, while `spec.topologyKeys` does.
"""

import json
from datetime import UTC, datetime
from hashlib import sha256
from typing import Final

from topodns.cluster.findings.finding import Finding
from topodns.kube.client.contract import ApiError
from topodns.kube.lease import decoded_object

REASONS: Final = {
    "annotation": "TopologyAnnotationIgnored",
    "governing": "TopologyPolicyHidesPeers",
    "ineffective": "TopologyKeyIneffective",
    "invalid": "TopologyPolicyInvalid",
    "misplaced": "TopologyPolicyMisplaced",
    "left_out": "ObjectsLeftOut",
    "no_slice": "EndpointSliceMissing",
    "unknown_node": "EndpointNodeUnknown",
}
"""The reason of an Event by the kind of finding; other kinds cause no Event."""

COMPONENT: Final = "topodns"
MAX_MESSAGE: Final = 1024  # characters, by API convention


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
    items = decoded_object(body).get("items") or []
    try:
        return str(items[0]["metadata"]["uid"]) if items else ""
    except (KeyError, TypeError):
        raise ApiError(0, "the list of Services cannot be read") from None
