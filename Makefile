# Every target is enough alone on a machine with python3 (3.11 or newer), a C++ compiler and make.
PYTHON  ?= python3
VENV    := .venv
BIN     := $(VENV)/bin
PY      := $(BIN)/python
PIP     := $(PY) -m pip --disable-pip-version-check
INSTALL := $(PY) tools/install.py  # pip, which is silent while it compiles, and a line that says how far it is
SOURCES := pyproject.toml CMakeLists.txt $(shell find src -name '*.py' -o -name '*.pyi' -o -name '*.h' -o -name '*.cpp' -o -name '*.cu')
NATIVE  := $(filter %.h %.cpp %.cu,$(SOURCES))
SMOKE   := tests/smoke/test_smoke.py
ARGS    ?=
# A worker a core, at most four, as many tests use threads; neighbours stay together for as long as every worker has some.
PYTEST  := $(PY) -m pytest -q -n auto --maxprocesses 4 --dist worksteal
WHEEL_LIMIT := 3000000

unexport PYTHONPATH
unexport PYTHONDONTWRITEBYTECODE  # else every process compiles all modules anew: two seconds each
.DEFAULT_GOAL := help
.PHONY: docs gpu help demo test test-all soak lint types rooms size smoke tiny replay bench coverage sanitize tsan clang arm cross fuzz fuzz-asan wheel wheels free-threaded oldest newest format clean
.NOTPARALLEL:
.DELETE_ON_ERROR:

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(if $(wildcard $(VENV)/packages),$(VENV)/dev,$(VENV)/cli) ## two real tables: scores beside a linear model, the same bytes on any threads, reports
	@$(PY) examples/demo.py

test: lint types rooms size ## all that a change must pass: lint, types, rooms, size, the commit's tests
	$(PYTEST) $(ARGS)

test-all: lint types rooms size ## everything: full products of parameters, ten times the random examples, every peer, with the coverage of Python
	$(PYTEST) -m '' --hypothesis-profile=nightly --cov --cov-report=term $(ARGS)

soak: $(VENV)/dev ## trainings killed at random moments, 100 of each kind: all must end with the right bytes
	$(PY) tools/soak.py $(ARGS)

lint: $(VENV)/lint ## ruff and clang-format, changing nothing
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/clang-format --dry-run --Werror $(NATIVE)

types: $(VENV)/dev ## mypy, strict
	$(BIN)/mypy

rooms: | $(PY) ## which part may know which: imports, includes, the law's forbidden words
	$(PY) tools/rooms.py

size: | $(PY) ## tokens of every package against its budget
	$(PY) tools/size.py

smoke: $(VENV)/dev ## compile what changed, and run the shortest tests: seconds, after every step
	$(PY) -m pytest -q $(SMOKE)

tiny: smoke ## the smoke suite and the hashes of the replay tasks
	$(PY) tools/replay.py --check

replay: $(VENV)/dev ## write the hashes of the replay tasks into tests/replay.txt (a refactor leaves it untouched)
	$(PY) tools/replay.py

bench: $(VENV)/dev ## kernels, then speed and accuracy against the peers; ARGS go to race.py, DATA=folder to quality.py
	$(call build,release,Release,)
	PYTHONPATH=build/release/site $(PY) benchmarks/kernels.py
	PYTHONPATH=build/release/site $(PY) benchmarks/race.py $(ARGS)
	PYTHONPATH=build/release/site $(PY) benchmarks/quality.py $(if $(DATA),--data $(DATA))

# A second build beside the one in .venv, found first through PYTHONPATH: $(call build,name,build type,flags)
build = $(PIP) install --quiet --no-deps --upgrade --target build/$(1)/site \
	--config-settings=build-dir=build/$(1)/cmake --config-settings=cmake.build-type=$(2) --config-settings=cmake.define.CMAKE_CXX_FLAGS="$(3)" .
# The packages of an extra, without this one.
requirements = $$($(PY) -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["$(1)"])')
RUNTIME = $(shell $(or $(CXX),c++) -print-file-name=$(1))

gpu: $(VENV)/dev ## parity with a GPU (needs one, and CuPy): every task of tests/device/tasks.py, on both devices
	$(PY) tools/gpu.py $(ARGS)

docs: $(VENV)/dev $(VENV)/docs ## the documentation as a site in build/site; fails on a broken link
	$(PY) tools/docs.py
	NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --strict --quiet

coverage: $(VENV)/dev ## which C++ lines the suite runs (a build of its own, not optimised)
	$(call build,coverage,Debug,--coverage -O1 -fprofile-update=atomic)
	find build/coverage/cmake -name '*.gcda' -delete
	PYTHONPATH=build/coverage/site $(PY) -m pytest -q $(ARGS)  # one process: workers leave without their counts
	$(BIN)/gcovr --gcov-suspicious-hits-threshold=0 --merge-lines --filter src/sapwood/core/ --exclude-directories '.*/CMakeFiles/[0-9.]+$$' \
		--gcov-ignore-errors=source_not_found --gcov-ignore-errors=no_working_dir_found build/coverage/cmake

sanitize: $(VENV)/dev ## the smoke suite under AddressSanitizer and UndefinedBehaviorSanitizer
	$(call build,asan,Debug,-fsanitize=address$(,)undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer -O1)
	PYTHONPATH=build/asan/site PYTHONMALLOC=malloc ASAN_OPTIONS=detect_leaks=0 \
	LD_PRELOAD="$(call RUNTIME,libasan.so) $(call RUNTIME,libstdc++.so)" \
	sh -c '$(PY) -m pytest -q -s $(SMOKE) && $(PY) tools/replay.py --check'

fuzz: $(VENV)/dev ## mutants of every file that is read: none may crash, hang or take memory; ARGS="--mutants 1000000"
	$(PY) tests/fuzz/run.py $(ARGS)

fuzz-asan: $(VENV)/dev ## the same under AddressSanitizer and UndefinedBehaviorSanitizer (built by make sanitize)
	test -d build/asan/site || $(MAKE) sanitize
	PYTHONPATH=build/asan/site PYTHONMALLOC=malloc ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 \
	LD_PRELOAD="$(call RUNTIME,libasan.so) $(call RUNTIME,libstdc++.so)" $(PY) tests/fuzz/run.py --no-limit $(ARGS)

tsan: $(VENV)/dev ## the pool, concurrent fits and predictions under ThreadSanitizer
	$(call build,tsan,Debug,-fsanitize=thread -fno-omit-frame-pointer -O1)
	PYTHONPATH=build/tsan/site TSAN_OPTIONS=suppressions=tools/tsan.txt LD_PRELOAD="$(call RUNTIME,libtsan.so)" \
	$(PY) -m pytest -q -s -m 'threads or tiny' tests/system/test_process.py $(SMOKE)

clang: $(VENV)/dev ## build with clang (or that of PyPI's ziglang): the smoke suite, and the same model hashes as from gcc
	command -v clang++ || $(PIP) install --quiet ziglang
	CXX=$$(command -v clang++ || echo "$$(echo $(CURDIR)/$(VENV)/lib/python3.*/site-packages/ziglang/zig) c++") && \
	export CXX && $(call build,clang,Release,) --config-settings=cmake.define.CMAKE_MODULE_LINKER_FLAGS="$(call RUNTIME,libgcc.a)"
	PYTHONPATH=build/clang/site $(PY) -m pytest -q $(SMOKE)
	PYTHONPATH=build/clang/site $(PY) tools/replay.py --check

arm: ## build for aarch64 and run the replay and the smoke suite under qemu-user; COMPILERS="gcc clang"
	tools/arm.sh $(COMPILERS)

cross: ## compile for macOS and Windows, so that code does not come to depend on Linux
	PYTHON=$(PYTHON) tools/cross.sh $(ARGS)

wheel: $(PY) ## build the wheel into dist/ and check its size
	rm -rf dist
	$(PIP) wheel --quiet --no-deps --wheel-dir dist .
	@for wheel in dist/*.whl; do bytes=$$(wc -c < $$wheel); echo "$$wheel: $$bytes bytes (limit $(WHEEL_LIMIT))"; \
		test $$bytes -lt $(WHEEL_LIMIT) || exit 1; done

# Pythons that the machine lacks come from Debian's packages (tools/python.sh).
NEWER := 3.13 3.14
wheels: $(PY) ## sdist and wheels into wheelhouse/, repaired, checked, each tried in a new environment
	for version in $(NEWER); do PIP=$(CURDIR)/$(BIN)/pip tools/python.sh $$version; done
	$(PY) tools/wheels.py $(PYTHON) build/python/3.13/usr/bin/python3.13 --also build/python/3.14/usr/bin/python3.14

# The oldest versions that pyproject.toml allows, of what is required and of what users bring; and the newest of all.
REQUIRED := import tomllib; print(*(one for one in tomllib.load(open("pyproject.toml", "rb"))["project"]["dependencies"] if ";" not in one))
OLDEST   := pandas==2.2.2 polars==1.20.0 pyarrow==18.0.0 pytest hypothesis
VERSIONS  = $(PYTHON) -m venv --clear build/$(1)/venv && build/$(1)/venv/bin/python -m pip install --quiet $(2) && \
	build/$(1)/venv/bin/python -m pip install --quiet --no-deps . && build/$(1)/venv/bin/python -m pip list && \
	build/$(1)/venv/bin/python -m pytest -q -p no:cacheprovider tests/smoke tests/law/test_containers.py tests/law/test_tables.py

free-threaded: ## build Python 3.14 without a GIL from Debian's sources; replay, smoke and parallel fits there, without a GIL
	PYTHON=$(PYTHON) tools/free_threaded.sh

oldest: $(PY) ## the smoke suite and tables with the oldest version of each dependency that is allowed
	$(call VERSIONS,oldest,$$($(PY) -c '$(REQUIRED)' | sed 's/>=/==/g') $(OLDEST))

newest: $(PY) ## the same with the newest version of each dependency
	$(call VERSIONS,newest,--upgrade $$($(PY) -c '$(REQUIRED)') pandas polars pyarrow pytest hypothesis)

format: $(VENV)/dev ## put every file into the house style
	$(BIN)/ruff check --fix
	$(BIN)/ruff format
	$(BIN)/clang-format -i $(NATIVE)

clean: ## remove what make made
	rm -rf $(VENV) build dist src/sapwood/_core*.so .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage

$(PY):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "$(PYTHON) is older than 3.11; give a newer one: make PYTHON=python3.12 ..."; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { echo "python's venv module is missing (Debian: apt install python3-venv)"; exit 1; }

# For users: the package as it is released, with what the command line needs.
$(VENV)/cli: $(SOURCES) | $(PY)
	@$(INSTALL) '.[cli]'
	@touch $@

# For developers: this folder as an installed package, whose Python is not copied. Its path alone, so that another build
# that PYTHONPATH names comes first.
$(VENV)/packages: pyproject.toml | $(PY)
	@$(PIP) install --quiet $(call requirements,build)
	@$(INSTALL) --no-build-isolation --editable '.[dev]' $(addprefix --config-settings=,editable.mode=inplace wheel.cmake=false wheel.py-api=py3)
	@echo $(CURDIR)/src > $$(echo $(VENV)/lib/python3*/site-packages)/_editable_skbc_sapwood.pth
	@touch $@

# What changed in the core is compiled, without the optimisation across files.
$(VENV)/dev: $(NATIVE) CMakeLists.txt $(VENV)/packages
	@mkdir -p build
	@PATH="$(CURDIR)/$(BIN):$$PATH" cmake -S . -B build/core -G Ninja -DCMAKE_BUILD_TYPE=Release -DSAPWOOD_LTO=OFF \
		-DPython_EXECUTABLE=$(CURDIR)/$(PY) > build/configure.log || { cat build/configure.log; exit 1; }
	@PATH="$(CURDIR)/$(BIN):$$PATH" cmake --build build/core
	@cp build/core/_core*.so src/sapwood/
	@touch $@

$(VENV)/lint $(VENV)/docs: pyproject.toml | $(PY)
	@$(PIP) install --quiet $(call requirements,$(@F))
	@touch $@

, := ,
