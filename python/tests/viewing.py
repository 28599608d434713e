"""A headless Chromium: the system's own, driven by Playwright."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, sync_playwright

from conftest import missing

NAMES = ["chromium", "chromium-browser", "google-chrome"]


@contextmanager
def browser() -> Iterator[Browser]:
    """A browser while the block lasts."""
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        missing("chromium", "the page of a fleet in a browser")
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        yield opened
        opened.close()
