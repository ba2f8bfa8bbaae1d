"""Objects that cannot be decoded: skipped, counted, logged once for each problem; their last version stays."""

import pytest

from topodns.cluster.decode.stream import Undecodable
from topodns.cluster.model import ObjectKey
from topodns.kube.informer.progress import Progress
from topodns.kube.informer.resources import Resource
from topodns.kube.informer.sync_state import UndecodableObjects

SERVICES = Resource("Service", "services", ("/api/v1/services",))
DB = ObjectKey("shop", "db")


def test_each_is_counted_and_a_problem_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    progress = Progress(SERVICES, 0.0)
    objects = UndecodableObjects(progress)
    for problem in ("no ports", "no ports", "no name", "no ports"):
        objects.skip(Undecodable(DB, problem))
    assert progress.decode_errors == 4
    assert [record.getMessage() for record in caplog.records] == [
        f"plugin/kubernetes: skipped {problem}" for problem in ("no ports", "no name", "no ports")
    ]


def test_a_problem_that_comes_back_is_logged_again(caplog: pytest.LogCaptureFixture) -> None:
    objects = UndecodableObjects(Progress(SERVICES, 0.0))
    objects.skip(Undecodable(DB, "no ports"))
    objects.note(DB, "")
    objects.skip(Undecodable(DB, "no ports"))
    assert len(caplog.records) == 2


def test_the_problem_of_an_object_that_a_list_does_not_have_is_forgotten() -> None:
    objects = UndecodableObjects(Progress(SERVICES, 0.0))
    objects.skip(Undecodable(DB, "no ports"))
    objects.end_list()
    assert objects.problems == {DB: "skipped no ports"}
    objects.end_list()
    assert objects.problems == {}


def test_elements_left_out_are_counted_each_time_and_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    progress = Progress(SERVICES, 0.0)
    objects = UndecodableObjects(progress)
    for left_out in (
        "Service shop/db: left out a port",
        "Service shop/db: left out a port",
        "",
        "Service shop/db: again",
    ):
        objects.note(DB, left_out)
    assert progress.decode_errors == 3
    assert caplog.messages == [
        "plugin/kubernetes: Service shop/db: left out a port",
        "plugin/kubernetes: Service shop/db: again",
    ]
