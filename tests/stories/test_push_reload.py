"""DSO sessions over reloads and the end of the server: kept where the new Corefile has `push`, else ended in order."""

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.event_loops import SLOWNESS
from tests.support.push_client import NOERROR, NOTAUTH, RETRY_DELAY, A, Notified, PushClient, push_client
from tests.support.server_process import Server, serving, until

PORT = 5353  # fixed: a listener is the same one after a reload when its address and port are
NAME = "web.shop.svc.cluster.local."
MANIFEST = """
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: v1
kind: Service
metadata: {namespace: shop, name: web}
spec: {clusterIP: 10.96.0.20, clusterIPs: [10.96.0.20], ports: [{port: 80}]}
"""


def corefile(ttl: int = 5, origin: str = "cluster.local", push: str = "push") -> str:
    return f"""\
. {{
    bind HERE
    kubernetes {origin} {{
        manifests cluster.yaml
        ttl {ttl}
    }}
    {push}
}}
"""


class Story:
    def __init__(self, server: Server, directory: Path) -> None:
        self.server = server
        self._directory = directory

    def reload(self, text: str) -> None:
        (self._directory / "Corefile").write_text(text.replace("HERE", self.server.address))
        before = len(self.server.lines("Reloading complete"))
        self.server.signal(signal.SIGUSR1)
        until(lambda: len(self.server.lines("Reloading complete")) > before, self.server.output())

    def put(self, manifest: str) -> None:
        draft = self._directory / ".draft"
        draft.write_text(manifest)
        draft.replace(self._directory / "cluster.yaml")


@pytest.fixture
def story(tmp_path: Path) -> Iterator[Story]:
    (tmp_path / "cluster.yaml").write_text(MANIFEST)
    with serving(tmp_path, corefile(), port=PORT) as server:
        yield Story(server, tmp_path)


@pytest.fixture
def one(story: Story) -> Iterator[PushClient]:
    with push_client((story.server.address, PORT)) as client:
        assert client.subscribe(NAME).rcode == NOERROR
        client.comes(NAME, "10.96.0.20")
        yield client


def ends_in_order(client: PushClient, rcode: int = NOERROR) -> None:
    last = client.message()
    delay = last.tlv(RETRY_DELAY)
    assert delay is not None
    assert (last.ident, last.rcode) == (0, rcode)
    assert int.from_bytes(delay, "big") < 5_000
    assert client.is_closed()


def test_a_change_of_a_manifest_is_pushed(story: Story, one: PushClient) -> None:
    story.put(MANIFEST.replace("10.96.0.20", "10.96.0.21"))
    one.comes(NAME, "10.96.0.21")


def test_after_a_reload_a_session_gets_what_the_new_corefile_answers(story: Story, one: PushClient) -> None:
    story.reload(corefile(ttl=7))
    assert one.push() == [Notified(NAME, A, 7, "10.96.0.20")]
    story.put(MANIFEST.replace("10.96.0.20", "10.96.0.21"))
    one.comes(NAME, "10.96.0.21")
    assert one.subscribe("other.shop.svc.cluster.local.").rcode == NOERROR


def test_a_reload_with_nothing_new_for_a_session_is_not_seen(story: Story, one: PushClient) -> None:
    story.reload(corefile() + "# nothing\n")
    assert one.is_silent(0.3)


def test_a_reload_without_push_ends_the_sessions(story: Story, one: PushClient) -> None:
    story.reload(corefile(push=""))
    ends_in_order(one)


def test_a_reload_without_the_zone_of_a_subscription_ends_its_session(story: Story, one: PushClient) -> None:
    story.reload(corefile(origin="other.local"))
    ends_in_order(one, NOTAUTH)
    with push_client((story.server.address, PORT)) as again:
        assert again.subscribe(NAME).rcode == NOTAUTH


def test_a_reload_that_brings_push_lets_sessions_begin_on_open_connections(story: Story) -> None:
    story.reload(corefile(push=""))
    with push_client((story.server.address, PORT)) as client:
        story.reload(corefile())
        assert client.subscribe(NAME).rcode == NOERROR


def test_a_server_that_stops_ends_its_sessions_with_a_retry_delay(story: Story, one: PushClient) -> None:
    with push_client((story.server.address, PORT)) as without:
        begun = time.monotonic()
        story.server.signal(signal.SIGTERM)
        ends_in_order(one)
        assert without.is_closed()
        assert story.server.wait() == 0
        assert time.monotonic() - begun < 30 * SLOWNESS
