"""`tls` of `prometheus`: /metrics over HTTPS, with a new certificate after a rotation."""

import asyncio
import contextlib
import http.client
import shutil
import socket
import ssl
from pathlib import Path

import pytest

from tests.support.certificates import Certificates, make_certificates, needs_openssl
from tests.support.event_loops import PATIENCE, either_loop, eventually
from tests.support.server_process import METRICS, Server, serving, until
from topodns.net.http_server.messages import AdminLimits, HttpReply
from topodns.net.http_server.server import AdminServer
from topodns.net.sockets import open_tcp
from topodns.net.tls_server import server_context

pytestmark = needs_openssl

COREFILE = ".:0 {\nbind HERE\nwhoami\nreload 2s 0s\nprometheus HERE:9153 {\ntls web.yml\n}\n}\n"
WEB = "tls_server_config:\n  cert_file: web.crt\n  key_file: web.key\n"


def install(made: Certificates, directory: Path) -> None:
    shutil.copy(made.server.key, directory / "web.key")
    shutil.copy(made.server.certificate, directory / "web.crt")


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    (tmp_path / "first").mkdir()
    made = make_certificates(tmp_path / "first")
    install(made, tmp_path)
    (tmp_path / "web.yml").write_text(WEB)
    return made


def trusting(made: Certificates) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=made.ca)
    context.check_hostname = False  # the server has an address of its own
    return context


def scrapes(server: Server, made: Certificates, times: int = 1) -> list[str]:
    connection = http.client.HTTPSConnection(server.address, METRICS, timeout=PATIENCE, context=trusting(made))
    bodies = []
    for _ in range(times):
        connection.request("GET", "/metrics")
        response = connection.getresponse()
        assert response.status == 200
        bodies.append(response.read().decode())
    connection.close()
    return bodies


def test_metrics_are_scraped_over_one_connection(tmp_path: Path, certificates: Certificates) -> None:
    with serving(tmp_path, COREFILE) as server:
        for body in scrapes(server, certificates, times=3):
            assert "coredns_build_info" in body


def test_a_client_without_tls_is_closed(tmp_path: Path, certificates: Certificates) -> None:
    with serving(tmp_path, COREFILE) as server:
        with socket.create_connection((server.address, METRICS), PATIENCE) as plain:
            plain.sendall(b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n")
            with contextlib.suppress(ConnectionError):
                assert b"coredns" not in plain.recv(4096)
        assert scrapes(server, certificates)


@either_loop
async def test_a_reply_of_many_records_reaches_a_slow_reader_whole(loop_name: str, certificates: Certificates) -> None:
    body = bytes(range(256)) * 8192
    (sock,) = open_tcp("127.0.0.1", 0)
    server, pair = AdminServer(), certificates.server
    context = server_context(str(pair.certificate), str(pair.key))
    server.listen(("127.0.0.1", 0), [sock], {"/large": lambda request: HttpReply(200, body)}, context)
    reader, writer = await asyncio.open_connection(*sock.getsockname(), ssl=trusting(certificates), limit=4096)
    for _ in range(2):
        writer.write(b"GET /large HTTP/1.1\r\nHost: a\r\n\r\n")
        head = await reader.readuntil(b"\r\n\r\n")
        assert b"content-length: %d" % len(body) in head.lower()
        assert await reader.readexactly(len(body)) == body
    writer.close()
    server.close()
    await eventually(lambda: server.connections == 0)


@either_loop
async def test_a_handshake_that_does_not_end_is_cut_off(loop_name: str, certificates: Certificates) -> None:
    (sock,) = open_tcp("127.0.0.1", 0)
    server, pair = AdminServer(AdminLimits(request=0.2)), certificates.server
    server.listen(("127.0.0.1", 0), [sock], {}, server_context(str(pair.certificate), str(pair.key)))
    reader, writer = await asyncio.open_connection(*sock.getsockname())
    writer.write(b"\x16\x03\x01")
    with contextlib.suppress(ConnectionError):
        assert await reader.read() == b""
    writer.close()
    server.close()
    await eventually(lambda: server.connections == 0)


def test_a_new_certificate_is_found(tmp_path: Path, certificates: Certificates) -> None:
    (tmp_path / "second").mkdir()
    second = make_certificates(tmp_path / "second")
    with serving(tmp_path, COREFILE) as server:
        install(second, tmp_path)
        until(lambda: server.lines("Reloading complete"), "the reload")
        assert scrapes(server, second)
        with pytest.raises(ssl.SSLCertVerificationError):
            scrapes(server, certificates)
