# Each target sets up what it needs: Python 3.11 or newer and make are enough to begin.
# Words after a target's own options: ARGS='tests/intake -k stop', PYTHON=python3.12, VENV=.venv312.

VENV ?= .venv
# More than two cores: much of the suite waits for processes and browsers.
WORKERS ?= 9
ARGS ?=
UV_VERSION := 0.13.9
AUDIT_VERSION := 2.10.1

BIN := $(VENV)/bin
UV := $(BIN)/uv
INSTALL := $(UV) pip install --quiet --compile-bytecode --python $(BIN)/python
COMPILE := $(UV) pip compile --quiet --universal --generate-hashes --no-header --no-annotate
PEERS := arq taskiq procrastinate pgqueuer dbos
STORMED := naive arq taskiq dbos
# Each worker gets the next test when it has ended one: what is long begins first (tests/conftest.py).
SPREAD := -n $(WORKERS) --dist load --maxschedchunk 1
CODE := bot channels storage tests benchmarks examples docs

# Moving the checkout invalidates what is installed: its place is a part of the stamps' names.
PLACE := $(shell pwd | cksum | cut -d' ' -f1)
TOOLS := $(VENV)/.uv-$(UV_VERSION)-$(PLACE)
READY := $(VENV)/.ready-$(PLACE)
TESTABLE := $(VENV)/.testable-$(PLACE)
READABLE := $(VENV)/.readable-$(PLACE)
COMPILED := $(VENV)/.compiled-$(PLACE)

# Where no bytecode may be kept, every started process compiles all that it imports: 2 s each.
export PYTHONDONTWRITEBYTECODE :=

.SUFFIXES:
.DELETE_ON_ERROR:
.PHONY: help install run test test-deep check lint format goldens picture recording screenshots fuzz audit bench bench-peers prove prove-peers soak lock clean

help: ## Show this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1|\2/p' Makefile | while IFS='|' read -r name text; do \
		printf '  make %-14s %s\n' "$$name" "$$text"; done

run: $(READY) ## Start Answerback: a chat in the terminal, or the channels that are configured
	@exec $(BIN)/answerback up

install: $(READY) ## Set up what `run` needs, and start nothing

test: $(TESTABLE) $(COMPILED) ## Run all tests, on a real PostgreSQL and Valkey of their own
	@$(BIN)/python -m pytest $(SPREAD) $(ARGS)

test-deep: $(TESTABLE) $(COMPILED) ## Each test on both databases, and many more crashes and kills: half an hour
	@$(BIN)/python -m pytest $(SPREAD) --deep $(ARGS)

check: lint test ## What must be green: lint, types, import contracts, tests

lint: $(TESTABLE) docs ## Everything of check but the tests
	$(BIN)/ruff check $(CODE)
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/mypy
	$(BIN)/python -m tests.docs.page_types
	$(BIN)/lint-imports

format: $(TESTABLE) ## Rewrite the code in its one form
	$(BIN)/ruff check --fix-only $(CODE)
	$(BIN)/ruff format $(CODE)

goldens: $(TESTABLE) ## Renew tests/cli/goldens, every screen of the command line; then read them
	@$(BIN)/python -m tests.cli.screens

screenshots: $(TESTABLE) ## Take docs/web-*.png and docs/operator-*.png of pages; needs a Chromium
	@$(BIN)/python docs/screenshots.py
	@$(BIN)/python docs/operator_pictures.py

picture: $(TESTABLE) ## Draw layers.svg, run-life.svg and killed-twice.svg of docs/ from the code as it is
	@$(BIN)/python docs/layers.py
	@$(BIN)/python docs/run_life.py
	@$(BIN)/python docs/killed_twice.py

recording: $(TESTABLE) ## Record docs/demo.svg: a process is killed, the next one answers
	@$(BIN)/python docs/recording.py

fuzz: $(TESTABLE) ## Generated inputs at every door and parser; ARGS='--inputs 1000000 --seed 7'
	@$(BIN)/python -m tests.fuzz $(ARGS)

bench: $(TESTABLE) ## Every figure beside its floor, and docs/benchmarks.md; ARGS=--quick: two minutes
	@$(BIN)/python -m benchmarks $(ARGS)

bench-peers: $(TESTABLE) $(PEERS:%=.venv-peers/%/.ready) ## The same job by other libraries
	@$(BIN)/python -m benchmarks.peers $(ARGS)

.venv-peers/%/.ready: benchmarks/peers/%.lock $(TOOLS)
	@echo 'Installing $* ...' >&2
	@$(UV) venv --quiet --clear --python $(BIN)/python $(@D) </dev/null >&2
	@$(UV) pip install --quiet --compile-bytecode --require-hashes --python $(@D)/bin/python \
		-r $< </dev/null >&2
	@touch $@

prove: $(TESTABLE) ## An hour of load while all goes wrong, and docs/proof.md; ARGS='--minutes 5'
	@$(BIN)/python -m benchmarks.proof $(ARGS)

prove-peers: $(TESTABLE) $(STORMED:%=.venv-peers/%/.ready) ## The same for bots of other libraries; ARGS='--only arq'
	@$(BIN)/python -m benchmarks.peers.storm $(ARGS)

soak: $(TESTABLE) ## An hour at half of what is possible: memory and tables; ARGS='--minutes 5'
	@$(BIN)/python -m benchmarks.proof.soak $(ARGS)

.PHONY: reference docs
reference: $(TESTABLE) ## Write the pages that the code tells: docs/api.md, settings.md and others
	@$(BIN)/python docs/reference

docs: $(READABLE) ## Make the site of the pages; a dead link, anchor or a page in no list is an error
	@rm -rf build/docs
	@$(BIN)/python -m sphinx --quiet --fresh-env --fail-on-warning \
		--conf-dir docs/site --doctree-dir build/doctrees . build/docs </dev/null
	@echo "The site is in build/docs/index.html"

.PHONY: bench-upgrade keep-release
bench-upgrade: $(TESTABLE) ## The last release and this version side by side under load, and the way back
	@$(BIN)/python -m benchmarks.proof.upgrade $(ARGS)

keep-release: ## After a release: keep its code for the tests, TAG=v0.2.0
	@git rev-parse --quiet --verify '$(TAG)^{commit}' >/dev/null || { echo 'TAG=v0.2.0, please'; exit 1; }
	@rm -f tests/releases/answerback-*.tar.xz
	git archive --format=tar '$(TAG)^{commit}' pyproject.toml bot channels storage | xz -9e \
		> tests/releases/answerback-$(TAG:v%=%).tar.xz

audit: $(TESTABLE) ## Look for advisories of what is locked, here and at the index; ARGS=--offline: here
	@$(BIN)/python -m tests.advisories
ifneq ($(ARGS),--offline)
	@$(UV) tool run pip-audit==$(AUDIT_VERSION) --strict --disable-pip --requirement requirements.lock $(ARGS)
endif

lock: $(TOOLS) ## Resolve the dependencies anew into the lock files
	$(COMPILE) --upgrade pyproject.toml --extra llm --extra otel --group build -o requirements.lock
	$(COMPILE) --upgrade pyproject.toml --all-extras --group build -c requirements.lock \
		-o requirements-test.lock
	$(COMPILE) --upgrade --group docs -c requirements-test.lock -o requirements-docs.lock
	for peer in $(PEERS) $(filter-out $(PEERS),$(STORMED)); do \
		$(COMPILE) --upgrade benchmarks/peers/$$peer.txt -o benchmarks/peers/$$peer.lock || exit 1; \
	done

clean: ## Remove what was installed and cached; data/ stays
	rm -rf .venv* build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Set-up talks on standard error and leaves standard input alone: `make run` may be in a pipe.

$(TESTABLE): $(READY) requirements-test.lock
	@echo 'Installing what the tests need ...' >&2
	@$(INSTALL) --require-hashes -r requirements-test.lock </dev/null >&2
	@touch $@

# Without it each worker of the first run compiles all tests for itself, 6 s of CPU each.
$(COMPILED): $(TESTABLE)
	@echo 'Compiling the tests ...' >&2
	@$(BIN)/python -m pytest -qq --collect-only </dev/null >/dev/null 2>&1 || true
	@touch $@

$(READABLE): $(TOOLS) requirements-docs.lock
	@echo 'Installing what the site needs ...' >&2
	@$(INSTALL) --require-hashes -r requirements-docs.lock </dev/null >&2
	@touch $@

$(READY): $(TOOLS) requirements.lock pyproject.toml
	@echo 'Installing Answerback ...' >&2
	@$(INSTALL) --require-hashes -r requirements.lock </dev/null >&2
	@$(INSTALL) --no-deps --no-build-isolation --editable . </dev/null >&2
	@$(BIN)/python -m compileall -q bot channels storage </dev/null >&2
	@touch $@

$(TOOLS):
	@echo 'Preparing $(VENV) ...' >&2
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || { \
		for python in $(or $(PYTHON),python3 python3.14 python3.13 python3.12 python3.11); do \
			"$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && break; \
			python=; \
		done; \
		[ -n "$$python" ] || { echo "$$NO_PYTHON"; exit 1; }; \
		"$$python" -m venv --clear $(VENV) || { echo "$$NO_VENV"; exit 1; }; \
	} </dev/null >&2
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION) \
		</dev/null >&2
	@touch $@

export NO_PYTHON := Answerback needs Python 3.11 or newer: install one, or name it with \
make PYTHON=/path/to/python.
export NO_VENV := This Python cannot make a virtual environment with pip in it. \
On Debian and Ubuntu: apt install python3-venv. Then run make again.
