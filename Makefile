# Everything runs in .venv, which the first target that needs it makes.
PYTHON ?= python3
BIN = .venv/bin

.PHONY: demo test test-all lint format bench clean

demo: .venv/ready  ## convert the shipped network and show its accuracy at each time step
	$(BIN)/ftbc demo

test: .venv/ready  ## the fast tests
	$(BIN)/python -m pytest

test-all: .venv/ready  ## all tests, the slow ones too
	$(BIN)/python -m pytest -m "slow or not slow"

lint: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

format: .venv/ready
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: .venv/ready  ## speed and memory, as ratios measured side by side
	$(BIN)/python -m benchmarks

# torch first and pinned: a range would take the newest build with several gigabytes of GPU packages.
.venv/ready: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check torch==2.13.0
	$(BIN)/pip install --quiet --disable-pip-version-check -e ".[dev]"
	touch $@

clean:
	rm -rf .venv build dist .pytest_cache .ruff_cache
