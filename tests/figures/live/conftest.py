import pytest
from browser import CHROMIUM, FLAGS


@pytest.fixture(scope="module")
def blank():
    """A blank page, in which modules of live figures are loaded and called."""
    if CHROMIUM is None:
        pytest.skip(
            "No Chromium on this machine: what live figures compute was not tested. "
            "On Debian: apt-get install chromium"
        )
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser.new_page()
        browser.close()
