"""Manifest text: what it is parsed and decoded to, the error of one that is refused, and a billion laughs."""

from collections.abc import Iterator
from textwrap import dedent
from typing import Final

import pytest

from topodns.cluster.label_selector import parse_selector
from topodns.kube.manifests.documents import parse_documents
from topodns.kube.manifests.objects import Contents, read_contents
from topodns.kube.manifests.value import BadManifest

SLICE: Final = """\
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {namespace: shop, name: %s, labels: {kubernetes.io/service-name: %s}}
addressType: IPv4
endpoints: [{addresses: [%s]}]
"""
"""An EndpointSlice, of its name, its Service and its addresses."""


def parsed(text: str | bytes) -> list[tuple[dict[str, object], int]]:
    data = dedent(text).encode() if isinstance(text, str) else text
    return [(found.object, found.line) for found in parse_documents(data, "m.yaml") if found]


def problem(text: str | bytes) -> str:
    with pytest.raises(BadManifest) as caught:
        parsed(text)
    return str(caught.value)


def contents(text: str, file: str = "m.yaml", labels: str = "") -> Contents:
    found: list[Contents] = []

    def course() -> Iterator[None]:
        selector = parse_selector(labels) if labels else None
        found.append((yield from read_contents(file, text.encode(), selector)))

    assert all(pause is None for pause in course())
    return found[0]


def laughs(levels: int) -> str:
    """A billion laughs: each level holds the one before it ten times."""
    lines = ["a0: &a0 lol"]
    lines += [f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]" for level in range(1, levels + 1)]
    return "kind: X\n" + "\n".join(lines) + "\n"
