"""The page in tests: a daemon in this process, `memctl web` as a process, a Chromium in a thread of its own."""

import json
import os
import queue
import shutil
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable
from concurrent.futures import Future
from functools import cached_property
from pathlib import Path
from typing import Any

from shelf import NOON

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
ARGUMENTS = ["--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
ARGUMENTS += ["--disable-component-update", "--disable-sync", *(["--no-sandbox"] if os.geteuid() == 0 else [])]

LIMIT_MS = 30_000  # a machine may be busy


def expect(shown: Any) -> Any:
    """Return the assertions about what a page shows. Where Playwright is not installed no test comes this far."""
    from playwright.sync_api import expect

    return expect(shown)


class Served:
    """`memctl web` for a socket; `base` is its address, `opening` the one that opens it once."""

    def __init__(self, socket: Path, *words: str) -> None:
        command = [sys.executable, "-m", "memoryd.client.programs.memctl", "web", "--no-open", "--json", *words]
        self.child = subprocess.Popen(
            [*command, "--socket", str(socket), "--no-autostart"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "MEMORYD_DATA_DIR": str(socket.parent / "data")},
        )
        self.socket = socket
        assert self.child.stdout is not None
        text = b""
        while not text.endswith(b"}\n"):
            line = self.child.stdout.readline()
            assert line, self.child.stderr and self.child.stderr.read().decode()
            text += line
        said = json.loads(text)
        self.base, self.opening = said["address"], said["url"]
        self.port = int(self.base.rpartition(":")[2])

    @cached_property
    def token(self) -> str:
        """The token that the code is exchanged for, as the page does."""
        code = self.opening.partition("#open=")[2]
        headers = {"content-type": "application/json", "origin": self.base}
        asked = urllib.request.Request(f"{self.base}/open", json.dumps(code).encode(), headers)
        with urllib.request.urlopen(asked, timeout=10) as answer:
            return str(json.load(answer)["token"])

    def stop(self) -> int:
        """End it as systemd does; return the exit code."""
        self.child.terminate()
        code = self.child.wait(60)
        for stream in (self.child.stdout, self.child.stderr):
            if stream:
                stream.close()
        return code


class Person:
    """What a person does in a tab: `actions` counts keys, clicks, and texts that are sent by Enter."""

    def __init__(self, page: Any) -> None:
        self.page, self.actions = page, 0

    def press(self, key: str) -> None:
        """Press a key."""
        self.actions += 1
        self.page.keyboard.press(key)

    def click(self, target: Any) -> None:
        """Click on something."""
        self.actions += 1
        target.click()

    def enter(self, field: Any, text: str) -> None:
        """Write a text into a field and send it."""
        self.actions += 1
        field.fill(text)
        field.press("Enter")


class Browser:
    """Chromium, driven from a thread of its own: Playwright's event loop must not be the tests'."""

    def __init__(self) -> None:
        self._work: queue.Queue[tuple[Callable[[Any], Any], Future[Any]] | None] = queue.Queue()
        self._thread = threading.Thread(target=self._run, name="chromium")
        self._thread.start()

    def do(self, act: Callable[[Any], Any]) -> Any:
        """Return what `act(browser)` returns, run in the thread."""
        done: Future[Any] = Future()
        self._work.put((act, done))
        return done.result(1500)

    def close(self) -> None:
        self._work.put(None)
        self._thread.join(30)

    def _run(self) -> None:
        from playwright.sync_api import expect, sync_playwright

        expect.set_options(timeout=LIMIT_MS)
        with sync_playwright() as driver:
            browser = driver.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
            while (asked := self._work.get()) is not None:
                act, done = asked
                try:
                    done.set_result(act(browser))
                except BaseException as error:
                    done.set_exception(error)
            browser.close()


class Tab:
    """One signed-in tab in a browser context of its own; what it logs as an error is kept."""

    def __init__(self, browser: Browser, served: Served, *, real_time: bool = False, **options: Any) -> None:
        self._real_time = real_time
        self._browser, self.errors = browser, list[str]()
        self.page = browser.do(lambda chromium: self._open(chromium, served, options))

    def _open(self, chromium: Any, served: Served, options: dict[str, Any]) -> Any:
        self.context = chromium.new_context(
            **{"viewport": {"width": 1280, "height": 800}, "timezone_id": "UTC", **options}
        )
        page = self.context.new_page()
        self.watch(page)
        if not self._real_time:
            page.clock.set_fixed_time(NOON)
        page.goto(served.opening)
        page.wait_for_selector("nav")
        return page

    def watch(self, page: Any) -> None:
        """Keep what a page of this context logs as an error."""
        page.on("console", lambda said: self.errors.append(said.text) if said.type == "error" else None)
        page.on("pageerror", lambda error: self.errors.append(str(error)))

    def look(self, act: Callable[[Any], Any]) -> Any:
        """Return what `act(page)` returns, run in Chromium's thread."""
        return self._browser.do(lambda _: act(self.page))

    def close(self) -> None:
        self._browser.do(lambda _: self.context.close())
