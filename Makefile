# `make demo` and `make test` work in a fresh clone. The first run compiles llama.cpp (in
# llama-cpp-python), which takes some minutes.

PYTHON ?= python3
ifneq ($(shell $(PYTHON) -c 'import sys; print(sys.version_info >= (3, 10))'),True)
$(error $(PYTHON) is not Python 3.10 or newer; choose another one: make PYTHON=python3.12)
endif
VENV := .venv
BIN := $(VENV)/bin
SOURCES := CMakeLists.txt pyproject.toml $(shell find cmake csrc python models -type f \
             -not -name '*.pyc' -not -path '*/runs/*')
# Requirements of a build without isolation, except the compilers; llama-cpp-python as pinned in
# pyproject.toml. With isolation, llama.cpp would be compiled a second time.
BUILD_REQUIRES := scikit-build-core pybind11 cmake ninja $(shell sed -n 's/.*"\(llama-cpp-python==[^"]*\)".*/\1/p' pyproject.toml | head -1)

# Compilers before GCC 13 remove the stores to AMX's tile configuration as dead (llama.cpp issue
# 20824), and the first decode crashes. So on processors with AMX, llama.cpp is compiled without
# that optimisation, and no wheel from a cache is used.
HAS_AMX := $(shell grep -qs amx_int8 /proc/cpuinfo && $(CXX) --version | grep -q 'Free Software' && echo yes)
KEEP_AMX := $(if $(HAS_AMX),CXXFLAGS="$(CXXFLAGS) -fno-dse -fno-tree-dse" PIP_NO_CACHE_DIR=1)

# With CI=1, warnings in our own C++ are errors. Not otherwise, since unknown compilers may have
# other warnings.
WERROR := $(if $(CI),ON,OFF)

.PHONY: demo test test-all test-amx test-rpc test-sglang test-asan test-tsan coverage lint tidy docs bench clean

# Without SmolLM2, the bundled models are used.
demo: $(VENV)/built
	-$(BIN)/python -m pip install --quiet 'specllama[demo]'
	$(BIN)/specllama demo

# Most tests decode with one thread, so one test runs on each processor.
test: $(VENV)/installed
	$(BIN)/python -m pytest -n auto --dist worksteal -m "not slow"

# Also the slow tests: trainings (if PyTorch is installed) and complete sweeps.
test-all: $(VENV)/installed
	$(BIN)/python -m pytest

lint: $(VENV)/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python tools/check_stubs.py specllama._core --allowlist python/stubtest-allowlist.txt
	find csrc python tests/cpp examples -name '*.cpp' -o -name '*.h' | \
	    xargs $(BIN)/clang-format --dry-run -Werror

# With the compile commands of the extension and spec-cli. .clang-tidy lists the disabled checks
# with reasons.
tidy: $(VENV)/installed
	find csrc python/src -name '*.cpp' | xargs -P $$(getconf _NPROCESSORS_ONLN) -n 1 \
	    $(BIN)/clang-tidy --quiet -p "$$(dirname build/cp3*/compile_commands.json | head -1)"

# The site, in build/site. The sources are read, not imported, so nothing is compiled.
DOCS := .venv-docs
docs: $(DOCS)/installed
	$(DOCS)/bin/mkdocs build --strict

$(DOCS)/installed: pyproject.toml
	$(PYTHON) -m venv $(DOCS)
	$(DOCS)/bin/python -m pip install --quiet --upgrade pip
	$(DOCS)/bin/python -m pip install --quiet --group docs
	touch $@

bench: $(VENV)/installed
	$(BIN)/specllama bench

$(VENV)/required: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(KEEP_AMX) $(BIN)/python -m pip install $(BUILD_REQUIRES)
	touch $@

$(VENV)/built: $(VENV)/required $(SOURCES)
	$(BIN)/python -m pip install --no-build-isolation -Ccmake.define.SPECLLAMA_WERROR=$(WERROR) .
	touch $@

# Only the additional requirements of tests and checks.
$(VENV)/installed: $(VENV)/built
	$(BIN)/python -m pip install 'specllama[test,lint]'
	touch $@

# The tests with AMX's kernels, on any processor with AVX-512 VNNI. Compiles llama.cpp again. Wide
# decodes are slow with emulated tiles, so tests that require the planner to draft are skipped.
AMX := .venv-amx
AMX_DEFINES := -D__AMX_INT8__=1 -D__AMX_TILE__=1

test-amx:
	$(PYTHON) -m venv $(AMX)
	CFLAGS="$(AMX_DEFINES)" CXXFLAGS="$(AMX_DEFINES) -include $(CURDIR)/tests/amx/tiles.h" \
	    PIP_NO_CACHE_DIR=1 $(AMX)/bin/python -m pip install $(BUILD_REQUIRES)
	$(AMX)/bin/python -m pip install --no-build-isolation -Cbuild-dir=build/$@ '.[test]'
	$(AMX)/bin/python -m pytest -m "not slow"

# The target on llama.cpp's RPC servers, on loopback. Compiles llama.cpp again, with RPC, which
# includes the servers. Without RPC the tests are skipped.
RPC := .venv-rpc

test-rpc:
	$(PYTHON) -m venv $(RPC)
	$(KEEP_AMX) CMAKE_ARGS="-DGGML_RPC=on" PIP_NO_CACHE_DIR=1 \
	    $(RPC)/bin/python -m pip install $(BUILD_REQUIRES)
	$(RPC)/bin/python -c 'import llama_cpp; assert llama_cpp.llama_supports_rpc()'
	$(RPC)/bin/python -m pip install --no-build-isolation -Cbuild-dir=build/$@ '.[test]'
	$(RPC)/bin/python -m pytest tests/device/test_rpc.py tests/device/test_division.py

# Targets on a real SGLang server on a CPU, in a separate virtual environment (2.8 GB).
# requirements.txt has the requirements of its packages, except those for GPUs.
SGLANG := .venv-sglang
$(SGLANG)/required: tests/support/sglang/requirements.txt
	$(PYTHON) -m venv $(SGLANG)
	$(SGLANG)/bin/python -m pip install --extra-index-url https://download.pytorch.org/whl/cpu \
	    -r tests/support/sglang/requirements.txt
	$(SGLANG)/bin/python -m pip install --no-deps sglang==0.5.23 torchvision==0.28.0
	touch $@

test-sglang: $(VENV)/installed $(SGLANG)/required
	SPECLLAMA_SGLANG=$(SGLANG)/bin/python $(BIN)/python -m pytest tests/remote/test_sglang_server.py

# The core and the extension with SANITIZERS, in a separate virtual environment, SANITIZED.
define install-sanitized
	$(PYTHON) -m venv $(SANITIZED)
	$(SANITIZED)/bin/python -m pip install --quiet $(BUILD_REQUIRES)
	$(SANITIZED)/bin/python -m pip install --no-build-isolation -Cbuild-dir=build/$@ \
	    -Ccmake.define.SPECLLAMA_SANITIZE=$(SANITIZERS) '.[test]'
endef
library = $(shell $(CXX) -print-file-name=$(1))

# Leaks are not checked: Python itself does not free all memory.
ASAN := .venv-asan
ASAN_ENV := ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
            LD_PRELOAD="$(call library,libasan.so) $(call library,libstdc++.so)"

test-asan: SANITIZED := $(ASAN)
test-asan: SANITIZERS := address,undefined
test-asan:
	$(install-sanitized)
	$(ASAN_ENV) $(ASAN)/bin/python -m pytest -m "not slow"

# Data races, in the tests of objects that threads share. (With GCC before 14, the kernel may
# randomise at most 28 bits of addresses: sysctl vm.mmap_rnd_bits.) AMX is off, since it crashes
# with this sanitizer, and sessions would print a notice.
TSAN := .venv-tsan
TSAN_ENV := TSAN_OPTIONS=suppressions=$(CURDIR)/tests/tsan.supp SPECLLAMA_AMX=off \
            LD_PRELOAD="$(call library,libtsan.so)"
TSAN_TESTS := $(foreach noun,session/batching session/queue/request_queue session/queue/callbacks \
                session/queue/concurrent_requests session/prefix_reuse session/state \
                session/session session/threads session/stream runtime/failed_decode draft/drafter \
                draft/draft_model server/server server/openai/server_chat server/server_limits \
                server/server_early_ends,tests/$(dir $(noun))test_$(notdir $(noun)).py)

test-tsan: SANITIZED := $(TSAN)
test-tsan: SANITIZERS := thread
test-tsan:
	$(install-sanitized)
	$(TSAN_ENV) $(TSAN)/bin/python -m pytest -m "not slow" $(TSAN_TESTS)

# Lines that the tests run, in both languages, in a separate virtual environment. C++ lines of
# children that end by _exit or a signal are not counted. (gcovr treats more than 2^32 runs of a
# line as an error of gcov, but the planner's arithmetic has that many.)
COVERAGE := .venv-coverage

coverage:
	$(PYTHON) -m venv $(COVERAGE)
	$(COVERAGE)/bin/python -m pip install --quiet $(BUILD_REQUIRES)
	$(COVERAGE)/bin/python -m pip install --no-build-isolation -Cbuild-dir=build/$@ \
	    -Ccmake.define.SPECLLAMA_BUILD_TESTS=ON \
	    -Ccmake.define.CMAKE_CXX_FLAGS="--coverage -fprofile-update=atomic" '.[test,coverage]'
	find build/$@ -name '*.gcda' -delete
	$(COVERAGE)/bin/coverage erase
	build/$@/bin/specllama_tests
	$(COVERAGE)/bin/coverage run -m pytest -m "not slow"
	$(COVERAGE)/bin/coverage combine
	$(COVERAGE)/bin/coverage report --skip-covered --show-missing
	$(COVERAGE)/bin/coverage json -q -o build/$@/python.json
	$(COVERAGE)/bin/gcovr --filter csrc --filter python/src --merge-lines \
	    --gcov-suspicious-hits-threshold 0 --txt - --json-summary build/$@/cpp.json build/$@
	$(COVERAGE)/bin/python tools/coverage_by_folder.py build/$@/python.json build/$@/cpp.json

clean:
	rm -rf $(VENV) $(AMX) $(RPC) $(SGLANG) $(ASAN) $(TSAN) $(COVERAGE) $(DOCS) build dist
