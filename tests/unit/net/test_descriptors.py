"""The connections that a limit of descriptors allows to clients."""

import resource

import pytest

from topodns.net.descriptors import Descriptors, raise_limit
from topodns.net.upstream.udp_transport import UdpSockets


@pytest.mark.parametrize(
    ("limit", "tcp", "http", "upstreams"), [(120, 40, 10, 30), (1024, 492, 123, 369), (10, 1, 1, 2)]
)
def test_half_is_for_tcp_and_the_rest_is_kept(limit: int, tcp: int, http: int, upstreams: int) -> None:
    allowed = Descriptors(limit)
    assert (allowed.tcp, allowed.http, allowed.upstreams) == (tcp, http, upstreams)


@pytest.mark.parametrize("most", range(2, 50))
def test_each_question_that_may_wait_finds_a_socket_however_many_others_have_two(most: int) -> None:
    sockets = UdpSockets(most)
    while sockets.has_spare():
        sockets.open += 1
    assert 1 <= sockets.questions <= most - sockets.open


def test_the_soft_limit_becomes_the_hard_one(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda which: (1024, 4096))
    monkeypatch.setattr(resource, "setrlimit", lambda which, limits: given.append(limits))
    assert raise_limit() == Descriptors(4096)
    assert given == [(4096, 4096)]


def test_where_it_may_not_be_raised_the_soft_limit_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(which: int, limits: tuple[int, int]) -> None:
        raise PermissionError

    monkeypatch.setattr(resource, "getrlimit", lambda which: (1024, 4096))
    monkeypatch.setattr(resource, "setrlimit", refuse)
    assert raise_limit() == Descriptors(1024)


def test_no_limit_allows_more_than_listeners_want(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda which: (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert raise_limit().tcp > 100_000
