"""The Chromium of this machine, and how tests start it: without a window or a network."""

import shutil

NAMES = ["chromium", "chromium-browser", "google-chrome"]
CHROMIUM = next(filter(None, map(shutil.which, NAMES)), None)
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic"]
FLAGS += ["--no-first-run", "--disable-background-networking"]
FLAGS += ["--disable-component-update", "--disable-sync"]
FLAGS += ["--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]
