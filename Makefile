# Everything happens in .venv, which is made on first use and reused afterwards.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# An installation in place knows modules by their files: a module that becomes a package is installed anew.
SOURCES := $(shell find core -name '*.cpp' -o -name '*.hpp' -o -name CMakeLists.txt) pyproject.toml requirements.lock \
  $(shell find src -name __init__.py)
# One more than processors: tests of real servers mostly wait.
WORKERS = $$($(PYTHON) -c 'import os; print((os.cpu_count() or 1) + 1)')
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check

.PHONY: demo test lint bench docs kube-tools helm sanitize clean

demo: $(VENV)/.installed
	@$(BIN)/argosy demo scenarios/demo.toml
	@printf '%s\n' '' 'Try next:' \
	  '  $(BIN)/argosy up                                 a live cluster on this computer; then, beside it:' \
	  '  $(BIN)/argosy submit --wait -- echo hello        a real task on it' \
	  '  $(BIN)/argosy run scenarios/demo.toml            one run, kept under runs/' \
	  '  $(BIN)/argosy story batch-05000/0                the life of one of its tasks' \
	  '  $(BIN)/argosy why batch-05000/0                  why it is where it is' \
	  '  $(BIN)/argosy compare scenarios/faults.toml      the engines under every kind of fault' \
	  '  $(BIN)/argosy engines omega                      an engine and its settings' \
	  '  docs/scenarios.md                                   to describe a cluster of your own'

test: $(VENV)/.dev lint
	@$(PYTHON) tools/kube/build --optional
	@$(PYTHON) tools/helm/build --optional
	@tools/showing-dots 'Looking for a browser' tools/browser/install
	$(BIN)/python -m pytest --numprocesses $(WORKERS) --dist loadfile

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tests/support/check_lengths.py

bench: $(VENV)/.dev
	@$(BIN)/python bench/everything.py

docs: $(VENV)/.dev
	$(BIN)/python -m pytest tests/project/test_docs.py

# etcd, Kubernetes and kwok, compiled once into the user's cache; prints the folder.
kube-tools:
	@$(PYTHON) tools/kube/build

# Helm, for the tests of the chart; prints its path.
helm:
	@$(PYTHON) tools/helm/build

# The same suite over a core built with AddressSanitizer and UndefinedBehaviorSanitizer.
sanitize: $(VENV)/.dev
	tests/sanitize.sh

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit("Argosy needs Python 3.11 or newer, found " + sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	@tools/showing-dots 'Making $(VENV)' $(PYTHON) -m venv $(VENV)

$(VENV)/.build-tools: requirements.lock | $(VENV)/bin/python
	@tools/showing-dots 'Installing build tools' $(PIP) install --upgrade pip -c requirements.lock \
	  scikit-build-core nanobind cmake ninja
	@touch $@

$(VENV)/.installed: $(SOURCES) | $(VENV)/.build-tools
	@tools/showing-dots 'Compiling the core and installing Argosy, once; takes a minute or two' \
	  $(PIP) install -c requirements.lock --no-build-isolation -e '.[serve]'
	@touch $@

$(VENV)/.dev: $(VENV)/.installed pyproject.toml requirements.lock
	@tools/showing-dots 'Installing what the tests need' $(PIP) install -c requirements.lock --group dev
	@touch $@

clean:
	rm -rf $(VENV) build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
