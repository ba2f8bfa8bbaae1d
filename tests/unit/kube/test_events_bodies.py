"""Events as JSON."""

import json
from typing import Any

import pytest

from topodns.cluster.findings.finding import CLUSTER, Finding
from topodns.cluster.model import ObjectKey
from topodns.kube.client.contract import ApiError
from topodns.kube.events import MAX_MESSAGE, decode_uid, event_body

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


def test_an_event_about_a_service_import_is_on_that_object() -> None:
    imported = Finding(CLUSTER, "import", "ServiceImport shop/cart: invalid", imported=ObjectKey("shop", "cart"))
    made = event(imported)
    assert (made["metadata"]["namespace"], made["reason"]) == ("shop", "TopologyAnnotationIgnored")
    assert made["involvedObject"] == {
        "kind": "ServiceImport",
        "apiVersion": "multicluster.x-k8s.io/v1alpha1",
        "namespace": "shop",
        "name": "cart",
        "uid": "u-1",
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
