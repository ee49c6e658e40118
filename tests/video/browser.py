"""A headless Chromium, driven over its DevTools pipe: no server, no port, no further package."""

import base64
import itertools
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_FLAGS = (
    "--headless=new", "--no-sandbox", "--no-first-run", "--disable-dev-shm-usage", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-extensions", "--hide-scrollbars", "--mute-audio",
    "--force-color-profile=srgb", "--remote-debugging-pipe", "--host-resolver-rules=MAP * ~NOTFOUND",
)  # fmt: skip
_SOFTWARE_GL = ("--use-angle=swiftshader", "--enable-unsafe-swiftshader")
_NO_GL = ("--disable-gpu", "--disable-webgl", "--disable-webgl2", "--disable-3d-apis", "--disable-software-rasterizer")
_TIMEOUT = 60.0  # s


def find_browser() -> str | None:
    """Path of a Chromium, None if there is none."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


def require_browser() -> None:
    """Skip the test where there is no browser; fail it where the environment says CI."""
    if find_browser() is None:
        missing = "no browser: apt-get install chromium"
        if os.environ.get("CI"):
            pytest.fail(missing)
        pytest.skip(missing)


class Browser:
    """One browser with one page. Keeps the address of every request that the page makes."""

    def __init__(self, folder: Path, *, has_webgl: bool = True, size: tuple[int, int] = (960, 600)) -> None:
        program = find_browser()
        assert program is not None, f"no browser: install one of {', '.join(NAMES)}"
        self.requests: list[str] = []
        self.complaints: list[str] = []
        """What the page wrote to its console as an error, and exceptions in it."""
        self._ids, self._answers, self._buffer = itertools.count(1), dict[int, Any](), b""
        child_in, self._to = os.pipe()
        self._from, child_out = os.pipe()
        command = [
            program, *_FLAGS, *(_SOFTWARE_GL if has_webgl else _NO_GL), f"--user-data-dir={folder}",
            f"--window-size={size[0]},{size[1]}", "about:blank",
        ]  # fmt: skip
        # the browser reads from its descriptor 3 and writes to its 4
        shell = f'exec 3<&{child_in} 4>&{child_out}; exec "$@"'
        self._process = subprocess.Popen(
            ["/bin/bash", "-c", shell, "browser", *command], pass_fds=(child_in, child_out), stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, env={**os.environ, "HOME": str(folder)},
        )  # fmt: skip
        os.close(child_in)
        os.close(child_out)
        self._session: str | None = None
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        width, height = size
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.send(f"{domain}.enable")

    def go_offline(self) -> None:
        self.send("Network.emulateNetworkConditions", offline=True, latency=0, downloadThroughput=0, uploadThroughput=0)

    def open(self, page: Path, words: str = "") -> None:
        """Load a page from the disk."""
        self.send("Page.navigate", url="about:blank")
        self.requests.clear()
        self.complaints.clear()
        self.send("Page.navigate", url=page.resolve().as_uri() + words)
        self.wait_for("document.readyState === 'complete'")

    def evaluate(self, script: str) -> Any:
        """The value of an expression in the page; a promise is waited for."""
        answer = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, (script, answer["exceptionDetails"])
        return answer["result"].get("value")

    def wait_for(self, script: str) -> None:
        """Wait until an expression in the page is true."""
        end = time.monotonic() + _TIMEOUT
        while not self.evaluate(script):
            assert time.monotonic() < end, f"still not true: {script}; {self.complaints}"
            time.sleep(0.02)

    def screenshot(self) -> NDArray[np.uint8]:
        """(H, W, 3) RGB."""
        data = base64.b64decode(self.send("Page.captureScreenshot", format="png")["data"])
        picture = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)
        return np.ascontiguousarray(picture[..., ::-1])

    def press(self, key: str) -> None:
        """A key of the keyboard, by its name in the DOM."""
        text = {"text": key} if len(key) == 1 else {}
        self.send("Input.dispatchKeyEvent", type="keyDown", key=key, **text)
        self.send("Input.dispatchKeyEvent", type="keyUp", key=key)

    def drag(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        """The left mouse button from one place to another (pixels)."""
        mouse = {"button": "left", "clickCount": 1}
        self.send("Input.dispatchMouseEvent", type="mousePressed", x=start[0], y=start[1], **mouse)
        self.send("Input.dispatchMouseEvent", type="mouseMoved", x=end[0], y=end[1], buttons=1, **mouse)
        self.send("Input.dispatchMouseEvent", type="mouseReleased", x=end[0], y=end[1], **mouse)

    def close(self) -> None:
        self._session = None
        self.send("Browser.close")
        self._process.wait(_TIMEOUT)
        os.close(self._to)
        os.close(self._from)

    def send(self, method: str, **params: Any) -> dict[str, Any]:
        """Call a method of the DevTools protocol and wait for its answer."""
        number = next(self._ids)
        session = {"sessionId": self._session} if self._session else {}
        os.write(self._to, json.dumps({"id": number, "method": method, "params": params, **session}).encode() + b"\0")
        end = time.monotonic() + _TIMEOUT
        while number not in self._answers:
            self._read(end - time.monotonic(), method)
        answer = self._answers.pop(number)
        assert "error" not in answer, (method, answer["error"])
        result: dict[str, Any] = answer["result"]
        return result

    def _read(self, seconds: float, method: str) -> None:
        ready, _, _ = select.select([self._from], [], [], max(seconds, 0.0))
        assert ready, f"the browser doesn't answer {method}"
        data = os.read(self._from, 1 << 20)
        assert data, f"the browser has ended, code {self._process.poll()}"
        *messages, self._buffer = (self._buffer + data).split(b"\0")
        for message in map(json.loads, messages):
            if "id" in message:
                self._answers[message["id"]] = message
            elif message["method"] == "Network.requestWillBeSent":
                self.requests.append(message["params"]["request"]["url"])
            elif message["method"] == "Runtime.exceptionThrown":
                self.complaints.append(json.dumps(message["params"]["exceptionDetails"])[:2000])
            elif message["method"] in ("Runtime.consoleAPICalled", "Log.entryAdded"):
                entry = message["params"].get("entry", message["params"])
                if entry.get("level", entry.get("type")) in ("error", "warning"):
                    self.complaints.append(json.dumps(entry)[:2000])
