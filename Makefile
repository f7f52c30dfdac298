# Every target works as the first and only command on a fresh clone.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install -q --disable-pip-version-check
CORE := $(VENV)/.installed-core
DEV := $(VENV)/.installed-dev
ENGINES := $(VENV)/.installed-engines
LOWEST := .venv-lowest
LATEST := .venv-newest
MODELS := .venv-models
OLDEST ?= python3.11
NEWEST ?= $(shell for minor in 14 13 12 11; do for one in python3.$$minor $(HOME)/.pyenv/versions/3.$$minor.*/bin/python3; \
	do $$one -c '' 2> /dev/null && echo $$one && exit; done; done)
TESTS ?= tests/test_votes.py tests/test_label_model.py tests/test_storage.py tests/testing tests/tables
MINUTES ?= 10
TARGET ?= csv
DOCS := $(VENV)/.installed-docs
DIST := $(VENV)/.installed-dist
BENCHMARKS := $(sort $(wildcard benchmarks/bench_*.py))

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test test-all test-engines test-models test-lowest test-newest engines lint format fuzz \
	fuzz-guided audit-dependencies bench bench-check bench-store reproduce screenshots docs docs-serve dist clean

help:  ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-18s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

demo: $(CORE)  ## label a small example of several label types and show the result
	@$(BIN)/consilience demo

test: $(DEV)  ## run the quick tests and the examples in the docstrings
	$(BIN)/python -m pytest

test-all: $(DEV) $(ENGINES)  ## run all tests, the slow ones too, with real Dask and Spark, torch and parsers
	$(BIN)/python -m pytest -m ''
	$(MAKE) test-models

# In one process, so that one cluster of each kind serves all tests.
test-engines: $(DEV) $(ENGINES)  ## run the tests on a real Dask cluster and a real Spark
	$(BIN)/python -m pytest -n 0 -m slow tests/partitions

# torch and the parsers are gigabytes, so they have an environment of their own; `make test` says that it skips them.
test-models:  ## run the tests of torch models and of parsers in an environment of their own
	@test -x $(MODELS)/bin/python || $(PYTHON) -m venv $(MODELS)
	@$(MODELS)/bin/python -m pip install -q --disable-pip-version-check -e '.[test,torch,parsers]'
	$(MODELS)/bin/python -m pytest -m '' tests/end_models tests/experiments -k 'ranking_end or parser or tree_experiments or movies or letor or board'

# The oldest Python and the lowest versions that are promised; warnings of the dependencies are left alone there, and
# are errors with the newest ones (`make test`).
test-lowest:  ## run the quick tests on the oldest Python with the lowest versions of all dependencies
	@test -x $(LOWEST)/bin/python || $(OLDEST) -m venv $(LOWEST)
	@$(OLDEST) tools/lowest_versions.py > $(LOWEST)/constraints.txt
	@$(LOWEST)/bin/python -m pip install -q --disable-pip-version-check -c $(LOWEST)/constraints.txt -e '.[test]'
	NUMBA_CACHE_DIR=$(CURDIR)/$(LOWEST)/kernels $(LOWEST)/bin/python -m pytest -W ignore::DeprecationWarning -W ignore::FutureWarning $(TESTS)

test-newest:  ## run the same tests on the newest Python that is there, with the newest versions
	@test -x $(LATEST)/bin/python || $(NEWEST) -m venv $(LATEST)
	@$(LATEST)/bin/python -m pip install -q --disable-pip-version-check --upgrade -e '.[test]'
	$(LATEST)/bin/python -m pytest $(TESTS)

# New inputs each time; what fails is saved under tests/fuzz/corpus, and replayed by `make test` from then on.
fuzz: $(DEV)  ## feed changed inputs of all formats to the package for MINUTES (10)
	PYTHONPATH=tools $(BIN)/python -m fuzzing.run --minutes $(MINUTES)

# Needs atheris, which there is for a few platforms only.
fuzz-guided: $(DEV)  ## let atheris look for inputs of a TARGET (csv) that reach new branches, for MINUTES (10)
	@$(PIP) -e '.[fuzz]'
	PYTHONPATH=tools $(BIN)/python -m fuzzing.guided $(TARGET) --minutes $(MINUTES)

# Strict, as pip-audit passes over what it cannot ask about, and says that nothing was found.
audit-dependencies: $(DEV)  ## compare the dependencies with known weaknesses, and their licenses with a list
	@$(PIP) -e '.[audit]'
	$(BIN)/python tools/check_licenses.py
	@mkdir -p build && $(BIN)/python -m pip freeze -q --exclude-editable > build/audited.txt
	@$(BIN)/python -m pip_audit --strict --disable-pip --no-deps -r build/audited.txt || { echo "A dependency has a known \
weakness, or pip-audit could not ask about one: see above. It asks a service on the internet." >&2; exit 1; }

engines: $(ENGINES)  ## install Dask and Spark

lint: $(DEV)  ## check style, types and the layers of the package
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python tools/check_layers.py

format: $(DEV)  ## rewrite the code in the house format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(DEV)  ## run every benchmark, one after the other
	@set -e; for benchmark in $(BENCHMARKS); do echo "== $$benchmark"; $(BIN)/python $$benchmark; done

# With one thread for linear algebra: the CPU time of several is not repeatable.
bench-check: $(DEV)  ## compare ten typical calls with the stored run: none may be half as slow again
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest benchmarks/history -n 0 -o addopts=

bench-store: $(DEV)  ## store a new run of the ten calls
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest benchmarks/history -n 0 -o addopts= --store

reproduce: $(DEV)  ## run every experiment whose data are there (CONSILIENCE_DATA, CONSILIENCE_CACHE, CONSILIENCE_SNORKEL) and the page of results
	$(BIN)/consilience reproduce all
	$(BIN)/python -m experiments.results_page

# Warnings are errors, a link that leads nowhere among them. The pages of the API and of the gallery are made anew.
docs: $(DOCS)  ## build the documentation site in build/site
	rm -rf docs/gallery docs/reference/api build/site
	$(BIN)/python -m sphinx -q -W --keep-going -j auto -d build/doctrees -c docs . build/site

docs-serve: docs  ## build the site and show it at http://localhost:8000
	$(BIN)/python -m http.server --directory build/site 8000

dist: $(DIST)  ## build and check the packages, and run the demo from the wheel in an empty environment
	rm -rf dist build/wheel-check
	$(BIN)/python -m build -o dist .
	$(BIN)/python -m twine check --strict dist/*
	$(PYTHON) -m venv build/wheel-check
	build/wheel-check/bin/python -m pip install -q --disable-pip-version-check dist/*.whl
	cd build/wheel-check && bin/consilience demo -o demo

screenshots: $(DEV)  ## renew the pictures of the report and of the page to label on; needs playwright and chromium
	PYTHONPATH=tools $(BIN)/python tools/make_screenshots.py

clean:  ## remove what the other targets made, the environment too
	rm -rf $(VENV) $(LOWEST) $(LATEST) $(MODELS) build dist docs/gallery docs/reference/api consilience-demo .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@echo "creating $(VENV)"
	@$(PYTHON) -m venv $(VENV)

$(CORE): pyproject.toml | $(BIN)/python
	@echo "installing consilience"
	@$(PIP) -e .
	@touch $@

# Large, and needed by a few slow tests only.
$(ENGINES): pyproject.toml | $(DEV)
	@echo "installing Dask and Spark"
	@$(PIP) -e '.[engines]'
	@touch $@

$(DOCS): pyproject.toml | $(BIN)/python
	@echo "installing consilience with what builds its site"
	@$(PIP) -e '.[docs]'
	@touch $(CORE) $@

$(DIST): pyproject.toml | $(BIN)/python
	@echo "installing what builds packages"
	@$(PIP) -e '.[dist]'
	@touch $(CORE) $@

# What the developers need contains the core, so both stamps are renewed.
$(DEV): pyproject.toml | $(BIN)/python
	@echo "installing consilience with its tests and linters"
	@$(PIP) -e '.[dev]'
	@touch $(CORE) $@
