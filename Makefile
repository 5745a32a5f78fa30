# SPDX-License-Identifier: GPL-2.0
# make gate: the default run; make test: the packages needed, unit tests, then that; make check: unit tests only;
# make docs: Documentation/ as HTML in Documentation/_build

PYTHON ?= python3
GATE_ARGS ?=

gate:
	scripts/gate run $(GATE_ARGS)

test: packages check gate

packages:
	scripts/gate packages

check:
	$(PYTHON) -B -m unittest discover -s tests -t .

docs:
	sphinx-build -W -q Documentation Documentation/_build

.PHONY: gate test packages check docs
.NOTPARALLEL:
