"""What builds the clusters of a Corefile, and a directory with their manifests."""

from pathlib import Path
from random import Random

import pytest

from tests.support.model_builders import packed
from topodns.app.generation import Assembly, Machine

SERVICE = """
apiVersion: v1
kind: Service
metadata: {namespace: shop, name: web}
spec: {clusterIP: 10.96.0.20, clusterIPs: [10.96.0.20]}
"""


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    for name in ("cluster", "other"):
        (tmp_path / f"{name}.yaml").write_text(SERVICE)
    return tmp_path


@pytest.fixture
def assembly() -> Assembly:
    return Assembly(Machine("here", "n1", frozenset({packed("127.0.0.1")}), Random(0)), lambda line: None)
