"""What EndpointSlices said over time, as one who watches them was told: by it an answer can be judged afterwards."""

import json
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import IO, Final

from tests.kubelab.lab import Lab
from tests.support.kube.choice import SERVICE_NAME, Endpoint, ready_endpoints

NEVER: Final = float("inf")

Slices = tuple[frozenset[Endpoint], ...]


@dataclass(frozen=True, slots=True)
class Span:
    """From then on, as `time.monotonic` counts, the slices of the Service held this."""

    since: float
    slices: Slices

    @property
    def endpoints(self) -> frozenset[Endpoint]:
        return frozenset(chain.from_iterable(self.slices))


class SliceHistory:
    """By Service, its spans in order. Events of one kind come to all who watch in the same order: so what a server
    holds is at any time what one of the spans says.
    """

    def __init__(self) -> None:
        self._held: dict[str, dict[str, frozenset[Endpoint]]] = {}
        self._spans: dict[str, list[Span]] = {}

    def spans(self, service: str) -> list[Span]:
        return list(self._spans.get(service, ()))

    def quiet_seconds(self) -> float:
        """Since the last event."""
        return time.monotonic() - max((spans[-1].since for spans in self._spans.values()), default=time.monotonic())

    def follow(self, events: IO[bytes]) -> None:
        for line in events:
            event = json.loads(line)
            slice_ = event["object"]
            metadata = slice_["metadata"]
            service = metadata["labels"][SERVICE_NAME]
            held = self._held.setdefault(service, {})
            held[metadata["name"]] = frozenset() if event["type"] == "DELETED" else ready_endpoints(slice_)
            self._spans.setdefault(service, []).append(Span(time.monotonic(), tuple(held.values())))


class Timeline:
    """When each answer was right, of those that `choose` makes of the spans."""

    def __init__(self, spans: Sequence[Span], choose: Callable[[frozenset[Endpoint]], frozenset[str]]) -> None:
        self._times: dict[frozenset[str], list[tuple[float, float]]] = {}
        ends = [*(span.since for span in spans[1:]), NEVER]
        for span, end in zip(spans, ends, strict=True):
            self._times.setdefault(choose(span.endpoints), []).append((span.since, end))

    def distance(self, answer: frozenset[str], asked: float) -> float:
        """Seconds from the question to the nearest moment at which the answer was right; NEVER where it never was."""
        times = self._times.get(answer, ())
        return min((max(0.0, asked - end, since - asked) for since, end in times), default=NEVER)


@contextmanager
def slice_history(lab: Lab, namespace: str) -> Iterator[SliceHistory]:
    """It grows until the end; begins with what there is."""
    history = SliceHistory()
    path = f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices?watch=1"
    with subprocess.Popen(lab.kubectl("get", "--raw", path), stdout=subprocess.PIPE) as watching:
        assert watching.stdout is not None
        reader = threading.Thread(target=history.follow, args=(watching.stdout,), name="slice-history")
        reader.start()
        try:
            yield history
        finally:
            watching.terminate()
            reader.join()
