#!/usr/bin/env bash
# Builds the core with AddressSanitizer and UndefinedBehaviorSanitizer into an environment of its own
# and runs the tests that drive it. The first fault ends the run.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=.venv/sanitize
if [ ! -x "$venv/bin/python" ]; then
  .venv/bin/python -m venv "$venv"
  "$venv/bin/python" -m pip --quiet install --upgrade pip
fi
"$venv/bin/python" -m pip --quiet install -c requirements.lock scikit-build-core nanobind cmake ninja
"$venv/bin/python" -m pip --quiet install -c requirements.lock --group dev
"$venv/bin/python" -m pip --quiet install -c requirements.lock --no-build-isolation -e . \
  -Cbuild-dir=build/sanitize -Ccmake.define.ARGOSY_SANITIZE=ON
# The sanitizer's runtime must come before the interpreter, and before the C++ library for exceptions.
runtime="$(g++ -print-file-name=libasan.so) $(g++ -print-file-name=libstdc++.so)"
LD_PRELOAD="$runtime" ASAN_OPTIONS=detect_leaks=0:abort_on_error=1 UBSAN_OPTIONS=print_stacktrace=1 \
  "$venv/bin/python" -m pytest -p no:cacheprovider \
  tests/model/test_random.py tests/cell/test_cell.py tests/cell/test_cell_twin.py tests/cell/test_search.py \
  tests/solvers/test_flow.py tests/solvers/test_flow_files.py tests/worlds/test_world.py tests/worlds/test_world_random.py \
  tests/worlds/local tests/engines/test_conformance.py tests/engines/test_probes.py tests/engines/test_firmament.py \
  tests/engines/test_firmament_gangs.py tests/engines/test_firmament_rounds.py "$@"
