"""Clients that ask all the time while a cluster moves, and whether each of their answers was right at its time."""

import threading
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Final, NamedTuple

from tests.support.kube.cluster import Place, PodView
from tests.support.kube.expected_endpoints import Labels, chosen, node_labels, service_endpoints
from tests.support.kube.query_pods import Asker, asker
from tests.support.kube.slice_history import SliceHistory, slice_history
from tests.support.kube.waiting import eventually, join_all

LAG: Final = 5.0  # seconds: watch events under way, to a server or to us, on a busy machine
_PAUSE: Final = 0.02  # seconds, between the questions of one client

Keys = Mapping[str, Sequence[str]]  # by Service


class Asked(NamedTuple):
    """`answer` is what `Asker.addresses` makes of it; the times are of time.monotonic()."""

    service: str
    node: str
    begin: float
    end: float
    answer: frozenset[str]


class Bystanders:
    """One thread a client, which asks for these Services in turn, in whole rounds, until it is stopped."""

    def __init__(self, place: Place, keys: Keys, history: SliceHistory) -> None:
        self.asked: list[Asked] = []
        self._place, self._keys, self._history = place, keys, history
        self._over = threading.Event()

    def ask_on(self, client: Asker) -> None:
        """Each round is of all the Services."""
        while not self._over.is_set():
            for service in self._keys:
                begin = time.monotonic()
                answer = frozenset(client.addresses(self._place.fqdn(service)))
                self.asked.append(Asked(service, client.pod.node, begin, time.monotonic(), answer))
                time.sleep(_PAUSE)

    def have_asked(self, rounds: int) -> bool:
        """Whether so many are over, all clients taken together."""
        return len(self.asked) >= rounds * len(self._keys)

    def stop(self) -> None:
        self._over.set()

    def follows(self) -> bool:
        """Whether the history has caught up with the API server."""
        there = service_endpoints(self._place.cluster, self._place.name)
        return all(self._history.latest(service) == there.get(service) for service in self._keys)

    def wrong(self, labels: Collection[Labels]) -> list[Asked]:
        """Those that follow from no moment of their time, with the Nodes labelled in any of these ways."""
        return [each for each in self.asked if each.answer not in self._right(each, labels)]

    def _right(self, asked: Asked, labels: Iterable[Labels]) -> Iterator[frozenset[str]]:
        for endpoints in self._history.between(asked.service, asked.begin - LAG, asked.end + LAG):
            for each in labels:
                found = chosen(endpoints, self._keys[asked.service], asked.node, each)
                yield found if endpoints else frozenset(["NXDOMAIN"])


@contextmanager
def asked_all_the_time(place: Place, keys: Keys, clients: Sequence[PodView]) -> Iterator[None]:
    """While the block runs these pods ask for these Services; then none of the answers was ever wrong: an address that
    was no endpoint, an RCODE for a name that exists, nothing at all.
    """
    with ExitStack() as stack:
        bystanders = Bystanders(place, keys, stack.enter_context(slice_history(place.cluster.lab, place.name)))
        eventually(bystanders.follows, "the first slices")
        labels = [node_labels(place.cluster)]
        asking = [stack.enter_context(asker(place.cluster.lab, pod)) for pod in clients]
        with _threads(bystanders, asking):
            eventually(lambda: bystanders.have_asked(len(asking)), "a first round of questions")
            yield
        labels.append(node_labels(place.cluster))
        eventually(bystanders.follows, "the last slices")
    assert {each.node for each in bystanders.asked} == {pod.node for pod in clients}
    wrong = bystanders.wrong(labels)
    assert not wrong, f"{len(wrong)} of {len(bystanders.asked)} answers are wrong, first {wrong[:5]}, last {wrong[-1]}"


@contextmanager
def _threads(bystanders: Bystanders, asking: Sequence[Asker]) -> Iterator[None]:
    threads = [
        threading.Thread(target=bystanders.ask_on, args=(each,), name=each.pod.name, daemon=True) for each in asking
    ]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        bystanders.stop()
        join_all(threads)
