"""Host names as upstreams of `forward`: looked up at the start and at each reload, by `resolver`."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.server_process import COMMAND, Server, launched, own_address, serving, until

UPSTREAM = """
.:0 {
    bind HERE
    hosts {
        HERE dns.example.net
        192.0.2.80 www.example.org
    }
}
"""


@pytest.fixture(scope="module")
def upstream(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("upstream"), UPSTREAM) as server:
        yield server


def corefile(upstream: Server, name: str = "dns.example.net", resolvers: str = "", more: str = "") -> str:
    at = f"{upstream.address}:{upstream.port}"
    return f".:0 {{\nbind HERE\nforward . {name}:{upstream.port} {{\nresolver {resolvers or at}\n}}\n{more}\n}}\n"


def test_queries_go_to_the_addresses_of_the_name(upstream: Server, tmp_path: Path) -> None:
    with serving(tmp_path, corefile(upstream, more="prometheus HERE:9153")) as server:
        assert server.ask("www.example.org A").data == ["192.0.2.80"]
        assert server.metric("coredns_forward_requests_total", to=f"{upstream.address}:{upstream.port}") == 1


def test_processes_of_multisocket_have_them_too(upstream: Server, tmp_path: Path) -> None:
    with serving(tmp_path, corefile(upstream, more="multisocket 2")) as server:
        server.wait_for_line("2 processes answer queries")
        for _ in range(20):  # of other ports, which the kernel spreads over the processes
            assert server.ask("www.example.org A").data == ["192.0.2.80"]


def test_the_next_resolver_is_asked_where_one_does_not_answer(upstream: Server, tmp_path: Path) -> None:
    silent = f"{own_address()}:53"
    with serving(tmp_path, corefile(upstream, resolvers=f"{silent} {upstream.address}:{upstream.port}")) as server:
        assert server.ask("www.example.org A").data == ["192.0.2.80"]


def test_the_next_resolver_is_asked_where_one_is_on_an_interface_that_is_not_here(
    upstream: Server, tmp_path: Path
) -> None:
    with serving(
        tmp_path, corefile(upstream, resolvers=f"fe80::1%nosuch0 {upstream.address}:{upstream.port}")
    ) as server:
        assert server.ask("www.example.org A").data == ["192.0.2.80"]


def test_a_name_without_addresses_ends_the_start(upstream: Server, tmp_path: Path) -> None:
    text = corefile(upstream, "nowhere.example.net").replace("HERE", own_address())
    (tmp_path / "Corefile").write_text(text)
    with launched(tmp_path, "-conf", str(tmp_path / "Corefile"), command=COMMAND) as server:
        assert server.wait() == 1
        assert (
            f"Corefile:3: 'forward' has nowhere.example.net, expected a name with addresses; "
            f"found {upstream.address}:{upstream.port}: no addresses" in server.output() + server.errors()
        )


def test_a_reload_to_a_name_without_addresses_changes_nothing(upstream: Server, tmp_path: Path) -> None:
    with serving(tmp_path, corefile(upstream)) as server:
        text = (tmp_path / "Corefile").read_text()
        (tmp_path / "Corefile").write_text(text.replace("dns.example.net", "nowhere.example.net"))
        server.signal(signal.SIGUSR1)
        until(lambda: server.lines("expected a name with addresses"), "the refused reload")
        assert server.ask("www.example.org A").data == ["192.0.2.80"]
