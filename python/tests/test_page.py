"""The page of a fleet in a browser: it says what was put in, fetches nothing, and runs nothing but its script."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

import fleet_maker
from ipcmark.fleet.dataset import Dataset
from ipcmark.fleet.report import page as page_of
from ipcmark.invalid import Invalid
from viewing import browser as open_browser

HOSTILE = "<img src=x onerror=alert(1)></script><script>alert(2)</script>"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with open_browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[fleet_maker.MadeFleet, Path]:
    """A fleet with a hostile name in it, and its page."""
    fleet = fleet_maker.make(40, 60, seed=2)
    fleet.cases[3] = HOSTILE
    directory = tmp_path_factory.mktemp("fleet")
    file = directory / "page.html"
    file.write_text(page_of(fleet_maker.write(fleet, directory / "data"), None, "ipcmark-fleet report 'a b'"))
    return fleet, file


def opened(browser: Browser, file: Path, width: int) -> tuple[Page, list[str]]:
    """The page, and all that went wrong on it or was fetched."""
    wrong: list[str] = []
    page = browser.new_page(viewport={"width": width, "height": 900})
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    page.on("request", lambda request: None if request.url.startswith("file:") else wrong.append(request.url))
    page.on("dialog", lambda dialog: wrong.append(dialog.message))
    page.goto(file.as_uri())
    return page, wrong


def test_the_page_names_what_was_put_in(browser: Browser, made: tuple[fleet_maker.MadeFleet, Path]) -> None:
    fleet, file = made
    page, wrong = opened(browser, file, 1300)
    outliers = page.locator("#outliers").inner_text()
    for host in fleet.slow_hosts:
        row = page.locator("#outliers tr", has_text=host).inner_text()
        assert "differs" in row
        assert "governor is powersave" in row
    for host in {host for host, _ in fleet.slow_cells}:
        assert host in outliers
    assert "transparent_huge_pages is always" in outliers
    assert fleet.slow_kernel in page.locator("#groups").inner_text()
    host, case = min(fleet.slow_cells)
    page.locator("#host").fill(host)
    page.locator("#host").dispatch_event("change")
    assert "differs" in page.locator("#of-host tr", has_text=case).first.inner_text()
    page.locator("#case").fill(case)
    page.locator("#case").dispatch_event("change")
    assert "differs" in page.locator("#of-case tr", has_text=host).first.inner_text()
    page.locator("#map").click(position={"x": 5, "y": 5})
    page.locator("#theme").click()
    page.locator("#cases thead button").nth(1).click()
    assert wrong == []


@pytest.mark.parametrize("width", [360, 1300])
def test_nothing_is_wider_than_the_window(
    browser: Browser, made: tuple[fleet_maker.MadeFleet, Path], width: int
) -> None:
    page, wrong = opened(browser, made[1], width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert wrong == []


def test_a_page_of_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="holds no results of a fleet"):
        page_of(Dataset(tmp_path), None, "")
    fleet_maker.write(fleet_maker.make(2, 3), tmp_path)
    with pytest.raises(Invalid, match="no runs of the suite 'other'\n  there are: default"):
        page_of(Dataset(tmp_path), "other", "")
