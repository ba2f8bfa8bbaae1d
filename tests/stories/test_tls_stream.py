"""DNS over TLS on real loopback sockets (RFC 7858): connections of TCP with TLS below, and hostile clients."""

import asyncio
import contextlib
import socket
import ssl
import weakref
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import TypeVar

import pytest

from tests.support.certificates import Certificates, make_certificates, needs_openssl
from tests.support.event_loops import either_loop, eventually
from tests.support.tcp_listener import Client, Server, client_of, serving, socket_of
from topodns.dns.tcp_framing import frame
from topodns.net.socket_memory import octets_to_read, reset_on_close
from topodns.net.tcp_limits import TcpLimits
from topodns.net.tls_server import ClientAuth, server_context

pytestmark = [either_loop, needs_openssl]

T = TypeVar("T")
QUICK = TcpLimits(idle=0.3, write=0.3, message=0.2, sweep=0.02)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


def of_server(made: Certificates, client_auth: ClientAuth = ClientAuth.NONE) -> ssl.SSLContext:
    pair = made.server
    return server_context(str(pair.certificate), str(pair.key), str(made.ca), client_auth)


def of_client(made: Certificates, version: ssl.TLSVersion | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=made.ca)
    if version is not None:
        context.minimum_version = context.maximum_version = version
    return context


@contextlib.asynccontextmanager
async def one_client(made: Certificates, limits: TcpLimits | None = None) -> AsyncIterator[tuple[Server, Client]]:
    async with serving(limits, tls=of_server(made)) as server, client_of(server, tls=of_client(made)) as client:
        yield server, client


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_pipelined_questions_are_all_answered(
    loop_name: str, certificates: Certificates, version: ssl.TLSVersion
) -> None:
    questions = [b"question %d" % number for number in range(500)]
    async with (
        serving(tls=of_server(certificates)) as server,
        client_of(server, tls=of_client(certificates, version)) as client,
    ):
        assert sorted(await client.ask(*questions)) == sorted(question[::-1] for question in questions)
        assert await client.ask(b"alone") == [b"enola"]


async def test_answers_that_come_later_are_sent_when_they_are_there(loop_name: str, certificates: Certificates) -> None:
    async with one_client(certificates) as (server, client):
        client.writer.write(frame(b"later") + frame(b"ab"))
        assert await client.reply() == b"ba"
        server.seen.awaited[0].settle(b"there")
        assert await client.reply() == b"there"


async def test_the_longest_messages_are_answered(loop_name: str, certificates: Certificates) -> None:
    large = bytes(range(256)) * 255
    async with one_client(certificates) as (_, client):
        assert await client.ask(large, large, large) == [large[::-1]] * 3


async def test_a_slow_reader_gets_all_of_its_answers(loop_name: str, certificates: Certificates) -> None:
    large = bytes(range(200)) * 300
    async with one_client(certificates, TcpLimits(write_buffer=4096)) as (_, client):
        client.writer.write(frame(large) * 100)
        for _ in range(100):
            assert await client.reply() == large[::-1]
            await asyncio.sleep(0)


async def test_octets_may_come_one_by_one(loop_name: str, certificates: Certificates) -> None:
    async with serving(tls=of_server(certificates)) as server:
        with socket.create_connection(server.address) as raw:
            raw.setblocking(False)
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
            tls = of_client(certificates).wrap_bio(incoming, outgoing, server_hostname="127.0.0.1")

            async def step(do: Callable[[], T]) -> T:
                loop = asyncio.get_running_loop()
                while True:
                    try:
                        return do()
                    except ssl.SSLWantReadError:
                        await send()
                        incoming.write(await loop.sock_recv(raw, 4096))

            async def send() -> None:
                for octet in outgoing.read():
                    await asyncio.get_running_loop().sock_sendall(raw, bytes([octet]))
                    await asyncio.sleep(0)

            await step(tls.do_handshake)
            tls.write(frame(b"drip"))
            assert await step(lambda: tls.read(100)) == frame(b"pird")


async def test_a_client_without_tls_is_closed_at_once(loop_name: str, certificates: Certificates) -> None:
    async with serving(tls=of_server(certificates)) as server:
        for first in (frame(bytes(12) + b"\0\0\1\0\1"), b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\xff\xff" + bytes(99)):
            async with client_of(server) as client:
                client.writer.write(first)
                async with asyncio.timeout(5):
                    with contextlib.suppress(ConnectionError):
                        await client.reader.read()
        await eventually(lambda: not server.listener.clients.connections)
        assert server.listener.counts.no_tls == 3
        assert server.seen.questions == []


async def test_a_handshake_that_does_not_end_is_cut_off(loop_name: str, certificates: Certificates) -> None:
    """Also one that goes on octet by octet, at its deadline from the start."""
    async with serving(QUICK, tls=of_server(certificates)) as server, client_of(server) as silent:
        async with client_of(server) as dripping:
            hello = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(400)

            async def drip() -> None:
                for octet in hello:
                    if dripping.writer.transport.is_closing():
                        break
                    dripping.writer.write(bytes([octet]))
                    await asyncio.sleep(0.01)

            sending = asyncio.create_task(drip())
            assert await silent.is_closed()
            assert await dripping.is_closed()
            await sending
        assert server.listener.counts.timed_out == 2


async def test_an_idle_connection_is_closed_with_close_notify(loop_name: str, certificates: Certificates) -> None:
    async with serving(tls=of_server(certificates)) as server:
        context, (host, port) = of_client(certificates), server.address

        def last_octets() -> bytes:
            # An end of TCP alone would be an SSLEOFError here: an attacker could cut a stream short.
            with (
                socket.create_connection((host, port), 30) as raw,
                context.wrap_socket(raw, server_hostname=host, suppress_ragged_eofs=False) as tls,
            ):
                tls.sendall(frame(b"ab"))
                return tls.recv(9) + tls.recv(9)

        reading = asyncio.get_running_loop().run_in_executor(None, last_octets)
        await eventually(lambda: len(server.seen.questions) == 1)
        await server.listener.close()
        assert await reading == frame(b"ba")


async def test_a_connection_without_a_question_is_closed_when_it_is_idle(
    loop_name: str, certificates: Certificates
) -> None:
    async with one_client(certificates, QUICK) as (server, client):
        assert await client.ask(b"ab") == [b"ba"]
        client.writer.write(b"\0")  # of a message that never ends
        assert await client.is_closed()
        assert server.listener.counts.timed_out == 1


async def test_handshakes_that_are_open_make_room_for_new_clients(loop_name: str, certificates: Certificates) -> None:
    """However many there are, they keep no client out."""
    limits = TcpLimits(connections=20)
    async with serving(limits, tls=of_server(certificates)) as server, contextlib.AsyncExitStack() as silent:
        for number in range(60):
            await silent.enter_async_context(client_of(server, f"127.0.{number}.1"))
        await eventually(lambda: server.listener.counts.accepted == 60)
        async with client_of(server, tls=of_client(certificates)) as client:
            assert await client.ask(b"ab") == [b"ba"]
        assert server.listener.counts.evicted == 41
        assert len(server.listener.clients.connections) <= 20


async def test_renegotiation_is_refused(loop_name: str, certificates: Certificates) -> None:
    context = of_server(certificates)
    assert context.options & ssl.OP_NO_RENEGOTIATION
    async with (
        serving(tls=context) as server,
        client_of(server, tls=of_client(certificates, ssl.TLSVersion.TLSv1_2)) as client,
    ):
        process = await asyncio.create_subprocess_exec(
            *("openssl", "s_client", "-connect", f"127.0.0.1:{server.address[1]}", "-tls1_2", "-legacy_renegotiation"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        assert process.stdin is not None
        process.stdin.write(b"R\n")
        output, _ = await process.communicate()
        assert b"RENEGOTIATING" in output
        assert b"no renegotiation" in output
        assert await client.ask(b"ab") == [b"ba"]


async def test_a_client_needs_a_certificate_where_it_is_required(loop_name: str, certificates: Certificates) -> None:
    required = of_server(certificates, ClientAuth.REQUIRED)
    async with serving(tls=required) as server:
        with pytest.raises((ssl.SSLError, ConnectionError, asyncio.IncompleteReadError)):
            async with client_of(server, tls=of_client(certificates)) as client:
                await client.ask(b"ab")
        assert server.listener.counts.no_tls == 1
        known = of_client(certificates)
        known.load_cert_chain(certificates.client.certificate, certificates.client.key)
        async with client_of(server, tls=known) as client:
            assert await client.ask(b"ab") == [b"ba"]


async def test_a_certificate_that_is_given_must_be_of_the_authority(loop_name: str, certificates: Certificates) -> None:
    pair = certificates.server
    other = server_context(str(pair.certificate), str(pair.key), str(certificates.other_ca), ClientAuth.IF_GIVEN)
    async with serving(tls=other) as server:
        async with client_of(server, tls=of_client(certificates)) as client:
            assert await client.ask(b"ab") == [b"ba"]
        known = of_client(certificates)
        known.load_cert_chain(certificates.client.certificate, certificates.client.key)
        with pytest.raises((ssl.SSLError, ConnectionError, asyncio.IncompleteReadError)):
            async with client_of(server, tls=known) as client:
                await client.ask(b"ab")


async def test_a_new_context_is_for_new_connections(loop_name: str, certificates: Certificates) -> None:
    async with one_client(certificates) as (server, client):
        server.listener.swap(server.seen.answer, tls=of_server(certificates, ClientAuth.REQUIRED))
        assert await client.ask(b"ab") == [b"ba"]
        with pytest.raises((ssl.SSLError, ConnectionError, asyncio.IncompleteReadError)):
            async with client_of(server, tls=of_client(certificates)) as later:
                await later.ask(b"ab")


async def test_closing_answers_the_queries_that_have_arrived(loop_name: str, certificates: Certificates) -> None:
    """Also those that are decrypted already, while the connection awaits as many answers as it may."""
    async with one_client(certificates, TcpLimits(in_flight=1, message=0.5, awaited=30.0)) as (server, client):
        client.writer.write(frame(b"later"))
        await eventually(lambda: len(server.seen.awaited) == 1)
        client.writer.write(frame(b"ab") + frame(b"cd"))
        await eventually(lambda: octets_to_read(socket_of(server)) > 8)
        closing = asyncio.create_task(server.listener.close())
        await eventually(lambda: next(iter(server.listener.clients.connections)).deadline.fixed)
        server.seen.awaited[0].settle(b"there")
        assert [await client.reply() for _ in range(3)] == [b"there", b"ba", b"dc"]
        client.writer.close()
        await closing


async def test_a_client_that_said_it_is_done_gets_its_answers(loop_name: str, certificates: Certificates) -> None:
    async with one_client(certificates) as (server, client):
        client.writer.write(frame(b"later"))
        await eventually(lambda: len(server.seen.awaited) == 1)
        (connection,) = server.listener.clients.connections
        with socket.fromfd(client.writer.get_extra_info("socket").fileno(), socket.AF_INET, socket.SOCK_STREAM) as own:
            own.shutdown(socket.SHUT_WR)
        await eventually(lambda: connection.deadline.fixed)
        server.seen.awaited[0].settle(b"there")
        assert await client.reply() == b"there"
        assert await client.is_closed()


async def test_a_reset_in_the_middle_disturbs_no_other_connection(loop_name: str, certificates: Certificates) -> None:
    async with one_client(certificates) as (server, client):
        async with client_of(server, tls=of_client(certificates)) as gone:
            gone.writer.write(frame(b"later"))
            await eventually(lambda: len(server.seen.awaited) == 1)
            reset_on_close(gone.writer.get_extra_info("socket"))
        await eventually(lambda: len(server.listener.clients.connections) == 1)
        server.seen.awaited[0].settle(b"for a client that has gone")
        assert await client.ask(b"ab") == [b"ba"]


async def test_a_closed_connection_is_freed_without_the_garbage_collector(
    loop_name: str, certificates: Certificates
) -> None:
    async with serving(replace(QUICK, idle=60.0), tls=of_server(certificates)) as server:
        async with client_of(server, tls=of_client(certificates)) as one:
            assert await one.ask(b"ab") == [b"ba"]
            (connection,) = server.listener.clients.connections
            freed = weakref.ref(connection)
            del connection
        await eventually(lambda: freed() is None)
