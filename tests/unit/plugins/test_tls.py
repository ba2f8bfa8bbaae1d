"""`tls` of a server block: its files, who needs a certificate, and the keys that it is for."""

from pathlib import Path

import pytest

from tests.support.certificates import Certificates, make_certificates, needs_openssl
from tests.support.corefile_settings import only_block, problem, settings
from topodns.app.load import settings_from_text
from topodns.net.tls_server import ClientAuth
from topodns.plugins.tls import Tls

pytestmark = needs_openssl


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


def block(made: Certificates, lines: str = "", key: str = "tls://.") -> str:
    return f"{key} {{\ntls {made.server.certificate} {made.server.key} {made.ca} {lines}\n}}\n"


def test_a_key_with_tls_has_the_port_of_dns_over_tls(made: Certificates) -> None:
    (found,) = settings(block(made, key=". tls://example.org tls://.:8853 10.0.0.0/23:54")).blocks
    assert [(key.port, key.tls) for key in found.keys] == [
        *((53, False), (853, True), (8853, True)),
        *((54, False), (54, False)),
    ]
    assert found.servers == ("dns://:53", "tls://:853", "tls://:8853", "dns://:54")


@pytest.mark.parametrize(
    ("word", "client_auth"),
    [
        ("nocert", ClientAuth.NONE),
        ("request", ClientAuth.NONE),
        ("verify_if_given", ClientAuth.IF_GIVEN),
        ("require_and_verify", ClientAuth.REQUIRED),
    ],
)
def test_files_are_found_beside_the_corefile(made: Certificates, word: str, client_auth: ClientAuth) -> None:
    directory, names = made.ca.parent, (made.server.certificate.name, made.server.key.name, made.ca.name)
    line = f"tls {' '.join(names)} {{\nclient_auth {word}\n}}"
    certificate, key, ca = (f"{directory}/{name}" for name in names)
    assert only_block(line, str(directory)).settings["tls"] == Tls(certificate, key, ca, client_auth)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (
            "",
            "'tls' has no argument, expected the files of a certificate and its key, and perhaps of the CA of clients",
        ),
        ("{CERT}", "expected the files of a certificate and its key, and perhaps of the CA of clients"),
        ("{CERT} {KEY} {CA} {CA}", "expected the files of a certificate and its key"),
        ("{CERT} missing.key", "cannot read"),
        ("{CERT} {OTHER}", "key values mismatch: expected a PEM certificate and its key"),
        ("{KEY} {CERT}", "expected a PEM certificate and its key"),
        ("{CERT} {KEY} {{\nclient_auth\n}}", "3: 'client_auth' has no argument, expected"),
        ("{CERT} {KEY} {{\nclient_auth maybe\n}}", "3: 'client_auth' has 'maybe', expected"),
        (
            "{CERT} {KEY} {{\nclient_auth require\n}}",
            "3: 'client_auth' has require, which accepts any certificate, expected require_and_verify",
        ),
        ("{CERT} {KEY} {{\nclient_auth nocert\nclient_auth request\n}}", "4: found 'client_auth' again"),
        ("{CERT} {KEY} {{\nkeylog keys\n}}", "3: topodns has no option 'keylog' of 'tls': it would write the keys"),
        ("{CERT} {KEY} {{\nciphers all\n}}", "3: unknown option 'ciphers' of 'tls'"),
        ("{{\nacme dns.example.org\n}}", "2: 'tls' has no argument, expected the files of a certificate and its key"),
    ],
)
def test_what_has_no_meaning_is_refused(made: Certificates, words: str, expected: str) -> None:
    line = words.format(CERT=made.server.certificate, KEY=made.server.key, CA=made.ca, OTHER=made.client.key)
    found = problem(f"tls://. {{\ntls {line}\n}}\n")
    assert expected in found
    assert found.startswith("Corefile:")


@pytest.mark.parametrize(
    ("corefile", "expected"),
    [
        ("tls://. {{\n whoami\n}}\n", "Corefile:1: found tls:// in a server block without 'tls', expected both"),
        (
            "a.org:853 {{\n whoami\n}}\ntls://b.org {{\n{TLS}\n}}\n",
            "Corefile:4: found a block with and one without tls:// on port 853, first at Corefile:1",
        ),
        (
            "tls://a.org {{\n{TLS}\n}}\ntls://b.org {{\n{TLS} {{\nclient_auth verify_if_given\n}}\n}}\n",
            "Corefile:4: found another 'tls' than in the block at Corefile:1, expected one for each port",
        ),
        ("tls://a.org tls://a.org:853 {{\n{TLS}\n}}\n", "Corefile:1: found a.org.:853 again, first at Corefile:1"),
    ],
)
def test_blocks_that_contradict_each_other_are_refused(made: Certificates, corefile: str, expected: str) -> None:
    assert problem(corefile.format(TLS=f"tls {made.server.certificate} {made.server.key}")) == expected


def test_blocks_on_different_addresses_may_differ(made: Certificates) -> None:
    line = f"tls {made.server.certificate} {made.server.key}"
    text = f"tls://. {{\nbind 127.0.0.1\n{line}\n}}\n.:853 {{\nbind 127.0.0.2\nwhoami\n}}\n"
    assert len(settings(text).blocks) == 2


def test_a_tls_without_a_key_for_it_is_in_the_log(made: Certificates, tmp_path: Path) -> None:
    lines: list[str] = []
    settings_from_text(block(made, key="."), "Corefile", 53, {}, lines.append)
    assert lines == ["plugin/tls: The block has no key with tls://, so there is no effect (Corefile:1)"]
