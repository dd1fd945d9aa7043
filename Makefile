# Everything runs in .venv, which the first target that needs it makes.
PYTHON ?= python3
BIN = .venv/bin

.PHONY: demo test test-all test-interop lint format audit docs bench peers clean

demo: .venv/ready  ## convert the shipped network and show its accuracy at each time step
	$(BIN)/ftbc demo

# A process for each core: tests use one thread each.
test: .venv/ready  ## the fast tests
	$(BIN)/python -m pytest -n auto

test-all: .venv/ready  ## all tests, the slow ones too
	$(BIN)/python -m pytest -n auto -m "slow or not slow"

# Our files in the programs they are for, and our network with their neurons; what they did goes into results/.
test-interop: .venv/ready .venv-interop/ready .venv-interop-old/ready  ## files and modules in other people's programs
	rm -f results/exports/interop.jsonl && mkdir -p results/exports
	FTBC_INTEROP=. FTBC_INTEROP_TABLE=results/exports/interop.jsonl $(BIN)/python -m pytest tests/interop
	PYTHONPATH=src .venv-interop/bin/python -m pytest tests/export/test_modules.py

lint: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

format: .venv/ready
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Asks the registry for known faults of what is installed; a mirror without advisories answers "could not be audited".
audit: .venv/ready  ## known faults of the dependencies, by pip-audit
	$(BIN)/pip install --quiet --disable-pip-version-check pip-audit
	$(BIN)/pip-audit --skip-editable

docs: .venv/ready  ## the documentation as a site, in site/; what is wrong with a link is an error
	$(BIN)/python -m tests.support_page --write
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# PARTS="engines memory" measures some of it; FTBC_SHARED names a folder with weights/ and data/ for MobileNet.
bench: .venv/ready  ## speed and memory, as ratios measured side by side, and the tables and the plot made of them
	-$(MAKE) peers
	$(BIN)/python -m benchmarks $(PARTS)
	$(BIN)/python -m benchmarks.tables --write

peers: .venv-peers/ready  ## other people's programs to compare with, in an environment of their own

# torch first and pinned: a range would take the newest build with several gigabytes of GPU packages.
.venv/ready: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check torch==2.13.0
	$(BIN)/pip install --quiet --disable-pip-version-check -e ".[dev]"
	touch $@

# Without their dependencies, because SpikingJelly asks for torchvision and torchaudio, whose wheels do not import beside
# a torch without a GPU. What cannot be installed is left out of the comparison, which says so.
PEERS = .venv-peers/bin/pip install --quiet --disable-pip-version-check
.venv-peers/ready: Makefile
	$(PYTHON) -m venv .venv-peers
	$(PEERS) torch==2.13.0
	$(PEERS) numpy safetensors
	-$(PEERS) onnx==1.23.2 onnxscript onnxruntime==1.31.1
	-$(PEERS) tqdm "loguru>=0.7,<1" packaging requests
	-$(PEERS) --no-deps spikingjelly==2.0.0
	-$(PEERS) --no-deps snntorch==1.0.0
	touch $@

# Without their dependencies, for the same reason. sinabs reads nir 1.0.4, all others its successors.
INTEROP = .venv-interop/bin/pip install --quiet --disable-pip-version-check
.venv-interop/ready: Makefile
	$(PYTHON) -m venv .venv-interop
	$(INTEROP) torch==2.13.0
	$(INTEROP) numpy safetensors pytest hypothesis nir==1.0.8 tqdm "loguru>=0.7,<1" packaging requests
	$(INTEROP) --no-deps nirtorch==2.6 spikingjelly==2.0.0 snntorch==1.0.0
	$(INTEROP) --upgrade setuptools setuptools_scm wheel
	$(INTEROP) --no-deps --no-build-isolation norse==1.1.0
	touch $@

OLD = .venv-interop-old/bin/pip install --quiet --disable-pip-version-check
.venv-interop-old/ready: Makefile
	$(PYTHON) -m venv .venv-interop-old
	$(OLD) torch==2.13.0
	$(OLD) numpy nir==1.0.4 pbr matplotlib
	$(OLD) --no-deps nirtorch==1.0 sinabs==3.1.3
	touch $@

clean:
	rm -rf .venv .venv-peers .venv-interop .venv-interop-old build dist site .pytest_cache .ruff_cache
