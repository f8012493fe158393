# The commands of the book. Each sets up what it needs.
#
#   make book        build the site with warnings as errors     make serve      show it on this machine
#   make test        run every test and every notebook          make notebooks  renew the references
#   make lint        format, lint and type checks               make clean      remove what was built
#   make check-browser  the tests of the PDF and the reading marks (needs chromium)
#   make check-site  open every page in a browser: weight, axe, search, print (needs chromium)
#   make lighthouse  let Lighthouse mark every page; half an hour on a quiet machine (needs chromium)
#   make bench       measure speed and memory of lnbook (long)  make lab        open the chapters in JupyterLab
#   make sweep       train what takes long, and record it       make reproduce  compare outputs over threads and vectors
#   make pdf         the site, and the book as one PDF (needs chromium)
#
# PYTHON=python3.12      the Python to make the environment with (3.11 or newer)
# TORCH_INDEX=address    an extra package index for torch, for example its CPU builds (see README.md)
# CHAPTER=formula/name   `make notebooks` for one chapter, changed or not;  ALL=1 for all of them
# NAME=name              `make sweep` for one of benchmarks/sweeps
# RUNS=3                 `make lighthouse`: how often Lighthouse measures a page (the median counts)
# PORT=8001              the port of `make serve`
# CHROMIUM=program       the browser that prints `make pdf`, if it is not called chromium

PYTHON ?= python3
PORT ?= 8000
RUNS ?= 1
READY := .venv/.ready
RUN := .venv/bin/python -m

.PHONY: book pdf test check-browser check-site lighthouse serve notebooks reproduce lint bench sweep clean lab setup
.DEFAULT_GOAL := book

book: $(READY)
	@$(RUN) bookbuild book

pdf: $(READY)
	@$(RUN) bookbuild pdf

test: $(READY)
	@$(RUN) ruff check
	@$(RUN) ruff format --check
	@$(RUN) mypy
	@$(RUN) pytest

check-browser: $(READY)
	@$(RUN) pytest tests/browser

check-site: book
	@$(RUN) pytest tests/site --ignore=tests/site/test_lighthouse.py --dist=load

lighthouse: book
	@$(RUN) pytest tests/site/test_lighthouse.py --numprocesses=0 --lighthouse-runs=$(RUNS)
	@$(RUN) tests.site.report

lint: $(READY)
	@$(RUN) ruff check --fix
	@$(RUN) ruff format
	@$(RUN) mypy

serve: book
	@$(RUN) bookbuild serve --port $(PORT)

notebooks: $(READY)
	@$(RUN) bookbuild notebooks $(CHAPTER) $(if $(ALL),--all)

bench: $(READY)
	@$(RUN) benchmarks.norms
	@$(RUN) benchmarks.recurrent
	@$(RUN) benchmarks.transformer
	@$(RUN) benchmarks.steps

sweep: $(READY)
	@$(RUN) benchmarks.sweeps $(NAME)

reproduce: $(READY)
	@$(RUN) bookbuild reproduce

lab: $(READY)
	@.venv/bin/jupyter lab book

clean:
	@rm -rf _build build lnbook.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	@find book lnbook bookbuild tests -name __pycache__ -o -name .ipynb_checkpoints | xargs rm -rf
	@echo "Removed everything that was built; the environment .venv stays"

setup: $(READY)

$(READY): pyproject.toml constraints.txt bookbuild/bootstrap.py
	@command -v $(PYTHON) >/dev/null || { echo "error: there is no '$(PYTHON)' here: install Python 3.11 or newer, or name one with PYTHON=..." >&2; exit 1; }
	@$(PYTHON) bookbuild/bootstrap.py --index "$(TORCH_INDEX)"
