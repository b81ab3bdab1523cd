# slc_part(NAME [COMMAND_ONLY] [LINK target...] [DIRS dir...] [LAB dir-or-file...] [LABELS label...] [EXCLUDE file...]):
# one part of the house.
# Every .c of the folder (and of DIRS below it) but *_test.c and *_fuzz.c goes into the part; every *_test.c becomes a
# test named NAME.file. Includes are written from the root: "lib/base/log.h", <sluice/status.h>.
#
# COMMAND_ONLY: the part is for the `sluice` command and for tests; the library that is installed has it not, nor what the
# part links.
#
# References (*_ref.c) and everything in LAB are for tests and for the developers' laboratory: they are linked into
# sluice_testing only, never into the library that is installed.
#
# Labels say which tests `./dev test` runs where: each test has its part's name; "threads" means that the thread
# sanitizer has something to see; "release_only" that sanitizers would only repeat it slowly; "by_change" that it runs
# where files have changed that tests/house/by_change.txt names; "all_only" that `./dev test --all` alone runs it.
set_property(GLOBAL PROPERTY SLUICE_PART_TARGETS "")
set_property(GLOBAL PROPERTY SLUICE_COMMAND_TARGETS "")
set_property(GLOBAL PROPERTY SLUICE_COMMAND_LINK "")
set_property(GLOBAL PROPERTY SLUICE_LAB_TARGETS "")
if(SLUICE_FUZZ)
    add_custom_target(fuzzers)
    # The files that readers call: tests/house/by_change.txt lists them for the test fuzz.
    set(SLUICE_FUZZED_LIST "${PROJECT_SOURCE_DIR}/tests/house/by_change.txt")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${SLUICE_FUZZED_LIST}")
    file(STRINGS "${SLUICE_FUZZED_LIST}" rows REGEX "^fuzz ")
    string(REGEX MATCHALL "[a-z][^ ;]*/[^ ;*]*" SLUICE_FUZZED "${rows}")
endif()

# slc_fuzzed(SOURCE...): in a build of fuzzers, those of a part's files that no reader calls are compiled as fast as can be;
# a file under sanitizers takes eight times as long.
function(slc_fuzzed)
    if(NOT SLUICE_FUZZ)
        return()
    endif()
    foreach(source IN LISTS ARGN)
        cmake_path(RELATIVE_PATH source BASE_DIRECTORY "${PROJECT_SOURCE_DIR}" OUTPUT_VARIABLE path)
        set(called FALSE)
        foreach(prefix IN LISTS SLUICE_FUZZED)
            string(FIND "${path}" "${prefix}" at)
            if(at EQUAL 0)
                set(called TRUE)
            endif()
        endforeach()
        if(NOT called)
            set_source_files_properties("${source}" PROPERTIES COMPILE_OPTIONS "-O0;-fno-sanitize=all")
        endif()
    endforeach()
endfunction()

# OpenMP's threads sleep where they wait: tests run beside each other, with more threads than cores.
set(SLUICE_TEST_ENVIRONMENT
    "OMP_WAIT_POLICY=passive"
    "SLUICE_TRANSPORT_PATH=${PROJECT_BINARY_DIR}/plugins/transport"
    "SLUICE_COMMAND=${PROJECT_BINARY_DIR}/bench/sluice")
if(SLUICE_SANITIZE)
    list(APPEND SLUICE_TEST_ENVIRONMENT
        "TSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tests/support/race_suppressions.txt"
        # UCX loads modules and unloads those that find no device; the leak checker would still look at their
        # thread-local memory and crash.
        "ASAN_OPTIONS=intercept_tls_get_addr=0"
        "UCX_MEM_EVENTS=n") # UCX would patch the allocator that the sanitizer replaces
endif()

# UCX frees a request that a transport forgot when its worker goes, unseen by the leak checker, and warns of it.
set(SLUICE_FORGOTTEN "UCX +WARN .*was not returned to mpool")

if(SLUICE_TESTS)
    add_executable(test_seconds "${PROJECT_SOURCE_DIR}/tests/run/test_seconds.c")
    target_compile_options(test_seconds PRIVATE -fno-sanitize=all)
    target_link_options(test_seconds PRIVATE -fno-sanitize=all)
    add_library(corpus_replay OBJECT "${PROJECT_SOURCE_DIR}/tests/corpus/replay.c")
endif()

# mold links test programs in half the time, where it is installed. Nothing else is linked with it: it leaves missing
# functions to be found at another time than ld does.
find_program(SLUICE_MOLD mold)
mark_as_advanced(SLUICE_MOLD)
set(SLUICE_TEST_LINK_OPTIONS)
if(SLUICE_MOLD AND NOT SLUICE_FUZZ)
    set(SLUICE_TEST_LINK_OPTIONS -fuse-ld=mold)
endif()

# slc_add_test(NAME PART.name COMMAND command...): add_test by way of test_seconds, which notes the test's CPU time. No other
# part has a test of this name.
function(slc_add_test)
    cmake_parse_arguments(PARSE_ARGV 0 TEST "" "NAME" "COMMAND")
    list(GET TEST_COMMAND 0 program)
    if(TARGET "${program}") # add_test would replace only its first word
        list(REMOVE_AT TEST_COMMAND 0)
        list(PREPEND TEST_COMMAND "$<TARGET_FILE:${program}>")
    endif()
    string(REGEX REPLACE "^[^.]*[.]" "" name "${TEST_NAME}")
    get_property(names GLOBAL PROPERTY SLUICE_TEST_NAMES)
    if(name IN_LIST names)
        message(FATAL_ERROR "${TEST_NAME}: another part has a ${name}; `./dev test ${name}` should run one test")
    endif()
    set_property(GLOBAL APPEND PROPERTY SLUICE_TEST_NAMES ${name})
    add_test(NAME ${TEST_NAME} COMMAND test_seconds ${TEST_NAME} ${TEST_COMMAND})
    set_property(GLOBAL APPEND PROPERTY SLUICE_TIMED_TESTS ${TEST_NAME})
endfunction()

function(slc_objects target property link)
    add_library(${target} OBJECT ${ARGN})
    target_include_directories(${target} PUBLIC "${PROJECT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/include")
    set_target_properties(${target} PROPERTIES C_VISIBILITY_PRESET hidden)
    target_link_libraries(${target} PUBLIC Threads::Threads m sluice_cuda ${link})
    set_property(GLOBAL APPEND PROPERTY ${property} ${target})
endfunction()

function(slc_part name)
    cmake_parse_arguments(PART "COMMAND_ONLY" "" "LINK;DIRS;LAB;LABELS;EXCLUDE" ${ARGN})
    set(patterns "${CMAKE_CURRENT_SOURCE_DIR}/*.c")
    foreach(dir IN LISTS PART_DIRS PART_LAB)
        list(APPEND patterns "${CMAKE_CURRENT_SOURCE_DIR}/${dir}/*.c")
    endforeach()
    file(GLOB sources CONFIGURE_DEPENDS ${patterns})
    foreach(file IN LISTS PART_EXCLUDE)
        list(REMOVE_ITEM sources "${CMAKE_CURRENT_SOURCE_DIR}/${file}")
    endforeach()
    set(tests ${sources})
    set(fuzzers ${sources})
    list(FILTER fuzzers INCLUDE REGEX "_fuzz\\.c$")
    list(FILTER sources EXCLUDE REGEX "_test\\.c$|_fuzz\\.c$")
    list(FILTER tests INCLUDE REGEX "_test\\.c$")
    set(lab ${sources})
    set(named "_ref\\.c$" ${PART_LAB})
    list(JOIN named "|" named)
    list(FILTER lab INCLUDE REGEX "${named}")
    if(lab)
        list(REMOVE_ITEM sources ${lab})
        slc_objects(slc_${name}_lab SLUICE_LAB_TARGETS "${PART_LINK}" ${lab})
    endif()
    set(property SLUICE_PART_TARGETS)
    if(PART_COMMAND_ONLY)
        set(property SLUICE_COMMAND_TARGETS)
        set_property(GLOBAL APPEND PROPERTY SLUICE_COMMAND_LINK ${PART_LINK})
    endif()
    slc_objects(slc_${name} ${property} "${PART_LINK}" ${sources})
    slc_fuzzed(${sources})
    if(SLUICE_TESTS)
        foreach(test IN LISTS tests)
            slc_test("${name}" "${test}" LABELS ${PART_LABELS})
        endforeach()
    endif()
    foreach(fuzzer IN LISTS fuzzers)
        slc_fuzzer("${name}" "${fuzzer}")
    endforeach()
endfunction()

# slc_test_reads(TARGET FILE): a test has what its text names. The linker puts each function __wrap_NAME that the test
# declares, or a header of tests/support that it includes, in the place of NAME; SLUICE_GOLDEN_DIR is tests/golden.
function(slc_test_reads target file)
    file(STRINGS "${file}" golden REGEX "SLUICE_GOLDEN_DIR")
    if(golden)
        target_compile_definitions(${target} PRIVATE SLUICE_GOLDEN_DIR="${PROJECT_SOURCE_DIR}/tests/golden")
    endif()
    file(STRINGS "${file}" headers REGEX "^#include \"tests/support/")
    list(TRANSFORM headers REPLACE "^#include \"(.*)\"" "${PROJECT_SOURCE_DIR}/\\1")
    foreach(source IN LISTS file headers)
        file(STRINGS "${source}" lines REGEX "__wrap_")
        string(REGEX MATCHALL "__wrap_[a-z0-9_]+" names "${lines}")
        list(REMOVE_DUPLICATES names)
        list(TRANSFORM names REPLACE "__wrap_" "-Wl,--wrap=")
        target_link_options(${target} PRIVATE ${names})
    endforeach()
endfunction()

# A test's own code is compiled by -O1, under sanitizers by -O0: it runs once, and compiling it costs more than running it.
# Kernels' tests, whose oracles compute, have flags of their own.
set(SLUICE_TEST_OPTIMISED $<$<CONFIG:Release>:-O1>)
if(SLUICE_SANITIZE)
    set(SLUICE_TEST_OPTIMISED -O0)
endif()

# One test program, PART.FILE; it may look behind the headers, so it links every part (sluice_testing), and what the part's
# tests share (tests/support).
function(slc_test part file)
    cmake_parse_arguments(TEST "" "" "LABELS" ${ARGN})
    get_filename_component(stem "${file}" NAME_WE)
    set(target "${part}_${stem}")
    add_executable(${target} "${file}")
    target_compile_options(${target} PRIVATE ${SLUICE_TEST_OPTIMISED})
    if(SLUICE_CUDA STREQUAL "EMULATED")
        target_sources(${target} PRIVATE "${PROJECT_SOURCE_DIR}/tests/cuda_emulated/first_line.c")
    endif()
    if(TARGET support_${part})
        target_link_libraries(${target} PRIVATE support_${part})
    endif()
    target_link_libraries(${target} PRIVATE sluice_testing PkgConfig::CMOCKA)
    target_link_options(${target} PRIVATE ${SLUICE_TEST_LINK_OPTIONS})
    slc_test_reads(${target} "${file}")
    target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/include")
    add_dependencies(${target} test_seconds)
    slc_add_test(NAME ${part}.${stem} COMMAND ${target})
    slc_test_properties(${part}.${stem} LABELS ${part} ${TEST_LABELS})
    if(SLUICE_SANITIZE MATCHES "thread" AND NOT "threads" IN_LIST TEST_LABELS) # neither built nor run without the label
        set_target_properties(${target} PROPERTIES EXCLUDE_FROM_ALL ON)
        set_tests_properties(${part}.${stem} PROPERTIES DISABLED ON)
    endif()
endfunction()

# slc_threads(PART STEM...): tests of a part that the thread sanitizer runs too, because a second thread is at work in them,
# or a process that shares their memory.
function(slc_threads part)
    if(SLUICE_TESTS)
        foreach(stem IN LISTS ARGN)
            set_property(TEST ${part}.${stem} APPEND PROPERTY LABELS threads)
            set_tests_properties(${part}.${stem} PROPERTIES DISABLED OFF) # as slc_test leaves it without the label
            if(TARGET ${part}_${stem})
                set_target_properties(${part}_${stem} PROPERTIES EXCLUDE_FROM_ALL OFF)
            endif()
        endforeach()
    endif()
endfunction()

# Tests that this build cannot have: ctest lists them as skipped, and prints why.
function(slc_skipped part why)
    foreach(stem IN LISTS ARGN)
        if(SLUICE_TESTS)
            slc_add_test(NAME ${part}.${stem} COMMAND sh -c "echo \"SKIP: $0\"; exit 77" "${why}")
            slc_test_properties(${part}.${stem} LABELS ${part} release_only)
            set_tests_properties(${part}.${stem} PROPERTIES SKIP_RETURN_CODE 77)
        endif()
    endforeach()
endfunction()

# One fuzzer: fuzz/FILE_fuzz for `./dev fuzz`, which builds the target fuzzers; in other builds the test PART.FILE_corpus,
# which feeds what tests/corpus/FILE holds to the same function. Further arguments are
# linked.
function(slc_fuzzer part file)
    get_filename_component(stem "${file}" NAME_WE)
    set(target "${part}_${stem}")
    set(sources "${file}")
    if(NOT SLUICE_FUZZ)
        if(NOT SLUICE_TESTS OR SLUICE_SANITIZE MATCHES "thread") # readers have no threads
            return()
        endif()
        string(REGEX REPLACE "_fuzz$" "" name "${stem}")
        set(target "${part}_${name}_corpus")
        list(APPEND sources $<TARGET_OBJECTS:corpus_replay>)
    endif()
    add_executable(${target} ${sources})
    target_link_libraries(${target} PRIVATE sluice_testing ${ARGN})
    target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/include")
    if(SLUICE_FUZZ)
        target_link_options(${target} PRIVATE -fsanitize=fuzzer)
        add_dependencies(fuzzers ${target})
        set_target_properties(${target} PROPERTIES OUTPUT_NAME "${stem}"
                              RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/fuzz")
    else()
        target_link_options(${target} PRIVATE ${SLUICE_TEST_LINK_OPTIONS})
        add_dependencies(${target} test_seconds)
        slc_add_test(NAME ${part}.${name}_corpus COMMAND ${target} "${PROJECT_SOURCE_DIR}/tests/corpus/${name}")
        slc_test_properties(${part}.${name}_corpus LABELS ${part})
    endif()
endfunction()

# slc_test_properties(TEST [LABELS label...]): what every test of the project has. Those that tests/house/by_change.txt names
# get its label.
#
# A test that computes counts as two processors, one that mostly waits as one: with three times as many as the machine has
# (`ctest -j`), tests that wait run beside those that compute, and no core is idle where a script's commands run one by one. tests/house/scheduling.txt says what is not usual.
set(SLUICE_SCHEDULING_FILE "${PROJECT_SOURCE_DIR}/tests/house/scheduling.txt")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${SLUICE_SCHEDULING_FILE}")
file(STRINGS "${SLUICE_SCHEDULING_FILE}" SLUICE_SCHEDULING REGEX "^[a-z]")
set(SLUICE_BY_CHANGE_FILE "${PROJECT_SOURCE_DIR}/tests/house/by_change.txt")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${SLUICE_BY_CHANGE_FILE}")
file(STRINGS "${SLUICE_BY_CHANGE_FILE}" SLUICE_BY_CHANGE REGEX "^[a-z_]+[.]") # a test, in which `*` is any text, and its files
list(TRANSFORM SLUICE_BY_CHANGE REPLACE " .*" "")
list(TRANSFORM SLUICE_BY_CHANGE REPLACE "[.]" "[.]")
list(TRANSFORM SLUICE_BY_CHANGE REPLACE "[*]" ".*")
list(REMOVE_DUPLICATES SLUICE_BY_CHANGE)
list(JOIN SLUICE_BY_CHANGE "|" SLUICE_BY_CHANGE)
set(SLUICE_TEST_TIMEOUT 300) # seconds, only against hanging: on two slow cores beside others a test took 230
if(SLUICE_SANITIZE)
    set(SLUICE_TEST_TIMEOUT 600)
endif()

function(slc_test_properties test)
    cmake_parse_arguments(TEST "" "" "LABELS" ${ARGN})
    get_property(timed GLOBAL PROPERTY SLUICE_TIMED_TESTS)
    if(NOT test IN_LIST timed)
        message(FATAL_ERROR "${test}: add it with slc_add_test, so that its CPU time is known")
    endif()
    if(test MATCHES "^(${SLUICE_BY_CHANGE})$")
        list(APPEND TEST_LABELS by_change)
    endif()
    set_tests_properties(${test} PROPERTIES TIMEOUT ${SLUICE_TEST_TIMEOUT} PROCESSORS 2 LABELS "${TEST_LABELS}"
                         ENVIRONMENT "${SLUICE_TEST_ENVIRONMENT}" FAIL_REGULAR_EXPRESSION "${SLUICE_FORGOTTEN}")
    foreach(line IN LISTS SLUICE_SCHEDULING)
        separate_arguments(words UNIX_COMMAND "${line}")
        list(POP_FRONT words name)
        if(name STREQUAL test)
            if("SLOW" IN_LIST words)
                list(REMOVE_ITEM words SLOW)
                set_property(TEST ${test} APPEND PROPERTY LABELS slow)
            endif()
            if("RELEASE_ONLY" IN_LIST words)
                list(REMOVE_ITEM words RELEASE_ONLY)
                set_property(TEST ${test} APPEND PROPERTY LABELS release_only)
            endif()
            if(words)
                set_tests_properties(${test} PROPERTIES ${words})
            endif()
        endif()
    endforeach()
endfunction()
