"""The plain manifests of config/kubernetes, as the chart renders them, and files of the chart itself.

`python -m tests.support.chart.manifests` writes them: `make manifests`. The folder `server` is a kustomize base; each
other one is a component, with the objects that the chart's values add to those before it, and patches of those that
they change.
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from tests.support.chart.artifact_hub import chart_yaml
from tests.support.chart.boards import board_files
from tests.support.chart.helm import CHART, CLUSTER_DNS, ROOT, Object, Values, rendered_text
from tests.support.chart.readable_yaml import readable_yaml
from tests.support.chart.readme import readme

FOLDER: Final = ROOT / "config/kubernetes"

_SOURCE: Final = re.compile(r"^# Source: topodns/templates/(\S+)\n", re.MULTILINE)
# What means something to helm alone, and what would have to change with each edit of a ConfigMap.
_HELMS_OWN: Final = re.compile(
    r"^ *(app\.kubernetes\.io/managed-by|helm\.sh/[-\w]+|checksum/config): .*\n", re.MULTILINE
)
_EMPTY: Final = re.compile(r"^( *)annotations:\n(?!\1 )", re.MULTILINE)


@dataclass(frozen=True)
class Part:
    """A folder: its name, what its kustomization says first, and the chart's values that it adds."""

    name: str
    about: str
    values: Values


SERVER: Final = Part(
    "server",
    "topodns as the cluster DNS: Service kube-dns, with the address that kubeadm gives it.",
    {"service": {"clusterIP": CLUSTER_DNS}},
)
# In the order in which an overlay names them: patches of one are for objects of those before it. A new one goes before
# the last.
COMPONENTS: Final = (
    Part(
        "node-cache",
        "A DNS cache on every node. LOCAL_ADDRESSES of the DaemonSet has its own and the cluster DNS's addresses.",
        {
            "nodeCache": {
                "enabled": True,
                "localDns": ["169.254.20.10", "fd00:169:254::10"],
                "dnsServer": [CLUSTER_DNS, "fd00:10:96::a"],
            },
        },
    ),
    Part(
        "locator",
        "NodeLocators, by which servers find clients without watching Pods, and `topodns locator`, which writes them.",
        {"locator": {"enabled": True}},
    ),
    Part(
        "beside",
        "topodns beside the cluster DNS, under the Service topodns. The last of the components.",
        {"mode": "beside", "service": {"clusterIP": ""}},
    ),
)
PARTS: Final = (SERVER, *COMPONENTS)


@dataclass(frozen=True)
class _Document:
    """A rendered object: the name of the template's file, and the text without what is helm's own."""

    file: str
    text: str

    @property
    def value(self) -> Object:
        found: Object = yaml.safe_load(self.text)
        return found


def values_of(parts: Sequence[Part]) -> Values:
    """The chart's values for these parts together."""
    merged: dict[str, Any] = {}
    for part in parts:
        for key, value in part.values.items():
            merged[key] = {**merged.get(key, {}), **value} if isinstance(value, dict) else value
    return merged


def files(part: Part) -> Mapping[str, str]:
    """By name: the files of this part's folder."""
    before = PARTS[: PARTS.index(part)]
    there = _documents(values_of(before)) if before else {}
    here = _documents(values_of((*before, part)))
    resources: dict[str, list[str]] = {}
    for name, document in here.items():
        if name not in there:
            resources.setdefault(document.file, []).append(document.text)
    texts = {name: "---\n".join(documents) for name, documents in resources.items()}
    return {**texts, "kustomization.yaml": _kustomization(part, sorted(texts), list(_patches(there, here)))}


def write_kustomization(folder: Path, parts: Sequence[Part]) -> None:
    """In this folder: a kustomization of these parts as they are."""
    content: dict[str, list[str]] = {"resources": [], "components": []}
    for part in parts:
        path = os.path.relpath(FOLDER / part.name, folder.resolve())
        content["resources" if part is SERVER else "components"].append(path)
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(content))


def everything() -> Mapping[Path, str]:
    """All that is written here."""
    parts = {FOLDER / part.name / name: text for part in PARTS for name, text in files(part).items()}
    return {**parts, **board_files(), CHART / "README.md": readme(), CHART / "Chart.yaml": chart_yaml()}


def _documents(values: Values) -> dict[tuple[str, str], _Document]:
    """By kind and name: each object of the chart with these values."""
    text = rendered_text(values, "--skip-tests")
    parts = (part.partition("\n") for part in re.split(r"^---\n", text, flags=re.MULTILINE) if part.strip())
    found = {}
    for head, _, body in parts:
        if source := _SOURCE.match(f"{head}\n"):
            document = _Document(Path(source[1]).name, _plain(body))
            found[document.value["kind"], document.value["metadata"]["name"]] = document
    return found


def _plain(text: str) -> str:
    return _EMPTY.sub("", _HELMS_OWN.sub("", text)).rstrip() + "\n"


def _patches(
    before: Mapping[tuple[str, str], _Document], after: Mapping[tuple[str, str], _Document]
) -> Iterator[Object]:
    """The `patches` of a kustomization that make of the objects before those of the same name after.

    Objects of one name that get the same patch share it, their kinds as a regular expression.
    """
    shared: dict[tuple[str, str], list[str]] = {}
    for (kind, name), document in before.items():
        if (kind, name) not in after:
            gone = {"$patch": "delete", "apiVersion": document.value["apiVersion"], "kind": kind}
            yield {"target": {"kind": kind, "name": name}, "patch": readable_yaml({**gone, "metadata": {"name": name}})}
        elif changes := list(_changes(document.value, after[kind, name].value)):
            shared.setdefault((name, readable_yaml(changes)), []).append(kind)
    for (name, patch), kinds in shared.items():
        yield {"target": {"kind": "|".join(kinds), "name": name}, "patch": patch}


def _changes(before: Object, after: Object, path: str = "") -> Iterator[Object]:
    """Operations of a JSON patch (RFC 6902); a list is replaced as a whole.

    The path is last: kustomize takes the line end at the end of a patch away, also where a text ends there.
    """
    for key in {**before, **after}:
        at = f"{path}/{key.replace('~', '~0').replace('/', '~1')}"
        if key not in after:
            yield {"op": "remove", "path": at}
        elif key not in before:
            yield {"op": "add", "value": after[key], "path": at}
        elif isinstance(before[key], dict) and isinstance(after[key], dict):
            yield from _changes(before[key], after[key], at)
        elif before[key] != after[key]:
            yield {"op": "replace", "value": after[key], "path": at}


def _kustomization(part: Part, resources: list[str], patches: list[Object]) -> str:
    base = part is SERVER
    head = [
        f"# {part.about}",
        "# Written by `make manifests` from charts/topodns. Put changes for your cluster into an overlay.",
    ]
    content = {
        "apiVersion": f"kustomize.config.k8s.io/{'v1beta1' if base else 'v1alpha1'}",
        "kind": "Kustomization" if base else "Component",
        "resources": resources,
        **({"patches": patches} if patches else {}),
    }
    return "\n".join(head) + "\n" + readable_yaml(content)


if __name__ == "__main__":
    for path, text in everything().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
