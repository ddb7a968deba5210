# `make test` and `make demo` are the two commands of the README; both set up .venv first.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: setup demo test lint types imports unit format experiments benchmarks clean

setup: $(STAMP)

# torch first and alone: the pinned CPU build. Asking for it together with the rest could pull another one.
$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check "pip==26.3"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt torch==2.13.0
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt hatchling editables
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation -c constraints.txt -e ".[all,dev]"
	touch $(STAMP)

demo: setup
	$(BIN)/gcon demo

test: lint types imports unit

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/mypy

imports: setup
	$(BIN)/lint-imports

unit: setup
	# One thread a worker: two workers of two threads each would fight over two cores.
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal

# Long work has commands of its own; both exit with 1 when a threshold is missed.
benchmarks: setup
	$(BIN)/python benchmarks/solver.py
	$(BIN)/python benchmarks/propagation.py
	$(BIN)/python benchmarks/memory.py

# Needs the real graphs: GCON_DATA. Resumes where it stopped.
experiments: setup
	$(BIN)/python -m gcon.experiments.accuracy --out results/accuracy
	$(BIN)/python -m gcon.experiments.centring --out results/centring

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis dist build
