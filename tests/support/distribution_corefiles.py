"""Corefiles of distributions in config/corefiles, with files of this machine replaced by a test's."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
COREFILES: Final = {path.parent.name: path for path in sorted(ROOT.glob("config/corefiles/*/Corefile"))}
RESOLV_CONF: Final = "/etc/resolv.conf"


def corefile(name: str, places: Mapping[str, str]) -> str:
    """The text of one, with each of `places` that is in it replaced. Every place has to be in some Corefile."""
    text = COREFILES[name].read_text(encoding="utf-8")
    for place, instead in places.items():
        text = text.replace(place, instead)
    return text


def on_loopback(text: str, api_url: str) -> str:
    """Ready for a server of a test: every port at HERE, free ones for DNS, and the API server at `api_url`."""
    text = re.sub(r"^(\S+?)(?::53)? \{$", r"\1 {\n    bind HERE", text, flags=re.MULTILINE)
    text = re.sub(r"^( +)health\b", r"\1health HERE:8080", text, flags=re.MULTILINE)
    text = re.sub(r"^( +)ready\b", r"\1ready HERE:8181", text, flags=re.MULTILINE)
    text = re.sub(r"^( +)prometheus .*:9153$", r"\1prometheus HERE:9153", text, flags=re.MULTILINE)
    text = re.sub(r"^( +kubernetes .*\{)$", rf"\1\n        endpoint {api_url}", text, flags=re.MULTILINE)
    return re.sub(r"lameduck \S+", "lameduck 0s", text)
