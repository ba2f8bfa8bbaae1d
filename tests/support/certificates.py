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
    """The files of a certificate and its key, as the arguments of `tls`; they are deleted when this process ends."""
    directory = mkdtemp(prefix="topodns-tls-")
    atexit.register(shutil.rmtree, directory)
    made = _make(Path(directory), "self-signed")
    return f"{made.certificate} {made.key}"


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
