# A fresh machine needs only this file, make, and Python 3.11 or later.
# `make` alone lists the targets.

VENV := .venv
BIN := $(VENV)/bin
MADE := $(VENV)/.made
READY := $(VENV)/.ready
PIP := $(BIN)/python -m pip --disable-pip-version-check
# The Python that creates the environment; by default the first candidate of version 3.11 or later.
PYTHON ?=
CANDIDATES := python3.13 python3.12 python3.11 python3 python
PYTEST_ARGS ?=
# Python keeps what it has compiled, whatever the environment says: tests start hundreds of
# processes, and each would compile all sources again, in 0.4 seconds.
unexport PYTHONDONTWRITEBYTECODE
# `make test-newest`: the PySpark of the second environment, by default the newest.
NEWEST := .venv-newest
PYSPARK ?=
# `make test`: the number of test processes; with 0, all tests run in the main one. Tests often wait
# for processes and clocks, so seven keep two cores busy: six with long tests, one with short ones.
WORKERS ?= 7
BENCH_ARGS ?= --workload all --filters 1k --filters 10k
BACKTEST_ARGS ?= --rows 100M --filters 1000
# `make timemachine`: rounds of the network and of Spark, and the seed, by default a random one.
ROUNDS ?= 440
SPARK_ROUNDS ?= 60
SEED ?=
# `make chain`: processes to kill while the chain runs.
KILLS ?= 60

.PHONY: help setup demo test test-newest kafka s3a check types style imports soak kills timemachine chain hostile bench build-5m backtest pictures lock clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## /{printf "  make %-11s %s\n", $$1, $$2}' Makefile

setup: $(READY) ## create .venv with everything that is needed

demo: $(READY) ## show tidings at work on real data
	@$(BIN)/tidings demo

test: check ## check, then run the tests
	$(BIN)/python -m pytest -n $(WORKERS) --durations 20 -m "not slow and not bench" $(PYTEST_ARGS)

test-newest: $(MADE) ## run the Spark tests with the newest PySpark, in a second environment
	@test -x $(NEWEST)/bin/python || $(BIN)/python -m venv --clear $(NEWEST)
	@mkdir -p build && grep -v -E '^(pyspark|py4j)==' constraints.txt > build/constraints-newest.txt
	@$(NEWEST)/bin/python -m pip --disable-pip-version-check install --quiet --upgrade \
	    -c build/constraints-newest.txt -e ".[connect,dev,demo,feeds,ontologies,plot,relations,spark]" \
	    "pyspark$(if $(PYSPARK),==$(PYSPARK))"
	@PIP_CONSTRAINT=constraints.txt $(NEWEST)/bin/python -m tidings.spark.session.java
	@$(NEWEST)/bin/python -c "import pyspark; print('PySpark', pyspark.__version__)"
	$(NEWEST)/bin/python -m pytest -n $(WORKERS) -m "spark and not slow and not bench" $(PYTEST_ARGS)

kafka: $(READY) ## run the tests of Kafka, also the slow ones; they fail if there is no broker
	TIDINGS_KAFKA=required $(BIN)/python -m pytest -k kafka tests/spark tests/cli/test_bench_chain.py $(PYTEST_ARGS)

s3a: $(READY) ## run the tests of S3 through Spark; the first time, they fetch 19 MB of jars
	TIDINGS_S3A=required $(BIN)/python -m pytest tests/spark/test_s3a.py $(PYTEST_ARGS)

check: $(READY) ## check style, formatting, types and imports
	@$(MAKE) --no-print-directory -j 2 types imports

# The parts of `make check`, two at once: mypy takes longer than all others together.
types: $(READY)
	$(BIN)/mypy

style: $(READY)
	$(BIN)/ruff check
	$(BIN)/ruff format --check

imports: style
	$(BIN)/lint-imports

soak: $(READY) ## run the slow and the random tests, with many more examples
	TIDINGS_PROFILE=soak $(BIN)/python -m pytest -m "slow or (random and not bench)" $(PYTEST_ARGS)

kills: $(READY) ## kill pipelines and routers at random moments, and log each kill
	$(BIN)/python -m pytest -s tests/spark/kills tests/broker/kills $(PYTEST_ARGS)

timemachine: $(READY) ## restore and damage files between runs; part of kills
	$(if $(SEED),TIDINGS_SEED=$(SEED)) TIDINGS_ROUNDS=$(ROUNDS) TIDINGS_SPARK_ROUNDS=$(SPARK_ROUNDS) \
	    $(BIN)/python -m pytest -s -k all_rounds tests/broker/kills/test_timemachine.py \
	    tests/spark/kills/test_timemachine.py $(PYTEST_ARGS)

chain: $(READY) ## run the chain from rows to agents, and kill 60 of its processes
	$(BIN)/tidings bench chain --kills $(KILLS) $(if $(SEED),--seed $(SEED))

hostile: $(READY) ## attack a network from within for ten minutes, while honest clients use it
	$(BIN)/python -m pytest -s -m slow tests/broker/hostile $(PYTEST_ARGS)

bench: $(READY) ## run the benchmarks
	$(BIN)/tidings bench match $(BENCH_ARGS)
	$(BIN)/python -m pytest -m bench $(PYTEST_ARGS)

build-5m: $(READY) ## compile 5,000,000 subscriptions on Spark; report time and memory
	$(BIN)/tidings bench build --filters 5M

backtest: $(READY) ## test 1,000 filters on 100 million flights (1.5 GB in the cache)
	$(BIN)/tidings bench backtest $(BACKTEST_ARGS)

pictures: $(MADE) ## redraw the pictures of the pages
	$(BIN)/python -m tools.pictures

lock: $(MADE) ## update constraints.txt to the newest versions
	$(BIN)/python tools/lock.py

clean: ## remove the environment and every cache
	rm -rf $(VENV) $(NEWEST) build dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find src tests tools benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

# Both stamp files are written last, so an interrupted set-up starts again.
$(READY): $(MADE) pyproject.toml constraints.txt
	@rm -f $@
	@echo "Installing packages (a few minutes the first time)"
	@$(PIP) install --quiet -c constraints.txt -e ".[connect,dev,demo,feeds,ontologies,plot,relations,spark]"
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
	echo "Creating $(VENV) with $$python"; \
	if ! "$$python" -m venv --clear $(VENV) >&2; then \
	    rm -rf $(VENV); \
	    echo "error: $$python cannot create an environment with pip; on Debian and Ubuntu, run: apt-get install python3-venv" >&2; \
	    exit 1; \
	fi
	@touch $@
