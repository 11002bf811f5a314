# Everything a developer or CI runs. Needs GNU make and Python 3.11 to 3.14 with
# its venv module; all the rest is installed into .venv, pinned and checked
# against hashes.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup run test test-rest drills test-ha test-all lint bench fuzz performance openapi clients schema docs web demo demo-oscar demo-node screenshots lock release site clean
MAKEFLAGS += --no-builtin-rules
# Without bytecode every process of a run would compile the source again, and the tests too.
unexport PYTHONDONTWRITEBYTECODE

# Another interpreter: make setup PYTHON=python3.13
PYTHON ?= python3
# More for pytest: make test PYTEST_ARGS="-k acknowledge -x"
PYTEST_ARGS ?=
# Processes that share the tests, a file at a time; each runs servers of its own. Tests wait for
# much of their time, so there are more processes than processors.
PYTEST_JOBS ?= 4
# More for the benchmark: make bench BENCH_ARGS=--help
BENCH_ARGS ?=
FUZZ_ARGS ?=
CLEARANCE_ARGS ?=

VENV := .venv
# The tools and the client that are installed next to the service.
PACKAGES := packages/evidence packages/console packages/simulators packages/conformance clients/python
# Node.js, each with a lock file; the tests need the packages of all of them.
NODE_FOLDERS := web tests/browser/javascript tests/webhooks/javascript tests/clients/javascript \
	tests/bridge/javascript clients/typescript examples/node-shop
NODE_STAMPS := $(NODE_FOLDERS:=/node_modules/.package-lock.json)
COMPONENT := src/countersign/hosted/pages/component/countersign-notice.js
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --no-input
PYTEST = $(BIN)/python -m pytest -n $(PYTEST_JOBS) --dist loadfile --no-loadscope-reorder
# The first thing that compiles the tests.
BYTECODE := tests/__pycache__
INSTALL := $(PIP) install --quiet --require-hashes

help: ## List what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

setup: $(VENV)/.runtime ## Create .venv with the countersign command in it

run: $(VENV)/.runtime ## Serve on http://127.0.0.1:8080 with a database under ./var and a test key
	COUNTERSIGN_CONSOLE="$${COUNTERSIGN_CONSOLE:-true}" $(BIN)/countersign dev

demo: $(VENV)/.runtime ## Serve with a small shop, to buy something with a notice in a browser
	$(BIN)/python examples/demo.py

demo-oscar: $(VENV)/.shop ## The same with a django-oscar shop; installs 210 MB more
	$(BIN)/python examples/demo.py oscar

demo-node: $(VENV)/.runtime clients/typescript/dist/index.js examples/node-shop/node_modules/.package-lock.json ## The same with a shop in Node.js; needs npm
	$(BIN)/python examples/demo.py node

# Each test is in one of four stages, see tests/support/stages.py. The first needs Python alone. The
# benchmark is tested too, so its own libraries are installed.
test: $(VENV)/.dev $(VENV)/.bench $(BYTECODE) ## Run every promise once, on SQLite; name what is left out
	$(PYTEST) $(PYTEST_ARGS)

test-rest: $(VENV)/.dev $(VENV)/.bench $(BYTECODE) $(NODE_STAMPS) ## Run what `make test` leaves out: PostgreSQL, browsers, PHP, kills
	$(PYTEST) --rest $(PYTEST_ARGS)

# Two at a time: each has its own server, callers and, as root, disk.
drills: $(VENV)/.dev $(BYTECODE) ## Break real servers on purpose, in every way known: needs root for disks
	$(BIN)/python -m pytest --drills -n 2 --dist loadfile tests/drills $(PYTEST_ARGS)

# Two at a time: each has three nodes of its own, and waits for leases most of its time.
test-ha: $(VENV)/.dev $(BYTECODE) ## Kill each part of three nodes: needs root, Patroni, etcd, HAProxy, pgBackRest
	$(BIN)/python -m pytest --ha -n 2 --dist loadfile --no-loadscope-reorder tests/ha $(PYTEST_ARGS)

test-all: $(VENV)/.dev $(VENV)/.bench $(BYTECODE) $(NODE_STAMPS) ## Run every test
	$(PYTEST) --all-engines $(PYTEST_ARGS)

# The benchmark's own libraries are installed too: its code is type-checked.
lint: $(VENV)/.dev $(VENV)/.bench ## Check formatting, lint rules and types
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy

bench: $(VENV)/.bench ## Measure requests per second against the usual stack
	$(BIN)/python -m bench $(BENCH_ARGS)
	$(BIN)/python -m bench.clearance $(CLEARANCE_ARGS)

fuzz: $(VENV)/.fuzz ## Search each parser of outside bytes for what it fails on; FUZZ_ARGS="--seconds 60 proof"
	$(BIN)/python -m tests.fuzz.search $(FUZZ_ARGS)

performance: $(VENV)/.bench ## Measure all that docs/performance.md shows, and write it there
	$(BIN)/python -m bench.page

openapi: $(VENV)/.runtime ## Write spec/openapi.json from the route table
	$(BIN)/python -m tools.openapi > spec/openapi.json.new
	mv spec/openapi.json.new spec/openapi.json

clients: $(VENV)/.dev ## Write types, errors and operations of clients/ from spec/openapi.json
	$(BIN)/python -m tools.write_clients

# It changes no migration: write one first, see CONTRIBUTING.md.
schema: $(VENV)/.dev ## Note what the migrations make, after one was added for a change of db/tables.py
	$(BIN)/python -m tests.storage.schema_files

docs: $(VENV)/.dev ## Write again what the pages in docs/ take from the code
	$(BIN)/python -m tools.design
	$(BIN)/python -m tools.commands
	$(BIN)/python -m tests.docs.generated
	cd packages/evidence/src/countersign_evidence/offline && sha256sum verify.py verify.html > $(CURDIR)/spec/verifiers.sha256

# Only who changes web/ needs Node.js: the built file is committed, and tests build it again.
web: web/node_modules/.package-lock.json ## Build the browser component again from web/
	npm run --prefix web --silent check
	npm run --prefix web --silent build -- --outfile=../$(COMPONENT) --log-level=warning

screenshots: $(VENV)/.dev ## Take the pictures of docs/images again, with the system's Chromium (ONLY=console: those)
	$(BIN)/python -m tests.browser.screenshots $(ONLY)

# The files are compiled for every supported Python and platform at once, each
# with the pins of the one before it, so that all of them fit into one .venv.
# Pins that still satisfy pyproject.toml stay; `make lock UPGRADE=1` renews all.
UV_COMPILE = $(BIN)/uv pip compile --quiet --universal --generate-hashes \
	--custom-compile-command "make lock" --no-emit-package countersign-evidence $(if $(UPGRADE),--upgrade)

lock: $(VENV)/.dev ## Recompile requirements*.txt from pyproject.toml (UPGRADE=1: newest versions)
	$(UV_COMPILE) pyproject.toml --extra timestamps --extra store --extra mail --extra oidc -o requirements.txt
	$(UV_COMPILE) --group build -c requirements.txt -o requirements-build.txt
	$(UV_COMPILE) --group shop -c requirements.txt -c requirements-build.txt -o requirements-shop.txt
	$(UV_COMPILE) --group site -c requirements.txt -c requirements-shop.txt -o requirements-site.txt
	$(UV_COMPILE) pyproject.toml --group dev -c requirements.txt -c requirements-build.txt \
		-c requirements-shop.txt -c requirements-site.txt -o requirements-dev.txt
	$(UV_COMPILE) pyproject.toml --group bench \
		-c requirements-dev.txt -o requirements-bench.txt
	$(UV_COMPILE) pyproject.toml --group fuzz -c requirements-dev.txt -o requirements-fuzz.txt

# Of the last commit, twice, and compared byte by byte.
release: $(VENV)/.runtime $(NODE_STAMPS) ## Build packages, parts list, checksums and provenance into dist/
	$(BIN)/python -m tools.release dist

site: $(VENV)/.site ## Build the pages as a website with a search into build/site
	rm -rf build/site build/site-trees
	$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going \
		--conf-dir tools/site --doctree-dir build/site-trees . build/site

clean: ## Remove .venv, caches and build output; ./var with its data stays
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -not -path './var/*' -prune -exec rm -rf {} +

# Stamps: installing again is needed only after the named files have changed.

# 3.15 is refused because the database drivers have no wheels for it yet: pip would
# say so too, but not as clearly. Raise the bound once `make lock` finds them.
$(BIN)/python:
	@command -v $(PYTHON) >/dev/null || { \
		echo "Countersign needs Python 3.11 to 3.14, and there is no '$(PYTHON)' here."; \
		echo "Install one, or name it: make setup PYTHON=/path/to/python3.13"; exit 1; } >&2
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 15))' || { \
		echo "Countersign needs Python 3.11 to 3.14; '$(PYTHON)' is $$($(PYTHON) --version 2>&1)."; \
		echo "Name another one: make setup PYTHON=python3.13"; exit 1; } >&2
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
		echo "'$(PYTHON)' lacks the venv module. On Debian and Ubuntu: apt-get install python3-venv"; \
		exit 1; } >&2
	$(PYTHON) -m venv $(VENV)

$(VENV)/.runtime: $(BIN)/python requirements.txt requirements-build.txt pyproject.toml \
		$(PACKAGES:=/pyproject.toml)
	$(INSTALL) -r requirements.txt -r requirements-build.txt
	$(PIP) install --quiet --no-build-isolation --no-deps --editable . $(PACKAGES:%=--editable ./%)
	@touch $@

# Django and Oscar: only the shop in examples/oscar-shop and the tests need them.
$(VENV)/.shop: $(VENV)/.runtime requirements-shop.txt integrations/django/pyproject.toml
	$(INSTALL) -r requirements-shop.txt
	$(PIP) install --quiet --no-build-isolation --no-deps --editable ./integrations/django
	@touch $@

$(VENV)/.site: $(BIN)/python requirements-site.txt
	$(INSTALL) -r requirements-site.txt
	@touch $@

$(VENV)/.dev: $(VENV)/.runtime $(VENV)/.shop requirements-dev.txt
	$(INSTALL) -r requirements-dev.txt
	@touch $@

# Without npm the tests that need it are left out, and say so.
$(NODE_STAMPS): %/node_modules/.package-lock.json: %/package-lock.json
	@! command -v npm >/dev/null || npm ci --prefix $* --ignore-scripts --no-audit --no-fund --silent \
		|| echo "npm could not install the packages of $*" >&2

# In a clean checkout each process would compile all tests at the same time. Two do, one half each.
$(BYTECODE): | $(VENV)/.dev
	@echo "compiling the tests"
	@$(BIN)/python -m pytest --collect-only -qq tests/[a-d]* > /dev/null & \
		$(BIN)/python -m pytest --collect-only -qq tests/[e-z]* > /dev/null; wait

# The shop in Node.js has this folder for a package.
clients/typescript/dist/index.js: clients/typescript/node_modules/.package-lock.json $(wildcard clients/typescript/src/*.ts)
	npm run --prefix clients/typescript --silent build

$(VENV)/.fuzz: $(VENV)/.dev requirements-fuzz.txt
	$(INSTALL) -r requirements-fuzz.txt
	@touch $@

$(VENV)/.bench: $(VENV)/.runtime requirements-bench.txt
	$(INSTALL) -r requirements-bench.txt
	@touch $@
