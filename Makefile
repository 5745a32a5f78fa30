# SPDX-License-Identifier: GPL-2.0
# make gate: the default run; make series: the patches; make check: unit tests of the scripts;
# make test: the packages needed, then all three; make check-kernels: tests that build kernels, for
# some minutes; make docs: Documentation/ as HTML in Documentation/_build

PYTHON ?= python3
GATE_ARGS ?=

gate:
	scripts/gate run $(GATE_ARGS)

# 6.12 in full, as the gate builds it anyway; 6.1 without builds, for its own context lines.
series:
	scripts/series check --tree 6.12
	scripts/series check --tree 6.1 --only mails --only tools

test: packages check series gate

packages:
	scripts/gate packages

check:
	$(PYTHON) -B -m unittest discover -s tests -t .

# In the cache of the gate, which has to have built its default tree before.
check-kernels:
	$(PYTHON) -B -m unittest discover -s tests/kernels -t . -p 'check_*.py'

docs:
	sphinx-build -W -q Documentation Documentation/_build

.PHONY: gate series test packages check check-kernels docs
.NOTPARALLEL:
