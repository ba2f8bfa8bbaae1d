"""Where all that takes long to make is kept, under names that say which version it is, for all labs and all clones of
the project. Knows nothing of its contents, nor of running labs.
"""

import fcntl
import hashlib
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final


def _folder() -> Path:
    if own := os.environ.get("KUBELAB_CACHE"):
        return Path(own).resolve()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kubelab"


HERE: Final = Path(__file__).resolve().parent
CACHE: Final = _folder()


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def key_of(*parts: str | bytes) -> str:
    """A short name for exactly this content."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()[:10]


@contextmanager
def filling() -> Iterator[None]:
    """One process at a time fills the cache; a killed one holds no lock."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with open(CACHE / "lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"another process fills {CACHE}: waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextmanager
def making(target: Path) -> Iterator[Path]:
    """A path to make the file or folder at, which becomes `target` whole or not at all."""
    target.parent.mkdir(parents=True, exist_ok=True)
    new = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        yield new
        os.rename(new, target)
    finally:
        if new.is_dir():
            shutil.rmtree(new)
        new.unlink(missing_ok=True)
