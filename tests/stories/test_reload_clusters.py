"""A new Corefile under a server that follows an API server: which clusters it keeps, and which objects it reads anew.

A client asks all the while: no query may stay unanswered, and none may be answered as if less were known.
"""

import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.api_objects import Object, node, node_locator, service
from tests.support.program_with_fake_api import CLUSTER, FRONT, IN_A, NEAR, Scene, scene
from tests.support.server_process import until

QUICKLY = "startup_timeout 300ms"
FAILED, EVENTS = "coredns_reload_failed_total", "topodns_watch_events_total"
RESOURCES = ("namespaces", "services", "endpointslices", "nodes")
NEW = "new.default.svc.cluster.local A"
ELSEWHERE = """
other.test {
    kubernetes {
        endpoint URL
        startup_timeout 300ms
    }
}
"""


@dataclass
class Reloading:
    """`corefile` is the one in force at the start."""

    scene: Scene
    corefile: Path
    text: str

    def reload(self, text: str) -> None:
        """By SIGUSR1; returns when it has been done."""
        server, done = self.scene.server, len(self.scene.server.lines("Reloading complete"))
        self.corefile.write_text(text)
        server.signal(signal.SIGUSR1)
        until(lambda: len(server.lines("Reloading complete")) > done, f"the reload\n{server.output()}")

    def is_refused(self, text: str, why: str) -> None:
        refused = self.scene.metric(FAILED)
        self.corefile.write_text(text)
        self.scene.server.signal(signal.SIGUSR1)
        self.scene.shows(FAILED, refused + 1)
        assert why in self.scene.server.lines("[ERROR]")[-1]

    def with_options(self, options: str) -> str:
        return self.text.replace(QUICKLY, f"{QUICKLY}\n{options}")

    @property
    def ttl(self) -> int:
        (line,) = self.scene.server.ask(FRONT, IN_A).answer
        return int(line.split()[1])

    @property
    def watches(self) -> list[int]:
        return [self.scene.api.watches(resource) for resource in RESOURCES]

    def follows(self, cluster_ip: str) -> None:
        """A change is in the answers, also in ready-made ones."""
        assert self.scene.data(NEW) == self.scene.data(NEW)
        self.scene.api.put(service("new", cluster_ip=cluster_ip))
        self.scene.comes(NEW, cluster_ip)


@contextmanager
def reloading(directory: Path, locate: str = "", options: str = QUICKLY) -> Iterator[Reloading]:
    with scene(directory, options=options, locate=locate) as there:
        corefile = directory / "Corefile"
        yield Reloading(there, corefile, corefile.read_text())


@pytest.fixture
def story(tmp_path: Path) -> Iterator[Reloading]:
    with reloading(tmp_path) as story:
        until(lambda: story.watches == [1, 1, 1, 1], "a watch of each kind")
        yield story


def test_a_change_of_how_names_are_answered_asks_the_api_server_nothing(story: Reloading) -> None:
    story.follows("10.96.0.7")
    asked, events = story.scene.api.requests.count(), story.scene.metric(EVENTS)
    assert events > 0
    for ttl in (7, 9):
        story.reload(story.with_options(f"ttl {ttl}"))
        assert [story.ttl, story.ttl] == [ttl, ttl]
        story.follows(f"10.96.0.{ttl + 10}")
    assert (story.scene.api.requests.count(), story.watches) == (asked, [1, 1, 1, 1])
    assert story.scene.metric(EVENTS) == events + 2


def test_after_a_reload_clients_are_located_by_the_new_methods_in_the_existing_state(story: Reloading) -> None:
    asked = story.scene.api.requests.count()
    story.reload(story.text.replace("locate nodes podcidr slices", "locate nodes slices"))
    assert story.scene.data(NEAR) == ["10.61.1.1"]
    story.scene.api.put(node("n1", "b", IN_A))
    story.scene.comes(NEAR, "10.61.1.1", "10.61.2.1")
    assert story.scene.api.requests.count() == asked


def test_without_its_api_server_a_reload_keeps_the_cluster_and_the_way_back_to_it(story: Reloading) -> None:
    story.scene.api.down()
    story.scene.shows("topodns_watch_failing", kind="Service", status="0")
    story.reload(story.with_options("ttl 7"))
    assert (story.ttl, story.scene.data(NEAR), story.scene.data(NEW)) == (7, ["10.61.1.1"], ["NXDOMAIN"])
    assert story.scene.ready() == (200, "OK")
    story.is_refused(story.with_options("labels app=web"), "known now, but could not be read anew")
    assert story.ttl == 7
    story.scene.api.up()
    story.follows("10.96.0.7")
    assert story.scene.metric("topodns_relists_total") == 0


def test_a_misspelt_endpoint_is_refused_while_its_cluster_is_known(story: Reloading) -> None:
    story.is_refused(re.sub(r"endpoint \S+", "endpoint http://127.0.0.1:9", story.text), "known now, but could not be")
    assert (story.scene.data(NEAR), story.watches) == (["10.61.1.1"], [1, 1, 1, 1])
    story.follows("10.96.0.7")


def test_locators_replace_pods_only_once_each_node_has_one(tmp_path: Path) -> None:
    # Time enough for the lists, which are there at each refusal.
    with reloading(tmp_path, locate="pods", options="startup_timeout 60s") as story:
        by_locators = story.text.replace("podcidr slices pods", "podcidr slices nodelocator")
        missing = "topology: clients that are located now would not be: NodeLocators: {} of 2 Nodes have none"
        story.is_refused(by_locators, missing.format(2))
        story.scene.api.put(node_locator("n1"))
        story.is_refused(by_locators, missing.format(1))
        story.scene.api.put(node_locator("n2"))
        story.reload(by_locators)
        assert story.scene.ready() == (200, "OK")
        story.scene.api.delete(node_locator("n2"))
        story.reload(story.text.replace("podcidr slices pods", "slices nodelocator"))


def test_another_cluster_that_cannot_be_reached_makes_nothing_forgotten(story: Reloading) -> None:
    bound = ELSEWHERE.replace("{", f"{{\n bind {story.scene.server.address}", 1)
    story.reload(story.text + bound.replace("URL", "http://127.0.0.1:9"))
    assert story.scene.data(NEAR) == ["10.61.1.1"]
    assert story.scene.data(FRONT.replace("cluster.local", "other.test")) == ["SERVFAIL"]


def test_an_endpoint_with_a_slash_more_is_the_same_one(story: Reloading) -> None:
    story.scene.api.down()
    story.reload(re.sub(r"(endpoint \S+)", r"\1/", story.text))
    assert story.scene.data(NEAR) == ["10.61.1.1"]


def test_other_labels_are_read_anew_and_nothing_is_followed_twice(story: Reloading) -> None:
    story.scene.api.put(*map(labelled, CLUSTER), labelled(service("new", cluster_ip="10.96.0.7")))
    story.scene.comes(NEW, "10.96.0.7")
    story.scene.api.requests.clear()
    story.reload(story.with_options("labels app=web"))
    assert {asked.query["labelSelector"] for asked in story.scene.api.requests.of("services")} == {"app=web"}
    until(lambda: story.watches == [1, 1, 1, 1], "the watches of before have ended")
    story.scene.api.put(service("hidden", cluster_ip="10.96.0.8"))
    story.scene.api.put(labelled(service("new", cluster_ip="10.96.0.9")))
    story.scene.comes(NEW, "10.96.0.9")
    assert story.scene.data("hidden.default.svc.cluster.local A") == ["NXDOMAIN"]


def labelled(value: Object) -> Object:
    metadata = value["metadata"]
    return {**value, "metadata": {**metadata, "labels": {**metadata.get("labels", {}), "app": "web"}}}


REFUSED = [
    ("a mistake", "kubernetse", "Corefile:"),
    ("an address that is nobody's", "bind 192.0.2.1", "listen udp 192.0.2.1"),
]


@pytest.mark.parametrize(("line", "why"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED])
def test_a_refused_corefile_leaves_every_watch_as_it_was_and_none_of_its_own(
    story: Reloading, line: str, why: str
) -> None:
    asked = story.scene.api.requests.count("services")
    more = ELSEWHERE.replace("URL", story.scene.api.url).replace("other.test {", f"other.test {{\n{line}")
    story.is_refused(story.text + more, why)
    until(lambda: story.watches == [1, 1, 1, 1], "no other watches")
    assert story.ttl == 5
    story.follows("10.96.0.7")
    assert story.scene.api.requests.count("services") <= asked + 1


def test_a_cluster_that_cannot_be_reached_does_not_take_its_neighbours_along(story: Reloading, tmp_path: Path) -> None:
    (tmp_path / "kubeconfig").write_text("{}")
    asked = story.scene.api.requests.count()
    reachable = ELSEWHERE.replace("URL", story.scene.api.url)
    broken = ELSEWHERE.replace("endpoint URL", "kubeconfig kubeconfig").replace("other", "broken")
    story.is_refused(story.text + reachable + broken, "kubeconfig")
    assert (story.scene.api.requests.count(), story.watches) == (asked, [1, 1, 1, 1])
    story.reload(story.with_options("ttl 7"))
    assert story.scene.server.lines("Unclosed") == []


def test_a_cluster_more_is_read_and_a_cluster_less_is_not_followed_any_more(story: Reloading) -> None:
    asked = story.scene.api.requests.count("nodes")
    question = FRONT.replace("cluster.local", "other.test")
    bound = ELSEWHERE.replace("{", f"{{\n bind {story.scene.server.address}", 1)
    story.reload(story.text + bound.replace("URL", story.scene.api.url))
    assert story.scene.data(question) == ["10.96.0.1"]
    assert story.watches == [2, 2, 2, 1]
    story.reload(story.text)
    assert story.scene.data(question) == ["REFUSED"]
    until(lambda: story.watches == [1, 1, 1, 1], "its watches have ended")
    assert story.scene.api.requests.count("nodes") == asked
    story.follows("10.96.0.7")
