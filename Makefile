# Everything runs in .venv, which the first target that needs it makes. `make help` lists the targets.

PYTHON ?= python3
PYTEST_ARGS ?=
BIN := .venv/bin

# Written last, and removed before anything in .venv changes: where it is missing, the last set-up
# did not finish and .venv is made anew. It holds the folder that .venv was made in, because the
# scripts of an environment have that folder written into them and do not survive a move.
STAMP := .venv/metatpe-installed

# What test-min leaves out: tests of the documentation, of the release, and of what is not installed there.
TEST_MIN := $(filter-out tests/bench/% tests/browser/% $(addprefix tests/test_,docs.py release.py examples.py optunahub.py), \
	$(wildcard tests/test_*.py tests/*/test_*.py tests/*/*/test_*.py))

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
# Two processes of tests on two cores: with threads of their own the models' small matrices take twice as long.
test test-all test-min: export OMP_NUM_THREADS = 1
# Where this is set, each of the many processes that the tests start compiles all its packages anew.
test test-all test-min: export PYTHONDONTWRITEBYTECODE =
# Twice as many random examples as in the fast tests.
test-all: export METATPE_EXAMPLES = 2

.PHONY: help demo test test-all test-min lint format docs dist clean FORCE

help:  ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1@\2/p' Makefile | awk -F@ '{printf "%-17s %s\n", $$1, $$2}'

demo: $(STAMP)  ## tune a real task with and without past studies, and with Optuna's TPE
	$(BIN)/metatpe demo

test: lint  ## lint, types and the fast tests
	$(BIN)/pytest -n 2 -m "not slow" $(PYTEST_ARGS)

test-all: lint  ## lint, types and all tests
	$(BIN)/pytest -n 2 $(PYTEST_ARGS)

test-min:  ## the fast tests with the lowest versions that pyproject.toml allows
	rm -rf .venv-min && $(PYTHON) -m venv .venv-min
	.venv-min/bin/python -m pip install -q --disable-pip-version-check --constraint constraints-min.txt \
		--editable .[bench,mlflow,viz] 'pytest>=8.3,<10' 'pytest-xdist>=3.6,<4' 'hypothesis>=6.115,<7' \
		markdown-it-py
	.venv-min/bin/pytest -n 2 -m "not slow" $(TEST_MIN) $(PYTEST_ARGS)

lint: $(STAMP)  ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(STAMP)  ## rewrite the code in the project's format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The variable silences an advertisement of the theme's authors, which is printed as a warning.
docs: $(STAMP)  ## build the documentation into site/, to be read without a server
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "Open site/index.html"

dist: $(STAMP)  ## build the wheel and the source distribution into dist/
	rm -rf dist
	$(BIN)/python -m build

clean:  ## remove .venv, caches and built packages
	rm -f $(STAMP)
	rm -rf .venv .venv-min build dist site .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests benchmarks examples -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

# A stamp alone does not say that .venv still works: its Python may have been removed or replaced
# by another minor version, or the folder moved.
define venv_works
test "$$(cat $(STAMP) 2>/dev/null)" = "$(CURDIR)" && test -x $(BIN)/metatpe && $(BIN)/python -c 'import pip' 2>/dev/null
endef

ifneq ($(shell $(venv_works) && echo yes),yes)
$(STAMP): FORCE
endif

# pip says next to nothing, warnings included; when it fails it is run once more and may talk.
$(STAMP): pyproject.toml constraints.txt
	@if $(venv_works); then \
		echo "Bringing .venv up to date with pyproject.toml and constraints.txt ..."; \
		rm -f $(STAMP); \
	else \
		version=$$($(PYTHON) -c 'import sys; print(sys.version.split()[0])' 2>/dev/null || echo "not there"); \
		$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
			echo "metatpe needs Python 3.11 or newer, but '$(PYTHON)' is $$version;" \
				"name another with: make PYTHON=/path/to/python3.11" >&2; exit 1; }; \
		$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
			echo "'$(PYTHON)' cannot make virtual environments, because its module venv or ensurepip is missing;" \
				"on Debian and Ubuntu: apt-get install python3-venv" >&2; exit 1; }; \
		echo "Setting up .venv with Python $$version (once; a minute or two) ..."; \
		rm -rf .venv && $(PYTHON) -m venv .venv || exit 1; \
	fi; \
	install="$(BIN)/python -m pip install --no-compile --disable-pip-version-check \
		--constraint constraints.txt --editable .[bench,gp,mlflow,ray,viz,wandb,docs,dev]"; \
	{ $$install -qq || $$install; } && echo "$(CURDIR)" > $(STAMP)
