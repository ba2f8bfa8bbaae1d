"""All documents of the project by their path from its root."""

from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
DOCUMENTS: Final = {
    str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
    for pattern in ("*.md", "docs/*.md", "bench/*.md", "charts/*/*.md", "tests/*/*.md")
    for path in sorted(ROOT.glob(pattern))
}
