# Needs git, make and Python >= 3.11. Everything else is installed into .venv, once.
PYTHON ?= python3
CONSTRAINTS ?= constraints.txt
PROGRAMS := $(if $(filter Windows_NT,$(OS)),Scripts,bin)
BIN := .venv/$(PROGRAMS)
READY := .venv/ready

.DEFAULT_GOAL := help
.PHONY: help setup demo test coverage faults fuzz interop lowest wheel docs lint format clean

help:  ## list the commands
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## (.*)/make \1\t\2/' | expand -t 14

setup: $(READY)  ## create .venv and install oneof with its development tools

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "oneof needs Python >= 3.11; try: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --constraint $(CONSTRAINTS) torch
	$(BIN)/python -m pip install --quiet --constraint $(CONSTRAINTS) --editable '.[dev]'
	@touch $(READY)

demo: $(READY)  ## watch IDGP learn real images from ambiguous labels; writes demo.html
	$(BIN)/oneof demo

test: $(READY)  ## run the tests; says what was skipped and what was slow
	$(BIN)/python -m pytest -n 2 --dist worksteal -rs --durations 10

coverage: $(READY)  ## run the tests, half as slow again, and say which lines none of them reached
	$(BIN)/python -m pytest -n 2 --dist worksteal --cov --cov-report term-missing

faults: $(READY)  ## kill processes, fill disks, move clocks; prints what survived (20 minutes)
	PYTHONPATH=tests:benchmarks $(BIN)/python -m faults --out benchmarks/results/reliability.json

fuzz: $(READY)  ## give every reader 10,000 damaged inputs; prints what became of them (15 minutes)
	PYTHONPATH=tests:benchmarks $(BIN)/python -m fuzz --keep --out benchmarks/results/reliability.json

interop: $(READY) .venv-interop/ready  ## send labels through crowd-kit, cleanlab, Label Studio, Argilla and datasets
	PYTHONPATH=src $(BIN)/python tests/interop --python .venv-interop/$(PROGRAMS)/python $(KEEP)

.venv-interop/ready: tests/interop/requirements.txt
	$(PYTHON) -m venv .venv-interop
	.venv-interop/$(PROGRAMS)/python -m pip install --quiet --requirement tests/interop/requirements.txt
	@touch .venv-interop/ready

lowest: .venv-lowest/ready  ## run tests with the lowest versions that pyproject.toml allows (3 minutes)
	PYTHONPATH=src .venv-lowest/$(PROGRAMS)/python -m pytest $(LOWEST)

LOWEST := $(addprefix tests/test_,package.py sklearn.py labels.py em.py tables.py table_encoder.py cli.py onnx.py pipeline.py \
  exchange.py models.py)

.venv-lowest/ready: tests/lowest.py pyproject.toml
	$(PYTHON) -m venv .venv-lowest
	$(PYTHON) tests/lowest.py > .venv-lowest/requirements.txt
	.venv-lowest/$(PROGRAMS)/python -m pip install --quiet --requirement .venv-lowest/requirements.txt
	@touch .venv-lowest/ready

wheel: .venv-wheel/ready  ## build wheel and sdist into dist/, and try the wheel in a clean environment (3 minutes)
	.venv-wheel/$(PROGRAMS)/python tests/wheel

.venv-wheel/ready: tests/wheel/requirements.txt constraints.txt
	$(PYTHON) -m venv .venv-wheel
	.venv-wheel/$(PROGRAMS)/python -m pip install --quiet --constraint $(CONSTRAINTS) --requirement tests/wheel/requirements.txt
	@touch .venv-wheel/ready

docs: $(READY) .venv-docs/ready  ## build the site, run the code on its pages, look at it in a browser; build/site (5 minutes)
	PYTHONPATH=src .venv-docs/$(PROGRAMS)/python docs/tools/docstring_check.py
	PYTHONPATH=$(CURDIR)/src NO_MKDOCS_2_WARNING=1 .venv-docs/$(PROGRAMS)/python -m mkdocs build --strict
	PYTHONPATH=src .venv-docs/$(PROGRAMS)/python docs/tools/check.py build/site

# The site's tools beside those of .venv, which run the code on its pages.
.venv-docs/ready: docs/tools/requirements.txt
	$(PYTHON) -m venv .venv-docs
	.venv-docs/$(PROGRAMS)/python -m pip install --quiet --requirement docs/tools/requirements.txt
	$(BIN)/python -c 'import sysconfig; print("import site; site.addsitedir(%r)" % sysconfig.get_path("purelib"))' \
	  > $$(.venv-docs/$(PROGRAMS)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/oneof-environment.pth
	@touch .venv-docs/ready

lint: $(READY)  ## check format, style, types and which room imports which
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(READY)  ## rewrite the code in the house style
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:  ## remove what the commands above made
	rm -rf .venv .venv-interop .venv-lowest .venv-wheel .venv-docs .pytest_cache .ruff_cache .mypy_cache .hypothesis .import_linter_cache build dist demo.html
