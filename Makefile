# make demo: several processes remember and find each other's memories.   make test: the test suite.
# make demo-team: two people, three machines (folders here), one memory of a repository; one leaves, the place goes away.
# make check: format, lint, types, imports, spelling, guides, slow tests, model formats.    make bench: every benchmark;
# QUICK=1 has each measure at most 10,000 memories, fewer times.
# make wheel: the wheel and the source distribution in dist/, to install from.
# make release: make wheel, then each way to install that README names, in an environment of its own.
# make stress: the long forms of tests, about half an hour.
# make quality: how good the answers are; SETS=FOLDER adds the public sets that are in a folder, SAVE=FILE names where all
# figures go (.cache/quality.json), BEFORE=FILE has it say what changed since a saved run. make quality-quick: the same on
# a few sets, at most ten minutes.
# make fuzz: ten minutes of random input for each target; FUZZ_S=180 makes that three.
# make soak: 200,000 mixed calls on one daemon, and what becomes of its memory (ten to thirty minutes).
PYTHON ?= python3
VENV := .venv
DIST := $(CURDIR)/dist
FUZZ_S ?= 600
BIN := $(VENV)/bin
# A file of tests runs in one process, files in two more than there are cores: a third of the time is waiting. They begin in
# the order of tests/conftest.py, the longest first.
PARALLEL := --numprocesses $(shell expr `nproc` + 2) --dist loadfile --no-loadscope-reorder
# With it each process would compile all tests anew.
unexport PYTHONDONTWRITEBYTECODE
# Models lie in the checkout, so that nothing here depends on or changes what the user has installed.
export MEMORYD_MODEL_DIR ?= $(CURDIR)/.cache/models

.PHONY: demo demo-team test check stress fuzz bench quality quality-quick soak format protocol wheel release clean

demo: $(VENV)/installed
	$(BIN)/memctl demo

demo-team: $(VENV)/installed
	$(BIN)/python tests/daemon/shared/demo.py

test: $(VENV)/installed
	$(BIN)/python -m pytest $(PARALLEL) -m "not slow and not stress"

check: $(VENV)/installed
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/codespell client daemon models scheduler systemd docs *.md
	$(BIN)/python -m pytest $(PARALLEL) -m "slow and not stress"
	TEST_MODEL_FORMAT=rows7 $(BIN)/python -m pytest $(PARALLEL) -m "model and not slow and not stress"
	TEST_MODEL_FORMAT=fp32 $(BIN)/python -m pytest $(PARALLEL) -m "model and not slow and not stress" tests/models

stress: $(VENV)/installed
	$(BIN)/python -m pytest $(PARALLEL) -m stress

bench: $(VENV)/installed
	$(BIN)/python tests/benchmarks/all.py $(if $(QUICK),--quick)

quality quality-quick: $(VENV)/installed
	$(BIN)/python tests/quality/run.py $(if $(findstring quick,$@),--quick) $(if $(SETS),--sets $(SETS)) \
	  --save $(or $(SAVE),.cache/$@.json) $(if $(BEFORE),--before $(BEFORE))

fuzz: $(VENV)/installed
	FUZZ_S=$(FUZZ_S) $(BIN)/python -m pytest $(PARALLEL) --dist load -rP tests/fuzz

soak: $(VENV)/installed
	$(BIN)/python tests/benchmarks/soak.py

format: $(VENV)/installed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

protocol: $(VENV)/installed
	$(BIN)/python tests/contract/protocol_document.py > protocol.json
	$(BIN)/python tests/contract/golden.py > tests/contract/golden.jsonl
	$(BIN)/python tests/contract/settings_document.py > docs/settings.md
	$(BIN)/python tests/contract/client_methods.py | $(BIN)/ruff format --stdin-filename client/methods.py - > client/methods.next
	mv client/methods.next client/methods.py
	$(BIN)/python tests/contract/readme_document.py > README.next
	mv README.next README.md
	$(BIN)/python tests/contract/reference_document.py > docs/reference.next
	mv docs/reference.next docs/reference.md
	$(BIN)/python tests/contract/mcp_document.py > docs/mcp.next
	mv docs/mcp.next docs/mcp.md

wheel: $(VENV)-build/installed
	rm -f "$(DIST)"/memoryd-*
	$(VENV)-build/bin/python -m build --quiet --no-isolation --outdir "$(DIST)"
	@ls "$(DIST)"/memoryd-*

release: wheel $(VENV)/installed
	$(BIN)/python tests/release.py

$(VENV)/installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	$(BIN)/python -m compileall -q client daemon models scheduler
	touch $@

$(VENV)-build/installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)-build
	$(VENV)-build/bin/python -m pip install --quiet --upgrade build setuptools
	touch $@

clean:
	rm -rf $(VENV) $(VENV)-build .cache build dist src/*.egg-info
