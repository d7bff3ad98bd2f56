# All that a fresh machine needs is this file, a Python of 3.11 or later, and make.
# `make` alone lists the targets.

VENV := .venv
BIN := $(VENV)/bin
MADE := $(VENV)/.made
READY := $(VENV)/.ready
PIP := $(BIN)/python -m pip --disable-pip-version-check
# Which Python makes the environment; the first of the list that is 3.11 or later when not given.
PYTHON ?=
CANDIDATES := python3.13 python3.12 python3.11 python3 python
PYTEST_ARGS ?=
# Of `make test`: how many processes share the tests; 0 runs them in one.
WORKERS ?= 2
BENCH_ARGS ?= --workload all --filters 1k --filters 10k
BACKTEST_ARGS ?= --rows 100M --filters 1000
# Of `make timemachine`: rounds of the network and of Spark, and the seed, one at random if not said.
ROUNDS ?= 440
SPARK_ROUNDS ?= 60
SEED ?=

.PHONY: help setup demo test check soak kills timemachine hostile bench build-5m backtest pictures lock clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## /{printf "  make %-8s %s\n", $$1, $$2}' Makefile

setup: $(READY) ## make .venv with everything that is needed

demo: $(READY) ## show tidings at work on real data
	@$(BIN)/tidings demo

test: check ## check, then run the tests
	$(BIN)/python -m pytest -n $(WORKERS) --durations 20 -m "not slow and not bench" $(PYTEST_ARGS)

check: $(READY) ## lint, formatting, types, and who imports whom
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

soak: $(READY) ## run the slow tests, with many more examples
	TIDINGS_PROFILE=soak $(BIN)/python -m pytest -m slow $(PYTEST_ARGS)

kills: $(READY) ## kill pipelines and routers at random moments, and say what was killed when
	$(BIN)/python -m pytest -s tests/spark/kills tests/broker/kills $(PYTEST_ARGS)

timemachine: $(READY) ## put back, cut, flip, zero and swap files between runs; part of kills
	$(if $(SEED),TIDINGS_SEED=$(SEED)) TIDINGS_ROUNDS=$(ROUNDS) TIDINGS_SPARK_ROUNDS=$(SPARK_ROUNDS) \
	    $(BIN)/python -m pytest -s -k all_rounds tests/broker/kills/test_timemachine.py \
	    tests/spark/kills/test_timemachine.py $(PYTEST_ARGS)

hostile: $(READY) ## attack a network from within for ten minutes, beside an honest pair
	$(BIN)/python -m pytest -s -m slow tests/broker/hostile $(PYTEST_ARGS)

bench: $(READY) ## run the measurements
	$(BIN)/tidings bench match $(BENCH_ARGS)
	$(BIN)/python -m pytest -m bench $(PYTEST_ARGS)

build-5m: $(READY) ## compile 5,000,000 subscriptions on Spark, with time and memory
	$(BIN)/tidings bench build --filters 5M

backtest: $(READY) ## test 1,000 filters on 100 million flights (1.5 GB in the cache)
	$(BIN)/tidings bench backtest $(BACKTEST_ARGS)

pictures: $(MADE) ## draw the pictures of the pages anew
	$(BIN)/python -m tools.pictures

lock: $(MADE) ## write constraints.txt anew, with the newest versions
	$(BIN)/python tools/lock.py

clean: ## remove the environment and every cache
	rm -rf $(VENV) build dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find src tests tools benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

# Both stamps are written last, so a set-up that was interrupted starts again.
$(READY): $(MADE) pyproject.toml constraints.txt
	@rm -f $@
	@echo "Installing packages (a few minutes the first time)"
	@$(PIP) install --quiet -c constraints.txt -e ".[connect,dev,demo,feeds,ontologies,plot,spark]"
	@PIP_CONSTRAINT=constraints.txt $(BIN)/python -m tidings.spark.session.java
	@touch $@

$(MADE):
	@python=; \
	for candidate in $(if $(PYTHON),"$(PYTHON)",$(CANDIDATES)); do \
	    if "$$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then \
	        python=$$candidate; break; \
	    fi; \
	done; \
	if [ -z "$$python" ]; then \
	    echo "error: $(if $(PYTHON),$(PYTHON) is not a Python 3.11 or later,no Python 3.11 or later was found); install one or name it: make setup PYTHON=/path/to/python3" >&2; \
	    exit 1; \
	fi; \
	echo "Making $(VENV) with $$python"; \
	if ! "$$python" -m venv --clear $(VENV) >&2; then \
	    rm -rf $(VENV); \
	    echo "error: $$python cannot make an environment with pip in it; on Debian and Ubuntu: apt-get install python3-venv" >&2; \
	    exit 1; \
	fi
	@touch $@
