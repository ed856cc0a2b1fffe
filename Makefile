.DEFAULT_GOAL := help
.PHONY: help demo check fix test test-all conformance mutants contract examples constraints
.SUFFIXES:

# Hundreds of programs that tests start would each compile, and pytest rewrite, all that they import.
unexport PYTHONDONTWRITEBYTECODE

PYTHONS = $(foreach version,3.11 3.12 3.13,$(if $(shell tools/find-python.sh $(version) 2>/dev/null),$(version)))
IN_MEMORY = tools/in-memory.sh
PYTEST = -m pytest -n auto --dist worksteal $(ARGS)
INSTALLED = pyproject.toml constraints.txt tools/make-venv.sh

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: .venv/base ## Run the document pipeline on SQLite, with the base package alone
	.venv/bin/python -m examples.document_pipeline

check: .venv/dev ## Format, lint, types, import directions
	.venv/bin/ruff format --check
	.venv/bin/ruff check
	.venv/bin/pyright
	.venv/bin/lint-imports

fix: .venv/dev ## Mend what the formatter and the linter can
	.venv/bin/ruff check --fix-only
	.venv/bin/ruff format

test: .venv/dev ## Run the tests (ARGS="tests/memory -k claim" chooses)
	$(IN_MEMORY) .venv/bin/python $(PYTEST)

test-all: ## Run the tests on every Python from 3.11 to 3.13 that is here
	@for version in $(PYTHONS); do \
		$(MAKE) --no-print-directory .venv-$$version/test && $(IN_MEMORY) .venv-$$version/bin/python $(PYTEST) || exit 1; \
	done

conformance: .venv/dev ## Hold the built-in adapters to the contract and print the matrix
	$(IN_MEMORY) .venv/bin/python -m conformance run tests.conformance.backends:all_specs --profile full $(ARGS)
	@.venv/bin/python -m tests.mutants.matrix --score

mutants: .venv/dev ## Try the clauses on the mutants that have changed, and write docs/mutants.md
	.venv/bin/python -m tests.mutants.matrix $(ARGS)

contract: .venv/dev ## Write docs/contract.md from the clauses, and remember their ids
	.venv/bin/python -m conformance docs --output docs/contract.md --ids conformance/ids.json

examples: .venv/dev ## Run the examples that need no server
	.venv/bin/python -m examples.asyncio_service
	@for example in examples/*/__main__.py; do \
		name=$${example#examples/}; .venv/bin/python -m examples.$${name%/__main__.py} || exit 1; \
	done

constraints: ## Take the newest releases into constraints.txt
	tools/update-constraints.sh

.venv/%: $(INSTALLED)
	tools/make-venv.sh .venv $*

.venv-3.11/test .venv-3.12/test .venv-3.13/test: .venv-%/test: $(INSTALLED)
	tools/make-venv.sh .venv-$* test "$$(tools/find-python.sh $*)"
