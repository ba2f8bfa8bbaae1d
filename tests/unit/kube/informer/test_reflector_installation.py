"""Why a custom resource is not there, by the discovery document of its API group."""

import json
import logging
from collections import deque

import pytest

from tests.support.api_objects import node_locator
from tests.support.reflector_with_scripted_api import after
from tests.support.scripted_api import NOT_FOUND, Body, ScriptedApi, bookmark, event, watch
from tests.support.virtual_event_loop import run_virtually
from topodns.kube.client.contract import ApiError
from topodns.kube.informer.reflector import reason_of_absence
from topodns.kube.informer.resources import Resource

LOCATORS = Resource(
    "NodeLocator",
    "nodelocators.topodns.io",
    ("/apis/topodns.io/v1alpha1/nodelocators",),
    optional=True,
    custom=True,
)
MISSING = "not installed: the cluster has no CustomResourceDefinition nodelocators.topodns.io"
UNSURE = "not installed, or not in version v1alpha1"


def group(*versions: str) -> Body:
    served = [{"groupVersion": f"topodns.io/{version}", "version": version} for version in versions]
    return Body((json.dumps({"kind": "APIGroup", "name": "topodns.io", "versions": served}).encode(),))


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        pytest.param(NOT_FOUND, MISSING, id="no such group"),
        pytest.param(group("v1alpha1"), MISSING, id="a group with other resources"),
        pytest.param(group(), MISSING, id="a group without versions"),
        pytest.param(
            group("v1beta1"), "the cluster has topodns.io in version v1beta1, expected v1alpha1", id="another version"
        ),
        pytest.param(
            group("v2", "v1"), "the cluster has topodns.io in version v2, v1, expected v1alpha1", id="other versions"
        ),
        pytest.param(ApiError(403, "forbidden"), UNSURE, id="denied"),
        pytest.param(Body((b"<html>",)), UNSURE, id="no JSON"),
        pytest.param(Body((), stalls=True), UNSURE, id="no answer"),
    ],
)
def test_the_reason_is_read_from_the_group(reply: Body | ApiError, reason: str) -> None:
    api = ScriptedApi(deque([reply]))
    assert run_virtually(reason_of_absence(api, LOCATORS)) == reason
    assert [request.path for request in api.requests] in ([], ["/apis/topodns.io"])


def test_a_reason_is_logged_once_and_again_when_it_changes(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        setup = after(
            10, LOCATORS, *[NOT_FOUND, NOT_FOUND] * 2, NOT_FOUND, group("v1beta1"), NOT_FOUND, group("v1beta1")
        )
    assert (setup.state.synced, setup.state.denied) == (True, set())
    other = "the cluster has topodns.io in version v1beta1, expected v1alpha1"
    assert setup.progress.describe() == f"NodeLocator (cannot watch nodelocators.topodns.io: 404: {other})"
    assert caplog.messages == [
        f"plugin/kubernetes: cannot watch nodelocators.topodns.io: 404: {MISSING}",
        f"plugin/kubernetes: cannot watch nodelocators.topodns.io: 404: {other}",
    ]


@pytest.mark.parametrize(
    ("attempts", "seconds"),
    [
        pytest.param(1, 1.1, id="together with the server"),
        pytest.param(2, 3.1, id="soon after the server"),
        pytest.param(10, 1 + 2 + 4 + 8 + 15 + 30 + 4 * 60 + 0.1, id="later: within a minute"),
    ],
)
def test_locators_are_known_soon_after_their_installation(attempts: int, seconds: float) -> None:
    locators = [event("ADDED", node_locator("a", ["10.1.0.1"]), 10), bookmark(100, True)]
    absent = [NOT_FOUND, NOT_FOUND] * attempts
    assert after(seconds - 0.2, LOCATORS, *absent, watch(*locators)).names == ""
    setup = after(seconds, LOCATORS, *absent, watch(*locators))
    assert (setup.names, setup.progress.trouble) == ("a", None)
