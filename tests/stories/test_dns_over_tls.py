"""`tls://` server blocks of the whole program: asked by dig, counted, and with a new certificate after a rotation."""

import shutil
import signal
import socket
import ssl
import subprocess
from pathlib import Path

import pytest

from tests.support.certificates import SERVER_NAME, Certificates, make_certificates, needs_openssl
from tests.support.dns_messages import Reply, query
from tests.support.event_loops import PATIENCE
from tests.support.server_process import Server, receive_framed, send_framed, serving, topodns, until

pytestmark = needs_openssl

COREFILE = """\
tls://.:0 {
    bind HERE
    tls tls.crt tls.key
    hosts {
        192.0.2.80 www.example.org
    }
    log
    prometheus HERE:9153
    reload 2s 0s
}
example.org {
    bind HERE
    whoami
}
"""


def install(made: Certificates, directory: Path) -> None:
    """Replace both files, each in one step, as the kubelet does."""
    for source, name in ((made.server.key, "tls.key"), (made.server.certificate, "tls.crt")):
        shutil.copy(source, directory / "new")
        (directory / "new").rename(directory / name)


def connected(server: Server, made: Certificates) -> ssl.SSLSocket:
    context = ssl.create_default_context(cafile=made.ca)
    raw = socket.create_connection((server.address, server.port), PATIENCE)
    return context.wrap_socket(raw, server_hostname=SERVER_NAME)


def ask(sock: socket.socket, question: str) -> Reply:
    send_framed(sock, query(question))
    return Reply(receive_framed(sock))


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    (tmp_path / "first").mkdir()
    made = make_certificates(tmp_path / "first")
    install(made, tmp_path)
    return made


@pytest.mark.skipif(shutil.which("dig") is None, reason="NO DIG HERE: no client of TLS but Python's is tested")
def test_dig_is_answered_and_counted(tmp_path: Path, certificates: Certificates) -> None:
    with serving(tmp_path, COREFILE) as server:
        assert f"tls://.:{server.port} on {server.address}\nexample.org.:" in server.output()
        words = ("+tls", f"+tls-ca={certificates.ca}", f"+tls-hostname={SERVER_NAME}", "+noall", "+answer", "+keepopen")
        asked = subprocess.run(
            [
                "dig",
                f"@{server.address}",
                "-p",
                str(server.port),
                *words,
                "www.example.org",
                "A",
                "www.example.org",
                "A",
            ],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=True,
        )
        assert asked.stdout.split() == ["www.example.org.", "3600", "IN", "A", "192.0.2.80"] * 2
        label = f"tls://{server.address}:0"  # as the Corefile has it
        assert server.metric("coredns_dns_requests_total", server=label, proto="tcp", type="A") == 2
        assert server.metric("coredns_plugin_enabled", server=label, name="hosts") == 1
        assert '"A IN www.example.org. tcp ' in server.wait_for_line("www.example.org")


def test_a_client_without_tls_gets_nothing_and_is_counted(tmp_path: Path, certificates: Certificates) -> None:
    with serving(tmp_path, COREFILE) as server:
        with pytest.raises(ConnectionError):
            server.ask("www.example.org A", tcp=True)
        assert server.metric("topodns_tcp_connections_closed_total", reason="tls") == 1


@pytest.mark.parametrize("by_signal", [True, False])
def test_a_new_certificate_is_for_new_connections(tmp_path: Path, certificates: Certificates, by_signal: bool) -> None:
    """SIGUSR1 reads it at once, and `reload` finds it."""
    (tmp_path / "second").mkdir()
    second = make_certificates(tmp_path / "second")
    with serving(tmp_path, COREFILE) as server, connected(server, certificates) as open_before:
        assert ask(open_before, "www.example.org A").data == ["192.0.2.80"]
        install(second, tmp_path)
        if by_signal:
            server.signal(signal.SIGUSR1)
        until(lambda: server.lines("Reloading complete"), "the reload")
        assert ask(open_before, "www.example.org A").data == ["192.0.2.80"]
        with connected(server, second) as opened_later:
            assert ask(opened_later, "www.example.org A").data == ["192.0.2.80"]
        with pytest.raises(ssl.SSLCertVerificationError):
            connected(server, certificates)


def test_a_transport_may_change_at_a_reload(tmp_path: Path, certificates: Certificates) -> None:
    with serving(tmp_path, COREFILE.replace("tls://.:0", ".:8853")) as server:
        assert server.ask("www.example.org A", tcp=True).data == ["192.0.2.80"]
        corefile = (tmp_path / "Corefile").read_text()
        (tmp_path / "Corefile").write_text(corefile.replace(".:8853", "tls://.:8853"))
        until(lambda: server.lines("Reloading complete"), "the reload")
        with connected(server, certificates) as client:
            assert ask(client, "www.example.org A").data == ["192.0.2.80"]


def test_a_check_names_the_line_of_a_certificate_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "Corefile").write_text("tls://. {\n    tls tls.crt tls.key\n    whoami\n}\n")
    checked = topodns("check", "-conf", str(tmp_path / "Corefile"))
    assert checked.returncode == 1
    assert f"Corefile:2: cannot read '{tmp_path}/tls.crt': No such file or directory" in checked.stdout + checked.stderr
