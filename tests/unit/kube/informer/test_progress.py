"""The progress of one kind: its failures, which are news once, and its lists."""

from topodns.kube.client.contract import ApiError
from topodns.kube.informer.progress import Progress
from topodns.kube.informer.resources import Resource

SERVICES = Resource("Service", "services", ("/api/v1/services",))


def test_a_failure_is_news_once_for_each_verb_and_status() -> None:
    progress = Progress(SERVICES, 0.0)
    failures = [("list", 403), ("list", 403), ("watch", 403), ("watch", 500), ("watch", 500)]
    news = [progress.failed("list" if verb == "list" else "watch", ApiError(status, "no")) for verb, status in failures]
    assert news == [True, False, True, True, False]


def test_an_answer_ends_a_failure_once() -> None:
    progress = Progress(SERVICES, 0.0)
    progress.failed("list", ApiError(0, "no answer"))
    assert (progress.succeeded(7.0), progress.succeeded(8.0), progress.last_received) == (True, False, 8.0)


def test_a_verb_that_is_denied_too_is_news_once_and_named() -> None:
    progress = Progress(SERVICES, 0.0)
    assert not progress.tried_other("watch", denied=True)
    assert progress.describe() == "Service (services: no complete list yet)"
    progress.failed("list", ApiError(403, "forbidden"))
    assert [progress.tried_other("watch", denied=True) for _ in range(2)] == [True, False]
    assert progress.describe() == "Service (cannot list services: 403: forbidden; watch is denied too)"


def test_the_first_list_is_no_relist() -> None:
    progress = Progress(SERVICES, 0.0)
    found = []
    for lists in (0, 1, 2):
        progress.lists = lists
        found.append(progress.relists)
    assert found == [0, 0, 1]
