"""Asking an upstream over TLS (RFC 7858): the certificates that it trusts, and its answer to others."""

import socket
import ssl
from pathlib import Path

import pytest

from tests.support.certificates import SERVER_NAME, Certificates, make_certificates, needs_openssl
from tests.support.event_loops import either_loop, eventually
from tests.support.faulty_upstream import ANSWER, bad_upstream
from tests.support.scripted_http_server import server_side
from tests.support.upstream_faults import (
    answers,
    as_large_as_can_be,
    backwards,
    one_after_another,
    resets,
    says,
    silent,
)
from tests.support.upstream_queries import (
    TCP,
    TIMED_OUT,
    TLS,
    addresses,
    ask,
    ask_briefly,
    open_files,
    open_sockets,
    result,
    upstream_at,
)
from topodns.dns.wire_format import MAX_MESSAGE
from topodns.net.tls_client import client_context
from topodns.query.upstream import Failure

pytestmark = [either_loop, needs_openssl]


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


def trusting(ca: Path) -> ssl.SSLContext:
    return client_context(str(ca))


@pytest.mark.parametrize("server_name", [SERVER_NAME, "", "127.0.0.1"])
async def test_the_certificate_is_for_the_server_name_or_the_address(
    loop_name: str, certificates: Certificates, server_name: str
) -> None:
    with bad_upstream(answers, context=server_side(certificates)) as server:
        async with upstream_at(server.port, tls=trusting(certificates.ca), server_name=server_name) as upstream:
            assert await addresses(ask(upstream, TLS)) == [ANSWER]


async def test_one_session_carries_many_queries(loop_name: str, certificates: Certificates) -> None:
    with bad_upstream(backwards(20), context=server_side(certificates)) as server:
        async with upstream_at(server.port, tls=trusting(certificates.ca)) as upstream:
            for outcome in [ask(upstream, TLS) for _ in range(20)]:
                assert await addresses(outcome) == [ANSWER]
        await eventually(lambda: server.open_connections == 0)
        assert server.connections == 1


async def test_a_certificate_for_another_name_is_not_accepted(loop_name: str, certificates: Certificates) -> None:
    with bad_upstream(answers, context=server_side(certificates)) as server:
        tls = trusting(certificates.ca)
        async with upstream_at(server.port, tls=tls, server_name="dns.example") as upstream:
            on_reply = await result(ask(upstream, TLS))
            assert isinstance(on_reply, Failure)
            assert on_reply.problem.startswith("certificate not accepted: Hostname mismatch")
            assert open_sockets(upstream) == 0
        assert server.asked == []


async def test_a_certificate_of_another_authority_is_not_accepted(loop_name: str, certificates: Certificates) -> None:
    with bad_upstream(answers, context=server_side(certificates)) as server:
        async with upstream_at(server.port, tls=trusting(certificates.other_ca)) as upstream:
            on_reply = await result(ask(upstream, TLS))
            assert isinstance(on_reply, Failure)
            assert on_reply.problem.startswith("certificate not accepted: ")
            assert not on_reply.timed_out


async def test_a_context_may_check_nothing(loop_name: str, certificates: Certificates) -> None:
    tls = trusting(certificates.other_ca)
    tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    with bad_upstream(answers, context=server_side(certificates)) as server:
        async with upstream_at(server.port, tls=tls) as upstream:
            assert await addresses(ask(upstream, TLS)) == [ANSWER]


async def test_an_upstream_that_does_not_speak_tls_is_not_asked(loop_name: str, certificates: Certificates) -> None:
    def plain(message: bytes) -> bytes:
        return b"no TLS is spoken here, whatever comes"

    with bad_upstream(says(plain)) as server:
        async with upstream_at(server.port, tls=trusting(certificates.ca)) as upstream:
            on_reply = await result(ask_briefly(upstream, TLS))
            assert isinstance(on_reply, Failure)
            await eventually(lambda: open_sockets(upstream) == 0)


async def test_an_unanswered_handshake_ends_with_the_query(loop_name: str, certificates: Certificates) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        before = open_files()
        async with upstream_at(listener.getsockname()[1], tls=trusting(certificates.ca)) as upstream:
            assert await result(ask_briefly(upstream, TLS)) == TIMED_OUT
            await eventually(lambda: open_sockets(upstream) == 0)
        await eventually(lambda: open_files() == before)


async def test_a_query_whose_session_is_lost_is_sent_again(loop_name: str, certificates: Certificates) -> None:
    behaviour = one_after_another(answers, resets, answers)
    with bad_upstream(behaviour, context=server_side(certificates)) as server:
        async with upstream_at(server.port, tls=trusting(certificates.ca)) as upstream:
            for _ in range(2):
                assert await addresses(ask(upstream, TLS)) == [ANSWER]
        assert server.connections == 2


async def test_the_largest_message_there_is_comes_whole(loop_name: str, certificates: Certificates) -> None:
    with bad_upstream(says(as_large_as_can_be), context=server_side(certificates)) as server:
        async with upstream_at(server.port, tls=trusting(certificates.ca)) as upstream:
            on_reply = await result(ask(upstream, TLS))
            assert isinstance(on_reply, bytes)
            assert len(on_reply) == MAX_MESSAGE


async def test_silence_times_out(loop_name: str, certificates: Certificates) -> None:
    with bad_upstream(silent, context=server_side(certificates)) as server:
        async with upstream_at(server.port, tls=trusting(certificates.ca)) as upstream:
            assert await result(ask_briefly(upstream, TLS)) == TIMED_OUT


async def test_with_a_context_nothing_leaves_in_the_clear(loop_name: str, certificates: Certificates) -> None:
    with bad_upstream(answers) as server:
        async with upstream_at(server.port, tls=trusting(certificates.ca)) as upstream:
            assert await result(ask(upstream, TCP)) == Failure("not to be asked over tcp", timed_out=False)
        assert server.connections == 0
