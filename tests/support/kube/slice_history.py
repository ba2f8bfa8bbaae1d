"""The ready endpoints of EndpointSlices over time, as a watch showed them: answers can be judged by it afterwards."""

import json
import math
import subprocess
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from typing import IO, Any, NamedTuple

from tests.kubelab.lab import Lab
from tests.support.kube.expected_endpoints import SERVICE_NAME, Endpoint, ready_endpoints
from tests.support.kube.waiting import join_all

Slices = tuple[frozenset[Endpoint], ...]


class _Moment(NamedTuple):
    """The ready addresses from this time on, by time.monotonic()."""

    since: float
    slices: Slices

    def endpoints(self) -> frozenset[Endpoint]:
        return frozenset(chain.from_iterable(self.slices))


class SliceHistory:
    """Events of one kind come to all who watch in the same order: so what a server holds is at any time one of the
    moments, and never an earlier one than before.
    """

    def __init__(self) -> None:
        self._held: dict[str, dict[str, frozenset[Endpoint]]] = {}
        self._moments: dict[str, list[_Moment]] = {}

    def moments(self, service: str) -> Iterator[frozenset[Endpoint]]:
        """The ready addresses behind it, from the first event to the last."""
        return (moment.endpoints() for moment in list(self._moments.get(service, ())))

    def between(self, service: str, begin: float, end: float) -> Iterator[frozenset[Endpoint]]:
        """The ready addresses behind it at some time of these, by time.monotonic()."""
        moments = list(self._moments.get(service, ()))
        ends = [*(moment.since for moment in moments[1:]), math.inf]
        for moment, until in zip(moments, ends, strict=True):
            if moment.since <= end and until >= begin:
                yield moment.endpoints()

    def latest(self, service: str) -> frozenset[Endpoint] | None:
        """None: nothing is known yet."""
        moments = self._moments.get(service)
        return moments[-1].endpoints() if moments else None

    def follow(self, events: IO[bytes]) -> None:
        """To the end, which may cut an event short."""
        for line in events:
            if line.endswith(b"\n"):
                self._note(json.loads(line))

    def _note(self, event: dict[str, Any]) -> None:
        slice_ = event["object"]
        metadata = slice_["metadata"]
        service = metadata["labels"][SERVICE_NAME]
        held = self._held.setdefault(service, {})
        held[metadata["name"]] = frozenset() if event["type"] == "DELETED" else ready_endpoints(slice_)
        self._moments.setdefault(service, []).append(_Moment(time.monotonic(), tuple(held.values())))


def never_right(answers: Iterable[frozenset[str]], moments: Iterable[frozenset[str]]) -> frozenset[str] | None:
    """The first answer that was right neither at the moment of the one before it nor at a later one; None: all were."""
    later = iter(moments)
    right = next(later, None)
    for answer in answers:
        while right != answer:
            right = next(later, None)
            if right is None:
                return answer
    return None


@contextmanager
def slice_history(lab: Lab, namespace: str) -> Iterator[SliceHistory]:
    """It grows until the end; begins with the existing slices."""
    history = SliceHistory()
    path = f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices?watch=1"
    with subprocess.Popen(lab.kubectl("get", "--raw", path), stdout=subprocess.PIPE) as watching:
        assert watching.stdout is not None
        reader = threading.Thread(target=history.follow, args=(watching.stdout,), name="slice-history", daemon=True)
        reader.start()
        try:
            yield history
        finally:
            watching.terminate()
            try:
                join_all([reader])
            finally:
                watching.kill()  # leaving waits for it
