"""The Chromium of this machine, and how tests start it: without a window or a network."""

import shutil
from contextlib import contextmanager

NAMES = ["chromium", "chromium-browser", "google-chrome"]
CHROMIUM = next(filter(None, map(shutil.which, NAMES)), None)
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic"]
FLAGS += ["--no-first-run", "--disable-background-networking"]
FLAGS += ["--disable-component-update", "--disable-sync"]
FLAGS += ["--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]


@contextmanager
def launched():
    """Start Chromium, and end it."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()
