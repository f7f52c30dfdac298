# Every target works as the first and only command on a fresh clone.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install -q --disable-pip-version-check
CORE := $(VENV)/.installed-core
DEV := $(VENV)/.installed-dev
ENGINES := $(VENV)/.installed-engines
BENCHMARKS := $(sort $(wildcard benchmarks/bench_*.py))

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test test-all test-engines engines lint format bench reproduce clean

help:  ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

demo: $(CORE)  ## label a small example of several label types and show the result
	@$(BIN)/consilience demo

test: $(DEV)  ## run the quick tests and the examples in the docstrings
	$(BIN)/python -m pytest

test-all: $(DEV) $(ENGINES)  ## run all tests, the slow ones too, with real Dask and Spark
	$(BIN)/python -m pytest -m ''

# In one process, so that one cluster of each kind serves all tests.
test-engines: $(DEV) $(ENGINES)  ## run the tests on a real Dask cluster and a real Spark
	$(BIN)/python -m pytest -n 0 -m slow tests/partitions

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

reproduce: $(DEV)  ## run every experiment whose data are there (CONSILIENCE_DATA, CONSILIENCE_CACHE) and the page of results
	$(BIN)/consilience reproduce all
	$(BIN)/python -m experiments.results_page

clean:  ## remove what the other targets made, the environment too
	rm -rf $(VENV) build dist consilience-demo .pytest_cache .mypy_cache .ruff_cache .hypothesis
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

# What the developers need contains the core, so both stamps are renewed.
$(DEV): pyproject.toml | $(BIN)/python
	@echo "installing consilience with its tests and linters"
	@$(PIP) -e '.[dev]'
	@touch $(CORE) $@
