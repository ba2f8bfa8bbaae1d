"""What a scrape shows of clusters."""

from pathlib import Path
from random import Random

import pytest

from tests.support.corefiles import settings
from tests.support.scraping import only, scraped
from topodns.assembly import Assembly, Machine, load_manifests
from topodns.listeners import Listeners
from topodns.published import Events, readings
from topodns.resolve.chain import Host

MANIFEST = """
apiVersion: v1
kind: Node
metadata: {name: one}
---
apiVersion: v1
kind: Pod
metadata: {name: p, namespace: shop}
status: {phase: Running, podIP: 10.1.1.1}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {clusterIP: None}
"""
ALWAYS = {"Namespace": 0.0, "Service": 1.0, "EndpointSlice": 0.0}


@pytest.mark.parametrize(
    ("directives", "more"),
    [
        ("kubernetes {\n manifests .\n}", {}),
        ("kubernetes {\n manifests .\n}\ntopology", {"Node": 1.0}),
        ("kubernetes {\n manifests .\n pods verified\n}", {"Pod": 1.0}),
    ],
)
def test_objects_are_counted_of_the_kinds_that_are_watched_and_of_no_others(
    tmp_path: Path, directives: str, more: dict[str, float]
) -> None:
    (tmp_path / "cluster.yaml").write_text(MANIFEST)
    assembly = Assembly(Machine(Host("", Random(0)), "", frozenset()), lambda line: None)
    events = Events()
    events.generation = load_manifests(assembly.build(settings(f". {{\n{directives}\n}}\n", str(tmp_path))))
    shown = only(scraped(readings=readings(Listeners(Random(0)), events)), "topodns_state_objects")
    assert shown == {f'{{kind="{kind}"}}': count for kind, count in {**ALWAYS, **more}.items()}
