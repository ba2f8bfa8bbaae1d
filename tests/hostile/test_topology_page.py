"""A client of the topology page cannot delay DNS, nor fill the server: its port is one of loopback, and it may be in
the hands of a hostNetwork Pod.
"""

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.support.http_flood import ASKED, HTTP_P99, PROBE_TIMEOUT, QUESTION, RIGHT, bystander, flooded, request
from tests.support.server_process import READY, ROOT, Server, serving, until
from tests.support.steady_client import victim

PAGE = 8182
COREFILE = f"""
. {{
    bind HERE
    errors
    ready HERE:{READY}
    prometheus HERE:9153
    kubernetes cluster.local {{
        manifests {ROOT}/config/demo/cluster
    }}
    topology {{
        page HERE:{PAGE}
    }}
}}
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("page"), COREFILE) as server:
        yield server


def of_page(path: str) -> bytes:
    return request(path).replace(b"Host: a", b"Host: localhost")


@pytest.mark.parametrize(
    "costly",
    [
        pytest.param(of_page("/topology"), id="pages"),
        pytest.param(of_page("/topology/state"), id="states"),
        pytest.param(of_page("/topology/service?service=shop/cache"), id="details"),
        pytest.param(of_page("/topology/explain?service=shop/cache&node=node-a1"), id="explanations"),
        pytest.param(
            of_page("/topology/what-if?" + "&".join(f"change=node=node-{a}{n}:down" for a in "abc" for n in "123")),
            id="what-ifs",
        ),
        pytest.param(of_page("/topology/what-if?change=node=" + "n" * 7000 + ":down"), id="long names"),
        pytest.param(request("/topology/state"), id="wrong hosts"),
    ],
)
def test_floods_of_requests_do_not_delay_dns(server: Server, costly: bytes) -> None:
    with flooded(server, (PAGE, costly, 20)) as flood:
        fate = bystander(server)
    assert flood.answered > 20
    assert (fate.lost, fate.wrong) == (0, []), fate
    assert fate.cpu(99) <= HTTP_P99, fate


def test_streams_without_end_do_not_delay_dns_and_leave_room_for_a_page(server: Server) -> None:
    with ExitStack() as stack, victim(server, QUESTION, RIGHT, per_second=150) as fate:
        for _ in range(300):
            sock = stack.enter_context(socket.create_connection((server.address, PAGE), PROBE_TIMEOUT))
            sock.sendall(of_page("/topology/events"))
        assert server.metric("topodns_http_streams") <= 16
        status, _ = server.get("/topology/state", PAGE)
        assert status == 200
        until(lambda: fate.asked >= ASKED, "questions asked")
    assert (fate.lost, fate.wrong) == (0, []), fate
    assert fate.cpu(99) <= HTTP_P99, fate
    until(lambda: server.metric("topodns_http_streams") == 0, "no stream")


def test_replies_that_are_not_read_fill_the_server_no_more_than_one_state_does(server: Server) -> None:
    before = server.resident_bytes()
    with flooded(server, (PAGE, of_page("/topology"), 30), (PAGE, of_page("/topology/state"), 30), reads=False):
        time.sleep(2)
        assert server.resident_bytes() - before < 10 << 20
        assert server.get("/ready", READY)[0] == 200
