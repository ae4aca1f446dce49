# Two commands on a bare machine: `make demo` runs the main job, `make test` passes the tests.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PEERS := .venv-peers
MUTATION := .venv-mutation

.PHONY: demo test types suite long bench mutation clean

# Hundreds of processes are started by the tests, and none should compile the sources again.
unexport PYTHONDONTWRITEBYTECODE

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# torch first and alone, so that nothing else asks for another build of it.
$(VENV)/.base: $(BIN)/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install --disable-pip-version-check -c constraints.txt torch
	$(BIN)/python -m pip install --disable-pip-version-check -c constraints.txt -e ".[models]"
	touch $@

$(VENV)/.dev: $(VENV)/.base
	$(BIN)/python -m pip install --disable-pip-version-check -c constraints.txt -e ".[dev]"
	touch $@

demo: $(VENV)/.base
	$(BIN)/ensue models pull smollm2 minilm
	$(BIN)/ensue run shuffle --model smollm2 --set shuffles=4 --output runs/demo --resume --report

test: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	# One process checks types while the tests run in others.
	$(MAKE) --no-print-directory -j 2 types suite

types: $(VENV)/.dev
	$(BIN)/mypy

# Four processes also on two cores, since tests wait for servers and browsers a good part of their time. Those of a file
# share what its fixtures make and stay together. What was skipped is named.
suite: $(VENV)/.dev
	$(BIN)/pytest -rs -n 4 --dist loadfile

# The same tests, with far more examples of what is tried at random.
long: $(VENV)/.dev
	ENSUE_TESTS=long $(BIN)/pytest -n 4 --dist loadfile

bench: $(VENV)/.base
	test -d $(PEERS) || $(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/python -m pip install --quiet --disable-pip-version-check torch==2.13.0
	$(PEERS)/bin/python -m pip install --quiet --disable-pip-version-check -r bench/requirements-peers.txt
	$(BIN)/python bench/run.py --peers $(PEERS)/bin/python --rounds 2 --documents 1

# Its own environment, which sees the packages of the other: mutmut wants an older pytest.
mutation: $(VENV)/.dev
	test -d $(MUTATION) || $(PYTHON) -m venv $(MUTATION)
	$(MUTATION)/bin/python -m pip install --quiet --disable-pip-version-check -r bench/requirements-mutation.txt
	$(BIN)/python -c "import site; print(site.getsitepackages()[0])" > "$$($(MUTATION)/bin/python -c 'import site; print(site.getsitepackages()[0])')/tested.pth"
	$(MUTATION)/bin/python bench/mutation.py

clean:
	rm -rf $(VENV) $(PEERS) $(MUTATION) runs build dist
