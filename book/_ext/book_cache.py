"""The cache of executed notebooks, from which MyST-NB takes the outputs of its pages."""

import hashlib
from pathlib import Path

from jupyter_cache import get_cache
from jupyter_cache.base import CacheBundleIn, JupyterCacheAbstract
from nbformat import NotebookNode

ROOT = Path(__file__).resolve().parents[2]


def fingerprint() -> str:
    """Hash what every notebook depends on."""
    files = [
        *sorted((ROOT / "dlcore").glob("*.*")),
        *sorted(ROOT.glob("*.txt")),
    ]
    return hashlib.sha256(b"".join(f.read_bytes() for f in files)).hexdigest()


def open_cache(build: Path) -> JupyterCacheAbstract:
    """Open the cache in the folder of the build, without what another dlcore gave."""
    build.mkdir(exist_ok=True)
    cache = get_cache(build / ".jupyter_cache")
    stamp = build / "dlcore.sha256"
    if not stamp.exists() or stamp.read_text() != fingerprint():
        for record in cache.list_cache_records():
            cache.remove_cache(record.pk)
        stamp.write_text(fingerprint())
    return cache


def keep(
    cache: JupyterCacheAbstract, path: Path, notebook: NotebookNode
) -> None:
    """Put an executed notebook into the cache, its comments stripped."""
    cache.cache_notebook_bundle(
        CacheBundleIn(notebook, str(path)),
        check_validity=False,
        overwrite=True,
    )
