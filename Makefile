# Every chore of the project is a target here; CONTRIBUTING.md explains them.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

TESTS := tests
TIMES := 1
SURROUNDINGS :=
ACTIONLINT := github.com/rhysd/actionlint/cmd/actionlint@v1.7.12
NEW_PYTHONS := 3.14 3.15
PAGE := queryprof/report/html/page
TEST_OPTIONS := -q -rs -n 3 --dist worksteal -m 'not compat and not slow' -p no:cacheprovider
NIGHTLY := lint package wheels demo test test-slow test-anywhere sanitize coverage compat site docs bench-check bench bench-gains bench-fleet \
           responsiveness offloading searches
NIGHTLY_LOGS := .nox/nightly
POINT_SELECT := benchmarks/overhead.py --case "point select by" --tool queryprof --rounds 15 --minima

.PHONY: help venv demo test test-slow test-anywhere package wheels picture bench bench-check bench-gains bench-fleet bench-pythons searches responsiveness offloading compat lint docs site coverage release sanitize \
        test-new-pythons test-arm64 nightly clean

help:
	@grep -E '^[a-z0-9.-]+:.*##' Makefile | sed -E 's/:.*## /\t/' | expand -t 18

$(BIN)/nox: requirements-dev.txt # the tools; what they test they build themselves
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $$(grep ^uv== requirements-dev.txt)
	$(BIN)/uv pip install --quiet --python $(BIN)/python -r requirements-dev.txt
	@touch $@

$(BIN)/queryprof: $(BIN)/nox setup.py setup.cfg pyproject.toml $(wildcard queryprof/core/*/*.[ch])
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-build-isolation -e .
	@touch $@

venv: $(BIN)/queryprof ## the tools and an editable installation, in .venv

demo: ## installs queryprof in .venv-demo, profiles a real program over 28,000 airports, prints the report
	test -x .venv-demo/bin/python || $(PYTHON) -m venv .venv-demo
	.venv-demo/bin/python -m pip install --quiet --disable-pip-version-check . $$(grep ^airportsdata== requirements-dev.txt)
	.venv-demo/bin/queryprof run -o airports.qprof examples/airports/app.py

test: $(BIN)/nox ## runs the tests on every Python from 3.11 to 3.15 that is here
	$(BIN)/python -m nox --session $(TESTS)

test-slow: $(BIN)/nox ## the tests that take long, and more random programs (ten minutes)
	.ci/system-packages slow
	$(BIN)/python -m nox --session slow

test-anywhere: $(BIN)/nox ## the tests in nine surroundings (as root, hours), TIMES=1, or some: SURROUNDINGS="busy sid"
	.ci/system-packages
	$(BIN)/python -m nox --session anywhere -- $(TIMES) $(SURROUNDINGS)

package: $(BIN)/nox ## sdist, wheel, an installation without a compiler, and its end
	$(BIN)/python -m nox --session package

wheels: $(BIN)/nox ## wheels for old and small Linux, x86-64 and aarch64, of each Python that is here
	$(BIN)/python -m nox --session wheels

bench: $(BIN)/queryprof ## measures what recording costs, beside other tools (ten minutes)
	$(BIN)/python benchmarks/overhead.py
	$(BIN)/python benchmarks/growth.py
	$(BIN)/python benchmarks/files.py
	$(BIN)/python benchmarks/loops.py
	$(BIN)/python benchmarks/drivers.py
	$(BIN)/python benchmarks/pytest_plugin.py
	$(BIN)/python benchmarks/pages.py
	$(BIN)/python benchmarks/top.py
	$(BIN)/python benchmarks/advice.py
	$(BIN)/python benchmarks/replay.py

searches: $(BIN)/queryprof ## the searches for a number of workers, compared on replays (half an hour)
	$(BIN)/python benchmarks/searches.py

responsiveness: $(BIN)/queryprof ## a server with its database on and off the event loop, compared (three minutes)
	$(BIN)/python examples/responsiveness/responsiveness.py

offloading: $(BIN)/queryprof ## which work is worth moving off an event loop: eight configurations (five minutes)
	$(BIN)/python examples/offloading/offloading.py
	$(BIN)/python examples/offloading/offloading.py --slow-disk 10
	$(BIN)/python examples/offloading/offloading.py --loop twisted --rounds 3

compat: $(BIN)/nox ## runs other programs' own test suites under queryprof, and compares
	$(BIN)/python -m nox --session compat

lint: $(BIN)/nox ## ruff, mypy --strict, clang-format, deno's formatter, spelling, the core for each target, actionlint (where go is)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/clang-format --dry-run --Werror queryprof/core/*/*.[ch] tests/*.c
	$(BIN)/deno fmt --quiet --check --line-width=100 $(PAGE)
	git ls-files -z '*.md' '*.py' '*.pyi' '*.[ch]' '*.js' | xargs -0 $(BIN)/codespell
	if command -v go > /dev/null; then go run $(ACTIONLINT); fi
	$(BIN)/python -m nox --session types targets

picture: $(BIN)/queryprof ## draws the pictures in README and docs/, of a real run (needs chromium)
	cd examples/airports && PATH=$(CURDIR)/$(BIN):$$PATH queryprof run --no-report -o $(CURDIR)/picture.qprof python app.py
	$(BIN)/queryprof html $(CURDIR)/picture.qprof
	$(BIN)/python docs/picture.py picture.qprof
	$(BIN)/python docs/pictures.py picture.qprof picture.html
	rm picture.qprof picture.html

docs: picture ## runs all that README.md and docs/ show; draws the pictures, writes docs/findings.md
	$(BIN)/python docs/findings_page.py
	$(BIN)/pytest -q -n 3 --dist worksteal tests/test_documentation.py

coverage: $(BIN)/nox ## which lines of Python and of C the tests run
	$(BIN)/python -m nox --session coverage

site: $(BIN)/queryprof ## the documentation as a site, with the API's reference, in site/
	$(BIN)/python -m nox --session site

release: $(BIN)/queryprof ## checks a version, and makes what is uploaded: CONTRIBUTING.md
	$(BIN)/python -m nox --session release

sanitize: $(BIN)/nox ## the tests of the core under ASan and UBSan, and without memory
	$(BIN)/python -m nox --session sanitize

test-new-pythons: ## the tests on CPython 3.14 and 3.15, from Debian's sid in a folder of its own (as root)
	tests/in-debian.sh sid amd64 "$(NEW_PYTHONS)" pytest $(TEST_OPTIONS) tests

test-arm64: ## the core's tests on arm64, emulated, from Debian's sid in a folder of its own (as root, an hour)
	tests/in-debian.sh sid arm64 3.14 env QUERYPROF_EXAMPLES=10 pytest $(TEST_OPTIONS) tests/core

bench-gains: $(BIN)/queryprof ## what findings say that a fix wins, beside what it wins (five minutes)
	$(BIN)/python benchmarks/gains.py

bench-check: $(BIN)/queryprof ## fails when a call or a step takes more instructions than is kept (valgrind; minutes)
	$(BIN)/python benchmarks/instructions.py

bench-fleet: $(BIN)/queryprof ## what windows, Parquet files and questions about 13 million sums cost (three minutes)
	$(BIN)/python benchmarks/fleet.py

bench-pythons: $(BIN)/queryprof ## what recording costs on each CPython from 3.11 to 3.15 (as root)
	$(BIN)/python -m nox --session bench -- $(POINT_SELECT)
	tests/in-debian.sh sid amd64 "$(NEW_PYTHONS)" python $(POINT_SELECT)

nightly: ## every target that a machine runs alone, one after the other, and what failed (hours)
	@mkdir -p $(NIGHTLY_LOGS); failed=; for target in $(NIGHTLY); do \
	    start=$$(date +%s); said=ok; \
	    $(MAKE) $$target > $(NIGHTLY_LOGS)/$$target.log 2>&1 || { said=FAILED; failed="$$failed $$target"; }; \
	    printf '%-18s %-6s %6d s\n' $$target $$said $$(($$(date +%s) - start)); \
	done; test -z "$$failed" || { echo "failed:$$failed; what they printed: $(NIGHTLY_LOGS)"; exit 1; }

clean: ## removes what the other targets have made
	rm -rf $(VENV) .nox build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -o -name '*.so' | xargs rm -rf
