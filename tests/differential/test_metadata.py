"""Metadata of clients' Pods beside CoreDNS: views and lines of the log, as several Pods ask."""

from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from typing import Final

import pytest

from tests.support.api_objects import Object, namespace, pod, service
from tests.support.coredns import running_coredns
from tests.support.fake_api.server import running
from tests.support.server_process import Server, own_address, serving, until

PODS: Final = {"shop/web": "127.62.1.1", "shop/job": "127.62.1.2", "bank/web": "127.62.1.3"}
WITHOUT_POD: Final = "127.62.1.4"
CLIENTS: Final = (*PODS.values(), WITHOUT_POD)
QUESTIONS: Final = (
    "web.shop.svc.cluster.local A",
    "_http._tcp.web.shop.svc.cluster.local SRV",
    "no-such.bank.svc.cluster.local A",
    "10-0-0-1.shop.pod.cluster.local A",
    "a.b.c.d.e.svc.cluster.local A",
    "svc.cluster.local SOA",
)
NAMES: Final = ("client-namespace", "client-pod-name", "client-label/tier")
PARTS: Final = ("kind", "namespace", "service", "endpoint", "port-name", "protocol", "parse-error")
FORMAT: Final = " ".join(["asked", "{remote}", *(f"{{/kubernetes/{each}}}" for each in (*NAMES, *PARTS)), "{name}"])
COREFILE: Final = f"""\
. {{
    view shop {{
        expr metadata('kubernetes/client-namespace') == 'shop' && metadata('kubernetes/client-label/tier') == 'web'
    }}
    bind HERE
    ready HERE:8181
    metadata
    log . "{FORMAT}"
    kubernetes cluster.local {{
        endpoint API
        pods verified
        ttl 7
    }}
}}
. {{
    bind HERE
    metadata
    log . "{FORMAT}"
    kubernetes cluster.local {{
        endpoint API
        pods verified
    }}
}}
"""


def objects() -> list[Object]:
    made = [namespace("shop"), namespace("bank"), service("web", "shop", "10.96.0.1")]
    for name, address in PODS.items():
        of, _, own = name.partition("/")
        made.append(pod(own, address, "n1", of))
        made[-1]["metadata"]["labels"] = {"tier": own}
    return made


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Server]]:
    """CoreDNS and topodns, both with all the Pods."""
    with ExitStack() as stack:
        api = stack.enter_context(running(objects(), own_address()))
        corefile = COREFILE.replace("API", api.url)
        theirs = stack.enter_context(running_coredns(tmp_path_factory.mktemp("coredns"), corefile))
        ours = stack.enter_context(serving(tmp_path_factory.mktemp("topodns"), corefile))
        for server in (theirs, ours):
            until(partial(knows_pods, server), "the Pods are known")
        yield theirs, ours


def knows_pods(server: Server) -> bool:
    """Whether the server answers by the Pods; CoreDNS may say that it is ready before its socket is open."""
    try:
        return ttl(server, PODS["shop/web"]) == 7
    except ConnectionRefusedError:
        return False


def ttl(server: Server, source: str) -> int:
    (line,) = server.ask(QUESTIONS[0], source).answer
    return int(line.split()[1])


def replies(server: Server) -> list[tuple[object, ...]]:
    found = [server.ask(question, source) for question in QUESTIONS for source in CLIENTS]
    return [(reply.rcode, reply.answer, [line.split()[1] for line in reply.authority]) for reply in found]


def test_views_by_the_client_s_pod_are_those_of_coredns(servers: tuple[Server, Server]) -> None:
    theirs, ours = servers
    assert [ttl(ours, source) for source in CLIENTS] == [7, 5, 5, 5]
    for _ in range(2):  # made, then ready-made
        assert replies(ours) == replies(theirs)


def logged(server: Server) -> set[str]:
    replies(server)
    server.wait_for_line(f"{WITHOUT_POD} - - - ")
    return {line.partition("asked ")[2] for line in server.lines("asked ")}


def test_the_log_has_the_values_that_coredns_has(servers: tuple[Server, Server]) -> None:
    theirs, ours = map(logged, servers)
    assert ours == theirs
    assert len(ours) == len(CLIENTS) * len(QUESTIONS)
