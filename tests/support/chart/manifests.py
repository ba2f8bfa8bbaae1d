"""The plain manifests of config/kubernetes, as the chart renders them, and the chart's README and dashboards.

`python -m tests.support.chart.manifests` writes them: `make manifests`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.support.chart.boards import board_files
from tests.support.chart.helm import CHART, CLUSTER_DNS, NAMESPACE, ROOT, Values, rendered_text
from tests.support.chart.readme import readme

FOLDER: Final = ROOT / "config/kubernetes"

_SOURCE: Final = re.compile(r"^# Source: topodns/templates/(\S+)\n", re.MULTILINE)
# What means something to helm alone, and what would have to change with each edit of a ConfigMap.
_HELMS_OWN: Final = re.compile(
    r"^ *(app\.kubernetes\.io/managed-by|helm\.sh/[-\w]+|checksum/config): .*\n", re.MULTILINE
)
_EMPTY: Final = re.compile(r"^( *)annotations:\n(?!\1 )", re.MULTILINE)


@dataclass(frozen=True)
class Base:
    """A kustomize base: the folder's name, what its kustomization says first, and the chart's values for it."""

    name: str
    about: str
    values: Values


BASES: Final = (
    Base(
        "server",
        "topodns as the cluster DNS: Service kube-dns, with the address that kubeadm gives it.",
        {"service": {"clusterIP": CLUSTER_DNS}},
    ),
    Base("beside", "topodns beside the cluster DNS, under the Service topodns.", {"mode": "beside"}),
    Base(
        "node-cache",
        "A DNS cache on every node. LOCAL_ADDRESSES of the DaemonSet has its own and the cluster DNS's addresses.",
        {
            "deployment": {"enabled": False},
            "admissionPolicy": {"enabled": False},
            "nodeCache": {
                "enabled": True,
                "localDns": ["169.254.20.10", "fd00:169:254::10"],
                "dnsServer": [CLUSTER_DNS, "fd00:10:96::a"],
            },
        },
    ),
    Base(
        "locator",
        "NodeLocators, by which servers find clients without watching Pods, and `topodns locator`, which writes them.",
        {
            "deployment": {"enabled": False},
            "admissionPolicy": {"enabled": False},
            "locator": {"enabled": True},
        },
    ),
)


def files(base: Base) -> Mapping[str, str]:
    """By name: the files of this base's folder."""
    resources: dict[str, list[str]] = {}
    for source, text in _documents(rendered_text(base.values, "--skip-tests")):
        resources.setdefault(Path(source).name, []).append(text)
    texts = {name: "---\n".join(documents) for name, documents in resources.items()}
    return {**texts, "kustomization.yaml": _kustomization(base, sorted(texts))}


def everything() -> Mapping[Path, str]:
    """All that is written here."""
    bases = {FOLDER / base.name / name: text for base in BASES for name, text in files(base).items()}
    return {**bases, **board_files(), CHART / "README.md": readme()}


def _documents(text: str) -> list[tuple[str, str]]:
    """Each rendered document with the template that it is from."""
    parts = (part.partition("\n") for part in re.split(r"^---\n", text, flags=re.MULTILINE) if part.strip())
    return [(found[1], _plain(body)) for head, _, body in parts if (found := _SOURCE.match(f"{head}\n"))]


def _plain(text: str) -> str:
    return _EMPTY.sub("", _HELMS_OWN.sub("", text)).rstrip() + "\n"


def _kustomization(base: Base, resources: list[str]) -> str:
    lines = [
        f"# {base.about}",
        "# Written by `make manifests` from charts/topodns. Put changes for your cluster into an overlay.",
        "apiVersion: kustomize.config.k8s.io/v1beta1",
        "kind: Kustomization",
        f"namespace: {NAMESPACE}",
        "resources:",
        *(f"- {name}" for name in resources),
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    for path, text in everything().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
