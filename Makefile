# Everything runs in its own virtual environment, .venv, which the first target that needs it makes.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --constraint .ci/constraints.txt

SECONDS ?= 3600
SEED ?= 0

# An environment that forbids it would have each of a suite's processes compile the package anew.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help demo test test-all lint docs dist fuzz audit bench stages mutants clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' Makefile

demo: $(VENV)/plain ## Analyze two training steps that were recorded on an H200
	$(BIN)/syncscan demo

test: $(VENV)/test ## Install what the tests need and run them, but for those that are slow by nature
	$(BIN)/python -m pytest -n auto --dist worksteal

test-all: $(VENV)/test ## The slow tests too, as CI does
	$(BIN)/python -m pytest -n auto --dist worksteal -m 'not bench'

lint: $(VENV)/lint ## ruff, American spelling, mypy --strict and the import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell syncscan docs README.md
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(VENV)/docs ## Build the site into docs/_build/html; a warning is an error
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet -b html docs docs/_build/html

dist: $(VENV)/release ## Build wheel and sdist into dist, check them, and run the demo of the wheel in a bare environment
	rm -rf dist build
	$(BIN)/python -m build --outdir dist .
	$(BIN)/python -m twine check --strict dist/*
	$(BIN)/python -m tests.wheel dist

fuzz: $(VENV)/test ## Hostile and damaged traces through every command, for SECONDS (an hour), from SEED
	$(BIN)/python -m tests.fuzz --seconds $(SECONDS) --seed $(SEED) --keep fuzz-failures

audit: $(VENV)/audit ## Look for known vulnerabilities in the versions that CI installs
	$(BIN)/pip-audit --requirement .ci/constraints.txt --no-deps --disable-pip

bench: $(VENV)/bench $(VENV)/test ## Measure: what must be fast, and reading big traces beside other readers
	$(BIN)/python -m pytest -m bench
	$(BIN)/python -m benchmarks.stages
	$(BIN)/python -m benchmarks.reading

stages: $(VENV)/test ## Hold each stage of an analysis to its ceiling, over the repository's recordings
	$(BIN)/python -m benchmarks.stages

mutants: $(VENV)/mutants ## Change the code and count the changes that no test notices; SAMPLE=300 SEED=1 for a quick look
	$(BIN)/python -m benchmarks.mutants constants
	$(BIN)/python -m benchmarks.mutants run $(if $(SAMPLE),--sample $(SAMPLE)) $(if $(SEED),--seed $(SEED))

clean: ## Remove the virtual environment and caches
	rm -rf $(VENV) mutants dist docs/_build docs/generated .pytest_cache .mypy_cache .ruff_cache .hypothesis build *.egg-info

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { echo "syncscan needs Python 3.10 or newer; set PYTHON=python3.x"; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { echo "python3 -m venv failed: on Debian, apt-get install python3-venv"; rm -rf $(VENV); exit 1; }

$(VENV)/plain: $(BIN)/python pyproject.toml
	$(PIP) --editable .
	@touch $@

$(VENV)/test: $(BIN)/python pyproject.toml .ci/constraints.txt
	$(PIP) --editable '.[all,test]'
	@touch $@

$(VENV)/lint: $(VENV)/test
	$(PIP) --editable '.[lint]'
	@touch $@

$(VENV)/docs: $(BIN)/python pyproject.toml .ci/constraints.txt
	$(PIP) --editable '.[docs]'
	@touch $@

$(VENV)/release: $(BIN)/python pyproject.toml .ci/constraints.txt
	$(PIP) --editable '.[release]'
	@touch $@

$(VENV)/audit: $(BIN)/python .ci/constraints.txt
	$(PIP) 'pip-audit>=2.7,<3'
	@touch $@

$(VENV)/bench: $(BIN)/python pyproject.toml
	$(PIP) --editable '.[bench]'
	@touch $@

$(VENV)/mutants: $(VENV)/test
	$(PIP) --editable '.[mutants]'
	@touch $@
