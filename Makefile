# Everything a newcomer needs: `make demo` and `make test` set up a virtual environment of their
# own and need only Python >= 3.10 and a C++ compiler.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
comma := ,
# The CPU build, which is all that the tests need; an unpinned torch may bring gigabytes of CUDA.
TORCH ?= torch==2.13.0
SOURCES := pyproject.toml CMakeLists.txt $(shell find native src -type f -not -name '*.pyc' 2>/dev/null)

# Tests side by side, one process for each of two processors; 0 runs them in one process.
JOBS ?= 2

.PHONY: demo lint test test-quick browser test-neon test-native bench paper results stubs wheel clean

# pip with one line for each package that it fetches and each file that is compiled, and with all
# that it said if it fails. What is installed is the package as a user would have it, not a link
# into this folder.
define install
	@test -x $(BIN)/python || { echo "Setting up $(VENV)"; $(PYTHON) -m venv $(VENV); }
	@mkdir -p build; { $(BIN)/python -m pip install -v --disable-pip-version-check $(1) 2>&1 || \
	  echo "pip failed"; } | tee build/install.log | awk ' \
	  /Building CXX object/ { sub(/^ */, ""); sub(/ Building.*native\//, " compiling native/"); \
	                          sub(/\.o$$/, ""); print; fflush() } \
	  /^ *Collecting|Configuring CMake|Installing collected/ { sub(/^ */, ""); print; fflush() }'
	@if tail -n 1 build/install.log | grep -q "^pip failed"; then cat build/install.log; exit 1; fi
endef

$(VENV)/installed: $(SOURCES)
	$(call install,.)
	@touch $@

$(VENV)/installed-test: $(SOURCES)
	$(call install,$(TORCH) ".[docs$(comma)lint$(comma)test$(comma)train]")
	@touch $(VENV)/installed $(VENV)/installed-docs $@

$(VENV)/installed-docs: $(SOURCES)
	$(call install,".[docs]")
	@touch $(VENV)/installed $@

demo: $(VENV)/installed
	$(BIN)/hamflow demo -o out

# Style, types, and that the committed stub is the compiled module's; pyproject.toml pins the tools.
lint: $(VENV)/installed-test
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	@mkdir -p build
	$(BIN)/python -m nanobind.stubgen -q -m hamflow._native -o build/_native.pyi
	diff src/hamflow/_native.pyi build/_native.pyi || { echo "run: make stubs"; exit 1; }

test: $(VENV)/installed-test browser
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal

# Without the tests that take more than a few seconds each.
test-quick: $(VENV)/installed-test
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal -m "not slow"

# The page of `hamflow evaluate --html` is tested in the system's Chromium. Where there is none, it
# is installed if that is possible without asking; else its test is skipped, or fails under CI.
browser:
	@for name in chromium chromium-browser google-chrome; do \
	  if command -v $$name >/dev/null; then exit 0; fi; \
	done; \
	if [ "$$(id -u)" = 0 ]; then root=; else root="sudo -n"; fi; \
	install() { $$root env DEBIAN_FRONTEND=noninteractive apt-get -qq "$$@" >/dev/null 2>&1; }; \
	install update && install install -y --no-install-recommends chromium || \
	  echo "No Chromium here, and it cannot be installed: the page of a report is not tested."

# Hostile files for every reader, SECONDS in all: coverage-guided, with a limit of memory and time.
# What it finds, and what it has learned, is in build/fuzz. READERS="flo pfm" for only these.
SECONDS ?= 60
.PHONY: fuzz
fuzz: $(VENV)/installed-test
	$(BIN)/python -m pip install --quiet --disable-pip-version-check "hamflow[fuzz]"  # the installed one
	cd tests && $(abspath $(BIN))/python -m fuzz --seconds $(SECONDS) --jobs $(JOBS) $(READERS)

# The NEON kernels, cross-compiled and run under emulation; skipped where the tools are absent
# (Debian: g++-aarch64-linux-gnu, qemu-user).
CROSS := aarch64-linux-gnu-g++
NEON_SOURCES := $(addprefix native/,threads.cpp pages.cpp fusion.cpp labeling.cpp reference.cpp \
	network.cpp coarse_network.cpp \
	simd/levels.cpp kernels_portable.cpp kernels_neon.cpp convolutions_portable.cpp \
	convolutions_neon.cpp) $(wildcard native/tests/*.cpp)
NEON_OBJECTS := $(NEON_SOURCES:native/%.cpp=build/neon/%.o)

build/neon/%.o: native/%.cpp $(filter native/%,$(SOURCES))
	@mkdir -p $(dir $@)
	$(CROSS) -std=c++17 -O3 -Wall -Wextra -Wpedantic -ffp-contract=off -DHAMFLOW_NEON -Inative \
		-c $< -o $@

build/neon/kernels_test: $(NEON_OBJECTS)
	$(CROSS) -static -pthread $^ -o $@

test-neon:
	@if command -v $(CROSS) >/dev/null && command -v qemu-aarch64 >/dev/null; then \
	  $(MAKE) --no-print-directory -j $(JOBS) build/neon/kernels_test && \
	  qemu-aarch64 build/neon/kernels_test --quick; \
	else \
	  echo "test-neon skipped: it needs $(CROSS) and qemu-aarch64"; \
	fi

# Kernels, refinement, completion and bindings under AddressSanitizer and UndefinedBehaviorSanitizer:
# a part of the tests, which go through the instruction sets one at a time, and random calls with
# each of them; and the pool of threads under ThreadSanitizer. What these find ends the run. Needs
# GCC and cmake.
SANITIZED := build/sanitized
SANITIZED_PYTHON = ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 \
	LD_PRELOAD="$$(g++ -print-file-name=libasan.so) $$(g++ -print-file-name=libstdc++.so)" \
	PYTHONMALLOC=malloc PYTHONPATH=$(SANITIZED)/package:tests $(BIN)/python
SANITIZED_TESTS := tests/test_native_checks.py tests/test_native_memory.py tests/io/test_png_filters.py \
	tests/datasets/test_compositing.py $(addprefix tests/refinement/test_,interpolation.py \
	completion.py opposite.py components.py labeling.py variational.py consistency.py) \
	tests/test_native_reference.py \
	$(addprefix tests/crf/test_,chain_arguments.py chains.py dual.py) \
	tests/descriptors/test_integer.py tests/matching/test_min_projection.py
# Large images, and networks of which others are alike.
SANITIZED_OUT := strips or widest or size3 or (leave_no_trace and (wider or deeper or scale))

.PHONY: test-sanitized
test-sanitized: $(VENV)/installed-test
	command -v cmake >/dev/null || $(BIN)/python -m pip install --quiet cmake
	PATH="$$PATH:$(abspath $(BIN))"; \
	  cmake -S . -B $(SANITIZED)/native -DHAMFLOW_SANITIZE=address,undefined,float-cast-overflow \
	    -DCMAKE_CXX_COMPILER=g++ -DCMAKE_BUILD_TYPE= -DPython_EXECUTABLE=$(abspath $(BIN))/python \
	    -Dnanobind_DIR="$$($(BIN)/python -m nanobind --cmake_dir)" && \
	  cmake --build $(SANITIZED)/native --parallel 2 && \
	  cmake -S . -B $(SANITIZED)/threads -DHAMFLOW_SANITIZE=thread -DHAMFLOW_NATIVE_TESTS=ON \
	    -DCMAKE_CXX_COMPILER=g++ -DCMAKE_BUILD_TYPE= && \
	  cmake --build $(SANITIZED)/threads --parallel 2
	rm -rf $(SANITIZED)/package && mkdir -p $(SANITIZED)/package
	cp -r src/hamflow $(SANITIZED)/package/ && cp $(SANITIZED)/native/_native*.so $(SANITIZED)/package/hamflow/
	for level in $$($(SANITIZED_PYTHON) -c "import hamflow; print(*hamflow.isa_levels())"); do \
	  HAMFLOW_ISA=$$level $(SANITIZED_PYTHON) tests/_native_fuzz.py 1 100 || exit 1; \
	done
	HAMFLOW_TEST_EXAMPLES=15 $(SANITIZED_PYTHON) -m pytest -q -p no:cacheprovider -m "not slow" \
	  -k "not ($(SANITIZED_OUT))" $(SANITIZED_TESTS)
	$(SANITIZED)/threads/kernels_test --quick portable

# Probable mistakes in the C++ code, by clang-tidy: also in the bindings, and in the kernels of the
# portable level; the others are the same code with other vectors.
TIDY := $(filter-out native/bind% %_avx2.cpp %_avx512.cpp %_neon.cpp \
	%_vnni.cpp %_avxvnni.cpp %_amx.cpp,\
	$(wildcard native/*.cpp native/simd/*.cpp))
.PHONY: tidy
tidy: $(VENV)/installed-test
	clang-tidy --quiet $(TIDY) -- -std=c++17 -Inative -DHAMFLOW_X86
	clang-tidy --quiet native/bind*.cpp -- -std=c++17 -Inative -DHAMFLOW_X86 $$($(BIN)/python -c \
	  "import nanobind, sysconfig; print('-isystem', nanobind.include_dir(), '-isystem', \
	  sysconfig.get_paths()['include'])")

# Known vulnerabilities of what is installed; asks PyPI. A package that PyPI does not know is an error,
# except Hamflow itself: otherwise all would be well where PyPI does not answer. That torch was
# compiled for the CPU is left out of its version.
.PHONY: audit
audit: $(VENV)/installed-test
	$(PYTHON) -m venv --clear build/audit && build/audit/bin/python -m pip install --quiet pip-audit
	$(BIN)/python -m pip freeze --exclude hamflow | sed 's/+[a-z0-9]*$$//' > build/audit.txt
	build/audit/bin/pip-audit --strict --disable-pip --no-deps -r build/audit.txt

# What comes along with Hamflow and nothing else, as a list for machines (CycloneDX): build/sbom.json.
.PHONY: sbom
sbom:
	$(PYTHON) -m venv --clear build/sbom-hamflow && build/sbom-hamflow/bin/python -m pip install --quiet .
	$(PYTHON) -m venv --clear build/sbom-tool && build/sbom-tool/bin/python -m pip install --quiet cyclonedx-bom
	build/sbom-tool/bin/cyclonedx-py environment build/sbom-hamflow/bin/python --mc-type library \
	  --pyproject pyproject.toml --output-reproducible -o build/sbom.json

# The same program for this machine's levels, with the library that the installation has compiled.
CXX ?= g++
test-native: $(VENV)/installed
	@mkdir -p build/native
	$(CXX) -std=c++17 -O2 -Wall -Wextra -Wpedantic -Inative native/tests/*.cpp \
	  "$$(ls -t build/*/libhamflow_core.a | head -n 1)" -pthread -o build/native/kernels_test
	build/native/kernels_test

# The doors of the laboratory; experiments/README.md tells what they make. Real pairs instead of
# rendered ones, or besides them: DATA=folder, where folder/sintel-clean holds them.
LAB := $(BIN)/python -m experiments
PAIRS := $(if $(DATA),folder $(DATA) --subset sintel-clean,synthetic --count 4)
MARKET := $(DATA)/sintel-clean/market_5_0002
SAMPLE := $(if $(DATA),$(MARKET)/frame1.png $(MARKET)/frame2.png --truth $(MARKET)/flow.flo)

bench: $(VENV)/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check ".[peers]"
	$(LAB) bench kernels --rounds 6 --json experiments/results/kernels.json
	$(LAB) bench crf $(if $(DATA),--data $(DATA)) --json experiments/results/crf.json

paper: $(VENV)/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check ".[plot]"
	mkdir -p out/paper
	$(LAB) paper table1 --data $(PAIRS) --config experiments/recipes/table1.toml \
		--weights experiments/results/table1 --no-train --resume -o out/paper/table1
	$(LAB) paper table2 --csv out/paper/table2.csv --json out/paper/table2.json
	$(LAB) paper table3 --data $(PAIRS) --resume -o out/paper/table3
	$(LAB) paper figure $(SAMPLE) --weights experiments/results/table1 -o out/paper/figure.png

# docs/results.md, and the tables and the chart of docs/choosing.md, from the measurements in
# experiments/results; commit the result.
results: $(VENV)/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check ".[plot]"
	$(LAB).scripts.results
	$(LAB).scripts.choosing

# The site: docs/_build/html/index.html. A warning is an error; the examples of the gallery run.
.PHONY: docs tutorial
docs: $(VENV)/installed-docs
	$(BIN)/python -m sphinx -W --keep-going -q -d docs/_build/doctrees docs docs/_build/html
	@echo "docs/_build/html/index.html"

# docs/tutorial.ipynb with its outputs; commit the result.
tutorial: $(VENV)/installed-docs
	$(BIN)/jupyter-execute --inplace --NotebookClient.record_timing=False docs/tutorial.ipynb

# docs/pictures/architecture.svg from the imports of the sources; commit the result.
.PHONY: architecture
architecture: $(VENV)/installed-test
	$(BIN)/python docs/make_architecture.py

# src/hamflow/_native.pyi from the compiled module; commit the result.
stubs: $(VENV)/installed-test
	$(BIN)/python -m nanobind.stubgen -m hamflow._native -o src/hamflow/_native.pyi

wheel:
	$(PYTHON) -m pip wheel --no-deps -w dist .

clean:
	rm -rf build dist out docs/_build docs/api docs/gallery docs/project $(VENV)
