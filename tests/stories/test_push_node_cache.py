"""topodns as the cluster DNS and a node cache with `push` before it: a change of the cluster is in the next answer."""

import signal
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path

from tests.support.api_objects import Object, endpoint_slice, external_name, service
from tests.support.node_cache_process import node_cache
from tests.support.program_with_fake_api import Scene, scene
from tests.support.push_scene import CALM_SERVICE, PROMISES
from tests.support.server_process import Server, serving, until

PLAIN, NEAR, FRONT, NEW = (f"{name}.default.svc.cluster.local A" for name in ("plain", "near", "front", "new"))
TTL = 30.0  # seconds, of answers of the server
SOON = 20.0  # seconds: less than the TTL, and a busy machine needs time of its own


class Behind:
    """A node cache before the server of a scene."""

    def __init__(self, there: Scene, cache: Server) -> None:
        self.there = there
        self.cache = cache

    def data(self, question: str) -> list[str]:
        reply = self.cache.ask(question)
        return sorted(reply.data) if reply.rcode == "NOERROR" else [reply.rcode]

    def is_subscribed(self, number: int) -> bool:
        return self.cache.metric("topodns_cache_push_subscriptions") == number

    def subscribe(self, *questions: str) -> None:
        for question in questions:
            self.data(question)
            self.data(question)
        until(partial(self.is_subscribed, len(questions)), "the subscriptions")
        for question in questions:
            for _ in range(3):
                self.data(question)

    def comes(self, question: str, *expected: str, patience: float = SOON) -> None:
        """Wait for this answer; without `patience` for less than a TTL."""
        until(
            lambda: self.data(question) == sorted(expected),
            f"{question}: {expected}; there is {self.data(question)}\n{self.cache.output()}",
            patience,
        )

    def put(self, *values: Object) -> None:
        self.there.api.put(*values)

    def sessions_lost(self) -> float:
        return self.cache.metric("topodns_cache_push_sessions_ended_total", reason="lost")

    def kill_server(self) -> None:
        self.there.witness.stop()
        self.there.server.signal(signal.SIGKILL)
        assert self.there.server.wait() == -signal.SIGKILL

    def server_again(self, directory: Path) -> AbstractContextManager[Server]:
        """The server that was killed, at the same address and port, of the Corefile in this directory."""
        killed = self.there.server
        again = directory / "again"
        again.mkdir()
        return serving(again, (directory / "Corefile").read_text(), address=killed.address, port=killed.port)


@contextmanager
def behind(directory: Path, directives: str = "push") -> Iterator[Behind]:
    with (
        scene(directory, CALM_SERVICE, promises=PROMISES, directives=directives, options=f"ttl {TTL:g}") as there,
        node_cache(directory / "node", there.server) as cache,
    ):
        yield Behind(there, cache)


def near_slice(first: str, second: str) -> Object:
    return endpoint_slice("near", {first: "n1", second: "n2"})


def test_changes_of_a_service_of_each_sort_are_in_the_next_answer(tmp_path: Path) -> None:
    with behind(tmp_path) as here:
        assert (here.data(FRONT), here.data(NEW)) == (["10.96.0.1"], ["NXDOMAIN"])
        here.subscribe(PLAIN, NEAR, FRONT, NEW)
        for number in range(3, 8):
            here.put(endpoint_slice("plain", {f"10.61.1.{number}": "n1"}))
            here.comes(PLAIN, f"10.61.1.{number}")
            here.put(near_slice(f"10.61.1.{100 + number}", f"10.61.2.{100 + number}"))
            here.comes(NEAR, f"10.61.1.{100 + number}")  # that of the node's own zone
        here.put(service("new", cluster_ip="10.96.0.7"))
        here.comes(NEW, "10.96.0.7")
        here.there.api.delete(service("new", cluster_ip="10.96.0.7"), service("front", cluster_ip="10.96.0.1"))
        here.comes(NEW, "NXDOMAIN")
        here.comes(FRONT, "NXDOMAIN")
        assert here.cache.metric("topodns_cache_push_contradicted_total") == 0
        assert here.there.metric("topodns_push_sessions") == 1


def test_an_external_name_that_changes_is_in_the_next_answer_and_never_contradicted(tmp_path: Path) -> None:
    """Its target is in the cluster: the cache keeps no alias alone."""
    alias, front, plain = (f"{name}.default.svc.cluster.local." for name in ("elsewhere", "front", "plain"))
    with behind(tmp_path) as here:
        here.put(external_name("elsewhere", front))
        here.there.comes(f"{alias} A", "10.96.0.1", front)
        here.subscribe(f"{alias} A")
        here.put(endpoint_slice("plain", {"10.61.1.2": "n1"}))
        here.put(external_name("elsewhere", plain))
        here.comes(f"{alias} A", "10.61.1.2", plain)
        here.put(endpoint_slice("plain", {"10.61.1.3": "n1"}))
        here.comes(f"{alias} A", "10.61.1.3", plain)
        here.put(service("elsewhere", cluster_ip="10.96.0.8"))
        here.comes(f"{alias} A", "10.96.0.8")
        assert here.cache.metric("topodns_cache_push_contradicted_total") == 0


def test_what_does_not_change_is_answered_from_the_cache(tmp_path: Path) -> None:
    with behind(tmp_path) as here:
        here.subscribe(FRONT, PLAIN)
        fetched = here.cache.metric("coredns_cache_misses_total")
        for number in range(20):
            here.put(endpoint_slice("near", {f"10.61.1.{number + 1}": "n1"}))
            assert here.data(FRONT) == ["10.96.0.1"]
        assert here.cache.metric("coredns_cache_misses_total") == fetched


def test_a_server_without_push_leaves_names_their_ttl(tmp_path: Path) -> None:
    with behind(tmp_path, directives="") as here:
        for _ in range(3):
            here.data(PLAIN)
        ended = partial(here.cache.metric, "topodns_cache_push_sessions_ended_total", reason="refused")
        until(lambda: ended() == 1, "the refusal")
        here.put(endpoint_slice("plain", {"10.61.1.9": "n1"}))
        here.there.comes(PLAIN, "10.61.1.9")
        assert here.data(PLAIN) == ["10.61.1.2", "10.61.2.2"]


def test_over_a_reload_of_the_server_the_session_stays_and_no_change_is_missed(tmp_path: Path) -> None:
    with behind(tmp_path) as here:
        here.subscribe(PLAIN)
        here.there.server.signal(signal.SIGUSR1)
        here.there.server.wait_for_line("Reloading complete")
        here.put(endpoint_slice("plain", {"10.61.1.9": "n1"}))
        until(lambda: here.data(PLAIN) == ["10.61.1.9"], "the change", SOON)
        until(partial(here.is_subscribed, 1), "the subscription")
        here.data(PLAIN)
        here.put(endpoint_slice("plain", {"10.61.1.10": "n1"}))
        here.comes(PLAIN, "10.61.1.10")
        assert here.sessions_lost() == 0


def test_after_the_server_was_killed_answers_are_right_within_the_ttl_and_changes_are_pushed_again(
    tmp_path: Path,
) -> None:
    with behind(tmp_path) as here:
        here.subscribe(PLAIN)
        here.kill_server()
        until(lambda: here.sessions_lost() == 1, "the end of the session")
        here.put(endpoint_slice("plain", {"10.61.1.9": "n1"}))
        assert here.data(PLAIN) == ["10.61.1.2", "10.61.2.2"]  # from the cache
        with here.server_again(tmp_path) as server:
            here.comes(PLAIN, "10.61.1.9", patience=2 * TTL)
            until(partial(here.is_subscribed, 1), "the subscription")
            assert (server.metric("topodns_push_sessions"), here.sessions_lost()) == (1, 1)
            here.data(PLAIN)
            for number in range(10, 13):
                pushed = here.cache.metric("topodns_cache_push_messages_total")
                here.put(endpoint_slice("plain", {f"10.61.1.{number}": "n1"}))
                here.comes(PLAIN, f"10.61.1.{number}")
                assert here.cache.metric("topodns_cache_push_messages_total") > pushed
