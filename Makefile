# Every task of the project, each with a line of help: `make` prints them.
# What is needed: make and Python 3.11 or newer; Java 17 or newer where real Kafka, DynamoDB Local or Spark take part.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules --no-print-directory
# Where the environment forbids it (images of build machines do), each of the hundreds of processes of a test run would compile
# the whole tree anew: 2.5 s of CPU and 4 MiB each.
unexport PYTHONDONTWRITEBYTECODE

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
LOCK := requirements.lock
IMAGE_LOCK := deploy/images/node/requirements.lock

# Three workers take the tests that start clusters, which mostly wait. Two take what computes, at a low priority
# (tests/support/suite/scheduler.py).
WORKERS ?= 5
ARGS ?=
DAYS ?= 3
MINUTES ?= 10
HOURS ?= 24
SEEDS ?= 500
TRIPLES ?= 1000000
RECORDS ?= 1000000
FUZZ_S ?= 600
FROM ?= 1000
WORKLOADS ?=
BASE ?= HEAD
ROUNDS ?= 2
PYTEST := $(BIN)/python -m pytest
# A worker that dies is not replaced: the new one would get the file that the old one died in.
COMPUTING := tests/unit tests/chart tests/simulation
SUITE := -n $(WORKERS) --dist loadgroup --max-worker-restart 0 --durations 10

.PHONY: help
help: ## Show this list
	@printf 'tidegate: make targets\n\n'
	@awk -F ':.*## ' '/^[a-z][a-z-]*:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@printf '\nARGS="..." goes to pytest, e.g. make test-quick ARGS="-k lease -x"\n'

.PHONY: setup
setup: $(STAMP) ## Make .venv with everything that is locked (quick when nothing changed)

# The first Python that is new enough and really starts: version managers leave names behind that do not.
$(STAMP): $(LOCK) pyproject.toml
	@python=""; for name in $(PYTHON) python3.13 python3.12 python3.11 python3 python; do \
		if "$$name" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then python="$$name"; break; fi; \
	done; \
	if [ -z "$$python" ]; then \
		echo 'make setup: no Python 3.11 or newer with venv was found; install one (Debian: python3.11-venv), or name it: make setup PYTHON=/path/to/python' >&2; exit 1; \
	fi; \
	if ! $(BIN)/python -c 'import pip' >/dev/null 2>&1; then "$$python" -m venv --clear $(VENV); fi
	@echo 'Installing what $(LOCK) names into $(VENV) (the first time takes a minute or two)'
	@$(BIN)/python -m pip install --disable-pip-version-check --quiet --require-hashes --requirement $(LOCK)
	@$(BIN)/python -m pip install --disable-pip-version-check --quiet --no-deps --no-build-isolation --editable .
	@$(BIN)/python -m pip check --disable-pip-version-check
	@touch $@

.PHONY: require-java
require-java:
	@deploy/require-java

.PHONY: check
check: setup ## Format, lint, types, import contracts, prose, lock files (changes nothing)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/python -m tests.support.repo.prose_check
	$(PYTEST) -q tests/unit/repo/test_lock_files.py

.PHONY: format
format: setup ## Rewrite the sources as `make check` wants them
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

.PHONY: require-helm
require-helm:
	@deploy/require-helm >/dev/null

.PHONY: test
test: setup require-java require-helm ## The suite for everybody, in about 16 minutes: computing, real brokers, kills, an outage, Spark, the chart
	$(PYTEST) $(SUITE) $(ARGS)

.PHONY: test-all
test-all: setup require-java require-helm ## All of it, for nights and releases: 2,000 fresh seeds, all planted bugs, 20 kills, demo, quickstart, smokes
	$(PYTEST) $(SUITE) --all $(ARGS)

.PHONY: test-quick
test-quick: setup ## Only what computes: no Java, no broker
	$(PYTEST) -n auto --dist loadgroup $(COMPUTING) $(ARGS)

.PHONY: simulate
simulate: setup ## Random histories of a simulated cluster, judged, on all cores (SEEDS=500 FROM=1000 ARGS="--figures FILE")
	@$(BIN)/python -m tests.simulation --seeds $(SEEDS) --from $(FROM) $(ARGS)

.PHONY: stories
stories: setup ## CDAP's user story US-01 at its full size: 10,000 schedules on 16 topic partitions
	@TIDEGATE_STORIES=whole $(BIN)/python -m pytest -q tests/unit/tidegate_core/firing/test_ten_thousand_crons.py

.PHONY: oracle
oracle: setup ## Random (expression, zone, instant) triples against a brute-force walker, on all cores (TRIPLES=1000000)
	@$(BIN)/python -m tests.oracles.calendar --triples $(TRIPLES) $(ARGS)

.PHONY: fuzz
fuzz: setup ## Hostile records on requests, events and a source through the ingest, on all cores (RECORDS=1000000 ARGS="--seed 1")
	@$(BIN)/python -m tests.fuzz --records $(RECORDS) $(ARGS)

.PHONY: fuzz-cluster
fuzz-cluster: setup require-java ## The same against a real broker, store and nodes (RECORDS=1000000 ARGS="--minutes 15 --seed 1")
	@$(BIN)/python -m tests.fuzz.on_cluster --records $(RECORDS) $(ARGS)

.PHONY: fuzz-parsers
fuzz-parsers: setup ## The parsers under a coverage-guided fuzzer: Linux, x86-64, Python 3.11 (FUZZ_S=600)
	@$(BIN)/python -m pip install --disable-pip-version-check --quiet --require-hashes --upgrade --target build/fuzz --requirement tests/fuzz/requirements.lock
	@mkdir -p build/fuzz-corpus
	@$(BIN)/python -m tests.fuzz.parsers build/fuzz-seeds
	@PYTHONPATH=build/fuzz $(BIN)/python -m tests.fuzz.fuzz_parsers -max_total_time=$(FUZZ_S) -max_len=4096 \
		-artifact_prefix=build/ build/fuzz-corpus build/fuzz-seeds

.PHONY: mutants
mutants: setup ## Hunt every planted bug, on all cores, and write what found it to build/mutants.md (ARGS="NAME ...")
	@$(BIN)/python -m tests.simulation.mutants $(ARGS)

.PHONY: dev
dev: setup require-java ## Kafka, DynamoDB Local, a node and the API on this machine; Ctrl-C stops (ARGS: --ephemeral, --nodes 2)
	@$(BIN)/tidegate dev $(ARGS)

.PHONY: demo
demo: setup require-java ## A real PySpark pipeline on two nodes, one of which is killed half-way (DAYS=3)
	@$(BIN)/python -m tidegate_cli.demo --days $(DAYS) $(ARGS)

.PHONY: chaos
chaos: setup require-java ## Strike a real cluster in an order of chance, and judge it (MINUTES=10 ARGS="--seed 7 --nemesis kill --figures FILE")
	@$(BIN)/python -m tests.chaos --minutes $(MINUTES) $(ARGS)

.PHONY: soak
soak: setup require-java ## The same for hours: fewer things due, a strike a minute (HOURS=24 ARGS="--figures FILE")
	@$(BIN)/python -m tests.chaos --minutes $$(( $(HOURS) * 60 )) --calm 45 --messages 5 --events 2 $(ARGS)

.PHONY: bench
bench: setup require-java ## The node on real bricks, workload by workload: JSON lines and a table (WORKLOADS="W1 W2" ARGS="--out FILE")
	@$(BIN)/python -m tests.benchmarks $(WORKLOADS) $(ARGS)

.PHONY: bench-compare
bench-compare: setup require-java ## The same of another revision and of this tree, in turn, with ratios (BASE=main ROUNDS=2)
	@$(BIN)/python -m tests.benchmarks $(WORKLOADS) --base $(BASE) --rounds $(ROUNDS) $(ARGS)

.PHONY: wheel
wheel: setup ## Build the wheel into dist/
	@rm -f dist/tidegate-*.whl
	@$(BIN)/python -m pip wheel --disable-pip-version-check --quiet --no-deps --no-build-isolation --wheel-dir dist .
	@ls dist/tidegate-*.whl

.PHONY: lock
lock: setup ## Resolve the dependencies anew within pyproject.toml's bounds (needs the network)
	$(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
		--custom-compile-command 'make lock' --extra all --group dev --output-file $(LOCK) pyproject.toml
	$(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
		--custom-compile-command 'make lock' --constraint $(LOCK) --output-file $(IMAGE_LOCK) pyproject.toml

.PHONY: schemas
schemas: setup ## Write every generated page of docs/ from the code: schemas, fields, settings, reasons, openapi, requirements
	@mkdir -p docs/schemas
	@$(BIN)/python -c "from pathlib import Path; from tidegate_core.language.formats.format_reference import schemas; \
	[Path('docs/schemas', name + '.json').write_text(text, encoding='utf-8') for name, text in schemas().items()]"
	@$(BIN)/python -c "from pathlib import Path; from tidegate_core.language.formats.format_reference import field_tables; \
	Path('docs/fields.md').write_text(field_tables(), encoding='utf-8')"
	@$(BIN)/python -c "from pathlib import Path; from tidegate_cli.settings_page import settings_page; \
	Path('docs/settings.md').write_text(settings_page(), encoding='utf-8')"
	@$(BIN)/python -c "from pathlib import Path; from tidegate_core.explain.why.reason import reasons_page; \
	Path('docs/reasons.md').write_text(reasons_page(), encoding='utf-8')"
	@$(BIN)/python -m tidegate_api.openapi docs/openapi.json
	@$(BIN)/python -m tests.support.repo.requirements_list

.PHONY: clean
clean: ## Remove what the other targets made, except data of `tidegate dev`
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .hypothesis .pytest_cache
	find shared services tests -name __pycache__ -type d -prune -exec rm -rf {} +
