"""Set-up of all tests: shapes are checked, examples repeat, no window opens."""

import matplotlib
from hypothesis import settings
from jaxtyping import install_import_hook

# Check the shapes in dlcore's signatures at every call; an int may stand for a float.
# The hook must be in place before the first import of dlcore.
install_import_hook(
    "dlcore",
    "beartype.beartype(conf=beartype.BeartypeConf(is_pep484_tower=True))",
)
matplotlib.use("Agg")
settings.register_profile(
    "repo", deadline=None, max_examples=25, derandomize=True
)
settings.load_profile("repo")
