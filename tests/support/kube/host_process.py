"""topodns as a process of the host, outside the cluster, by a kubeconfig: with nothing but topodns's own rights, or as
the lab's administrator.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from tests.kubelab.users import kubeconfig
from tests.support.kube.cluster import Cluster
from tests.support.kube.server_pods import NAMESPACE
from tests.support.kube.waiting import PATIENCE, eventually
from tests.support.server_process import COMMAND, METRICS, READY, serving
from tests.support.server_process import Server as Process

ZONES: Final = "cluster.local in-addr.arpa ip6.arpa"


@contextmanager
def serving_on_host(
    cluster: Cluster,
    directory: Path,
    *topology: str,
    zones: str = ZONES,
    kubernetes: Sequence[str] = (),
    config: dict[str, Any] | None = None,
    command: Sequence[str] = COMMAND,
) -> Iterator[Process]:
    """Ready, with these options of the directives `topology` and `kubernetes`, and the rights of this kubeconfig.

    Without one it is the account that topodns has in the cluster.
    """
    (directory / "kubeconfig").write_text(json.dumps(config or account_kubeconfig(cluster, "topodns")))
    corefile = f"""\
.:0 {{
    bind HERE
    ready HERE:{READY}
    prometheus HERE:{METRICS}
    kubernetes {zones}{_block("kubeconfig " + str(directory / "kubeconfig"), *kubernetes)}
    topology{_block(*topology)}
}}
"""
    with serving(directory, corefile, patience=PATIENCE, command=command) as process:
        eventually(lambda: process.get("/ready", READY)[0] == 200, "ready")
        yield process


def _block(*options: str) -> str:
    return "\n        ".join((" {", *options)) + "\n    }" if options else ""


def account_kubeconfig(cluster: Cluster, account: str) -> dict[str, Any]:
    """A kubeconfig for use on the host, with a token as pods have it."""
    path = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{account}/token"
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
    answer = cluster.lab.api.call("POST", path, request)
    assert answer.ok, answer
    server = f"https://127.0.0.1:{cluster.lab.facts['port']}"
    return kubeconfig(server, answer.body["status"]["token"], f"{cluster.lab.dir}/pki/ca.crt")


def administrator_kubeconfig(cluster: Cluster) -> dict[str, Any]:
    """With a token that the API server has from its command line, and so knows whatever etcd holds."""
    config: dict[str, Any] = json.loads(cluster.lab.kubeconfig.read_text())
    return config
