# The commands of tasks.py under the names of make: `make help` lists them.

PYTHON ?= python3
COMMANDS := book test lint package notebooks-test site-test hub-test notebooks \
	runs lab serve bench classroom wheel pins clean

.PHONY: help $(COMMANDS)
help $(COMMANDS):
	@$(PYTHON) tasks.py $@
