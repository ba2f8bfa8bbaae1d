"""Events and Leases as JSON."""

import json
from typing import Any

import pytest

from topodns.cluster.model import ObjectKey
from topodns.kube.client.contract import ApiError
from topodns.kube.events.bodies import MAX_MESSAGE, decode_lease, decode_uid, event_body, lease_body, renewed_body
from topodns.topology.findings import Finding

NOW = 1_700_000_000.25  # 2023-11-14T22:13:20.25Z
FINDING = Finding(ObjectKey("shop", "cart"), "misplaced", "topology keys have no effect here")


def event(finding: Finding = FINDING, uid: str = "u-1") -> Any:
    return json.loads(event_body(finding, uid, "pod-1", NOW))


def test_an_event_is_about_the_service_and_names_its_reporter() -> None:
    made = event()
    assert made["metadata"].pop("name").startswith("cart.")
    assert made == {
        "kind": "Event",
        "apiVersion": "v1",
        "metadata": {"namespace": "shop"},
        "involvedObject": {
            "kind": "Service",
            "apiVersion": "v1",
            "namespace": "shop",
            "name": "cart",
            "uid": "u-1",
        },
        "type": "Warning",
        "reason": "TopologyPolicyMisplaced",
        "message": "topology keys have no effect here",
        "source": {"component": "topodns"},
        "reportingComponent": "topodns",
        "reportingInstance": "pod-1",
        "firstTimestamp": "2023-11-14T22:13:20Z",
        "lastTimestamp": "2023-11-14T22:13:20Z",
        "count": 1,
    }


def test_an_event_has_the_same_name_exactly_when_it_says_the_same_of_the_same_service() -> None:
    others = [Finding(FINDING.service, "invalid", FINDING.text), Finding(FINDING.service, "misplaced", "else")]
    names = [each["metadata"]["name"] for each in (event(), *map(event, others), event(uid="u-2"))]
    assert len(set(names)) == 4
    assert json.loads(event_body(FINDING, "u-1", "pod-2", NOW + 60))["metadata"]["name"] == names[0]


def test_a_long_message_is_cut() -> None:
    message = event(Finding(FINDING.service, "invalid", "x" * 5000))["message"]
    assert (len(message), message[-2:]) == (MAX_MESSAGE, "x…")


@pytest.mark.parametrize(
    ("body", "uid"),
    [(b'{"items":[{"metadata":{"uid":"u"}}]}', "u"), (b'{"items":[]}', ""), (b'{"items":null}', "")],
)
def test_the_uid_is_that_of_the_only_service(body: bytes, uid: str) -> None:
    assert decode_uid(body) == uid


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b'{"items":[1]}', b'{"items":[{"metadata":{}}]}', b"[" * 100_000])
def test_a_reply_that_is_no_list_of_services_is_an_error(body: bytes) -> None:
    with pytest.raises(ApiError):
        decode_uid(body)


def test_a_new_lease_is_ours() -> None:
    content = json.loads(lease_body("kube-system", "topodns-events", "pod-1", 15, NOW))
    assert content["metadata"] == {"name": "topodns-events", "namespace": "kube-system"}
    assert content["spec"] == {
        "holderIdentity": "pod-1",
        "leaseDurationSeconds": 15,
        "acquireTime": "2023-11-14T22:13:20.250000Z",
        "renewTime": "2023-11-14T22:13:20.250000Z",
        "leaseTransitions": 0,
    }


def held(**spec: Any) -> bytes:
    metadata = {"name": "topodns-events", "resourceVersion": "7", "labels": {"kept": "yes"}}
    return json.dumps({"kind": "Lease", "metadata": metadata, "spec": spec}).encode()


def test_renewing_keeps_the_time_of_acquisition_and_the_version_that_was_seen() -> None:
    record = decode_lease(held(holderIdentity="pod-1", leaseDurationSeconds=15, acquireTime="then", leaseTransitions=3))
    content = json.loads(renewed_body(record, "pod-1", 15, NOW))
    assert (content["metadata"]["resourceVersion"], content["metadata"]["labels"]) == ("7", {"kept": "yes"})
    assert (content["spec"]["acquireTime"], content["spec"]["leaseTransitions"]) == ("then", 3)
    assert content["spec"]["renewTime"] == "2023-11-14T22:13:20.250000Z"


def test_taking_over_counts_a_transition() -> None:
    record = decode_lease(held(holderIdentity="pod-2", leaseDurationSeconds=30, leaseTransitions=3))
    assert (record.version, record.holder, record.seconds) == ("7", "pod-2", 30.0)
    spec = json.loads(renewed_body(record, "pod-1", 15, NOW))["spec"]
    assert (spec["holderIdentity"], spec["leaseDurationSeconds"], spec["leaseTransitions"]) == ("pod-1", 15, 4)
    assert spec["acquireTime"] == spec["renewTime"]


@pytest.mark.parametrize("spec", ["{}", "null", '{"holderIdentity":null,"leaseDurationSeconds":"x"}'])
def test_a_lease_without_a_holder_is_free(spec: str) -> None:
    record = decode_lease(f'{{"metadata":{{}},"spec":{spec}}}'.encode())
    assert (record.holder, record.seconds) == ("", 0.0)
    assert json.loads(renewed_body(record, "pod-1", 15, NOW))["spec"]["leaseTransitions"] == 1


@pytest.mark.parametrize("body", [b"nonsense", b"{}", b'{"metadata":{},"spec":[1]}'])
def test_a_reply_that_is_no_lease_is_an_error(body: bytes) -> None:
    with pytest.raises(ApiError):
        decode_lease(body)
