"""topodns as a process of the host, outside the cluster, by a kubeconfig with nothing but topodns's own rights."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.kubelab.users import kubeconfig
from tests.support.kube.cluster import Cluster
from tests.support.kube.servers import NAMESPACE
from tests.support.kube.waiting import PATIENCE, eventually
from tests.support.process import METRICS, READY, serving
from tests.support.process import Server as Process


@contextmanager
def serving_on_host(cluster: Cluster, directory: Path, *topology: str) -> Iterator[Process]:
    """Ready, with these options of the directive `topology`."""
    (directory / "kubeconfig").write_text(json.dumps(account_kubeconfig(cluster, "topodns")))
    block = "\n        ".join((" {", *topology)) + "\n    }" if topology else ""
    corefile = f"""\
.:0 {{
    bind HERE
    ready HERE:{READY}
    prometheus HERE:{METRICS}
    kubernetes cluster.local in-addr.arpa ip6.arpa {{
        kubeconfig {directory / "kubeconfig"}
    }}
    topology{block}
}}
"""
    with serving(directory, corefile, patience=PATIENCE) as process:
        eventually(lambda: process.get("/ready", READY)[0] == 200, "ready")
        yield process


def account_kubeconfig(cluster: Cluster, account: str) -> dict[str, Any]:
    """A kubeconfig for use on the host, with a token as pods have it."""
    path = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{account}/token"
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
    answer = cluster.lab.api.call("POST", path, request)
    assert answer.ok, answer
    server = f"https://127.0.0.1:{cluster.lab.facts['port']}"
    return kubeconfig(server, answer.body["status"]["token"], f"{cluster.lab.dir}/pki/ca.crt")
