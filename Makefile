# `make demo` and `make test` are the two commands of the README; each sets up .venv with what it needs and no more.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
BASE_STAMP := $(VENV)/.installed-base
DEMO_STAMP := $(VENV)/.installed-demo
STAMP := $(VENV)/.installed
BROWSER_STAMP := $(VENV)/.installed-browser
DOCS_VENV := .venv-docs
DOCS_STAMP := $(DOCS_VENV)/.installed
FUZZ_STAMP := $(VENV)/.installed-fuzz
TRITON_STAMP := $(VENV)/.installed-triton
SERVICE_STAMP := $(VENV)/.installed-service
GPU_PYTHON ?= python3
MINUTES ?= 10

.PHONY: setup demo test test-all test-browser screenshots test-triton test-service test-gpu lint types imports unit unit-all format experiments benchmarks docs audit-deps fuzz clean

setup: $(STAMP)

# torch first and alone: the pinned CPU build. Asking for it together with the rest could pull another one.
$(BASE_STAMP): constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check "pip==26.3"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt torch==2.13.0
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt hatchling editables
	touch $(BASE_STAMP)

$(STAMP): $(BASE_STAMP) pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation -c constraints.txt -e ".[all,dev]" -e ./lab
	touch $(STAMP)

$(DEMO_STAMP): $(BASE_STAMP) pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation -c constraints.txt -e ".[demo]"
	touch $(DEMO_STAMP)

demo: $(DEMO_STAMP)
	$(BIN)/gcon demo

# What you wait for: at most five minutes on two cores. What takes longer is marked `slow`.
test: lint types imports unit

test-all: lint types imports unit-all

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/mypy

imports: setup
	$(BIN)/lint-imports

# One thread per worker: two workers of two threads each would fight over two cores.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest --durations=10

unit: setup
	$(PYTEST) -n 2 --dist worksteal -m "not slow"

unit-all: setup
	$(PYTEST) -n 2 --dist worksteal

# The report in the system's Chromium. What drives it is installed on demand, so `make test` does without.
test-browser: $(BROWSER_STAMP)
	@command -v chromium > /dev/null || command -v chromium-browser > /dev/null || \
		{ echo "make test-browser needs Chromium on the PATH. On Debian: apt-get install chromium" >&2; exit 1; }
	$(PYTEST) tests_browser -n 2

# Pictures of every page, to be looked at: three widths, both themes. With the docs if `make docs` was run before.
screenshots: $(BROWSER_STAMP)
	$(BIN)/python -m tests_browser.screenshots --out screenshots

$(BROWSER_STAMP): $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation -c constraints.txt -e ".[browser]"
	touch $(BROWSER_STAMP)

# The GPU's kernels without a GPU: Triton interprets them. It is large, so `make test` does without.
test-triton: $(TRITON_STAMP)
	$(PYTEST) tests_triton -n 2

$(TRITON_STAMP): $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation -c constraints.txt -e ".[triton]"
	touch $(TRITON_STAMP)

# Ten thousand requests made up from the service's own schema, by schemathesis.
test-service: $(SERVICE_STAMP)
	$(PYTEST) tests_service

$(SERVICE_STAMP): $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation -c constraints.txt -e ".[schema]"
	touch $(SERVICE_STAMP)

# On a machine with a GPU, with whatever torch is there: the kernels against the reference, and training on both devices.
test-gpu:
	PYTHONPATH=src $(GPU_PYTHON) -m pytest -p no:cacheprovider tests/device

# The readers against hostile files, for MINUTES in all; exits with 1 when one broke the contract. `make test` replays the
# corpus without atheris.
fuzz: $(FUZZ_STAMP)
	nice -n 10 $(BIN)/python -m fuzz.run all --minutes $(MINUTES)

$(FUZZ_STAMP): $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation -c constraints.txt -e ".[fuzz]"
	touch $(FUZZ_STAMP)

# Long work has commands of its own; both exit with 1 when a threshold is missed.
benchmarks: setup
	$(BIN)/python benchmarks/solver.py
	$(BIN)/python benchmarks/propagation.py
	$(BIN)/python benchmarks/memory.py
	$(BIN)/python benchmarks/sweep.py
	$(BIN)/python benchmarks/noise.py

# Needs the real graphs: GCON_DATA. Resumes where it stopped.
experiments: setup
	$(BIN)/gcon reproduce all --competitors docs/results/baselines.csv --out results/paper
	$(BIN)/gcon reproduce beyond --out results/beyond
	$(BIN)/python -m gcon_lab.experiments.centring --out results/centring
	$(BIN)/python -m gcon_lab.experiments.baselines --out results/baselines

# The docs' own tools, in an environment of their own: gcon and torch are not needed to read our sources.
$(DOCS_STAMP): pyproject.toml constraints.txt
	test -x $(DOCS_VENV)/bin/python || $(PYTHON) -m venv $(DOCS_VENV)
	$(DOCS_VENV)/bin/python -m pip install --quiet --disable-pip-version-check "pip==26.3"
	$(DOCS_VENV)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt --group docs
	touch $(DOCS_STAMP)

# Strictly, into site/VERSION. The site must work without a network: nothing in a page may be loaded from outside.
docs: $(DOCS_STAMP)
	$(DOCS_VENV)/bin/python docs/build.py

# Asks for advisories about what is installed. Where no source of them answers it says NOT AUDITED and ends with 0.
audit-deps: setup
	-$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt pip-audit
	$(BIN)/python -m gcon_lab.audits.dependencies

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) $(DOCS_VENV) .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis dist build site
