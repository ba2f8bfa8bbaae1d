"""Writes docs/operate/topology-page.png: the page of config/demo as a browser shows it. `make page-screenshot`."""

import asyncio
import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from tests.support.chromium import HOW_TO, PROGRAM, chromium, opened
from tests.support.server_process import ROOT, Server, serving, until

PICTURE: Final = ROOT / "docs/operate/topology-page.png"
NODES: Final = {1: 9, 2: 5, 3: 4, 5: 6, 6: 3, 7: 2, 8: 4}  # by the number of a node: queries of its Pods


def ask_for_cache(server: Server) -> None:
    """Queries for shop/cache from Pods of all zones, until the page can count them."""

    def counted() -> bool:
        for node, times in NODES.items():
            for _ in range(times):
                server.ask("cache.shop.svc.cluster.local A", f"127.10.{node}.100")
        queries = json.loads(server.get("/topology/service?service=shop/cache", 5382)[1])["queries"]
        return queries is not None and queries["all"] > 2000 and all(flow["all"] for flow in queries["flows"])

    until(counted, "queries that the page counts")


async def picture(port: int, url: str) -> bytes:
    """The picture by queries and the table, with one node away, and the details of one Service."""
    async with opened(port, url) as tab:
        await tab.resize(1280, 1280)
        await tab.until("document.querySelectorAll('#body tr').length === 8")
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
        ask_for_cache(server)
        PICTURE.write_bytes(asyncio.run(picture(port, f"http://{server.address}:5382/topology")))
    print(f"{PICTURE.relative_to(ROOT)}: {PICTURE.stat().st_size:,} octets")
    return 0


if __name__ == "__main__":
    sys.exit(main())
