"""The report in a real browser: sections, controls, no error, nothing loaded, both
themes, no script, print.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import sapwood as sw

pytestmark = pytest.mark.nightly


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {"size": rng.uniform(20, 120, 800), "city": rng.choice(["Bern", "Lyon"], 800)}
    )
    y = np.where(
        X["size"] * 10 + 300 * (X["city"] == "Bern") + rng.normal(0, 90, 800) > 800,
        "dear",
        "cheap",
    )
    path = tmp_path_factory.mktemp("report") / "report.html"
    sw.SapwoodClassifier(n_estimators=30).fit(X[:500], y[:500]).report(
        X[500:], y[500:], path
    )
    return path


def _browser(*arguments: str) -> Any:
    selenium = pytest.importorskip("selenium", reason="selenium drives the browser")
    program = shutil.which("chromium")
    driver = shutil.which("chromedriver")
    if program is None or driver is None:
        pytest.skip(
            "there is no chromium with its driver (Debian: chromium, chromium-driver)"
        )
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    assert selenium
    options = webdriver.ChromeOptions()
    options.binary_location = program
    for one in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--window-size=1200,900",
        *arguments,
    ):
        options.add_argument(one)
    options.set_capability(
        "goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"}
    )
    return webdriver.Chrome(options=options, service=Service(driver))


@pytest.fixture(scope="module")
def browser(page: Path) -> Iterator[Any]:
    driver = _browser()
    driver.get(page.as_uri())
    yield driver
    driver.quit()


def test_no_error_and_nothing_loaded(browser: Any) -> None:
    assert browser.get_log("browser") == []
    asked = [
        entry["message"]
        for entry in browser.get_log("performance")
        if "requestWillBeSent" in entry["message"]
    ]
    assert not [one for one in asked if '"url":"http' in one]


def test_sections_are_there_and_links_lead_to_them(browser: Any) -> None:
    links = browser.find_elements("css selector", "nav a")
    assert len(links) == 10
    for link in links:
        target = browser.find_element(
            "id", link.get_attribute("href").partition("#")[2]
        )
        assert target.find_element("tag name", "h2").text
    sizes = browser.execute_script(
        "return [...document.querySelectorAll('svg')].map(s => s.getBoundingClientRect().width)"
    )
    assert len(sizes) > 8
    assert browser.execute_script(
        "return document.documentElement.scrollWidth <= window.innerWidth"
    )


@pytest.mark.parametrize("what", ["row", "tree"])
def test_pickers_show_one_at_a_time(browser: Any, what: str) -> None:
    picker = browser.find_element("css selector", f".picker[data-what={what}]")
    blocks = picker.find_elements("css selector", "details.pick")
    shown = [block.is_displayed() for block in blocks]
    assert shown[0] and sum(shown) == 1 and len(shown) > 3
    picker.find_element("css selector", "button[aria-label^=Next]").click()
    assert [block.is_displayed() for block in blocks].index(True) == 1
    browser.execute_script(
        "const s = arguments[0].querySelector('select'); s.value = '2'; s.dispatchEvent(new Event('change'))",
        picker,
    )
    assert [block.is_displayed() for block in blocks].index(True) == 2
    for _ in range(3):
        picker.find_element("css selector", "button[aria-label^=Previous]").click()
    assert blocks[-1].is_displayed()  # round and round


def test_light_and_dark(browser: Any) -> None:
    def color() -> str:
        return str(
            browser.execute_script(
                "return getComputedStyle(document.body).backgroundColor"
            )
        )

    before = color()
    browser.find_element("id", "theme").click()
    after = color()
    browser.find_element("id", "theme").click()
    assert before != after and color() == before


def test_it_prints_on_white(browser: Any) -> None:
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    color = browser.execute_script(
        "return getComputedStyle(document.body).backgroundColor"
    )
    hidden = browser.execute_script(
        "return getComputedStyle(document.querySelector('nav')).display"
    )
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    assert color == "rgb(255, 255, 255)" and hidden == "none"
    assert len(browser.execute_cdp_cmd("Page.printToPDF", {})["data"]) > 10_000


def test_without_javascript_everything_can_be_opened(page: Path) -> None:
    driver = _browser("--blink-settings=scriptEnabled=false")
    try:
        driver.get(page.as_uri())
        details = driver.find_elements("css selector", ".picker details.pick")
        assert len(details) > 6 and all(
            one.find_element("tag name", "summary").is_displayed() for one in details
        )
        assert not driver.find_elements("css selector", ".chooser")
        assert not driver.find_element("id", "theme").is_displayed()
    finally:
        driver.quit()
