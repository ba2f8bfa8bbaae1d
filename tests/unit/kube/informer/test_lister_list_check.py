"""K11, K24: which complete lists are plausible, and that the list after an implausible one is accepted."""

import pytest

from tests.support.model_builders import service
from topodns.cluster.model import Replaced
from topodns.cluster.publishing_state import PublishingState
from topodns.cluster.state import ClusterState
from topodns.kube.informer.lister import ListCheck
from topodns.kube.informer.progress import Progress
from topodns.kube.informer.resources import Resource
from topodns.kube.informer.state_writer import StateWriter
from topodns.kube.informer.sync_state import SyncState

SERVICES = Resource("Service", "services", ("/api/v1/services",))


def checked(held: int) -> tuple[ListCheck, SyncState]:
    """The check of a state with this many Services, of which a list with resourceVersion 100 was applied last."""
    state = ClusterState(frozenset())
    state.apply(Replaced("Service", tuple(service(f"s{number}") for number in range(held))), 0)
    writer = StateWriter(PublishingState(state, lambda: 1000.0))
    sync = SyncState(Progress(SERVICES, 0.0), writer)
    sync.list_applied("100")
    return ListCheck("Service", writer, sync), sync


@pytest.mark.parametrize(
    ("held", "listed", "problem"),
    [
        (100, 0, ""),
        (101, 11, ""),
        (101, 10, "it has 10 objects where there were 101"),
        (200, 20, ""),
        (200, 19, "it has 19 objects where there were 200"),
    ],
)
def test_k11_a_list_with_less_than_a_tenth_of_more_than_a_hundred_objects_is_implausible(
    held: int, listed: int, problem: str
) -> None:
    check, _ = checked(held)
    assert check.problem(range(listed), "101") == problem


@pytest.mark.parametrize(("version", "plausible"), [("99", False), ("100", True), ("101", True), ("unordered", True)])
def test_k24_a_list_with_an_older_version_is_implausible(version: str, plausible: bool) -> None:
    check, _ = checked(1)
    problem = "" if plausible else "its resourceVersion 99 is older than 100, which was seen before"
    assert check.problem(range(1), version) == problem


def test_k11_the_list_after_an_implausible_one_is_the_newest_there_is_and_accepted() -> None:
    check, sync = checked(200)
    assert sync.not_older_than == {"resourceVersion": "100", "resourceVersionMatch": "NotOlderThan"}
    assert check.problem((), "101")
    assert sync.not_older_than == {}
    assert check.problem((), "50") == ""
    assert check.problem((), "101"), "only the next one"
