"""`autopath` leads no client outside: not to `app-0.app.`, though `.app` is a domain open to registration.

The Internet of these tests has every name of `app.` and `org.`, at addresses of its own.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.api_objects import namespace, pod, service
from tests.support.server_process import Server, serving, until
from tests.support.steady_client import victim

PORT = 5353
IN_ALPHA, IN_BETA, STRANGER = "127.73.0.1", "127.73.0.2", "127.73.0.3"
REGISTERED, ORG = "192.0.2.66", "192.0.2.1"
CLUSTER = (
    *map(namespace, ("alpha", "beta")),
    service("web", "alpha", "10.96.0.1"),
    pod("one", IN_ALPHA, "n1", "alpha"),
    pod("two", IN_BETA, "n1", "beta"),
)
SERVER = f"""\
.:{PORT} {{
    bind HERE
    autopath @kubernetes
    kubernetes cluster.local {{
        manifests cluster.json
        PODS
    }}
    template IN A app {{
        answer "{{{{ .Name }}}} 60 IN A {REGISTERED}"
    }}
    template IN A org {{
        answer "{{{{ .Name }}}} 60 IN A {ORG}"
    }}
}}
"""
NODE = f"""\
cluster.local:{PORT} {{
    bind HERE
    autopath @kubernetes
    cache
    forward . CLUSTER_DNS:{PORT}
}}
.:{PORT} {{
    bind HERE
    cache
    forward . CLUSTER_DNS:{PORT}
}}
"""
OWN = ["app-0.app", "10-0-0-7.app", "fd00-10--a.app", "_http._tcp.app", "app-0.web"]
WALK = "example.org.alpha.svc.cluster.local"


@pytest.fixture(params=["pods verified", ""], ids=["Pods watched", "no Pods watched"])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Server]:
    yield from _server(tmp_path, request.param)


@pytest.fixture
def watching(tmp_path: Path) -> Iterator[Server]:
    yield from _server(tmp_path, "pods verified")


def _server(directory: Path, pods: str) -> Iterator[Server]:
    objects = {"kind": "List", "apiVersion": "v1", "items": CLUSTER}
    (directory / "cluster.json").write_text(json.dumps(objects))
    with serving(directory, SERVER.replace("PODS", pods), port=PORT) as server:
        yield server


def assert_denied(server: Server, source: str) -> None:
    """A name that may be a Service's own is denied, at the first query and when the answer is ready-made."""
    for label in OWN:
        for _ in range(3):
            reply = server.ask(f"{label}.alpha.svc.cluster.local A", source)
            assert (reply.rcode, reply.data) == ("NXDOMAIN", []), (label, source)


def test_the_name_of_a_pod_or_port_of_a_service_that_is_not_there_is_denied_to_everybody(server: Server) -> None:
    for source in (IN_ALPHA, IN_BETA, STRANGER):
        assert_denied(server, source)


def test_a_node_s_autopath_denies_them_too(server: Server, tmp_path: Path) -> None:
    (tmp_path / "node").mkdir()
    with serving(tmp_path / "node", NODE.replace("CLUSTER_DNS", server.address), port=PORT) as node:
        assert_denied(node, IN_ALPHA)
        assert node.ask(f"{WALK} A", IN_ALPHA).data == [ORG, "example.org."]


def test_with_pods_watched_a_search_list_applies_to_pods_of_its_own_namespace_whichever_pod_asks_first(
    watching: Server,
) -> None:
    """Strangers and Pods of other namespaces ask for the same names all the while, before and after the victim."""
    with victim(watching, f"{WALK} A", ORG, per_second=200, source=IN_ALPHA) as fate:
        for _ in range(50):
            for source in (IN_BETA, STRANGER):
                reply = watching.ask(f"{WALK} A", source)
                assert (reply.rcode, reply.data) == ("NXDOMAIN", []), source
        until(lambda: fate.asked >= 50, "the victim's questions")
    assert (fate.lost, fate.wrong) == (0, []), fate
    assert watching.ask("example.org.beta.svc.cluster.local A", IN_ALPHA).rcode == "NXDOMAIN"
    assert watching.ask("example.org.beta.svc.cluster.local A", IN_BETA).data == [ORG, "example.org."]
