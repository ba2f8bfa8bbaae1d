"""Keys, tokens and kubeconfigs of a lab: everyone in it has an identity of their own."""

import secrets
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from tests.kubelab.machine import IN, Machine
from tests.kubelab.options import API, API6, FIRST_SERVICES

_CURVE: Final = ("-pkeyopt", "ec_paramgen_curve:prime256v1")
_API_NAMES: Final = (
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
)
_OF_CONTROL_PLANE: Final = (
    *("apiserver.crt", "apiserver.key", "kubelet-client.crt", "kubelet-client.key"),
    *("sa.key", "sa.pub", "ca.key"),
)


def make_keys(folder: Path) -> None:
    """The authority, the API server's certificate, its certificate for kubelets, and the key of service accounts."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "openssl.cnf").write_text("[req]\ndistinguished_name=dn\n[dn]\n")
    _certificate(
        folder,
        "ca",
        "/CN=kubelab",
        *("basicConstraints=critical,CA:TRUE", "keyUsage=critical,keyCertSign,cRLSign", "subjectKeyIdentifier=hash"),
    )
    names = [f"DNS:{name}" for name in _API_NAMES]
    addresses = [f"IP:{address}" for address in ("127.0.0.1", API, API6, *FIRST_SERVICES)]
    server = ("extendedKeyUsage=serverAuth", "authorityKeyIdentifier=keyid")
    _certificate(folder, "apiserver", "/CN=kube-apiserver", *server, f"subjectAltName={','.join([*names, *addresses])}")
    client = ("extendedKeyUsage=clientAuth", "authorityKeyIdentifier=keyid")
    _certificate(folder, "kubelet-client", "/O=system:masters/CN=kube-apiserver", *client)
    _openssl(folder, "genpkey", "-algorithm", "EC", *_CURVE, "-out", "sa.key")
    _openssl(folder, "pkey", "-in", "sa.key", "-pubout", "-out", "sa.pub")


def _openssl(folder: Path, *arguments: str) -> None:
    subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)


def _certificate(folder: Path, name: str, subject: str, *extensions: str) -> None:
    signer = () if name == "ca" else ("-CA", "ca.crt", "-CAkey", "ca.key")
    request = ("req", "-x509", "-config", "openssl.cnf", "-newkey", "ec", *_CURVE, "-nodes", "-days", "365")
    files = ("-keyout", f"{name}.key", "-out", f"{name}.crt")
    added = [f"-addext={extension}" for extension in extensions]
    _openssl(folder, *request, "-subj", subject, *files, *signer, *added)


def kubeconfig(server: str, token: str, authority: str) -> dict[str, Any]:
    """`authority` is the path of its certificate, as seen by the reader of the kubeconfig."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "kubelab",
        "clusters": [{"name": "kubelab", "cluster": {"server": server, "certificate-authority": authority}}],
        "users": [{"name": "kubelab", "user": {"token": token}}],
        "contexts": [{"name": "kubelab", "context": {"cluster": "kubelab", "user": "kubelab"}}],
    }


def write_users(keys: Path, control: Machine, nodes: Sequence[Machine]) -> str:
    """Put keys and kubeconfigs on the machines; the administrator's token comes back."""
    tokens = []

    def user(file: str, name: str, group: str, *machines: Machine) -> str:
        token = secrets.token_hex(16)
        tokens.append(f'{token},{name},{name},"{group}"\n')
        for machine in machines:
            config = kubeconfig(f"https://{API}:6443", token, f"{IN}/ca.crt")
            machine.write(f"{file}.kubeconfig", config, 0o600)
        return token

    admin = user("admin", "admin", "system:masters", control, *nodes)
    user("kube-controller-manager", "system:kube-controller-manager", "", control)
    user("kube-scheduler", "system:kube-scheduler", "", control)
    user("kwok", "kwok", "system:masters", control)
    user("kube-proxy", "system:kube-proxy", "", *nodes)
    for node in nodes:
        user("kubelet", f"system:node:{node.name}", "system:nodes", node)
    control.write("tokens.csv", "".join(tokens), 0o600)
    for machine in (control, *nodes):
        shutil.copy(keys / "ca.crt", machine.dir)
    for key in _OF_CONTROL_PLANE:
        shutil.copy(keys / key, control.dir)
    return admin
