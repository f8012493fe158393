# The commands of the book. Each sets up what it needs.
#
#   make book        build the site with warnings as errors     make serve      show it on this machine
#   make test        run every test and every notebook          make notebooks  renew the references
#   make lint        format; lint, types, spelling              make clean      remove what was built
#   make check-browser  the tests of the PDF and the reading marks (needs chromium)
#   make check-site  open every page in a browser: weight, axe, search, print (needs chromium)
#   make check-links ask for every address outside that a page links to (needs a network)
#   make lighthouse  let Lighthouse mark every page; 20 minutes on two quiet cores (needs chromium)
#   make bench       measure speed and memory of lnbook (long)  make lab        open the chapters in JupyterLab
#   make sweep       train what takes long, and record it       make reproduce  compare outputs under rounding noise
#                    and under other code paths of the libraries (SETTINGS="noise-0 sse" for some)
#   make mutation    change the core in one place at a time, list what no test notices (long)
#   make pdf         the site, and the book as one PDF (needs chromium)
#   make mutants     put known bugs into copies of lnbook, one at a time: which chapter finds each?
#   make update      raise the pins (needs a network), renew the environment and all references
#   make update-pins the first step of that alone               make differences  outputs against the last commit
#   make costs       show how long each chapter ran in its last test, and its peak memory
#   make licenses    list the licenses of what is used          make audit      look for known vulnerabilities
#   make check-oldest  the tests of lnbook with the oldest packages that it supports, in .venv-oldest
#   make check-newest  the same with the newest that there are, in .venv-newest
#
# PYTHON=python3.12      the Python to make the environment with (3.11 or newer)
# TORCH_INDEX=address    an extra package index for torch, for example its CPU builds (see README.md)
# CHAPTER=formula/name   `make notebooks` for one chapter, changed or not;  ALL=1 for all of them
#                        `make reproduce` for one chapter;  default: all
# CHANGED=1              `make reproduce` only for what tests/reproduced.json does not know to be the same
# BUG=name               `make mutants` for one bug;  ALL=1 for all chapters, not up to the first red
# PACKAGE=name           `make update-pins` for some packages and what they need;  default: all
# NAME=name              `make sweep` for one of benchmarks/sweeps
# MODULES=functional     `make mutation` for some files or folders of lnbook only;  AGAIN=1 for what last survived without a reason
# RUNS=3                 `make lighthouse`: how often Lighthouse measures a page (the median counts)
# SAMPLE=1               `make lighthouse` for the few pages named in tests/site/pages.py, as CI does
# PORT=8001              the port of `make serve`
# CHROMIUM=program       the browser that prints `make pdf`, if it is not called chromium

PYTHON ?= python3
PORT ?= 8000
RUNS ?= 1
READY := .venv/.ready
RUN := .venv/bin/python -m
TEXTS := book lnbook bookbuild benchmarks mutation tests .ci .github $(wildcard *.md *.yml *.toml) Makefile CITATION.cff

.PHONY: book pdf test check-browser check-site lighthouse serve notebooks reproduce mutants lint measure clean lab setup check-links differences update update-pins costs licenses audit check-oldest check-newest mutation
.DEFAULT_GOAL := book

book: $(READY)
	@$(RUN) bookbuild book

pdf: $(READY)
	@$(RUN) bookbuild pdf

test: $(READY)
	@$(RUN) ruff check
	@$(RUN) ruff format --check
	@$(RUN) bookbuild lint
	@$(RUN) mypy
	@$(RUN) codespell_lib $(TEXTS)
	@$(RUN) pytest

check-browser: $(READY)
	@$(RUN) pytest tests/browser

check-site: book
	@$(RUN) pytest tests/site --ignore=tests/site/test_lighthouse.py --dist=load

check-links: $(READY)
	@$(RUN) bookbuild check-links

lighthouse: book
	@$(RUN) pytest tests/site/test_lighthouse.py --numprocesses=0 --lighthouse-runs=$(RUNS) $(if $(SAMPLE),--lighthouse-sample)
	@$(RUN) tests.site.report

lint: $(READY)
	@$(RUN) ruff check --fix
	@$(RUN) ruff format
	@$(RUN) bookbuild lint
	@$(RUN) mypy
	@$(RUN) codespell_lib $(TEXTS)

serve: book
	@$(RUN) bookbuild serve --port $(PORT)

notebooks: $(READY)
	@$(RUN) bookbuild notebooks $(CHAPTER) $(if $(ALL),--all)

measure: $(READY)
	@$(RUN) benchmarks $(NAME)

differences: $(READY)
	@$(RUN) bookbuild differences

update-pins: $(READY)
	@$(RUN) bookbuild update-pins $(PACKAGE) --index "$(TORCH_INDEX)"

# Each step is a make of its own, since the first changes what the others are made from.
update:
	@$(MAKE) --no-print-directory update-pins
	@git diff --quiet constraints.txt || $(MAKE) --no-print-directory setup
	@git diff --quiet constraints.txt || $(MAKE) --no-print-directory notebooks ALL=1
	@git diff --quiet constraints.txt || echo "To keep it: make test, then commit. To see it again: make differences"

reproduce: $(READY)
	@$(RUN) bookbuild reproduce $(CHAPTER) $(if $(SETTINGS),--settings $(SETTINGS)) $(if $(CHANGED),--changed)

mutants: $(READY)
	@$(RUN) bookbuild mutants $(if $(BUG),"$(BUG)") $(if $(ALL),--all)

mutation: $(READY)
	@$(RUN) mutation $(MODULES) $(if $(AGAIN),--again)

lab: $(READY)
	@.venv/bin/jupyter lab book

costs: $(READY)
	@$(RUN) bookbuild costs

licenses: $(READY)
	@$(RUN) bookbuild licenses

# --strict: a package that the service does not know fails, too.
audit:
	@$(PYTHON) -m venv .venv-audit
	@.venv-audit/bin/python -m pip install --quiet pip-audit
	@.venv-audit/bin/pip-audit --strict --no-deps --disable-pip --requirement constraints.txt

# What lnbook promises of other versions than the pinned ones: its tests pass. Outputs of chapters are
# promised for the pinned ones alone.
check-oldest: CONSTRAINTS := --constraint constraints-oldest.txt
check-oldest check-newest: check-%:
	@$(PYTHON) -m venv --clear .venv-$*
	@.venv-$*/bin/python -m pip install --quiet $(CONSTRAINTS) --editable ".[book,test]" $(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX))
	@.venv-$*/bin/python -m pytest tests/library tests/property

clean:
	@rm -rf _build build lnbook.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	@find book lnbook bookbuild tests -name __pycache__ -o -name .ipynb_checkpoints | xargs rm -rf
	@echo "Removed everything that was built; the environment .venv stays"

setup: $(READY)

$(READY): pyproject.toml constraints.txt bookbuild/environment/bootstrap.py
	@command -v $(PYTHON) >/dev/null || { echo "error: there is no '$(PYTHON)' here: install Python 3.11 or newer, or name one with PYTHON=..." >&2; exit 1; }
	@$(PYTHON) bookbuild/environment/bootstrap.py --index "$(TORCH_INDEX)"
