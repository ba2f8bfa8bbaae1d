"""The topology page as its users use it: with a mouse, with a keyboard, with a screen reader, in light and dark."""

import asyncio
import json
import re
import shutil
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from tests.support.chromium import Tab, opened
from tests.support.event_loops import PATIENCE
from tests.support.server_process import ROOT, Server, serving, until

PAGE = 8182
COREFILE = """
. {
    bind HERE
    errors
    reload 2s 1s
    kubernetes cluster.local {
        manifests cluster
    }
    topology {
        default topology.kubernetes.io/region,* namespaces monitoring
        page HERE:8182
    }
}
"""
LIVE = (
    "document.getElementById('live').textContent.startsWith('live') && "
    "document.querySelectorAll('#body tr').length >= 8 && document.querySelectorAll('#flows path').length"
)
CACHE, NEAR = "#body tr[data-service='shop/cache']", "#body tr[data-service='data/db-near']"
CACHE_IN_C = f"{CACHE} td[data-zone='eu-1c'] button"
MISSES = f"{NEAR} td:nth-last-child(2)"

CONTRAST = """
(() => {
  const parse = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((c) => c / 255)
    .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, at) => sum + c * [0.2126, 0.7152, 0.0722][at], 0);
  const ground = (element) => {
    for (let each = element; each; each = each.parentElement) {
      const colour = parse(getComputedStyle(each).backgroundColor);
      if (colour.length === 3 || colour[3] === 1) return colour;
    }
    return [255, 255, 255];
  };
  const poor = [];
  let looked = 0;
  for (const element of document.querySelectorAll("body *")) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    if (!own || !element.getClientRects().length || element.matches("script, style, option, .unseen")) continue;
    looked += 1;
    const [a, b] = [light(parse(getComputedStyle(element).color)), light(ground(element))].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < 4.5) poor.push(`${element.tagName} ${element.textContent.slice(0, 30)}: ${ratio.toFixed(2)}`);
  }
  return {poor, looked};
})()
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    shutil.copytree(ROOT / "config/demo/cluster", tmp_path / "cluster")
    with serving(tmp_path, COREFILE) as server:
        yield server


def use(browser: int, server: Server, user: Callable[[Tab], Awaitable[None]], shown: str = "") -> None:
    """Open the page, perhaps with a state in the URL, let the user use it, and see that nothing went wrong in it."""

    async def story() -> None:
        async with opened(browser, f"http://{server.address}:{PAGE}/topology{shown}") as tab:
            await tab.until(LIVE)
            await user(tab)
            assert tab.errors == []
            assert tab.hosts() == {f"{server.address}:{PAGE}"}

    asyncio.run(asyncio.wait_for(story(), 2 * PATIENCE))


def test_a_user_sees_services_by_zone_and_nothing_is_loaded_from_elsewhere(browser: int, server: Server) -> None:
    async def user(tab: Tab) -> None:
        assert await tab.js("document.title") == "topodns: topology of cluster.local."
        assert (await tab.text("#head")).split("\t") == [
            "Service", "eu-1a", "eu-1b", "eu-1c", "Endpoints", "Misses in 5 min", "Keys",
        ]  # fmt: skip
        assert "○ 0\n3/3 nodes" in await tab.text(CACHE_IN_C)
        assert await tab.js(f'document.querySelector("{CACHE_IN_C} .unseen").textContent') == (
            "shop/cache in eu-1c: 0 endpoints, clients on 3 of 3 nodes get one, some from anywhere"
        )
        assert (
            await tab.text("#summary")
            == "✕ On some nodes clients of 4 of 8 Services with topology keys get no endpoint; 9 nodes."
        )
        assert {path.partition(str(PAGE))[2].partition("?")[0] for path in tab.requests if "://" in path} == {
            "/topology",
            "/topology/events",
            "/topology/service",
            "/topology/state",
        }

    use(browser, server, user)


def test_a_click_on_a_cell_shows_keys_endpoints_and_why(browser: int, server: Server) -> None:
    async def user(tab: Tab) -> None:
        await tab.click(CACHE_IN_C)
        await tab.until("document.getElementById('explanation').textContent.includes('answer')")
        assert await tab.text("#details-title") == "shop/cache in eu-1c"
        assert "kubernetes.io/hostname, topology.kubernetes.io/zone, *" in await tab.text("#details-facts")
        explanation = await tab.text("#explanation")
        assert "client   any on node node-c1" in explanation
        assert "tried    *: 3 matching  <- wins" in explanation
        assert "         yes 127.10.4.30 on node-b1: by *" in explanation
        await tab.fill("#explain-node", "node-b2")
        await tab.press("Enter")
        await tab.until("document.getElementById('explanation').textContent.includes('node-b2')")
        assert "cache.shop.svc.cluster.local. 5 IN A 127.10.4.30" in await tab.text("#explanation")
        await tab.fill("#explain-node", "nowhere")
        await tab.press("Enter")
        await tab.until("document.getElementById('explanation').textContent.includes('No explanation')")
        assert (await tab.text("#explanation")).startswith("No explanation: no Node is named 'nowhere'; there are")
        tab.errors.clear()  # the browser logs the status 400
        await tab.click(f"{CACHE} th button")
        await tab.until("document.getElementById('endpoints').textContent.includes('127.10.4.30')")
        assert "node-c1" in await tab.text("#clients")
        await tab.click(f"{NEAR} th button")
        await tab.until("document.getElementById('details-facts').textContent.includes('Audit')")
        assert "eu-1c" in await tab.text("#details-facts")

    use(browser, server, user)


def test_the_details_have_guards_and_the_names_to_which_keys_apply_in_words(browser: int, server: Server) -> None:
    async def user(tab: Tab) -> None:
        await tab.click("#body tr[data-service='shop/sessions'] td[data-zone='eu-1b'] button")
        await tab.until("document.getElementById('details-facts').textContent.includes('max-load')")
        facts = await tab.text("#details-facts")
        assert "min-endpoints 2, max-load 1, max-endpoints 4" in facts
        assert "sessions and _near.sessions by the keys; _all.sessions without keys" in facts
        clients = await tab.text("#clients")
        assert "2 endpoints by topology.kubernetes.io/zone (matched)" in clients
        assert "4 endpoints by * (any)" in clients

    use(browser, server, user)


BY_DEFAULT = """
apiVersion: v1
kind: Service
metadata: {namespace: monitoring, name: collector}
spec: {clusterIP: None, ports: [{port: 80}]}
"""


def test_the_details_say_that_keys_are_those_of_the_namespace_or_a_default(
    browser: int, server: Server, tmp_path: Path
) -> None:
    async def user(tab: Tab) -> None:
        (tmp_path / "cluster/by-default.yaml").write_text(BY_DEFAULT)
        for name, source in {"data/db-near": "namespace", "monitoring/collector": "default"}.items():
            row = f"#body tr[data-service='{name}'] th button"
            await tab.until(f'document.querySelector("{row}")')
            await tab.click(row)
            await tab.until(f"page.detail && page.detail.id === '{name}'")
            assert re.search(rf"Where from\s+{source}\s", await tab.text("#details-facts"))

    use(browser, server, user)


def test_a_node_is_clicked_away_and_put_back(browser: int, server: Server) -> None:
    async def user(tab: Tab) -> None:
        before = await tab.text("#body")
        await tab.click("#nodes button[aria-label='node-b1: as if down']")
        await tab.until("document.querySelectorAll('td.changed').length")
        await tab.until("document.getElementById('what-if-result').textContent.startsWith('8 nodes left')")
        assert await tab.text("#what-if-result") == (
            "8 nodes left. 5 of 34 endpoints are lost. Clients of 4 Services lose:"
        )
        at_once = await tab.js("suppose(); document.getElementById('what-if-result').textContent")
        assert at_once == "Being worked out."
        await tab.until("document.getElementById('what-if-result').textContent.startsWith('8 nodes left')")
        assert (await tab.text("#what-if-worse")).splitlines() == [
            "data/db-far: clients on 3 nodes more get far ones",
            "data/db-near: clients on 2 nodes more get no endpoint",
            "shop/cache: clients on 2 nodes more get far ones",
            "shop/sessions: clients on 1 node more get far ones",
        ]
        assert "✕ 0\n0/2 nodes\nwas ● 1, 3/3" in await tab.text(f"{NEAR} td[data-zone='eu-1b']")
        await tab.click("#nodes button[aria-label='zone eu-1a: as if down']")
        await tab.until("document.getElementById('what-if-result').textContent.startsWith('5 nodes left')")
        await tab.click("#what-if-changes button[aria-label='Put back zone=eu-1a:down']")
        await tab.until("document.getElementById('what-if-result').textContent.startsWith('8 nodes left')")
        await tab.click("#what-if-clear")
        await tab.until("!document.querySelectorAll('td.changed').length")
        assert await tab.text("#body") == before
        assert await tab.js("document.getElementById('what-if').hidden")

    use(browser, server, user)


def test_the_picture_shows_where_queries_of_each_zone_go(browser: int, server: Server) -> None:
    async def user(tab: Tab) -> None:
        await tab.until("document.querySelectorAll('#flows path').length")
        assert await tab.text("#picture-title") == "Where queries for shop/kiosk go"  # the worst
        assert await tab.text("#picture-shares") == (
            "By nodes, since few queries were seen: 56 % nowhere, 22 % to the own zone, 22 % to the own node."
        )
        assert await tab.js("document.getElementById('unit').hidden")  # there is nothing to choose
        await tab.click(f"{CACHE} th button")
        await tab.until("document.querySelectorAll('#flows path.farther').length")
        assert await tab.text("#picture-title") == "Where queries for shop/cache go"
        third = "#nodes .zone:nth-child(3)"
        assert (await tab.text(f"{third} .shares")).split("\n") == ["3 nodes ask:", "3 farther"]
        assert await tab.text(f"{third} .alike p") == "○ 3 endpoints by *"
        assert (await tab.text("#destinations")).split("\n\n") == [
            "2 endpoints in eu-1a, asked from 5 nodes",
            "1 endpoint in eu-1b, asked from 4 nodes",
            "0 endpoints in eu-1c",
        ]
        assert await tab.js("document.querySelectorAll('#flows path.nowhere').length") == 0

    use(browser, server, user)


CACHE_DETAILS = "/topology/service?service=shop/cache"


def ask_for_cache(server: Server) -> None:
    """Queries from zones eu-1a and eu-1c and from no node, until the page's server has enough of each in its sample."""

    def has_all() -> bool:
        for source in ("127.10.1.100", "127.10.7.100", "127.99.0.1"):
            server.ask("cache.shop.svc.cluster.local A", source)
        found = json.loads(server.get(CACHE_DETAILS, PAGE)[1])["queries"]
        return found is not None and found["unlocated"] > 0 and [bool(flow["all"]) for flow in found["flows"]] == SEEN

    until(has_all, "a sample of queries from two zones and from outside")


SEEN = [True, False, True]  # of the zones eu-1a, eu-1b and eu-1c


def test_the_picture_counts_queries_once_enough_were_seen_and_nodes_on_request(browser: int, server: Server) -> None:
    ask_for_cache(server)
    number = r"[\d,]+"

    async def user(tab: Tab) -> None:
        await tab.click(f"{CACHE} th button")
        await tab.until("document.getElementById('picture-shares').textContent.startsWith('Of about')")
        shares = await tab.text("#picture-shares")
        assert re.fullmatch(
            rf"Of about {number} queries in the last 5 minutes: \d+ % farther, \d+ % to the own node, "
            r"\d+ % from clients without a node\.",
            shares,
        )
        assert 99 <= sum(map(int, re.findall(r"(\d+) %", shares))) <= 101
        first, second, third = (f"#nodes .zone:nth-child({at}) .shares" for at in (1, 2, 3))
        assert re.fullmatch(rf"about ({number}) queries:\n\1 to the own node", await tab.text(first))
        assert await tab.text(second) == "no queries from 3 nodes"
        assert re.fullmatch(rf"about ({number}) queries:\n\1 farther", await tab.text(third))
        assert re.match(rf"2 endpoints in eu-1a, about {number} queries\n", await tab.text("#destinations"))
        assert await tab.js("document.querySelectorAll('#flows path').length") == 3  # eu-1c asks two zones
        drawn = await tab.js("document.getElementById('flows').innerHTML")
        await tab.js("document.querySelector('#unit input:checked').focus()")
        await tab.press("ArrowRight")
        assert (await tab.text("#picture-shares")).startswith("By nodes: 33 % farther, 33 % to the own zone, 33 % to")
        assert await tab.js("location.hash") == "#service=shop%2Fcache&by=nodes"
        assert (await tab.text(second)).startswith("3 nodes ask:")
        assert await tab.js("document.getElementById('flows').innerHTML") != drawn
        assert ("radio", "nodes") in await tab.controls()
        await tab.press("ArrowLeft")
        assert await tab.js("location.hash") == "#service=shop%2Fcache"
        await tab.click("#nodes button[aria-label='node-a1: as if down']")  # with its clients
        await tab.until(f"document.querySelector('{first}').textContent === 'no queries from 2 nodes'")
        assert re.search(r": \d+ % farther, \d+ % from clients without a node\.", await tab.text("#picture-shares"))

    async def another(tab: Tab) -> None:
        await tab.until("document.getElementById('picture-shares').textContent.startsWith('By nodes: ')")
        assert await tab.js("document.querySelector('#unit input:checked').value") == "nodes"

    use(browser, server, user)
    use(browser, server, another, "#service=shop%2Fcache&by=nodes")


def test_many_queries_are_told_in_three_digits(browser: int, server: Server) -> None:
    ask_for_cache(server)

    async def user(tab: Tab) -> None:
        await tab.until("document.getElementById('picture-shares').textContent.startsWith('Of about')")
        await tab.js(
            "const zone = {zone: 'eu-1a', nodes: 3, all: 12345, nowhere: 11000, own_node: 1345, to: [['eu-1a', 1345]]};"
            "page.detail.queries = {minutes: 5, all: 12345, unlocated: 7, flows: [zone]}; drawPicture();"
        )
        assert await tab.text("#picture-shares") == (
            "Of about 12,400 queries in the last 5 minutes: "
            "89 % nowhere, 11 % to the own node, under 1 % from clients without a node."
        )
        assert (await tab.text("#nodes .shares")).split("\n") == [
            "about 12,300 queries:",
            "11,000 nowhere",
            "1,350 to the own node",
        ]
        await tab.js(
            "Object.assign(page.detail.queries.flows[0], {all: 0, nowhere: 0, own_node: 0, to: []});"
            "page.detail.queries.unlocated = 0; drawPicture();"
        )
        assert await tab.text("#picture-shares") == "No query came from the nodes that are left."

    use(browser, server, user, "#service=shop%2Fcache")


def test_without_any_node_everything_is_lost(browser: int, server: Server) -> None:
    async def user(tab: Tab) -> None:
        for zone, result, asking in (
            ("eu-1a", "6 nodes left", 2),
            ("eu-1b", "3 nodes left", 1),
            ("eu-1c", "No node is left", 0),
        ):
            await tab.click(f"#nodes button[aria-label='zone {zone}: as if down']")
            await tab.until(f"document.getElementById('what-if-result').textContent.startsWith('{result}')")
            await tab.until(f"document.querySelectorAll('#nodes .shares:not(.faint)').length === {asking}")
        assert await tab.text("#what-if-result") == "No node is left: everything is lost. 34 of 34 endpoints are lost."
        assert len((await tab.text("#what-if-worse")).splitlines()) == 8
        await tab.until("document.getElementById('picture-shares').textContent === 'No node is left.'")
        assert await tab.js("document.querySelectorAll('#nodes [aria-pressed=true]').length") == 3

    use(browser, server, user)


def test_the_url_has_all_that_is_shown(browser: int, server: Server) -> None:
    shown = "#service=shop%2Fcache&zone=eu-1c&change=node%3Dnode-b1%3Adown&find=shop"

    async def user(tab: Tab) -> None:
        await tab.fill("#find", "shop")
        await tab.click("#nodes button[aria-label='node-b1: as if down']")
        await tab.until("document.querySelectorAll('td.changed').length")  # the table has moved down
        await tab.click(CACHE_IN_C)
        await tab.until(f"location.hash === '{shown}'")

    async def another(tab: Tab) -> None:
        await tab.until("!document.getElementById('details').hidden")
        assert await tab.text("#details-title") == "shop/cache in eu-1c"
        await tab.until("document.getElementById('what-if-result').textContent.startsWith('8 nodes left')")
        assert await tab.js("document.querySelectorAll('#body tr').length") == 4
        assert await tab.js("location.hash") == shown

    use(browser, server, user)

    async def story() -> None:
        async with opened(browser, f"http://{server.address}:{PAGE}/topology{shown}") as tab:
            await another(tab)
            assert tab.errors == []

    asyncio.run(asyncio.wait_for(story(), 2 * PATIENCE))


def test_a_page_whose_server_is_gone_is_dimmed_and_says_since_when(browser: int, server: Server) -> None:
    async def user(tab: Tab) -> None:
        assert not await tab.js("document.body.classList.contains('dimmed')")
        server.process.kill()
        await tab.until("document.body.classList.contains('dimmed')")
        assert re.fullmatch(r"not live: .*; last news at [\d:]+( [AP]M)?", await tab.text("#live"))
        tab.errors.clear()

    use(browser, server, user)


def test_the_keyboard_alone_reaches_everything(browser: int, server: Server) -> None:
    focus = "document.activeElement.innerText"

    async def user(tab: Tab) -> None:
        await tab.press("Tab")
        assert await tab.js(focus) == "eu-1a"
        for key in ("ArrowRight", "ArrowDown", "Enter"):
            await tab.press(key)
        await tab.until("document.getElementById('what-if-result').textContent.includes('nodes left')")
        assert (await tab.js(focus), await tab.js("document.activeElement.ariaPressed")) == ("node-b1", "true")
        await tab.press("Enter")
        assert await tab.js("document.getElementById('what-if').hidden")
        for _ in range(4):  # the search, the choice, the table
            await tab.press("Tab")
            if await tab.js("document.activeElement.closest('#body') !== null"):
                break
        assert await tab.js(focus) == "shop/kiosk"  # the worst is first
        assert await tab.js("getComputedStyle(document.activeElement).outlineStyle") == "solid"
        for key in (*["ArrowDown"] * 6, "ArrowRight", "End"):
            await tab.press(key)
        assert "shop/cache in eu-1c" in await tab.js(focus)
        await tab.press("ArrowUp")
        assert "data/queue in eu-1c" in await tab.js(focus)
        await tab.press("ArrowDown")
        await tab.press("Enter")
        await tab.until("document.getElementById('explanation').textContent.includes('answer')")
        assert await tab.js("document.activeElement.id") == "details-title"
        await tab.press("Tab")
        await tab.press("Tab")
        assert await tab.js("document.activeElement.id") == "explain-node"
        await tab.press("Escape")
        assert "shop/cache in eu-1c" in await tab.js(focus)
        await tab.press("Tab")  # the table is one stop
        assert await tab.js("document.activeElement.closest('#body') === null")
        await tab.press("Tab", shift=True)
        assert "shop/cache in eu-1c" in await tab.js(focus)

    use(browser, server, user)


def test_a_change_of_the_cluster_appears_and_what_has_the_focus_keeps_it(
    browser: int, server: Server, tmp_path: Path
) -> None:
    async def user(tab: Tab) -> None:
        await tab.js(f'document.querySelector("{CACHE_IN_C}").focus()')
        shop = tmp_path / "cluster/shop.yaml"
        text = shop.read_text()
        shop.write_text(
            text.replace('topodns.io/topology-keys: "kubernetes.io/hostname,', 'topodns.io/topology-keys: "')
        )
        await tab.until(f"document.querySelector(\"{CACHE} .keys\").textContent === 'topology.kubernetes.io/zone, *'")
        assert "shop/cache in eu-1c" in await tab.js("document.activeElement.innerText")
        (tmp_path / "cluster/shop.yaml").unlink()
        await tab.until("document.querySelectorAll('#body tr').length === 4")
        assert (await tab.text("#live")).startswith("● live, changed at ".removeprefix("● "))

    use(browser, server, user)


def test_misses_appear_as_they_happen(browser: int, server: Server) -> None:
    async def user(tab: Tab) -> None:
        assert await tab.text(MISSES) == "0"
        for _ in range(3):
            server.ask("db-near.data.svc.cluster.local A", "127.10.7.100")
        await tab.until(f"document.querySelector(\"{MISSES}\").textContent === '3'")

    use(browser, server, user)


def test_a_page_is_live_again_after_a_reload_of_the_server(browser: int, server: Server, tmp_path: Path) -> None:
    async def user(tab: Tab) -> None:
        corefile = tmp_path / "Corefile"
        corefile.write_text(corefile.read_text().replace("topology {", "topology {\n        on_invalid deny"))
        await asyncio.to_thread(until, lambda: server.lines("Reloading complete"), "the reload")
        nodes = tmp_path / "cluster/nodes.yaml"
        nodes.write_text(nodes.read_text().replace("eu-1c", "eu-1d"))
        await tab.until("document.getElementById('head').textContent.includes('eu-1d')")
        await tab.until(LIVE)

    use(browser, server, user)


def test_names_of_the_cluster_are_text_whatever_they_are(browser: int, server: Server, tmp_path: Path) -> None:
    hostile = "<img src=x onerror=alert(1)>"

    async def user(tab: Tab) -> None:
        shop = tmp_path / "cluster/shop.yaml"
        text = shop.read_text().replace(
            'topodns.io/topology-keys: "kubernetes.io/hostname,', f'topodns.io/topology-keys: "{hostile},'
        )
        shop.write_text(text)
        await tab.until("document.getElementById('body').textContent.includes('onerror')")
        assert await tab.js("document.querySelectorAll('img').length") == 0
        assert hostile in await tab.text(f"{CACHE} .problem")
        await tab.click(f"{CACHE} th button")
        await tab.until("document.getElementById('details-facts').textContent.includes('onerror')")
        assert await tab.js("document.querySelectorAll('img').length") == 0

    use(browser, server, user)


def test_any_name_is_explained_for_any_client_where_the_page_may_show_queries(browser: int, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "config/demo/cluster", tmp_path / "cluster")

    async def story(server: Server) -> None:
        async with opened(browser, f"http://{server.address}:{PAGE}/topology") as tab:
            await tab.until("!document.getElementById('ask').hidden")
            await tab.fill("#ask-client", "127.10.1.100")
            await tab.fill("#ask-name", "db-near.data.svc.cluster.local")
            await tab.press("Enter")
            await tab.until("document.getElementById('ask-answer').textContent.includes('answer')")
            assert "client   127.10.1.100 on node node-a1" in await tab.text("#ask-answer")
            server.ask("db-near.data.svc.cluster.local A", "127.99.0.1")
            await tab.until("document.getElementById('prefixes').textContent.includes('127.99.0.0/24')")

    with serving(tmp_path, COREFILE.replace("HERE:8182", "HERE:8182 queries")) as server:
        asyncio.run(asyncio.wait_for(story(server), 2 * PATIENCE))


LONG = ".".join(["n" * 62] * 4) + "xx"  # 253 octets
ODD = {
    "eu-1a": "constructor", "eu-1b": "__proto__", "eu-1c": "<b>zone</b>",
    "node-a1": "constructor", "node-b1": LONG, "node-c1": "0",
}  # fmt: skip
ODD_KEY = "k\u00f6nig/<b>\u043a\u043b\u044e\u0447</b>"
ODD_CACHE = "#body tr[data-service='shop/cache'] td[data-zone='<b>zone</b>'] button"
WIDE = """
[...document.querySelectorAll("body *")].filter((each) => !each.closest("#table-frame, #picture-frame, pre") &&
  each.getBoundingClientRect().right > window.innerWidth).map((each) => each.outerHTML.slice(0, 80))
"""


def rename_oddly(cluster: Path) -> None:
    """Zones and Nodes get the names of ODD, one Node an empty zone, and one Service keys that are no labels."""
    for file in cluster.iterdir():
        text = file.read_text().replace("kubernetes.io/hostname,topology", f"{ODD_KEY},topology")
        if file.name == "nodes.yaml":
            text = '""'.join(text.rsplit("eu-1c", 1))  # node-c3
        for name, odd in ODD.items():
            text = text.replace(name, f'"{odd}"')
        file.write_text(text)


def test_zones_and_nodes_may_have_any_name(browser: int, server: Server, tmp_path: Path) -> None:
    shown: list[str] = []  # what the URL has

    async def user(tab: Tab) -> None:
        rename_oddly(tmp_path / "cluster")
        await tab.until("document.getElementById('head').textContent.includes('constructor')")
        await tab.until("document.querySelectorAll('#body tr').length === 8")
        heads = (await tab.text("#head")).split("\t")
        assert heads[1:5] == ["no zone", "<b>zone</b>", "__proto__", "constructor"]
        await tab.click(ODD_CACHE)
        await tab.until("document.getElementById('explanation').textContent.includes('on node node-c2')")
        assert ODD_KEY in await tab.text("#explanation")
        await tab.fill("#explain-node", "0")
        await tab.press("Enter")
        await tab.until("document.getElementById('explanation').textContent.includes('on node 0')")
        await tab.until("document.getElementById('picture-about').textContent.startsWith('Keys: none')")
        assert ODD_KEY in await tab.text("#details-facts")
        assert await tab.js("document.querySelectorAll('b').length") == 0
        for width in (1280, 390):
            await tab.resize(width, 800)
            assert await tab.js(WIDE) == []
        for change, left in (
            *(("constructor", 8), ("0", 7), (LONG, 6)),
            *(("zone constructor", 4), ("zone __proto__", 2), ("zone <b>zone</b>", 1)),
        ):
            await tab.click(f"#nodes button[aria-label='{change}: as if down']")
            await tab.until(f"page.detail && page.detail.flows.reduce((sum, flow) => sum + flow.nodes, 0) === {left}")
        await tab.until("document.getElementById('what-if-result').textContent.startsWith('1 node left.')")
        assert await tab.js("document.querySelectorAll('b').length") == 0
        shown.append(await tab.js("location.hash"))

    async def another(tab: Tab) -> None:
        await tab.until("document.getElementById('what-if-result').textContent.startsWith('1 node left.')")
        assert await tab.text("#details-title") == "shop/cache in <b>zone</b>"

    use(browser, server, user)
    use(browser, server, another, shown.pop())


def test_what_is_not_known_is_shown_until_it_is(browser: int, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "config/demo/cluster", tmp_path / "cluster")
    bad = tmp_path / "cluster/bad.yaml"
    bad.write_text("{")

    async def story(server: Server) -> None:
        async with opened(browser, f"http://{server.address}:{PAGE}/topology") as tab:
            await tab.until("document.querySelectorAll('#body tr').length === 8")
            assert "manifest files that cannot be read: 1" in await tab.text("#unknown")
            bad.unlink()
            await tab.until("document.getElementById('unknown').hidden")

    with serving(tmp_path, COREFILE) as server:
        asyncio.run(asyncio.wait_for(story(server), 2 * PATIENCE))


def test_services_are_found_by_name_and_by_gaps(browser: int, server: Server) -> None:
    async def user(tab: Tab) -> None:
        await tab.fill("#find", "CACHE")
        await tab.until("document.querySelectorAll('#body tr').length === 1")
        await tab.fill("#find", "")
        await tab.js(
            "document.getElementById('show').value = 'gaps';"
            "document.getElementById('show').dispatchEvent(new Event('change'))"
        )
        await tab.until("document.querySelectorAll('#body tr').length === 4")
        assert "shop/cache" not in await tab.text("#body")

    use(browser, server, user)


MANY = """
apiVersion: v1
kind: Node
metadata: {{name: far-{0:02}, labels: {{topology.kubernetes.io/zone: far-{0:02}}}}}
---"""


def test_of_very_many_zones_those_with_the_most_nodes_have_columns(
    browser: int, server: Server, tmp_path: Path
) -> None:
    async def user(tab: Tab) -> None:
        assert await tab.js("document.getElementById('zones-note').hidden")
        (tmp_path / "cluster/far.yaml").write_text("".join(map(MANY.format, range(60))))
        await tab.until("document.getElementById('head').textContent.includes('other zones')")
        heads = (await tab.text("#head")).split("\t")
        assert (len(heads), heads[1], heads[50:52]) == (4 + 50 + 1, "eu-1a", ["far-46", "other zones"])
        assert await tab.text("#zones-note") == (
            "The 50 zones with the most nodes have a column each; all others share the last one."
        )
        others = f"{CACHE} td.cell:nth-last-child(4) button"
        assert await tab.js(f'document.querySelector("{others} .unseen").textContent') == (
            "shop/cache in other zones: 0 endpoints, clients on 13 of 13 nodes get one, some from anywhere"
        )
        await tab.click(others)
        await tab.until("document.getElementById('explanation').textContent.includes('far-47')")
        assert await tab.text("#details-title") == "shop/cache in other zones"
        clients = await tab.text("#clients")
        assert ("far-47" in clients, "far-59" in clients, "far-46" in clients) == (True, True, False)
        assert await tab.text("#summary") == (
            "✕ On some nodes clients of 4 of 8 Services with topology keys get no endpoint; 69 nodes."
        )

    use(browser, server, user)


def test_of_very_many_services_few_are_drawn_at_once_and_all_are_counted(browser: int, server: Server) -> None:
    async def user(tab: Tab) -> None:
        await tab.js(
            "const cache = page.rows.get('shop/cache');"
            "for (let at = 0; at < 300; at++) page.rows.set(`z/${at}`, {...cache, id: `z/${at}`});"
            "page.summary.left_out = 7; renderAll()"
        )
        assert " of 4 of 315 Services with topology keys get no endpoint; 9 nodes." in await tab.text("#summary")
        assert await tab.text("#left-out") == "7 Services with better coverage are not shown."
        assert await tab.js("document.querySelectorAll('#body tr').length") == 200
        await tab.click("#more")
        assert await tab.js("document.querySelectorAll('#body tr').length") == 308
        assert await tab.js("document.getElementById('more').hidden")
        await tab.js(
            "page.screens = 1; page.summary.zones = Array.from({length: 50}, (_, at) => `zone-${at}`); renderAll()"
        )
        assert await tab.js("document.querySelectorAll('#body tr').length") == 100

    use(browser, server, user)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_text_can_be_read_in_light_and_dark_and_every_control_has_a_name(
    browser: int, server: Server, scheme: str
) -> None:
    async def user(tab: Tab) -> None:
        await tab.prefer(scheme)
        await tab.click("#nodes button[aria-label='node-b1: as if down']")
        await tab.until("document.querySelectorAll('td.changed').length")
        await tab.click(CACHE_IN_C)
        await tab.until("document.getElementById('explanation').textContent.includes('answer')")
        await tab.until("document.getElementById('endpoints').textContent.includes('Address')")
        light = await tab.js("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        assert light == (scheme == "light")
        found = await tab.js(CONTRAST)
        assert found["looked"] > 50
        assert found["poor"] == []
        controls = await tab.controls()
        assert len(controls) > 30
        assert [role for role, name in controls if not name.strip()] == []
        for selector in ("#services caption", "[role=status]", "html[lang=en]", "#services th[scope=row]"):
            assert await tab.js(f"document.querySelector('{selector}') !== null")

    use(browser, server, user)


def test_on_a_narrow_screen_only_the_table_scrolls_sideways(browser: int, server: Server) -> None:
    async def user(tab: Tab) -> None:
        await tab.resize(390, 800)
        await tab.click(f"{CACHE} th button")
        await tab.until("document.getElementById('endpoints').textContent.includes('127.10.4.30')")
        assert await tab.js(WIDE) == []
        assert await tab.js("document.documentElement.scrollWidth <= window.innerWidth")

    use(browser, server, user)
