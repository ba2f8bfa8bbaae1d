"""The tree that a release is made of: its files, its version, and the time that stands for it."""

import os
import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from topodns import __version__

ROOT: Final = Path(__file__).parents[1]
DIST: Final = ROOT / "dist"
VERSION: Final = __version__

_DOCUMENTS: Final = ("*.md", "docs/**/*.md", "bench/*.md", "charts/*/*.md", "tests/*.md", "tests/*/*.md")
_PACKAGED: Final = ("LICENSE", "README.md", "pyproject.toml", "topodns")


_SUFFIXES: Final = frozenset({".py", ".css", ".html", ".js", ".bash", ".sh"})  # of the package's files


def documents() -> list[Path]:
    """All that the project has to say to people, in the order of the folders."""
    return [path for pattern in _DOCUMENTS for path in sorted(ROOT.glob(pattern))]


def epoch() -> int:
    """Seconds since 1970: $SOURCE_DATE_EPOCH (reproducible-builds.org), else when the commit was made."""
    given = os.environ.get("SOURCE_DATE_EPOCH", "")
    return int(given) if given else int(_git("log", "-1", "--format=%ct") or 0)


def created() -> str:
    """The same as RFC 3339 has it."""
    return datetime.fromtimestamp(epoch(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def revision() -> str:
    """The commit; "" where there is no repository."""
    return _git("rev-parse", "HEAD")


def copy_tree(target: Path) -> None:
    """The files that are the project's, as they are now, with no trace of who has checked them out, and when."""
    listed = _git("ls-files", "-z", "--cached", "--others", "--exclude-standard", *_PACKAGED)
    paths = sorted(filter(None, listed.split("\0"))) or _without_git()
    for path in paths:
        source, copied = ROOT / path, target / path
        if source.is_file():  # and not removed since
            copied.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, copied)
            copied.chmod(0o644)


def _without_git() -> list[str]:
    packaged = [path for path in (ROOT / "topodns").rglob("*") if path.suffix in _SUFFIXES or path.name == "py.typed"]
    return sorted([*_PACKAGED[:-1], *(str(path.relative_to(ROOT)) for path in packaged)])


def _git(*words: str) -> str:
    try:
        done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return ""
    return done.stdout.strip("\n") if done.returncode == 0 else ""
