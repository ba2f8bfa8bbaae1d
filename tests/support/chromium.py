"""Debian's Chromium without a window, driven over the DevTools protocol as a user does: mouse, keyboard, and eyes.

https://chromedevtools.github.io/devtools-protocol/ (tip of tree) has the methods and events.
"""

import asyncio
import base64
import json
import os
import shutil
import signal
import subprocess
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from urllib.parse import urlsplit

import aiohttp

from tests.support.event_loops import PATIENCE
from tests.support.server_process import until

PROGRAM: Final = shutil.which("chromium")
HOW_TO: Final = "apt install --no-install-recommends chromium"

_FLAGS: Final = (
    *("--headless=new", "--remote-debugging-port=0", "--no-first-run", "--no-default-browser-check", "--disable-gpu"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions"),
    *("--disable-dev-shm-usage", "--mute-audio", "--no-proxy-server", "--force-device-scale-factor=1"),
    "--no-sandbox",  # tests may run as root, where Chromium has none
)
_KEYS: Final = {
    **{
        name: (code, name) for name, code in (("ArrowLeft", 37), ("ArrowUp", 38), ("ArrowRight", 39), ("ArrowDown", 40))
    },
    **{name: (code, name) for name, code in (("Tab", 9), ("Escape", 27), ("End", 35), ("Home", 36))},
    "Enter": (13, "Enter"),
}
_SHIFT: Final = 8


class Tab:
    """One tab. `requests`, `errors`: URLs asked for, and exceptions, console errors and violations of its policy."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.requests: list[str] = []
        self.errors: list[str] = []
        self._socket = socket
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._number = 0
        self._loaded = asyncio.Event()
        self._reading = asyncio.create_task(self._read(), name="chromium")

    async def call(self, method: str, **parameters: object) -> Any:
        """The result of a method of the protocol."""
        self._number += 1
        waiting = self._waiting[self._number] = asyncio.get_running_loop().create_future()
        await self._socket.send_json({"id": self._number, "method": method, "params": parameters})
        async with asyncio.timeout(PATIENCE):
            return await waiting

    async def open(self, url: str) -> None:
        for domain in ("Page", "Network", "Runtime", "Log", "Accessibility"):
            await self.call(f"{domain}.enable")
        self._loaded.clear()
        await self.call("Page.navigate", url=url)
        async with asyncio.timeout(PATIENCE):
            await self._loaded.wait()

    async def js(self, expression: str) -> Any:
        """The value of a JavaScript expression, as JSON has it."""
        found = await self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    async def until(self, condition: str, patience: float = PATIENCE) -> None:
        """Wait for a JavaScript condition."""
        found = await self.js(
            f"""new Promise((done) => {{
              const end = Date.now() + {1000 * patience};
              const look = () => ({condition}) ? done(true) : Date.now() > end ? done(false) : setTimeout(look, 50);
              look();
            }})"""
        )
        if not found:
            text = await self.js("document.body.innerText")
            raise AssertionError(f"not within {patience:g} s: {condition}; errors {self.errors}; the page:\n{text}")

    async def text(self, selector: str) -> str:
        """What a user sees of the first element that a CSS selector finds."""
        return str(await self.js(f"document.querySelector({json.dumps(selector)}).innerText"))

    async def click(self, selector: str) -> None:
        """Click the middle of the first element that a CSS selector finds."""
        box = await self.js(
            f"""(() => {{
              const found = document.querySelector({json.dumps(selector)});
              found.scrollIntoView({{block: "center"}});
              const box = found.getBoundingClientRect();
              return [box.x + box.width / 2, box.y + box.height / 2];
            }})()"""
        )
        for kind in ("mousePressed", "mouseReleased"):
            await self.call("Input.dispatchMouseEvent", type=kind, x=box[0], y=box[1], button="left", clickCount=1)

    async def press(self, key: str, shift: bool = False) -> None:
        code, name = _KEYS[key]
        more: Mapping[str, object] = {"text": "\r"} if key == "Enter" else {}
        common = {"key": name, "code": name, "windowsVirtualKeyCode": code, "modifiers": _SHIFT if shift else 0}
        await self.call("Input.dispatchKeyEvent", type="keyDown", **common, **more)
        await self.call("Input.dispatchKeyEvent", type="keyUp", **common)

    async def fill(self, selector: str, text: str) -> None:
        """Replace the text of a field by typing."""
        await self.click(selector)
        await self.js(f"document.querySelector({json.dumps(selector)}).select()")
        await self.call("Input.insertText", text=text)

    async def prefer(self, scheme: str) -> None:
        """light or dark."""
        feature = {"name": "prefers-color-scheme", "value": scheme}
        await self.call("Emulation.setEmulatedMedia", features=[feature])

    async def resize(self, width: int, height: int) -> None:
        await self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False
        )

    async def controls(self) -> list[tuple[str, str]]:
        """(role, name) of each control, as a screen reader has them."""
        roles = {"button", "textbox", "searchbox", "combobox", "link", "listbox", "checkbox", "radio"}
        nodes = (await self.call("Accessibility.getFullAXTree"))["nodes"]
        shown = [node for node in nodes if not node.get("ignored")]
        named = [(node["role"]["value"], node.get("name", {}).get("value", "")) for node in shown]
        return [(role, name) for role, name in named if role in roles]

    async def screenshot(self) -> bytes:
        """What is on the screen now, as a PNG."""
        return base64.b64decode((await self.call("Page.captureScreenshot", format="png"))["data"])

    async def close(self) -> None:
        self._reading.cancel()
        with suppress(asyncio.CancelledError):
            await self._reading

    async def _read(self) -> None:
        async for message in self._socket:
            event = json.loads(message.data)
            if "id" in event:
                waiting = self._waiting.pop(event["id"])
                if "error" in event:
                    waiting.set_exception(AssertionError(event["error"]))
                else:
                    waiting.set_result(event["result"])
            else:
                self._note(event["method"], event["params"])

    def _note(self, method: str, parameters: Any) -> None:
        if method == "Page.loadEventFired":
            self._loaded.set()
        elif method == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.errors.append(str(parameters["exceptionDetails"]))
        elif method == "Log.entryAdded" and parameters["entry"]["level"] == "error":
            self.errors.append(parameters["entry"]["text"])
        elif method == "Runtime.consoleAPICalled" and parameters["type"] == "error":
            self.errors.append(str(parameters["args"]))

    def hosts(self) -> set[str]:
        """The hosts of all requests but `data:` URLs."""
        return {urlsplit(url).netloc for url in self.requests if not url.startswith("data:")}


@contextmanager
def chromium() -> Iterator[int]:
    """The port of the protocol of a browser with a profile of its own."""
    assert PROGRAM is not None
    # A process of Chromium that outlives its parent for a moment may still write into the profile.
    with TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True) as profile:
        command = (PROGRAM, *_FLAGS, f"--user-data-dir={profile}", "about:blank")
        environment = {**os.environ, "HOME": profile}
        quiet = subprocess.DEVNULL
        process = subprocess.Popen(
            command, stdin=quiet, stdout=quiet, stderr=quiet, env=environment, start_new_session=True
        )
        written = Path(profile) / "DevToolsActivePort"  # the port and a path, once it listens
        try:
            until(lambda: written.exists() and written.read_text().count("\n"), "a port of Chromium")
            yield int(written.read_text().splitlines()[0])
        finally:
            process.terminate()
            process.wait()
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


@asynccontextmanager
async def opened(port: int, url: str) -> AsyncIterator[Tab]:
    """A new tab at this URL in the browser with this port."""
    base = f"http://127.0.0.1:{port}/json"
    async with aiohttp.ClientSession() as session:
        async with session.put(f"{base}/new?about:blank") as response:
            target = await response.json()
        async with session.ws_connect(target["webSocketDebuggerUrl"], max_msg_size=0) as socket:
            tab = Tab(socket)
            try:
                await tab.open(url)
                yield tab
            finally:
                await tab.close()
        async with session.get(f"{base}/close/{target['id']}"):
            pass
