"""A certificate authority for a test, by the program openssl; and the wrong one."""

import atexit
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Final

import pytest

SERVER_NAME: Final = "api.internal"  # in the server's certificate, beside 127.0.0.1

needs_openssl = pytest.mark.skipif(
    shutil.which("openssl") is None, reason="no program openssl here: nothing over TLS to an API server is tested"
)


# Self-signed for CN=example, until 2126, in base64 of DER.
_CERTIFICATE: Final = """\
MIIBezCCASGgAwIBAgIULcoVhow7BFqKAI8SFP1pKCt/9pAwCgYIKoZIzj0EAwIw
EjEQMA4GA1UEAwwHZXhhbXBsZTAgFw0yNjExMjcxOTQ1MDRaGA8yMTI2MTEwMzE5
NDUwNFowEjEQMA4GA1UEAwwHZXhhbXBsZTBZMBMGByqGSM49AgEGCCqGSM49AwEH
A0IABBmxTpzvZMwnhKVEwKst+aTltp4T10eONfxubBNTbApqAdMfb2fjQ9Sw2A58
cBIm728MFEURUvdACWZ5qcAdFWqjUzBRMB0GA1UdDgQWBBRF3LTz0k8X7ihvIUyO
P1EPwfCokDAfBgNVHSMEGDAWgBRF3LTz0k8X7ihvIUyOP1EPwfCokDAPBgNVHRMB
Af8EBTADAQH/MAoGCCqGSM49BAMCA0gAMEUCIEO83yjww+ItFOZJBrfy2qqOY5DL
XmNHRqWLUHZXi045AiEAuxVuRMMeX6BM30TB/wUg13Mykg4n8sbpK45R4XMj0Uk="""
_KEY: Final = """\
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg0CNq+V1dELP6p5v0
ICdVByyxS2ZQ4ExjgSmL91iXTeihRANCAAQZsU6c72TMJ4SlRMCrLfmk5baeE9dH
jjX8bmwTU2wKagHTH29n40PUsNgOfHASJu9vDBRFEVL3QAlmeanAHRVq"""


@dataclass(frozen=True, slots=True)
class Pair:
    """The files of a certificate and its key, in PEM."""

    certificate: Path
    key: Path
    common_name: str


@dataclass(frozen=True, slots=True)
class Certificates:
    ca: Path
    other_ca: Path  # signed nothing
    server: Pair
    client: Pair  # CN=reader
    unnamed: tuple[Pair, ...]  # of servers whose common name alone is SERVER_NAME, or 127.0.0.1


def make_certificates(directory: Path) -> Certificates:
    ca, other = _make(directory, "ca"), _make(directory, "other-ca")
    server = _make(directory, "server", ca, f"subjectAltName=IP:127.0.0.1,DNS:{SERVER_NAME}")
    client = _make(directory, "reader", ca, "extendedKeyUsage=clientAuth")
    others = ("extendedKeyUsage=serverAuth", "subjectAltName=email:admin@a.example", "subjectAltName=DNS:a.example")
    unnamed = [_make(directory, name, ca, extension) for name in (SERVER_NAME, "127.0.0.1") for extension in others]
    return Certificates(ca.certificate, other.certificate, server, client, tuple(unnamed))


@cache
def self_signed() -> str:
    """The files of a certificate and its key, as the arguments of `tls`; they are deleted when this process ends.

    They are written without openssl, since tables of cases have them. No client trusts them, and none connects.
    """
    directory = mkdtemp(prefix="topodns-tls-")
    atexit.register(shutil.rmtree, directory)
    certificate, key = Path(directory) / "self-signed.crt", Path(directory) / "self-signed.key"
    for file, what, octets in ((certificate, "CERTIFICATE", _CERTIFICATE), (key, "PRIVATE KEY", _KEY)):
        file.write_text(f"-----BEGIN {what}-----\n{octets}\n-----END {what}-----\n")
    return f"{certificate} {key}"


def web_config() -> str:
    """A file of Prometheus' web configuration with the files of `self_signed`."""
    certificate, key = self_signed().split()
    file = Path(certificate).with_name("web.yml")
    file.write_text(f"tls_server_config:\n  cert_file: {certificate}\n  key_file: {key}\n")
    return str(file)


def _make(directory: Path, name: str, ca: Pair | None = None, extension: str = "") -> Pair:
    file = f"{name}-{extension.partition(':')[0]}"
    made = Pair(directory / f"{file}.crt", directory / f"{file}.key", name)
    signed = ["-CA", str(ca.certificate), "-CAkey", str(ca.key), "-addext", extension] if ca else []
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
            *("-subj", f"/CN={name}", "-days", "2", "-out", str(made.certificate), "-keyout", str(made.key)),
            *signed,
        ],
        check=True,
        capture_output=True,
    )
    return made
