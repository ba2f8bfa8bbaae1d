"""The address of `prometheus`."""

import pytest

from tests.support.certificates import Certificates, make_certificates, needs_openssl
from tests.support.corefile_settings import block_problem, only_block
from topodns.corefile.arguments import Address
from topodns.net.tls_server import ClientAuth
from topodns.plugins.prometheus import Prometheus
from topodns.plugins.tls import Tls


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("prometheus", Prometheus(Address("localhost", 9153))),
        ("prometheus :9153", Prometheus(Address("", 9153))),
        ("prometheus 0.0.0.0:9253", Prometheus(Address("0.0.0.0", 9253))),
    ],
)
def test_prometheus(lines: str, expected: Prometheus) -> None:
    assert only_block(lines).settings.get("prometheus") == expected


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("prometheus {\n tls /nowhere/web.yml\n}", "3: cannot read '/nowhere/web.yml': No such file or directory"),
        ("prometheus {\n tls\n}", "3: 'tls' has no argument, expected a file of Prometheus' web configuration"),
        ("prometheus {\n runtime_metrics\n}", "3: CoreDNS has the option 'runtime_metrics' of 'prometheus', topodns"),
        ("prometheus {\n path /m\n}", "3: unknown option 'path' of 'prometheus', expected tls"),
    ],
)
def test_a_wrong_line_is_refused(lines: str, expected: str) -> None:
    assert block_problem(lines).startswith(f"Corefile:{expected}")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


def web_config(made: Certificates, text: str) -> str:
    """The line `tls` with a file of this text, in which CERT and KEY are files beside it."""
    names = {"CERT": made.server.certificate.name, "KEY": made.server.key.name, "CLIENTS": made.ca.name}
    for word, name in names.items():
        text = text.replace(word, name)
    (made.ca.parent / "web.yml").write_text(text)
    return "prometheus {\n tls web.yml\n}"


@needs_openssl
@pytest.mark.parametrize(
    ("client_auth_type", "client_auth"),
    [("", ClientAuth.NONE), ("VerifyClientCertIfGiven", ClientAuth.IF_GIVEN)],
)
def test_a_web_configuration_names_files_beside_itself(
    made: Certificates, client_auth_type: str, client_auth: ClientAuth
) -> None:
    asked = f"\n  client_auth_type: {client_auth_type}\n  client_ca_file: CLIENTS" if client_auth_type else ""
    line = web_config(made, f"tls_server_config:\n  cert_file: CERT\n  key_file: KEY{asked}\n")
    ca = str(made.ca) if client_auth_type else ""
    expected = Tls(str(made.server.certificate), str(made.server.key), ca, client_auth)
    assert only_block(line, str(made.ca.parent)).settings["prometheus"].tls == expected


@needs_openssl
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "has other sections than tls_server_config, or none, expected that one"),
        ("basic_auth_users:\n  a: b\n", "has other sections than tls_server_config, or none, expected that one"),
        ("tls_server_config: []\n", "has other sections than tls_server_config, or none, expected that one"),
        ("tls_server_config:\n  cert_file: CERT\n", "has no cert_file or no key_file in tls_server_config"),
        ("tls_server_config:\n  cipher_suites: []\n", "has 'cipher_suites' in tls_server_config, expected cert_file,"),
        (
            "tls_server_config:\n  cert_file: CERT\n  key_file: KEY\n  client_auth_type: RequireAnyClientCert\n",
            "has client_auth_type 'RequireAnyClientCert', expected NoClientCert,",
        ),
        ("tls_server_config:\n  cert_file: KEY\n  key_file: KEY\n", "expected a PEM certificate and its key"),
        ("tls_server_config:\n  cert_file: none.crt\n  key_file: KEY\n", "No such file or directory"),
        ("tls_server_config: {\n", "line 1: did not find"),
    ],
)
def test_a_web_configuration_without_a_meaning_is_refused(made: Certificates, text: str, expected: str) -> None:
    found = block_problem(web_config(made, text), str(made.ca.parent))
    assert found.startswith(f"{made.ca.parent}/Corefile:3: ")
    assert expected in found
