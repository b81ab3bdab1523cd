#!/usr/bin/env bash
# At its end `./dev test` tells the truth, in a tree of a few small tests with nothing to build: skipped tests are
# counted as skipped and listed with their reasons, and the last line has the counts and nothing else.
. "$(dirname "$0")/../support/command_check.sh"
source=$(realpath "$(dirname "$0")/../..")
if ! command -v python3 >/dev/null || ! command -v ctest >/dev/null; then
    skip 'all of it: python3 or ctest is not installed'
    exit 77
fi

mkdir -p "$work/tree/tests/house" "$work/tree/build/release" "$work/bin"
cp "$source/dev" "$work/tree/dev"
cp "$source/tests/house/tally.py" "$work/tree/tests/house/"
# Nothing is to be built or installed.
printf '#!/bin/sh\necho "install ok installed"\n' >"$work/bin/dpkg-query"
printf '#!/bin/sh\necho "-- nvcc not found: tests of CUDA are left out"\n' >"$work/bin/cmake"
printf '#!/bin/sh\nexit 1\n' >"$work/bin/apt-get"
chmod +x "$work/bin/"*
cat >"$work/program" <<'TEXT'
instruction sets: ran baseline avx2; lacking avx512
[==========] Running 3 test(s).
[ RUN      ] has_all
[       OK ] has_all
[ RUN      ] needs_a_file
SKIP: there is no such file
[  SKIPPED ] needs_a_file
[ RUN      ] says_nothing
[  SKIPPED ] says_nothing
[==========] 3 test(s) run.
[  PASSED  ] 1 test(s).
[  SKIPPED ] 2 test(s), listed below:
[  SKIPPED ] needs_a_file
[  SKIPPED ] says_nothing
TEXT
printf 'instruction sets: ran; lacking amx\nkernels on cuda: not run: no GPU\n' >"$work/products"
cat >"$work/tree/build/release/CTestTestfile.cmake" <<TEXT
add_test(good.whole sh -c "echo well")
add_test(good.part sh -c "seq 1 5000; echo 'SKIP: no picture'; seq 1 5000")
add_test(good.program cat "$work/program")
add_test(good.products cat "$work/products")
add_test(good.other cat "$work/products")
add_test(absent.all sh -c "echo 'SKIP: no python3'; exit 77")
set_tests_properties(absent.all PROPERTIES SKIP_RETURN_CODE 77)
add_test(bad.fails sh -c "echo 'SKIP: one part'; exit 1")
add_test(bad.absent "$work/no-such-program")
TEXT

run_dev() { # ARGUMENT...: output in $work/out, exit code in $code
    PATH=$work/bin:$PATH timeout 120 "$work/tree/dev" "$@" >"$work/out" 2>"$work/err" </dev/null
    code=$?
}

listed() { # LINE: how often it is among the skipped
    sed '1,/^skipped:$/d' "$work/out" | grep -cxF "  $1"
}

left_out='release: nvcc not found: tests of CUDA are left out'
run_dev test good
check 'nothing fails: exit code' 0 $code
check 'nothing fails: the last line' '5 passed, 0 failed, 7 skipped' "$(tail -n 1 "$work/out")"
check 'a part of a script' 1 "$(listed 'release: good.part: no picture')"
check 'a test of a program, with its reason' 1 "$(listed 'release: good.program: needs_a_file: there is no such file')"
check 'and one without' 1 "$(listed 'release: good.program: says_nothing: without a word why')"
for isa in avx512 amx; do
    check "$isa" 1 "$(listed "kernels for $isa: this machine lacks the instruction set")"
done
check 'that there is no GPU, once' 1 "$(listed 'release: kernels on cuda: no GPU')"
check 'what the build leaves out' 1 "$(listed "$left_out")"
check 'those that ran are said' 1 "$(grep -c '^instruction sets of the kernels that ran: avx2 baseline$' "$work/out")"
run_dev test '^absent.all$'
check 'nothing but a skip is no pass: exit code' 1 $code
check 'nothing but a skip: the last line' '0 passed, 0 failed, 2 skipped' "$(tail -n 1 "$work/out")"
run_dev test .
check 'failures: exit code' 1 $code
check 'failures: the last line' '5 passed, 2 failed, 9 skipped' "$(tail -n 1 "$work/out")"
check 'a test that is skipped' 1 "$(listed 'release: absent.all: no python3')"
run_dev test --quick
check '--quick runs the release build' '5 passed, 2 failed, 9 skipped' "$(tail -n 1 "$work/out")"
run_dev test --quickly
check 'another option is refused' 2 $code
rm "$work/tree/build/release/CTestTestfile.cmake"
run_dev test .
check 'no tests: exit code' 1 $code
check 'no tests are a failure' '0 passed, 1 failed, 1 skipped' "$(tail -n 1 "$work/out")"

# Fuzzers that only say what they were given.
mkdir -p "$work/tree/build/fuzz/fuzz"
run_dev fuzz 3s
check 'no fuzzer is a failure' 1 $code
printf '#!/bin/sh\necho "$*" >"$0.ran"\necho "stat::number_of_executed_units: 17"\n' >"$work/tree/build/fuzz/fuzz/good"
chmod +x "$work/tree/build/fuzz/fuzz/good"
run_dev fuzz 3s
check 'fuzz: exit code' 0 $code
check 'seconds' 1 "$(grep -c -- '-max_total_time=3 ' "$work/tree/build/fuzz/fuzz/good.ran")"
run_dev fuzz 50
check 'runs' 1 "$(grep -c -- '-runs=50 ' "$work/tree/build/fuzz/fuzz/good.ran")"
printf '#!/bin/sh\necho "ERROR: a fault"; exit 77\n' >"$work/tree/build/fuzz/fuzz/bad"
chmod +x "$work/tree/build/fuzz/fuzz/bad"
run_dev fuzz 3s
check 'a fuzzer that finds something' yes "$([ $code -ne 0 ] && grep -q '^ERROR: a fault$' "$work/out" && echo yes)"
check 'the others ran' 1 "$(grep -c '^good .* inputs$' "$work/out")"
[ $failed = 0 ] && echo "dev test: all as promised"
exit $failed
