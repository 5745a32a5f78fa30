# SPDX-License-Identifier: GPL-2.0
# make gate: the default run; make test: unit tests, then that; make check: unit tests only

PYTHON ?= python3
GATE_ARGS ?=

gate:
	scripts/gate run $(GATE_ARGS)

test: check gate

check:
	$(PYTHON) -B -m unittest discover -s tests -t .

.PHONY: gate test check
.NOTPARALLEL:
