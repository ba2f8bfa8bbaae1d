"""All documents of the project by their path from its root."""

import re
from typing import Final

from release.source import ROOT, documents

__all__ = ["DOCUMENTS", "ROOT", "yaml_block"]

DOCUMENTS: Final = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in documents()}


def yaml_block(document: str, heading: str) -> str:
    """The one block of YAML in this chapter of a document. Raises ValueError where there is none, or more than one."""
    chapter = DOCUMENTS[document].partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    (found,) = re.findall(r"^```yaml\n(.*?)^```$", chapter, re.MULTILINE | re.DOTALL)
    return str(found)
