# Two commands: `make run` opens the app, `make test` runs every test. Both install all they need.
# The rest is for contributors. `make help` lists them.
SHELL := /bin/bash
VENV := .venv
BIN := $(VENV)/bin
PORT ?= 8501
# Two test workers share the machine: one BLAS thread each, and no spinning while they wait.
ONE_THREAD := OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 OMP_WAIT_POLICY=PASSIVE

.PHONY: help run test check fix screenshots clean audit
.DEFAULT_GOAL := help

help:  ## list the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*##/\t/' | expand -t 14

run:  ## install, lay the demo ready, open the app on http://localhost:8501
	@.ci/venv demo
	@$(BIN)/theodolite demo --prepare
	@$(BIN)/theodolite ui --port $(PORT)

test:  ## install, find or install a Chromium, run the whole suite
	@.ci/venv test
	@THEODOLITE_CHROMIUM="$$(.ci/chromium)" $(ONE_THREAD) $(BIN)/python -m pytest -n 2 --dist loadfile $(ARGS)

check:  ## format, lint, types, import contracts
	@.ci/venv test
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

fix:  ## format and mend what ruff can mend
	@.ci/venv test
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

screenshots:  ## take the README's pictures of every page
	@.ci/venv test
	@THEODOLITE_CHROMIUM="$$(.ci/chromium)" $(BIN)/python -m tests.browser.screenshots

clean:  ## remove the virtual environment and caches
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .coverage* build dist

# B608: the catalogue's own column names, never a user's words. B615: local files only, or asked for by name.
audit:  ## look for known faults in this code and in what it depends on (needs a network)
	@.ci/venv test
	@$(BIN)/python -m pip install -q bandit pip-audit
	$(BIN)/bandit -q -r core pages app.py -ll -s B608,B615
	$(BIN)/pip-audit --local
