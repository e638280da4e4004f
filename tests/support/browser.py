"""Chromium without a screen, driven over its DevTools protocol."""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import aiohttp
import pytest

T = TypeVar("T")

#: How the reason begins for which tests are skipped where there is no browser.
MISSING_BROWSER = "browser: "
#: Seconds. Far more than anything here takes; reached only if something is broken.
PATIENCE = 60.0
_LISTENING = re.compile(r"DevTools listening on (ws://\S+)")
_NAMES = ("chromium", "chromium-browser", "google-chrome")
#: Resolves when the expression is true, which is looked at whenever the document changes.
_UNTIL = """new Promise((resolve) => {
  let watcher = null;
  const look = () => {
    const value = (EXPRESSION);
    if (!value) return false;
    watcher?.disconnect();
    resolve(value);
    return true;
  };
  if (look()) return;
  watcher = new MutationObserver(look);
  watcher.observe(document, {subtree: true, childList: true, attributes: true, characterData: true});
})"""
_KEYS = {
    "Enter": ("Enter", 13, "\r"),
    "Tab": ("Tab", 9, ""),
    "Escape": ("Escape", 27, ""),
    "ArrowRight": ("ArrowRight", 39, ""),
    "ArrowDown": ("ArrowDown", 40, ""),
}


def find_browser() -> str | None:
    return next(filter(None, map(shutil.which, _NAMES)), None)


class Tab:
    """One page. What it logs and asks for is kept."""

    def __init__(self, browser: Browser, session: str) -> None:
        self._browser = browser
        self._session = session
        #: Errors and warnings of the console, and exceptions that nobody caught.
        self.errors: list[str] = []
        #: Addresses that were asked for.
        self.requests: list[str] = []

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        return self._browser.run(self._browser.send(method, parameters, self._session))

    def open(self, url: str) -> None:
        self.call("Page.navigate", url=url)
        self.until("document.readyState === 'complete'")

    def evaluate(self, expression: str) -> Any:
        found = self.call(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in found:
            raise AssertionError(json.dumps(found["exceptionDetails"])[:2000])
        return found["result"].get("value")

    def until(self, expression: str) -> Any:
        """Waits until the expression is true, and returns its value."""
        try:
            return self.evaluate(_UNTIL.replace("EXPRESSION", expression))
        except TimeoutError:
            text = self.evaluate("document.body.innerText")
            raise AssertionError(f"never true: {expression}\n{self.errors}\n{text}") from None

    def text(self, selector: str) -> str:
        return str(self.evaluate(f"document.querySelector({json.dumps(selector)}).innerText"))

    def until_text(self, selector: str, part: str) -> None:
        self.until(
            f"document.querySelector({json.dumps(selector)})?.innerText.includes({json.dumps(part)})"
        )

    def click(self, selector: str) -> None:
        self.evaluate(f"document.querySelector({json.dumps(selector)}).click()")

    def type(self, text: str) -> None:
        """Into whatever has the focus."""
        self.call("Input.insertText", text=text)

    def press(self, key: str) -> None:
        code, number, text = _KEYS[key]
        known = {"key": key, "code": code, "windowsVirtualKeyCode": number}
        down = "keyDown" if text else "rawKeyDown"
        self.call("Input.dispatchKeyEvent", type=down, text=text, **known)
        self.call("Input.dispatchKeyEvent", type="keyUp", **known)

    def look_like(self, width: int, height: int, **media: str) -> None:
        """A window of this size, and what its user prefers: `prefers_color_scheme="dark"`."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        features = [
            {"name": name.replace("_", "-"), "value": value} for name, value in media.items()
        ]
        self.call("Emulation.setEmulatedMedia", features=features)

    def screenshot(self, *, whole: bool = False) -> bytes:
        found = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        return base64.b64decode(found["data"])

    def heard(self, method: str, parameters: dict[str, Any]) -> None:
        match method:
            case "Network.requestWillBeSent":
                self.requests.append(parameters["request"]["url"])
            case "Runtime.exceptionThrown":
                self.errors.append(json.dumps(parameters["exceptionDetails"]))
            case "Runtime.consoleAPICalled" if parameters["type"] in ("error", "warning", "assert"):
                self.errors.append(json.dumps(parameters["args"]))
            case "Log.entryAdded" if parameters["entry"]["level"] in ("error", "warning"):
                self.errors.append(
                    f"{parameters['entry']['text']} {parameters['entry'].get('url')}"
                )


class Browser:
    def __init__(self, program: str) -> None:
        self._runner = asyncio.Runner()
        self._folder = tempfile.TemporaryDirectory(
            prefix="argosy-browser-", ignore_cleanup_errors=True
        )
        self._process = subprocess.Popen(
            [
                program,
                "--headless=new",
                # The page is our own, and containers often have no namespaces for a sandbox.
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
                "--no-first-run",
                "--hide-scrollbars",
                "--remote-debugging-port=0",
                f"--user-data-dir={self._folder.name}",
                "about:blank",
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._numbers = itertools.count(1)
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._tabs: dict[str, Tab] = {}
        try:
            self.run(self._connect(self._address()))
        except BaseException:
            self.close()
            raise

    def _address(self) -> str:
        assert self._process.stderr is not None
        said = []
        for line in self._process.stderr:
            if found := _LISTENING.search(line):
                return found[1]
            said.append(line)
        raise AssertionError("Chromium did not start: " + "".join(said))

    def run(self, task: Coroutine[Any, Any, T]) -> T:
        async def bounded() -> T:
            async with asyncio.timeout(PATIENCE):
                return await task

        return self._runner.run(bounded())

    async def _connect(self, address: str) -> None:
        self._client = aiohttp.ClientSession()
        self._socket = await self._client.ws_connect(address, max_msg_size=0)
        self._listening = asyncio.create_task(self._listen())

    async def _listen(self) -> None:
        async for message in self._socket:
            document = json.loads(message.data)
            if "id" in document:
                waiting = self._answers.pop(document["id"], None)
                if waiting is not None and not waiting.done():
                    waiting.set_result(document)
            elif tab := self._tabs.get(document.get("sessionId", "")):
                tab.heard(document["method"], document.get("params", {}))

    async def send(
        self, method: str, parameters: dict[str, Any], session: str | None = None
    ) -> dict[str, Any]:
        number = next(self._numbers)
        self._answers[number] = answer = asyncio.get_running_loop().create_future()
        document: dict[str, Any] = {"id": number, "method": method, "params": parameters}
        await self._socket.send_json(document | ({"sessionId": session} if session else {}))
        found = await answer
        if "error" in found:
            raise AssertionError(f"{method}: {found['error']}")
        result: dict[str, Any] = found["result"]
        return result

    def tab(self) -> Tab:
        """A page of its own, which shares no storage with others."""
        context = self.run(self.send("Target.createBrowserContext", {}))["browserContextId"]
        made = self.run(
            self.send("Target.createTarget", {"url": "about:blank", "browserContextId": context})
        )
        attached = self.run(
            self.send("Target.attachToTarget", {"targetId": made["targetId"], "flatten": True})
        )
        tab = self._tabs[attached["sessionId"]] = Tab(self, attached["sessionId"])
        for domain in ("Runtime", "Log", "Network", "Page"):
            tab.call(f"{domain}.enable")
        return tab

    def close(self) -> None:
        async def leave() -> None:
            if hasattr(self, "_socket"):
                self._listening.cancel()
                await self._socket.close()
                await self._client.close()

        try:
            self.run(leave())
        finally:
            self._runner.close()
            # Its helpers are of the same group.
            os.killpg(self._process.pid, signal.SIGKILL)
            # One that has left the group may keep standard error open: nobody waits for its end.
            self._process.wait(PATIENCE)
            assert self._process.stderr is not None
            self._process.stderr.close()
            self._folder.cleanup()


@contextmanager
def browser(program: str) -> Iterator[Browser]:
    started = Browser(program)
    try:
        yield started
    finally:
        started.close()


def skip_without_browser() -> str:
    """The program; without it, tests of the page are skipped."""
    found = find_browser()
    if found is None:
        pytest.skip(f"{MISSING_BROWSER}none of {', '.join(_NAMES)} is installed")
    return found
