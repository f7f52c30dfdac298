# Every target works as the first and only command on a fresh clone.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install -q --disable-pip-version-check
CORE := $(VENV)/.installed-core
DEV := $(VENV)/.installed-dev
BENCHMARKS := $(sort $(wildcard benchmarks/bench_*.py))

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test test-all lint format bench reproduce clean

help:  ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

demo: $(CORE)  ## label a small example of several label types and show the result
	@$(BIN)/consilience demo

test: $(DEV)  ## run the quick tests and the examples in the docstrings
	$(BIN)/python -m pytest

test-all: $(DEV)  ## run all tests, the slow ones too
	$(BIN)/python -m pytest -m ''

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

# What the developers need contains the core, so both stamps are renewed.
$(DEV): pyproject.toml | $(BIN)/python
	@echo "installing consilience with its tests and linters"
	@$(PIP) -e '.[dev]'
	@touch $(CORE) $@
