# Every target sets up what it needs. The commands meant for people:
#   make demo    characters walk through a level; picture, numbers, demo.glb and summary in demo-out/
#   make view    the demo in the browser
#   make test    the tests that are not marked slow, on the ordinary build and on the checked build
#   make test-fast   the same on the ordinary build alone
#   make test-slow   the tests marked slow: long properties, all recordings in the reference, every report at length
#   make bench   speed beside other character controllers, in one run
#   make bench-short   three rounds of pycct and culverin only, for every commit
#   make lint    ruff, cython-lint, mypy, stubtest
#   make docs    the documentation as a site in docs-out/html; warnings are errors
#   make sanitize  the tests under the undefined-behaviour, address and thread sanitizers
#   make soak    random worlds, characters and moves, each move checked, for MINUTES=3
#   make fuzz    every public call and kernel with whatever comes, other examples every time; damaged files for MINUTES=3
#   make determinism   one fixed run by every compiler and in every way: one hash
#   make wheels  wheels for every interpreter found, each tested in an empty environment
#   make package sdist, wheel and empty environments, for each interpreter in PYTHONS
#   make clean   removes all that the others made
# PYTHON=... names the interpreter to make the environments from, ARGS=... adds arguments to demo, both benches and all tests but the checked ones.

VENV ?= .venv
DEBUG_VENV := .venv-debug
BENCH_VENV := .venv-bench
PYTHON ?= $(shell tools/find_python 3.10)
# Peers in the benchmark need CPython 3.12.
BENCH_PYTHON ?= $(shell tools/find_python 3.12)
DEMO_OUT ?= demo-out
DOCS_OUT ?= docs-out
PYTHONS ?= $(PYTHON)
ARGS ?=
# Test processes at a time.
JOBS ?= auto
PYTEST_JOBS := -n $(JOBS) --dist worksteal

# What makes an installed build stale: an editable install follows .py files by itself.
COMPILED := pyproject.toml setup.py $(shell find pycct -name '*.pyx' -o -name '*.pxd' -o -name '*.h')
PURE := $(shell find pycct -name '*.py' -o -name '*.pyi')

.PHONY: demo view test test-all test-slow test-debug test-fast bench bench-short docs docs-pictures lint package clean sanitize soak fuzz determinism wheels
.DELETE_ON_ERROR:

demo: $(VENV)/.demo
	$(VENV)/bin/python -m pycct demo --out $(DEMO_OUT) $(ARGS)

view: $(VENV)/.demo
	$(VENV)/bin/python -m pycct demo --out $(DEMO_OUT) --view $(ARGS)

test: test-fast test-debug

test-all: $(VENV)/.dev
	$(VENV)/bin/pytest $(PYTEST_JOBS) tests $(ARGS)

test-slow: $(VENV)/.dev
	$(VENV)/bin/pytest $(PYTEST_JOBS) -m slow tests $(ARGS)

# Away from the root, so that the source folder cannot stand in for the checked build.
test-debug: $(DEBUG_VENV)/.checked
	cd tests && UBSAN_OPTIONS=print_stacktrace=1 ../$(DEBUG_VENV)/bin/pytest -c ../pyproject.toml -p no:cacheprovider $(PYTEST_JOBS) -m "not slow" .

test-fast: $(VENV)/.dev
	$(VENV)/bin/pytest $(PYTEST_JOBS) -m "not slow" tests $(ARGS)

# Threads under ThreadSanitizer; it knows nothing of a race within one thread.
THREADED := properties/test_load.py properties/test_determinism.py package/test_free_threading.py scene/test_scene.py \
	character/test_callbacks.py cube_world/test_slide.py crowd

sanitize:
	tools/run_sanitized undefined "$(PYTHON)" $(PYTEST_JOBS) -m "not slow" $(ARGS) .
	tools/run_sanitized address "$(PYTHON)" $(PYTEST_JOBS) -m "not slow" $(ARGS) .
	tools/run_sanitized thread "$(PYTHON)" $(PYTEST_JOBS) -m "not slow" $(ARGS) $(THREADED)

soak: $(VENV)/.dev
	$(VENV)/bin/python tests/support/soak.py --minutes $(or $(MINUTES),3) $(ARGS)

fuzz: $(VENV)/.dev
	PYCCT_EXPLORE=1 $(VENV)/bin/pytest $(PYTEST_JOBS) -m "hypothesis or slow" tests/properties/test_fuzz.py tests/properties/test_fuzz_files.py \
		tests/geometry/test_closest.py tests/geometry/test_sweep.py $(ARGS)
	$(VENV)/bin/python tools/fuzz_files.py --minutes $(or $(MINUTES),3) --first $$(date +%s) --jobs $$(getconf _NPROCESSORS_ONLN)

# ARGS="--qemu-root DIR" adds aarch64.
determinism: $(VENV)/.dev
	$(VENV)/bin/pip install --quiet "setuptools>=77" "Cython>=3.3.1" ziglang
	$(VENV)/bin/python tools/determinism.py $(ARGS)

wheels:
	wheels/build_local.sh $(ARGS)

bench: $(BENCH_VENV)/.installed
	$(BENCH_VENV)/bin/python bench/run.py $(ARGS)

bench-short: $(BENCH_VENV)/.installed
	$(BENCH_VENV)/bin/python bench/run.py --runs 3 --peers pycct crowd culverin $(ARGS)

# cython-lint looks for pycodestyle on PATH.
lint: $(VENV)/.dev
	$(VENV)/bin/ruff check .
	PATH="$(CURDIR)/$(VENV)/bin:$$PATH" $(VENV)/bin/cython-lint pycct tests
	$(VENV)/bin/mypy
	$(VENV)/bin/stubtest pycct --mypy-config-file pyproject.toml --allowlist tools/stubtest-allowlist.txt

docs: $(VENV)/.docs
	$(VENV)/bin/sphinx-build -W --keep-going -q -b html docs $(DOCS_OUT)/html
	@echo "open $(DOCS_OUT)/html/index.html"

# The pictures in docs/ are drawn by the library; they are in the repository, so this is for when they should change.
docs-pictures: $(VENV)/.docs
	$(VENV)/bin/python docs/contact_pictures.py
	$(VENV)/bin/python docs/parameter_pictures.py

package:
	tools/check_package $(PYTHONS)

clean:
	rm -rf build dist wheelhouse $(DEMO_OUT) $(DOCS_OUT) $(VENV) $(DEBUG_VENV) $(BENCH_VENV) bench-out fuzz-out *.egg-info
	rm -rf .pytest_cache .hypothesis .ruff_cache .mypy_cache tests/.hypothesis
	find pycct -name '*.so' -delete -o -name '*.pyd' -delete -o -name '*.c' -delete
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# --- environments ----------------------------------------------------------------------------------------------------

# $(call make_venv,interpreter,folder)
define make_venv
	@test -n "$(1)" || exit 1
	"$(1)" -m venv --clear $(2) || { echo "python's venv module is needed (Debian: apt-get install python3-venv)" >&2; exit 1; }
	$(2)/bin/python -m pip install --quiet --upgrade "pip>=24"
endef

$(VENV)/bin/pycct-pip:
	$(call make_venv,$(PYTHON),$(VENV))
	@ln -s pip $@

$(DEBUG_VENV)/bin/pycct-pip:
	$(call make_venv,$(PYTHON),$(DEBUG_VENV))
	@ln -s pip $@

$(BENCH_VENV)/bin/pycct-pip:
	$(call make_venv,$(BENCH_PYTHON),$(BENCH_VENV))
	@ln -s pip $@

$(VENV)/.demo: $(COMPILED) | $(VENV)/bin/pycct-pip
	@echo "building pycct into $(VENV): needs a C compiler and takes a few minutes"
	$(VENV)/bin/pip install --quiet --editable ".[plot,levels]"
	@touch $@

$(VENV)/.dev: $(COMPILED) | $(VENV)/bin/pycct-pip
	@echo "building pycct into $(VENV): needs a C compiler and takes a few minutes"
	$(VENV)/bin/pip install --quiet --editable ".[test,lint]"
	@touch $@

# pycct itself is there by now: only what the extra names is fetched.
$(VENV)/.docs: pyproject.toml | $(VENV)/.dev
	$(VENV)/bin/pip install --quiet "pycct[docs]"
	@touch $@

# Bounds checks and, where the compiler has it, the undefined-behaviour sanitizer. Not editable: it must leave the
# ordinary build in pycct/ alone. The grep proves that the installed modules are the checked ones.
$(DEBUG_VENV)/.checked: $(COMPILED) $(PURE) | $(DEBUG_VENV)/bin/pycct-pip
	@echo "building pycct with checks into $(DEBUG_VENV)"
	PYCCT_DEBUG=1 $(DEBUG_VENV)/bin/pip install --quiet ".[test]"
	@unchecked=$$(find $(DEBUG_VENV)/lib/python3.*/site-packages/pycct -name '*.so' -exec grep -L -e __ubsan -e __Pyx_RaiseBufferIndexError {} +); \
		test -z "$$unchecked" || { echo "built without checks: $$unchecked" >&2; exit 1; }
	@touch $@

# As a user has it: a wheel, not the source folder.
$(BENCH_VENV)/.installed: $(COMPILED) $(PURE) bench/requirements.txt | $(BENCH_VENV)/bin/pycct-pip
	$(BENCH_VENV)/bin/pip install --quiet -r bench/requirements.txt .
	@touch $@
