"""config/demo as a process serves it, with `ready` at READY of the server's own address."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.server_process import READY, ROOT, Server, serving

_DEMO = ROOT / "config" / "demo"


@contextmanager
def serving_demo(directory: Path) -> Iterator[Server]:
    corefile = (_DEMO / "Corefile").read_text().replace("127.0.0.1:5381", f"HERE:{READY}")
    corefile = corefile.replace("manifests cluster", f"manifests {_DEMO / 'cluster'}").replace("127.0.0.1", "HERE")
    with serving(directory, corefile) as server:
        yield server
