"""Writes docs/operate/topology-page.png: the page of config/demo as a browser shows it. `make page-screenshot`."""

import asyncio
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from tests.support.chromium import HOW_TO, PROGRAM, chromium, opened
from tests.support.server_process import ROOT, serving

PICTURE: Final = ROOT / "docs/operate/topology-page.png"


async def picture(port: int, url: str) -> bytes:
    """The table with one node away, and the explanation of one cell."""
    async with opened(port, url) as tab:
        await tab.resize(1280, 1280)
        await tab.until("document.querySelectorAll('#body tr').length === 5")
        await tab.click("#nodes button[aria-label='node-b1: as if down']")
        await tab.until("document.querySelectorAll('td.changed').length")
        await tab.click("#body tr[data-service='shop/cache'] td[data-zone='eu-1b'] button")
        await tab.until("document.getElementById('explanation').textContent.includes('answer')")
        await tab.js("window.scrollTo(0, 0)")
        return await tab.screenshot()


def main() -> int:
    if PROGRAM is None:
        print(f"there is no chromium here: {HOW_TO}")
        return 1
    demo = ROOT / "config/demo"
    corefile = (demo / "Corefile").read_text().replace("127.0.0.1", "HERE")
    corefile = corefile.replace("manifests cluster", f"manifests {demo / 'cluster'}")
    with TemporaryDirectory() as directory, serving(Path(directory), corefile) as server, chromium() as port:
        PICTURE.write_bytes(asyncio.run(picture(port, f"http://{server.address}:5382/topology")))
    print(f"{PICTURE.relative_to(ROOT)}: {PICTURE.stat().st_size:,} octets")
    return 0


if __name__ == "__main__":
    sys.exit(main())
