import matplotlib.pyplot as plt
import pytest
from book_live import HOLDER, html
from browser import CHROMIUM, launched

from dlcore.figures.live import as_script, live, stylesheet


@pytest.fixture(scope="module")
def chromium():
    """A browser without a window."""
    if CHROMIUM is None:
        pytest.skip(
            "No Chromium on this machine: what live figures compute was not tested. "
            "On Debian: apt-get install chromium"
        )
    with launched() as browser:
        yield browser


@pytest.fixture(scope="module")
def blank(chromium):
    """A blank page, in which modules of live figures are loaded and called."""
    return chromium.new_page()


@pytest.fixture
def show(chromium, tmp_path, pytestconfig):
    """Show a figure on a page of its own, from a folder; the page must stay quiet."""
    pages, complaints = [], []

    def open_page(figure, size=(1300, 900), touch=False, **data):
        def still(**data):
            """A still."""
            return plt.figure(figsize=(1, 1))

        description = live(figure, still, **data).description()
        book = pytestconfig.rootpath / "book" / "_static"
        (tmp_path / "live").mkdir(exist_ok=True)
        (tmp_path / "live" / f"{figure}.js").write_text(as_script(figure, HOLDER))
        scripts = [(book / f"{name}.js").read_text() for name in ("address", "live")]
        text = (
            '<!doctype html><html lang="en"><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width">'
            f"<title>{figure}</title><style>{stylesheet()}</style>"
            f"<main>{html(description, '', '.')}</main>"
            f"<script>{''.join(scripts)}</script></html>"
        )
        (tmp_path / "page.html").write_text(text)
        width, height = size
        view = {"width": width, "height": height}
        page = chromium.new_page(viewport=view, has_touch=touch)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda message: complaints.append(message.text))
        page.goto((tmp_path / "page.html").as_uri())
        page.locator("[data-ready]").wait_for(timeout=10_000)
        pages.append(page)
        return page

    yield open_page
    for page in pages:
        page.close()
    assert not complaints
