#!/usr/bin/env bash
# `./dev test` tells the truth, in a tree of a few small tests with nothing to build: what it runs in each of its forms,
# what it counts, what it says of options, budgets and the last whole run.
. "$(dirname "$0")/../support/command_check.sh"
unset SLUICE_TEST_SEED SLUICE_TEST_SCALE SLUICE_TEST_BRIEF SLUICE_TEST_STEPS # this test's own runs begin without
source=$(realpath "$(dirname "$0")/../..")
seconds=$(realpath "$(dirname "$sluice")/..")/test_seconds
for tool in python3 ctest git; do
    if ! command -v $tool >/dev/null; then
        skip "all of it: $tool is not installed"
        exit 77
    fi
done

# ---- The tree ----

tree=$work/tree
mkdir -p "$work/bin" "$tree/tests/house" "$tree/tests/run" "$tree/.ci" "$tree/build/"{release,tsan}/tests
for folder in include lib sched bench plugins docs ilp; do mkdir "$tree/$folder"; done
cp "$source/dev" "$tree/dev"
cp "$source/.ci/run" "$tree/.ci/run"
cp "$source/tests/run/"*.py "$tree/tests/run/"
# Nothing is to be built or installed, and the style is always right.
printf '#!/bin/sh\nshift 2; printf "%%s install ok installed\\n" "$@"\n' >"$work/bin/dpkg-query"
printf '#!/bin/sh\n[ $1 != --preset ] || echo "-- nvcc not found: tests of CUDA are left out"\n' >"$work/bin/cmake"
printf '#!/bin/sh\nexit 1\n' >"$work/bin/apt-get"
printf '#!/bin/sh\nexit 0\n' | tee "$work/bin/clang-format" "$work/bin/shellcheck" >"$tree/tests/house/include_check.py"
echo | tee "$tree"/tests/house/{tested,size,by_change}_check.py >"$tree/tests/house/include_check.py"
ln -s "$(python3 -c 'import sys; print(sys.executable)')" "$work/bin/python3" # itself, where a script stands for it
chmod +x "$work/bin/"*
for program in release/tests/tests_engine_test release/tests/tests_checkpoint_test tsan/tests/tests_engine_test \
    tsan/tests/tests_engine_split_test; do
    printf '#!/bin/sh\necho "stress: $2"\n' >"$tree/build/$program"
    chmod +x "$tree/build/$program"
done

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

counting_tests() { # tests whose output is counted
    cat <<TEXT
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
}

labelled_tests() { # PRESET: each notes that it ran, and how much it is to do
    local name label
    while read -r name label; do
        printf 'add_test(%s sh "%s" %s %s)\nset_tests_properties(%s PROPERTIES LABELS "%s")\n' \
            "$name" "$work/noted" "$1" "$name" "$name" "${name%%.*};$label"
    done <<'TEXT'
good.plain
good.race threads
good.long all_only
good.page by_change;release_only
good.text script;release_only
sched.order
device.memory
TEXT
}

cat >"$work/noted" <<TEXT
echo "\$2 \$1 \$SLUICE_TEST_SCALE \${SLUICE_TEST_SEED:-fixed}" >>"$work/ran"
echo "\$2 \$(cat "$work/seconds") 0" >>"\$TEST_SECONDS"
test ! -e "$work/broken.\$1.\$2"
TEXT
echo 1 >"$work/seconds"

use_tests() { # counting_tests|labelled_tests: in all presets
    local preset
    for preset in release asan tsan noglpk emulated; do
        mkdir -p "$tree/build/$preset"
        "$1" $preset >"$tree/build/$preset/CTestTestfile.cmake"
    done
}

run_dev() { # ARGUMENT...: output in $work/out, exit code in $code
    PATH=$work/bin:$PATH timeout 120 "$tree/dev" "$@" >"$work/out" 2>"$work/err" </dev/null
    code=$?
}

listed() { # LINE: how often it is among the skipped
    sed '1,/^skipped:$/d' "$work/out" | grep -cxF "  $1"
}

says() { # WHAT PATTERN: of the output and the errors
    check "$1" yes "$(cat "$work/out" "$work/err" | grep -Eq -- "$2" && echo yes)"
}

which_ran() { # [PRESET]: the tests that have run since the last call
    sed -n "s/ ${1:-[a-z]*} .*//p" "$work/ran" | sort -u | xargs
}

# ---- Counts ----

use_tests counting_tests
left_out='release: nvcc not found: tests of CUDA are left out'
run_dev test --failed
check 'no run yet: exit code of --failed' 2 $code
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
run_dev test --failed
check 'nothing failed: exit code of --failed' 0 $code
says 'nothing failed' 'nothing failed in the last run'
run_dev test '^absent.all$'
check 'nothing but a skip is no pass: exit code' 1 $code
check 'nothing but a skip: the last line' '0 passed, 0 failed, 2 skipped' "$(tail -n 1 "$work/out")"
run_dev test .
check 'failures: exit code' 1 $code
check 'failures: the last line' '5 passed, 2 failed, 9 skipped' "$(tail -n 1 "$work/out")"
check 'a test that is skipped' 1 "$(listed 'release: absent.all: no python3')"
run_dev test --failed
check 'what failed is repeated: the last line' '0 passed, 2 failed, 2 skipped' "$(tail -n 1 "$work/out")"
sed -i '/bad.absent/d' "$tree/build/release/CTestTestfile.cmake"
sed -i 's/exit 1/exit 0/' "$tree/build/release/CTestTestfile.cmake"
run_dev test --failed
check 'one that is gone is not repeated' '1 passed, 0 failed, 2 skipped' "$(tail -n 1 "$work/out")"
run_dev test --failed
says 'and then nothing is left' 'nothing failed in the last run'

# ---- Options ----

refused() { # PATTERN ARGUMENT...: the command is used wrongly, and the error has the pattern
    local pattern=$1
    shift
    run_dev "$@"
    check "$*: exit code" 2 $code
    check "$*: the error" yes "$(grep -Eq -- "$pattern" "$work/err" && echo yes)"
}
refused 'no option "--quickly"' test --quickly
refused 'no use for "good"' test --quick good
refused 'no use for "more"' test --all good more
refused 'no use for "good"' test good good
refused 'an argument is empty' test ''
refused 'no test.s name matches "nonsense"' test nonsense
refused 'no part "nonsense"; the parts are absent bad good' test --all nonsense
refused 'a number of steps or plans, not "many"' stress many
refused 'a number of steps or plans, not "many"' stress pipelines many
refused 'no option "--right"' budget --right

# ---- Forms ----

use_tests labelled_tests
printf 'add_test(%s sh "%s" release %s)\n' good.in_order "$work/noted" good.in_order >>"$tree/build/release/CTestTestfile.cmake"
: >"$work/ran"
run_dev test order
check 'a test by its own name, which is a part of another' sched.order "$(which_ran)"
: >"$work/ran"
run_dev test orde
check 'tests by a part of their names' 'good.in_order sched.order' "$(which_ran)"
use_tests labelled_tests
printf 'add_test(good.slow sh "%s" release good.slow)\nset_tests_properties(good.slow PROPERTIES LABELS slow)\n' "$work/noted" \
    >>"$tree/build/release/CTestTestfile.cmake"
: >"$work/ran"
run_dev test --quick
check '--quick: exit code' 0 $code
check '--quick' 'device.memory good.plain good.race sched.order' "$(which_ran)"
check '--quick: lint counts' '5 passed, 0 failed, 1 skipped' "$(tail -n 1 "$work/out")"
use_tests labelled_tests
: >"$work/ran"
run_dev test --all good
check '--all PART: exit code' 0 $code
check '--all PART, in the release build' 'good.long good.page good.plain good.race good.text' "$(which_ran release)"
check '--all PART, under asan' 'good.long good.plain good.race' "$(which_ran asan)"
check '--all PART, under tsan' good.race "$(which_ran tsan)"
check '--all PART, where it has no test' '' "$(which_ran noglpk)"
: >"$work/ran"
run_dev test --all sched
drawn=$(sed -n '1s/.* //p' "$work/ran")
check 'a seed is drawn' yes "$(expr "$drawn" : '[0-9][0-9]*$' >/dev/null && echo yes)"
check 'another part, all of it with one seed' \
    "sched.order asan 0.1 $drawn/sched.order noglpk 1 $drawn/sched.order release 1 $drawn" "$(sort "$work/ran" | paste -sd/)"
check 'the seed is said at the beginning and in the summary' 2 \
    "$(grep -c "^seeds are drawn: SLUICE_TEST_SEED=$drawn ./dev test --all" "$work/out")"
: >"$work/ran"
SLUICE_TEST_SEED=17 run_dev test --all sched
check 'a seed is repeated' 'sched.order asan 0.1 17/sched.order noglpk 1 17/sched.order release 1 17' \
    "$(sort "$work/ran" | paste -sd/)"
touch "$work/broken.asan.sched.order"
SLUICE_TEST_SEED=18 run_dev test --all sched
: >"$work/ran"
run_dev test --failed
check 'what failed is repeated with its seed' 'sched.order asan 0.1 18' "$(cat "$work/ran")"
rm "$work/broken.asan.sched.order"
run_dev test --failed
SLUICE_TEST_SEED=often refused 'SLUICE_TEST_SEED is "often"; give a number' test --all sched
: >"$work/ran"
run_dev test --all sched
check 'the next run draws another seed' yes "$(grep -q " $drawn$" "$work/ran" || echo yes)"
printf '#!/bin/sh\nexit 1\n' >"$work/bin/clang-format"
: >"$work/ran"
run_dev test --quick
check 'wrong style ends --quick' '0 passed, 1 failed, 0 skipped' "$(tail -n 1 "$work/out")"
check 'before its tests' '' "$(which_ran)"
printf '#!/bin/sh\nexit 0\n' >"$work/bin/clang-format"
run_dev test --failed
check 'the style is looked at again' '1 passed, 0 failed, 0 skipped' "$(tail -n 1 "$work/out")"

# ---- The whole ----

git() { command git -C "$tree" -c user.name=test -c user.email=test@localhost "$@" >/dev/null; }
commit() { git commit --quiet --allow-empty --message "$1"; }

# A unit of 0.04 CPU seconds, however fast the machine is.
cat >"$work/unit.py" <<'TEXT'
import time
while time.process_time() < 0.04:
    pass
TEXT
compiles="python3 -I -S $work/unit.py -o a.o -c a.c"
echo "[{\"directory\": \"$tree\", \"file\": \"$tree/a.c\", \"command\": \"$compiles\"}]" \
    >"$tree/build/release/compile_commands.json"

budget() { # GOOD SCHED [TOTAL]: a table with these seconds for two parts
    cat >"$tree/tests/budget.txt" <<TEXT
# A table.
unit 0.04
file a.c
total ${3:-1000}
style style 5
build release 5
stress stress 5
good release $1
sched release $2
device release 30
reserved tomorrow 100
TEXT
}

# The fuzzers only say what they were given.
mkdir -p "$tree/build/fuzz/fuzz"
printf '#!/bin/sh\necho "$*" >"$0.ran"\necho "stat::number_of_executed_units: 17"\n' >"$tree/build/fuzz/fuzz/good_fuzz"
chmod +x "$tree/build/fuzz/fuzz/good_fuzz"
printf '# A test, and what it reads.\ngood.page  a.c docs/ # a page\nfuzz       tests/corpus/ *_fuzz.c\n' \
    >"$tree/tests/house/by_change.txt"
echo build/ >"$tree/.gitignore"
echo 'int main(void) { return 0; }' >"$tree/a.c"
budget 100 100
git init --quiet
git add .
commit first
: >"$work/ran"
run_dev test
check 'all: exit code' 0 $code
check 'the release build' 'device.memory good.page good.plain good.race good.text sched.order' "$(which_ran release)"
check 'asan' 'device.memory good.plain good.race sched.order' "$(which_ran asan)"
check 'tsan' good.race "$(which_ran tsan)"
check 'noglpk' 'device.memory sched.order' "$(which_ran noglpk)"
check 'seeds are fixed' '' "$(grep -v fixed "$work/ran")"
check 'tests, lint, five of stress, fuzz and the budget' '21 passed, 0 failed, 1 skipped' "$(tail -n 1 "$work/out")"
check 'fuzzing ran' 1 "$(grep -c -- '-max_total_time=3 ' "$tree/build/fuzz/fuzz/good_fuzz.ran")"
says 'nobody has run all' 'WARNING: tests/whole.json is missing'
says 'the slowest' '^ +1\.0  (release|asan|tsan|noglpk) (good|sched)\.'
says 'parts against the budget' '^  good  .* 7 of +(8|9|1)[0-9]+  .*release 4.*asan 2.*tsan 1'

run_dev test --all
check '--all: exit code' 0 $code
says '--all: the record' '^tests/whole.json is written'
check 'the commit in it' "$(command git -C "$tree" rev-parse HEAD)" "$(python3 -c '
import json, sys
whole = json.load(open(sys.argv[1]))
assert whole["date"] and whole["processor"] and whole["cpu_seconds"]["test release"] >= 0
print(whole["commit"])' "$tree/tests/whole.json")"
check 'ten seconds a fuzzer' 1 "$(grep -c -- '-max_total_time=10 ' "$tree/build/fuzz/fuzz/good_fuzz.ran")"
run_dev test --all
says 'not written: its tree is of no commit' 'tests/whole.json is not written: the tree is not that of'
git add .
commit 'all tests passed'

# `./dev test --failed` repeats the tests that failed in a whole run. That completes the run if nothing but the test's
# own file has changed.
mended() { # FILE: changes after a whole run in which good.plain failed
    touch "$work/broken.asan.good.plain"
    run_dev test --all
    check "a whole run that fails: exit code" 1 $code
    rm "$work/broken.asan.good.plain"
    echo >"$tree/$1"
    git add .
    commit "$1"
    run_dev test --failed
    check "$1: what failed passes" '1 passed, 0 failed, 0 skipped' "$(tail -n 1 "$work/out")"
}
mended b.txt
says 'not written: more has changed' 'tests/whole.json is not written: since the whole run other files .* as b.txt'
mended tests/plain.sh
says '--failed: the record' '^tests/whole.json is written'
check 'what was repeated' good.plain "$(sed -n '/"repeated"/{n;s/[ "]//g;p;}' "$tree/tests/whole.json")"
git add .
commit 'all tests passed'

# Tests by what changed.
why='nothing that it reads has changed since tests/whole.json'
reads() { # WHAT SKIPPED FUZZ_SKIPPED: the whole, and whether the two are skipped
    run_dev test
    check "$1: the page" "$2" "$(listed "release: good.page: $why")"
    check "$1: fuzzing" "$3" "$(listed "fuzz, 3 s a reader: $why")"
}
reads 'nothing has changed' 1 1
says 'its age' '^tests/whole.json: all tests passed 1 commit ago'
check 'what did not run has not passed' '19 passed, 0 failed, 3 skipped' "$(tail -n 1 "$work/out")"
echo >"$tree/docs/page.md"
reads 'a new file in its folder' 0 1
rm "$tree/docs/page.md"
echo >"$tree/lib/b_fuzz.c"
git add .
commit 'a fuzzer'
for _ in $(seq 99); do commit more; done
reads 'a file of its kind' 1 0
says 'old' '^WARNING: all tests passed 101 commits ago'
sed -i 's/"commit": "..../"commit": "0000/' "$tree/tests/whole.json"
reads 'a commit that is not here' 0 0
says 'a commit that is not here: the age' 'which this clone does not have'

# ---- The budget ----

judged() { # GOOD SCHED CODE PATTERN [TOTAL]: of the last run
    budget "$1" "$2" ${5:+"$5"}
    run_dev budget
    check "budget $*: exit code" "$3" $code
    says "budget $*: said" "$4"
}
echo 10 >"$work/seconds" # good takes 70, sched 30, device 30
budget 12 30
run_dev test
check 'above three times the budget' '20 passed, 1 failed, 1 skipped' "$(tail -n 1 "$work/out")"
says 'which part' '^FAILED: good took 70 CPU seconds of '
judged 32 30 0 '^WARNING: good took 70 CPU seconds of '
judged 70 30 0 '^together 145 s, and 100 reserved, of 1000'
judged 70 30 0 '^  good  ' 245
judged 70 30 1 '^FAILED: .* 245 s together, more than its total of 244' 244
sed -i '/^device/d' "$tree/tests/budget.txt"
run_dev budget
says 'a part without a line' '^FAILED: device took 30 CPU seconds, and has no line'
run_dev test --failed
says 'a budget is nothing to repeat' 'nothing failed in the last run'
budget 70 30
run_dev budget --write
rows='good asan 20/good release 40/good tsan 10/sched asan 10/sched noglpk 10/sched release 10'
check 'the last run is written' "$rows" "$(grep '^good\|^sched' "$tree/tests/budget.txt" |
    awk '{ printf "%s %s %d0\n", $1, $2, ($3 + 5) / 10 }' | paste -sd/)"
check 'the rest of the table stays' '# A table./unit 0.04/file a.c/total 1000/reserved tomorrow 100' \
    "$(grep -E '^(#|unit|file|total|reserved)' "$tree/tests/budget.txt" | sed 's/  */ /g' | paste -sd/)"
for line in 'total lots' 'good release' 'good release asan 5'; do
    budget 70 30
    echo "$line" >>"$tree/tests/budget.txt"
    run_dev budget
    says "a table with \"$line\"" '^dev: tests/budget.txt:12: expected'
done
rm "$tree/tests/budget.txt"
run_dev test
says 'no table' '^FAILED: tests/budget.txt: .*No such file'
check 'no table is a failure' '20 passed, 1 failed, 1 skipped' "$(tail -n 1 "$work/out")"
run_dev budget --write
check 'and nothing to write to' 2 $code

# ---- What failed, of all builds ----

budget 70 30
touch "$work/broken.asan.good.plain" "$work/broken.noglpk.sched.order"
run_dev test
check 'two fail' '19 passed, 2 failed, 1 skipped' "$(tail -n 1 "$work/out")"
run_dev budget --write
check 'seconds of a run that failed are no budget' 1 $code
: >"$work/ran"
run_dev test --failed
check 'each in its build, as before' 'good.plain asan 0.1 fixed/sched.order noglpk 0.1 fixed' \
    "$(sort "$work/ran" | paste -sd/)"
rm "$work/broken.asan.good.plain"
run_dev test --failed
check 'one is mended' '1 passed, 1 failed, 0 skipped' "$(tail -n 1 "$work/out")"
: >"$work/ran"
rm "$work/broken.noglpk.sched.order"
run_dev test --failed
check 'the other is left' 'sched.order noglpk 0.1 fixed' "$(cat "$work/ran")"
printf '#!/bin/sh\nexit 3\n' >"$tree/build/tsan/tests/tests_engine_split_test"
run_dev test
printf '#!/bin/sh\nexit 0\n' >"$tree/build/tsan/tests/tests_engine_split_test"
run_dev test --failed
check 'a part of stress alone' '1 passed, 0 failed, 0 skipped' "$(tail -n 1 "$work/out")"

# ---- Ends ----

mark=dev_test_$$
echo "add_test(good.waits sh -c \"echo begun >$work/begun; timeout 300 sh -c 'sleep 300; : $mark'\")" \
    >"$tree/build/release/CTestTestfile.cmake"
PATH=$work/bin:$PATH begin "$work/out" "$work/err" timeout 120 "$tree/dev" test good
comes_true test -e "$work/begun"
kill -TERM "$process"
kill -TERM -- -"$process" 2>/dev/null || true # a second one, as a terminal or `timeout` may send
ends 'an interrupted run'
says 'an interrupted run says so' '^dev: interrupted'
check 'and leaves nothing behind' 0 "$(alive "$mark")"
echo 'set_tests_properties(good.waits PROPERTIES DISABLED ON)' >>"$tree/build/release/CTestTestfile.cmake"
run_dev test good
check 'a disabled test has not passed' '0 passed, 1 failed, 1 skipped' "$(tail -n 1 "$work/out")"
rm "$tree/build/release/CTestTestfile.cmake"
refused 'no test.s name matches' test .

check 'time left' '--- stage 2 of 3, test a: 5 of 10 tests; about 2 min left/--- stage 2 of 3, test a' \
    "$(cd "$tree/tests/run" && python3 -B -c '
import os, time, time_left
time_left.IN_USE = 1.0 / os.cpu_count()
left = time_left.TimeLeft([("build a", 60), ("test a", 100), ("other", 10)], print)
left.leave("build a"), left.enter("test a"), left.advance("test a", 0.5, "5 of 10 tests")
left.begin = time.monotonic() - 200  # 110 of 170 seconds in 200
first = left.line()
left = time_left.TimeLeft([("build a", None), ("test a", None), ("other", None)], print)
left.enter("test a")
print(first, left.line(), sep="/")')"

# ---- Fuzzers ----

rm "$tree/build/fuzz/fuzz/"*
run_dev fuzz 3s
check 'no fuzzer is a failure' 1 $code
printf '#!/bin/sh\necho "$*" >"$0.ran"\necho "stat::number_of_executed_units: 17"\n' >"$tree/build/fuzz/fuzz/good_fuzz"
chmod +x "$tree/build/fuzz/fuzz/good_fuzz"
run_dev fuzz 50
check 'fuzz: exit code' 0 $code
check 'runs' 1 "$(grep -c -- '-runs=50 ' "$tree/build/fuzz/fuzz/good_fuzz.ran")"
printf '#!/bin/sh\necho "ERROR: a fault"; exit 77\n' >"$tree/build/fuzz/fuzz/bad_fuzz"
chmod +x "$tree/build/fuzz/fuzz/bad_fuzz"
run_dev fuzz 3s
check 'a fuzzer that finds something' yes "$([ $code -ne 0 ] && grep -q '^ERROR: a fault$' "$work/out" && echo yes)"
check 'the others ran' 1 "$(grep -c '^good .* inputs$' "$work/out")"
printf '#!/bin/sh
echo "$*" >"$0.ran"; touch tests/corpus/good/new
' >"$tree/build/fuzz/fuzz/good_fuzz"
rm "$tree/build/fuzz/fuzz/bad_fuzz"
run_dev fuzz --keep
says 'what was found is kept' '^good  *0 kept, 1 new$'
check 'what is merged into what' 1 \
    "$(grep -c -- '-merge=1 .* tests/corpus/good build/fuzz/corpus/good$' "$tree/build/fuzz/fuzz/good_fuzz.ran")"
refused 'a number of inputs, seconds as in 60s, or --keep' fuzz fast
refused 'a number of inputs, seconds as in 60s, or --keep' fuzz -3

# ---- A system without Debian's tools ----

mkdir "$work/bare"
for tool in env bash dirname timeout mktemp cat grep rm; do ln -s "$(command -v $tool)" "$work/bare/$tool"; done
ln -s "$work/bin/cmake" /bin/sh "$work/bare/"
for debian in '' dpkg-query apt-get; do # one alone does not make it a Debian
    rm -f "$work/bare/dpkg-query" "$work/bare/apt-get"
    [ -z "$debian" ] || ln -s "$work/bin/$debian" "$work/bare/"
    PATH=$work/bare "$tree/dev" build >"$work/out" 2>"$work/err" </dev/null
    check "no dpkg but ${debian:-nothing}: exit code of build" 0 $?
    check 'one line says so' 1 "$(grep -c '^dev: no dpkg and apt here, .*docs/install.md' "$work/err")"
    says 'and CMake is asked' 'nvcc not found: tests of CUDA are left out'
done

# ---- The seconds of a test ----

timed() { # COMMAND...: its line in $work/noted_seconds, its code
    rm -f "$work/noted_seconds"
    TEST_SECONDS=$work/noted_seconds "$seconds" a.test "$@" >"$work/out" 2>"$work/err"
    code=$?
}
timed sh -c 'exit 7'
check 'a code' 7 $code
{ timed sh -c 'kill -USR1 $$'; } 2>/dev/null
check 'a signal' $((128 + 10)) $code
{ timed sh -c 'kill -TERM $PPID; sleep 60'; } 2>/dev/null
check 'a signal to the launcher' $((128 + 15)) $code
timed sh -c 'test -z "$TEST_SECONDS"'
check 'tests inside a test are not noted' 0 $code
timed sh -c "python3 '$work/unit.py'; python3 '$work/unit.py'"
check 'the seconds of a process and its children' yes \
    "$(awk '$1 == "a.test" && $2 + $3 >= 0.08 && $2 + $3 < 3 { print "yes" }' "$work/noted_seconds")"
check 'without a file to write to it is the command itself' yes "$(sh -c 'echo $$; exec "$0" a.test sh -c "echo \$\$"' \
    "$seconds" | uniq | wc -l | sed 's/^1$/yes/')"

[ $failed = 0 ] && echo "dev test: all as promised"
exit $failed
