"""DNS over TLS and HTTPS beside CoreDNS: the same replies and counts, and each is an upstream of the other."""

import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.certificates import SERVER_NAME, Certificates, make_certificates, needs_openssl
from tests.support.coredns import running_coredns
from tests.support.dns_messages import Reply, query
from tests.support.event_loops import PATIENCE
from tests.support.server_process import Server, receive_framed, send_framed, serving

pytestmark = needs_openssl

TLS, HTTPS = 8853, 8443

RECORDS = """\
    template IN A {
        match ^[a-m][^.]*[.]example[.]org[.]$
        answer "{{ .Name }} 60 IN A 192.0.2.80"
    }
    template IN ANY {
        rcode NXDOMAIN
    }
"""
ENCRYPTED = f"""\
tls://.:{TLS} {{
    bind HERE
    tls FILES
{RECORDS}
    prometheus HERE:9153
    ready HERE:8181
}}
"""
OVER_HTTPS = f"""\
https://.:{HTTPS} {{
    bind HERE
    tls FILES
{RECORDS}
}}
"""
FORWARDING = """\
.:1053 {
    bind HERE
    forward . UPSTREAM {
        tls CA
        tls_servername NAME
        METHOD
    }
    prometheus HERE:9153
    ready HERE:8181
}
"""
QUESTIONS = ("host.example.org A", "a.example.org A", "host.example.org AAAA", "zone.example.org A", "other.net TXT")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


def filled(text: str, made: Certificates, **words: str) -> str:
    files = {"FILES": f"{made.server.certificate} {made.server.key}", "CA": str(made.ca), "NAME": SERVER_NAME}
    for word, meaning in {**files, **words}.items():
        text = text.replace(word, meaning)
    return text


@contextmanager
def coredns(directory: Path, corefile: str) -> Iterator[Server]:
    (directory / "coredns").mkdir()
    with running_coredns(directory / "coredns", corefile) as server:
        yield server


def replies_over_tls(server: Server, made: Certificates) -> list[tuple[object, ...]]:
    """Those to all questions, pipelined, in the order of the questions."""
    context = ssl.create_default_context(cafile=made.ca)
    with (
        socket.create_connection((server.address, TLS), PATIENCE) as raw,
        context.wrap_socket(raw, server_hostname=SERVER_NAME) as sock,
    ):
        messages = [number.to_bytes(2, "big") + query(each)[2:] for number, each in enumerate(QUESTIONS)]
        send_framed(sock, *messages)
        found = [Reply(wire) for wire in sorted(receive_framed(sock) for _ in messages)]
    return [(reply.ident, reply.flags, reply.rcode, reply.answer, reply.authority) for reply in found]


def test_replies_and_counts_over_tls_are_those_of_coredns(tmp_path: Path, made: Certificates) -> None:
    corefile = filled(ENCRYPTED, made)
    with coredns(tmp_path, corefile) as theirs, serving(tmp_path, corefile) as ours:
        assert replies_over_tls(ours, made) == replies_over_tls(theirs, made)
        for server in (theirs, ours):
            labels = {"server": f"tls://{server.address}:{TLS}", "zone": ".", "proto": "tcp", "family": "1"}
            assert server.metric("coredns_dns_requests_total", **labels) == len(QUESTIONS)
            assert server.metric("coredns_plugin_enabled", server=labels["server"], name="template") == 1


@pytest.mark.parametrize("client_auth", ["nocert", "request", "verify_if_given", "require_and_verify"])
def test_a_client_without_a_certificate_is_answered_as_by_coredns(
    tmp_path: Path, made: Certificates, client_auth: str
) -> None:
    auth = f"{made.server.certificate} {made.server.key} {made.ca} {{\nclient_auth {client_auth}\n}}"
    corefile = filled(ENCRYPTED, made, FILES=auth)
    with coredns(tmp_path, corefile) as theirs, serving(tmp_path, corefile) as ours:
        for server in (theirs, ours):
            if client_auth == "require_and_verify":
                with pytest.raises((ssl.SSLError, ConnectionError)):
                    replies_over_tls(server, made)
            else:
                assert replies_over_tls(server, made)


@pytest.mark.parametrize("upstream", [f"tls://ADDRESS:{TLS}", f"https://ADDRESS:{HTTPS}"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_coredns_is_an_upstream_of_both(tmp_path: Path, made: Certificates, upstream: str, method: str) -> None:
    with coredns(tmp_path, filled(ENCRYPTED + OVER_HTTPS, made)) as server:
        text = filled(
            FORWARDING, made, UPSTREAM=upstream.replace("ADDRESS", server.address), METHOD=f"doh_method {method}"
        )
        (tmp_path / "second").mkdir()
        with coredns(tmp_path / "second", text) as theirs, serving(tmp_path, text) as ours:
            for question in QUESTIONS:
                expected, found = theirs.ask(question, port=1053), ours.ask(question, port=1053)
                assert (found.rcode, found.answer) == (expected.rcode, expected.answer)


def test_topodns_is_an_upstream_of_coredns(tmp_path: Path, made: Certificates) -> None:
    with serving(tmp_path, filled(ENCRYPTED, made)) as server:
        text = filled(FORWARDING, made, UPSTREAM=f"tls://{server.address}:{TLS}", METHOD="max_fails 3")
        with coredns(tmp_path, text) as theirs:
            assert theirs.ask("host.example.org A").data == ["192.0.2.80"]
            assert server.metric("coredns_dns_requests_total", server=f"tls://{server.address}:{TLS}") == 1
