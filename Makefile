# Two commands on a fresh machine: `make demo` and `make test`. Each sets up what it needs in .venv.
PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
SEED ?= 42
WORKERS ?= auto
PYTEST = $(PY) -m pytest --numprocesses $(WORKERS) --dist worksteal
# Tests start the program often, and pytest compiles their asserts: without byte code they would do so every time.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test test-slow nightly lint types unit coverage crash faults fuzz bench docs guide lock schemas clean

help: ## show this list
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | sort | awk -F'\t' '{printf "  make %-10s %s\n", $$1, $$2}'

$(VENV)/.made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or newer is needed; this is $$($(PYTHON) --version). Try: make $(MAKECMDGOALS) PYTHON=python3.12"; exit 3; }
	@$(PYTHON) -c 'import ensurepip, venv' || \
	  { echo "This Python lacks the venv module (on Debian: apt-get install python3-venv)."; exit 3; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.base: $(VENV)/.made requirements.lock pyproject.toml
	$(PY) -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(PY) -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

# All cores at once, which pip does not do. It must be done: a package that warns when it is compiled would fail a test
# that treats warnings as errors. Files that are meant for other versions of Python may fail.
COMPILE_PYTHON = -@$(PY) -W ignore -m compileall -q -j 0 $(VENV)/lib/python3*/site-packages >/dev/null 2>&1 || true

$(VENV)/.dev: $(VENV)/.base requirements-dev.lock
	$(PY) -m pip install --quiet --disable-pip-version-check --no-compile --require-hashes -r requirements-dev.lock
	$(COMPILE_PYTHON)
	@touch $@

$(VENV)/.slow: $(VENV)/.dev requirements-slow.lock
	$(PY) -m pip install --quiet --disable-pip-version-check --no-compile --require-hashes -r requirements-slow.lock
	$(COMPILE_PYTHON)
	@touch $@

demo: $(VENV)/.base ## a complete evaluation of four fake targets, without key or network
	@$(VENV)/bin/medicare-eval demo

test: lint ## ruff, mypy --strict and the fast tests; run it before every commit (WORKERS=n processes)
	@$(MAKE) --no-print-directory --jobs 2 types unit

test-slow: $(VENV)/.slow ## kills, secrets, browsers, packaging, documents; CI runs it after make test
	$(PYTEST) -m 'slow and not nightly'

nightly: $(VENV)/.slow ## what is rarely broken and takes long: all simulations, faults and kills; then test coverage
	$(PYTEST) -m nightly
	$(MAKE) --no-print-directory crash fuzz coverage

lint: $(VENV)/.dev
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .

types: $(VENV)/.dev
	$(PY) -m mypy

unit: $(VENV)/.dev
	$(PYTEST)

coverage: $(VENV)/.dev ## the fast tests under coverage (at least 90%), with more examples
	$(PYTEST) --cov --cov-report term --hypothesis-profile thorough

crash: $(VENV)/.dev ## at least 200 random kill -9 on a running study, each followed by a resume (SEED=n to vary)
	$(PY) -m tests.crash --kills 200 --seed $(SEED)

faults: $(VENV)/.dev ## every provider x fault x role through the whole pipeline; writes docs/faults.md
	$(PY) -m tests.fault_matrix --write docs/faults.md

fuzz: $(VENV)/.dev ## 100,000 damaged answers of judges, 2,000 hostile conversations, and all attacks on judges (SEED=n to vary)
	$(PY) -m tests.fuzz_judges --answers 100000 --seed $(SEED)
	$(PY) -m tests.fuzz_conversations --conversations 2000 --seed $(SEED)
	$(PYTEST) -m '' tests/test_attacks.py

bench: $(VENV)/.slow ## speed and memory against a bare SDK loop and Inspect AI; writes docs/bench.md
	$(PY) -m bench --write docs/bench.md
	$(PY) -m bench.reports --write docs/bench_reports.md
	$(PY) -m bench.pages --write docs/bench_pages.md

guide: $(VENV)/.slow ## walk through every page in Chromium and take the pictures of docs/review.md
	$(PY) -m tests.workbench_walk --write

docs: $(VENV)/.dev ## run the commands shown in the documents and write their output into them
	$(PY) -m tests.docs --write

schemas: $(VENV)/.dev ## write the JSON Schemas under schemas/ again
	$(PY) -m src.schemas schemas

# Extras stay in the lock files: without them, old releases of pip look for the newest version and then refuse it.
COMPILE := $(VENV)/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-strip-extras --upgrade
lock: $(VENV)/.slow ## resolve dependencies again; lock files hold versions and hashes only, no address
	$(COMPILE) --group build pyproject.toml -o requirements.lock
	$(COMPILE) --group dev --extra all pyproject.toml -o requirements-dev.lock
	$(COMPILE) --group slow --constraint requirements-dev.lock pyproject.toml -o requirements-slow.lock

clean: ## remove what can be made again (never runs/)
	rm -rf $(VENV) build dist *.egg-info .coverage* .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests bench -name __pycache__ -prune -exec rm -rf {} +
