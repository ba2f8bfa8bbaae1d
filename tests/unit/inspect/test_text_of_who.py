"""The replies of /who as text."""

import pytest

from topodns.inspect.documents import WhoDocument
from topodns.inspect.sources import manifest_clusters
from topodns.inspect.text import pod_text, who_text
from topodns.inspect.who import who_reply
from topodns.plugins.block import Settings


def reply(served: Settings, address: str) -> WhoDocument:
    return who_reply(manifest_clusters(served), {"client": address})


TEXT = """\
address  10.0.0.1
cluster  cluster.local.
node     one (an address of the node: a process there, or a masqueraded Pod)
labels   hall = north
         rack = 1
because  an address of that Node
methods  nodes: one, an address of that Node
         podcidr (not in `locate`): unknown, in no Node's pod CIDR
         pods (not in `locate`): unknown, Pods are not watched
         slices (not in `locate`): unknown, no EndpointSlice has it
         nodelocator (not in `locate`): unknown, NodeLocators are not watched
         podlocator (not in `locate`): unknown, PodLocators are not watched
         podcidr-unverified (not in `locate`): unknown, in no Node's pod CIDR"""


def test_the_text_reads_from_the_address_to_the_methods(served: Settings) -> None:
    assert who_text(reply(served, "10.0.0.1")) == TEXT


def test_the_text_has_zone_contradictions_keys_that_lack_and_advice() -> None:
    cluster: dict[str, object] = {
        "origins": ["cluster.local."],
        "view": "near",
        "node": None,
        "method": "unknown",
        "because": "no reason",
        "zone": "a",
        "labels": {},
        "lacking": ["rack"],
        "methods": [],
        "contradictions": ["one", "two"],
        "hint": "do this",
    }
    assert who_text({"address": "10.0.0.1", "clusters": [cluster]}).splitlines() == [
        "address  10.0.0.1",
        "cluster  cluster.local., view near",
        "node     unknown",
        "zone     a",
        "lacks    rack",
        "because  no reason",
        "but      one",
        "         two",
        "hint     do this",
    ]


def test_the_node_of_a_pod_is_compared_with_the_api_servers(served: Settings) -> None:
    addresses = [reply(served, "10.0.0.1")]
    right = pod_text({"pod": "shop/web-1", "node": "one", "addresses": addresses}).splitlines()
    assert right == ["pod      shop/web-1 on one, by the API server", *TEXT.splitlines()]
    wrong = pod_text({"pod": "shop/web-1", "node": "two", "addresses": addresses}).splitlines()
    assert wrong[-1] == "but      the API server says two, this server one"


@pytest.mark.parametrize(
    "found",
    [{}, {"address": "10.0.0.1", "clusters": [3]}, {"address": "10.0.0.1", "clusters": [{}]}],
    ids=str,
)
def test_an_object_of_another_form_is_no_location(found: dict[str, object]) -> None:
    with pytest.raises((KeyError, TypeError)):
        who_text(found)
