"""The README of the chart: a table of its values, out of values.yaml and the comments in it."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import yaml

from tests.support.chart.helm import CHART

_HEAD: Final = """\
# The chart topodns

Installs topodns as the cluster DNS (`mode: replace`) or beside it (`mode: beside`), and with `nodeCache.enabled` a DNS
cache on every node. [docs/operate/install.md](../../docs/operate/install.md) has the steps, and the way back;
[docs/operate/alerts.md](../../docs/operate/alerts.md) explains its alerts.

A file of values of CoreDNS's chart (1.46.2) is accepted as a whole, with another `image.repository`. Refused are
`isClusterService: false` unless `mode` is `beside`, a `k8sAppLabelOverride` other than `kube-dns`, and unknown keys.

`values-DISTRIBUTION.yaml` here are for [kubeadm, kind, k3s, RKE2, Talos, EKS, GKE and
AKS](../../docs/migrate/from-coredns.md#by-distribution), such as `--values values-k3s.yaml`.

## Values

Written by `make manifests` from [values.yaml](values.yaml).

| value | default | meaning |
|---|---|---|
"""
_KEY: Final = re.compile(r"^( *)([A-Za-z]\w*):(.*)$")
_COMMENT: Final = re.compile(r"^ *# (-- )?(.*)$")
_SHOWN: Final = 60  # characters of a default; longer ones are in values.yaml
# Values whose parts are a user's matter, or the Kubernetes API's: one row for the whole.
_WHOLE: Final = frozenset(
    {
        "resources",
        "rollingUpdate",
        "podSecurityContext",
        "securityContext",
        "servers",
        "startupProbe",
        "livenessProbe",
        "readinessProbe",
        "topologySpreadConstraints",
        "nodeSelector",
        "tolerations",
        "updateStrategy",
        "annotations",
        "labels",
    }
)


def readme() -> str:
    text = (CHART / "values.yaml").read_text(encoding="utf-8")
    about = comments(text)
    rows = [f"| `{key}` | {_shown(value)} | {about.get(key, '')} |" for key, value in leaves(yaml.safe_load(text))]
    return _HEAD + "\n".join(rows) + "\n"


def leaves(values: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """The values that have a row each, by their dotted path."""
    for key, value in values.items():
        if isinstance(value, dict) and value and key not in _WHOLE:
            yield from leaves(value, f"{above}{key}.")
        else:
            yield f"{above}{key}", value


def comments(text: str) -> dict[str, str]:
    """By dotted path: the comment above the key, from `# --` on."""
    found: dict[str, str] = {}
    path: list[tuple[int, str]] = []
    pending: list[str] = []
    for line in text.splitlines():
        if comment := _COMMENT.match(line):
            pending = [comment[2]] if comment[1] else [*pending, comment[2]] if pending else []
        elif key := _KEY.match(line):
            path = [(depth, name) for depth, name in path if depth < len(key[1])]
            path.append((len(key[1]), key[2]))
            if pending:
                found[".".join(name for _, name in path)] = " ".join(pending).replace("|", "\\|")
            pending = []
        else:
            pending = []
    return found


def _shown(value: object) -> str:
    text = json.dumps(value)
    return f"`{text}`" if len(text) <= _SHOWN else "see values.yaml"
