# Everything a reader, teacher or contributor runs. `make help` lists it.

PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/installed
READY := .venv/ready
# Later chapters first: they take longest, and short pages fill the gaps at the end.
NB ?= $(shell find book -name '*.ipynb' -not -path '*/.ipynb_checkpoints/*' \
	-not -path '*/assignments/*' | sort -r)
PORT ?= 8000
PROXY := configurable-http-proxy@5.3.0

# One thread per process: processes that share cores and use all of them fight.
export OMP_NUM_THREADS = 1
export MKL_NUM_THREADS = 1
export OPENBLAS_NUM_THREADS = 1
export PIP_DISABLE_PIP_VERSION_CHECK = 1
unexport DLCORE_EXPLORE

.DEFAULT_GOAL := help
.PHONY: help book test lint package notebooks-test site-test hub-test notebooks lab serve bench classroom clean

help:  ## list these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

book: $(READY)  ## build the book into _build/html
	@$(BIN)/jupyter-book build -q -W --keep-going . || { \
		echo 'The book was not built: mend the warnings and errors above, then run: make book'; exit 1; }

test: lint package notebooks-test site-test  ## run every check

lint: $(READY)  ## check style and types
	@$(BIN)/ruff format --check -q . || { \
		echo 'To mend the layout of these files, run: .venv/bin/ruff format'; exit 1; }
	@$(BIN)/ruff check .
	@$(BIN)/mypy

package: $(READY)  ## test dlcore, the classroom, the build's extensions and the rules for notebooks
	@$(BIN)/pytest -q -n auto --ignore tests/test_site.py

notebooks-test: $(READY)  ## execute every notebook and compare with its stored outputs
	@PYTHONPATH=book/_ext $(BIN)/pytest -q -n auto --dist loadfile --no-loadscope-reorder \
		-p no:cacheprovider -p keep_tested \
		--nbval --nbval-current-env --nbval-cell-timeout 300 $(NB) || { \
		echo 'Above, "+" is what the notebook has stored and "-" what its cell gave now.'; \
		echo 'If the new output is right, store it with: make notebooks NB=<the notebook>'; exit 1; }

site-test: book  ## test the rendered book in Chromium
	@$(BIN)/pytest -q -rs -n auto --dist loadscope tests/test_site.py

hub-test: $(READY)  ## test the classroom on a JupyterHub, installed for it (needs npm)
	@command -v npm > /dev/null || { \
		echo 'npm is needed, for the proxy of JupyterHub. On Debian and Ubuntu, install npm.'; exit 1; }
	@$(BIN)/pip install -q -r classroom/hub/requirements.txt
	@npm install --silent --no-audit --no-fund --prefix $(BIN)/.. $(PROXY)
	@$(BIN)/pytest -q -rs tests/classroom/test_hub.py

notebooks: $(READY)  ## execute notebooks in place: all of them, or NB=book/.../x.ipynb
	@$(BIN)/python book/_ext/run_notebooks.py $(NB)

lab: $(READY)  ## open the notebooks in JupyterLab
	@$(BIN)/jupyter lab --notebook-dir book --LabApp.news_url=None \
		--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate

serve: book  ## serve the book on http://localhost:8000 (PORT=...)
	@$(BIN)/python -m http.server --directory _build/html $(PORT)

bench: $(READY)  ## compare the speed of dlcore with PyTorch (two minutes)
	@$(BIN)/python -m benchmarks

classroom: $(READY)  ## say how to hand out, grade and return assignments
	@$(BIN)/python -m classroom --help

clean:  ## remove what these commands made
	rm -rf .venv _build .hypothesis .mypy_cache .pytest_cache .ruff_cache dlcore.egg-info

# The environment: made once, and again when a requirement changes; then the data.
$(READY): $(INSTALLED) dlcore/data.py
	@$(BIN)/python -m dlcore.data
	@touch $@

$(INSTALLED): requirements.txt constraints.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "Python 3.11 or newer is needed; '$(PYTHON)' is $$($(PYTHON) --version 2>&1)."; \
		echo 'Name another one with: make book PYTHON=python3.11'; exit 1; }
	@$(PYTHON) -m venv .venv || { \
		echo 'Could not make .venv. On Debian and Ubuntu, install python3-venv.'; exit 1; }
	@echo 'Installing the requirements into .venv (some minutes the first time) ...'
	@$(BIN)/pip install -q -r requirements.txt > .venv/pip.log 2>&1 || { \
		tail -n 5 .venv/pip.log; echo; \
		if grep -q -E 'Retrying|NewConnectionError|name resolution' .venv/pip.log; then \
			echo 'The package index could not be reached. Check the network, then run make again.'; \
		else \
			echo 'A pinned version could not be installed (above; all of it in .venv/pip.log).'; \
			echo 'Mend its line in requirements.txt or constraints.txt, then run make again.'; \
		fi; exit 1; }
	@$(BIN)/pip install -q --no-deps --no-build-isolation -e . >> .venv/pip.log 2>&1 || { \
		tail -n 5 .venv/pip.log; echo 'dlcore could not be installed; see .venv/pip.log.'; exit 1; }
	@touch $@
