"""All documents of the project by their path from its root."""

from typing import Final

from release.source import ROOT, documents

__all__ = ["DOCUMENTS", "ROOT"]

DOCUMENTS: Final = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in documents()}
