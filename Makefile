# `make help` lists the commands. Each one sets up whatever it needs.

PYTHON ?= python3
PORT ?= 8000
RUNS ?= 1
READY := .venv/.ready
RUN := .venv/bin/python -m
TEXTS := book labs lnbook bookbuild benchmarks mutation tests .ci .github $(wildcard *.md *.yml *.toml) Makefile CITATION.cff

# The packages are installed without bytecode, since Python compiles a module when it's first imported.
# Many containers tell Python not to keep the bytecode; then, each process would compile everything.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := book
.PHONY: help book serve lab pdf slides test lint chapter notebooks differences reproduce check-site lighthouse measure bugs mutation update setup clean check-oldest check-newest

help: ## list the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' Makefile
	@printf '  make %-12s %s\n' check-oldest 'test lnbook with the oldest supported packages; check-newest: with the newest'
	@printf '\nVariables:\n'
	@awk -F '^#= ' '/^#= /{print "  " $$2}' Makefile

#= PYTHON=python3.12     the Python to create the environment with, 3.11 or newer
#= TORCH_INDEX=address   where to get PyTorch; "default" is pip's own index (with CUDA on Linux)
#= NAME=part/chapter     for chapter, test, notebooks and reproduce; part/chapter/record for measure
#= ALL=1                 for notebooks and bugs: all of them, even if nothing changed
#= SETTINGS="noise-0 sse"  for reproduce: only these settings;  CHANGED=1: only chapters that changed
#= SAMPLE=1 RUNS=3       for lighthouse: only a few pages;  how many times to measure each page
#= AGAIN=1 CHROMIUM=program BOOK_URL=https://...   for mutation (retry the last run's survivors), the browser, a published site
#= BUG="name" MODULES=functional PACKAGE=name PORT=8001   for bugs, mutation, update, serve

book: $(READY) ## build the site, with warnings as errors (two minutes; the first time, two to four more for the environment)
	@$(RUN) bookbuild book

serve: book ## show the site at http://127.0.0.1:8000/
	@echo "http://127.0.0.1:$(PORT)/ (stop with Ctrl+C)"
	@$(RUN) http.server --bind 127.0.0.1 --directory _build/html $(PORT) >/dev/null 2>_build/serve.log || [ $$? -eq 130 ] || { echo "error: can't serve the site on port $(PORT): $$(tail -n 1 _build/serve.log)" >&2; exit 1; }

lab: $(READY) ## open the chapters as notebooks in JupyterLab
	@.venv/bin/jupyter lab book

pdf: $(READY) ## build the site, and the book as one PDF (needs Chromium)
	@$(RUN) bookbuild pdf

slides: $(READY) ## build only the lecture slides, into _build/slides (half a minute)
	@$(RUN) bookbuild slides

# With NAME: one chapter. Its code and test folders use _ where its text and notebook use -.
FOLDER = $(subst -,_,$(NAME))
RULES := $(addprefix tests/book/test_,book.py needs.py references.py terms.py tree.py)
ONE = $(RULES) tests/chapters/shared/test_figures.py lnbook/chapters/$(FOLDER) tests/chapters/$(FOLDER) tests/notebooks/$(NAME).ipynb

test: $(READY) ## lint, run all tests that don't need a browser, execute every chapter (9 minutes)
	@$(RUN) ruff check
	@$(RUN) ruff format --check
	@$(RUN) bookbuild lint
	@$(RUN) mypy
	@$(RUN) codespell_lib $(TEXTS)
	@$(RUN) tests.helpers.compile_kernels
	@$(RUN) pytest $(if $(NAME),$(ONE))

lint: $(READY) ## format; check style, types and spelling (half a minute)
	@$(RUN) ruff check --fix
	@$(RUN) ruff format
	@$(RUN) bookbuild lint
	@$(RUN) mypy
	@$(RUN) codespell_lib $(TEXTS)

chapter: $(READY) ## start a new chapter: NAME=part/chapter
	@$(RUN) bookbuild chapter "$(NAME)"

notebooks: $(READY) ## execute the chapters that changed, update their stored outputs, show what differs
	@$(RUN) bookbuild notebooks $(NAME) $(if $(ALL),--all)

differences: $(READY) ## show how stored outputs differ from the last commit
	@$(RUN) bookbuild differences

reproduce: $(READY) ## compare outputs under rounding noise and other code paths (an hour for all)
	@$(RUN) bookbuild reproduce $(NAME) $(if $(SETTINGS),--settings $(SETTINGS)) $(if $(CHANGED),--changed)

check-site: book ## open every page in a browser, print the PDF (needs Chromium, and network access the first time; 9 minutes)
	@$(RUN) pytest tests/site --ignore=tests/site/test_lighthouse.py --dist=loadgroup

lighthouse: book ## score every page with Lighthouse (needs Chromium, and network access the first time; 20 minutes)
	@$(RUN) pytest tests/site/test_lighthouse.py --numprocesses=0 --lighthouse-runs=$(RUNS) $(if $(SAMPLE),--lighthouse-sample)
	@$(RUN) tests.site.report

measure: $(READY) ## run a long training or timing script and record its results in lnbook/measurements
	@$(RUN) benchmarks $(NAME)

bugs: $(READY) ## put known bugs into copies of lnbook: which chapter catches each one? (long)
	@$(RUN) bookbuild bugs $(if $(BUG),"$(BUG)") $(if $(ALL),--all)

mutation: $(READY) ## change the library in one place at a time: which changes go unnoticed by the tests? (hours)
	@$(RUN) mutation $(MODULES) $(if $(AGAIN),--again)

# Each step is a separate make, because the first one changes the inputs of the others.
update: $(READY) ## raise the pinned versions, then execute everything again (needs network access)
	@$(RUN) bookbuild update-pins $(PACKAGE) --index "$(filter-out default,$(TORCH_INDEX))"
	@git diff --quiet constraints.txt || $(MAKE) --no-print-directory setup
	@git diff --quiet constraints.txt || $(MAKE) --no-print-directory notebooks ALL=1
	@git diff --quiet constraints.txt || echo "To keep the update, run make test and commit. To see the differences again, run make differences"

clean: ## remove all build products except the environment
	@rm -rf _build build lnbook.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	@find book lnbook bookbuild tests -name __pycache__ -o -name .ipynb_checkpoints | xargs rm -rf
	@echo "Removed all build products; the environment in .venv is still there"

setup: $(READY) ## create the environment in .venv, or update it after the pinned versions change

# With the pinned versions, chapters give the same outputs. With other versions, lnbook promises only
# that its tests pass.
check-oldest: CONSTRAINTS := --constraint constraints-oldest.txt
check-oldest check-newest: check-%:
	@$(PYTHON) -m venv --clear .venv-$*
	@.venv-$*/bin/python -m pip install --quiet $(CONSTRAINTS) --editable ".[book,gpu,test]" $(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX))
	@.venv-$*/bin/python -m pytest tests/library tests/property

$(READY): pyproject.toml constraints.txt bookbuild/environment/bootstrap.py
	@command -v $(PYTHON) >/dev/null || { echo "error: '$(PYTHON)' not found. Install Python 3.11 or newer, or choose one with PYTHON=..." >&2; exit 1; }
	@$(PYTHON) bookbuild/environment/bootstrap.py --index "$(TORCH_INDEX)"
