/* `sluice nccl` says what was recorded: the tests run the command on records that they make up. */
#include "tests/support/base/folder.h"

#include "plugins/nccl/record/records.h"
#include "tests/support/nccl_record/made_records.h"

#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <string.h>

static char output[1 << 16];

/* Runs `sluice nccl` in the test's folder with these arguments; returns the exit code. The command's output is then in
 * `output`. */
static int run_nccl(const char *arguments)
{
    char command[2 * PATH_MAX];
    snprintf(command, sizeof command, "cd %s && \"$SLUICE_COMMAND\" nccl %s 2>&1", test_folder(), arguments);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    output[fread(output, 1, sizeof output - 1, pipe)] = 0;
    int code = pclose(pipe);
    return code >> 8;
}

static void says(const char *text)
{
    if (!strstr(output, text)) fail_msg("not there: %s\n%s", text, output);
}

static void says_not(const char *text)
{
    if (strstr(output, text)) fail_msg("there: %s\n%s", text, output);
}

static json_t *json_of(const char *arguments)
{
    json_error_t error;
    assert_int_equal(run_nccl(arguments), 0);
    json_t *json = json_loads(output, 0, &error);
    if (!json) fail_msg("%s: %s", error.text, output);
    return json;
}

static double number_at(json_t *json, const char *list, size_t index, const char *key)
{
    json_t *value = json_object_get(json_array_get(json_object_get(json, list), index), key);
    if (!json_is_number(value)) fail_msg("%s[%zu].%s is no number", list, index, key);
    return json_number_value(value);
}

/* Checks that the numbers are equal but for rounding. */
static void is_near(double got, double expected)
{
    if (!(fabs(got - expected) <= 1e-9 * fabs(expected))) fail_msg("%.12g, not %.12g", got, expected);
}

static const char *text_at(json_t *json, const char *list, size_t index, const char *key)
{
    json_t *value = json_object_get(json_array_get(json_object_get(json, list), index), key);
    if (!json_is_string(value)) fail_msg("%s[%zu].%s is no text", list, index, key);
    return json_string_value(value);
}

enum { STEPS = 10, RANKS = 4, MIB = 1 << 20 };

/* A rank that reduces two buckets of 4 MiB and a loss of 4 bytes in each step, 10 ms apart; with times, a bucket takes
 * 1 ms. Its host's clock has begun at another moment. */
static made_record training(const char *host, int rank, bool timed, uint32_t room)
{
    made_record r = made_record_new(host, 100 + rank, room, timed);
    made_communicator(&r, 0x1a2b000000000000, rank, RANKS);
    made_module(&r, "/opt/torch/libtorch_cuda.so");
    r.communicators[0].device = 0;
    r.header->realtime_minus_monotonic_ns += rank * INT64_C(1000000000);
    for (unsigned step = 0; step < STEPS; step++)
        for (unsigned call = 0; call < 3; call++) {
            int64_t now = INT64_C(50000000000) - rank * INT64_C(1000000000) + step * 10000000 + call * 2000000;
            made_call c = {.operation = SLC_RECORD_ALL_REDUCE,
                           .dtype = 7,
                           .redop = 4,
                           .thread = 1,
                           .peer = -1,
                           .stream = 0xabc,
                           .time_ns = now,
                           .count = call < 2 ? MIB : 1,
                           .caller = 0x42};
            uint64_t index = made_entry(&r, &c);
            if (timed) made_time(&r, index, now + 1000, now + 1000 + (call < 2 ? 1000000 : 20000));
        }
    return r;
}

static void write_training(int ranks, bool timed, uint32_t room)
{
    for (int rank = 0; rank < ranks; rank++) {
        char name[32];
        made_record r = training(rank % 2 ? "node-b" : "node-a", rank, timed, room);
        snprintf(name, sizeof name, "%d.nccl", rank);
        made_record_write(&r, path_of(name), 0);
        made_record_free(&r);
    }
}

static void traffic_is_added_up(void **state)
{
    (void)state;
    write_training(RANKS, true, 64);
    json_t *json = json_of("--json - .");
    assert_int_equal(json_array_size(json_object_get(json, "processes")), RANKS);
    assert_int_equal(json_array_size(json_object_get(json, "communicators")), 1);
    assert_string_equal(text_at(json, "communicators", 0, "key"), "1a2b000000000000");
    assert_int_equal(number_at(json, "communicators", 0, "calls"), RANKS * STEPS * 3);
    assert_int_equal(json_array_size(json_object_get(json, "traffic")), 1);
    assert_string_equal(text_at(json, "traffic", 0, "operation"), "all_reduce");
    uint64_t bytes = RANKS * STEPS * (UINT64_C(8) * MIB + 4);
    assert_int_equal(number_at(json, "traffic", 0, "bytes"), bytes);
    double seconds = RANKS * STEPS * (2 * 1e-3 + 20e-6), algbw = number_at(json, "traffic", 0, "algbw");
    is_near(algbw, (double)bytes / seconds * 1e-9);
    is_near(number_at(json, "traffic", 0, "busbw"), algbw * 1.5);
    assert_int_equal(number_at(json, "sizes", 0, "up_to"), 4);
    assert_int_equal(number_at(json, "sizes", 0, "calls"), RANKS * STEPS);
    assert_int_equal(number_at(json, "sizes", 1, "up_to"), 4 * MIB);
    assert_int_equal(json_array_size(json_object_get(json, "steps")), RANKS);
    assert_int_equal(number_at(json, "steps", 3, "count"), STEPS);
    assert_int_equal(number_at(json, "steps", 3, "bytes"), 8 * MIB + 4);
    is_near(number_at(json, "steps", 3, "period_s"), 10e-3);
    is_near(number_at(json, "processes", 0, "nccl_s"), seconds / RANKS);
    assert_int_equal(json_array_size(json_object_get(json_object_get(json, "grouping"), "sequences")), 0);
    is_near(json_number_value(json_object_get(json_object_get(json, "grouping"), "alpha_s")), 20e-6);
    json_decref(json);
}

/* A column has its place and width, a line ends with its last cell that is known, and one that no row knows is left
 * out. */
static void tables_for_people(void **state)
{
    (void)state;
    write_training(RANKS, true, 64);
    made_record r = made_record_new("a", 7, 8, true);
    unsigned split = made_communicator(&r, 0x77fe000000000000, 0, 2);
    r.communicators[split].parent_key = 0x1a2b000000000000;
    made_call c = {.operation = SLC_RECORD_BROADCAST, .dtype = 7, .peer = -1, .time_ns = 50000000000, .count = 4};
    made_entry(&r, &c);
    made_record_write(&r, path_of("split.nccl"), 0);
    made_record_free(&r);
    assert_int_equal(run_nccl("."), 0);
    says("rank    host                  pid  state         calls      kept  program\n"
         "0       a                       7  ended             1         1  train --steps 10\n"
         "0       node-a                100  ended            30        30  train --steps 10\n");
    says("communicator ranks         calls a rank\n");
    says("1a2b         4 of 4                  30\n");
    says("77fe         1 of 2                   1  split from 1a2b  no record of rank 1\n");
    says("communicator operation       dtype       calls a rank       bytes   mean size   mean time    algbw    "
         "busbw\n");
    says("1a2b         all_reduce      float32               30    80.0 MiB     2.7 MiB      673 us     4.15     "
         "6.23\n");
    says("77fe         broadcast       float32                1        16 B        16 B\n");
    says("size up to          calls               bytes        \n"
         "4 B                    40  33.1 %       160 B   0.0 %\n");
    json_t *json = json_of("--json - .");
    json_t *row = json_array_get(json_object_get(json, "traffic"), 1);
    assert_true(json_is_null(json_object_get(row, "time_s")) && json_is_null(json_object_get(row, "busbw")));
    json_decref(json);
    empty_folder(NULL);
    write_training(RANKS, false, 64);
    assert_int_equal(run_nccl("."), 0);
    says("communicator operation       dtype       calls a rank       bytes   mean size\n");
}

static void text_for_people(void **state)
{
    (void)state;
    write_training(RANKS - 1, false, 16);
    assert_int_equal(run_nccl("."), 0);
    says("node-b");
    says("3 of 4                  30  no record of rank 3");
    says("all_reduce");
    says("SLUICE_SHIM_TIME=1 measures them");
    says("steps: 3 calls and 8.0 MiB each, 5 times every 10.0 ms (rank 0; 3 of 3 ranks alike)");
    says("    2 x 1a2b all_reduce float32 avg, 4.0 MiB");
    says("lost: the oldest 42 of 90 calls");
    says_not("failed");
    assert_int_equal(run_nccl("0.nccl"), 0); /* one file */
    says("1 of 4");
    says("no record of rank 1-3");
}

static void small_calls_that_could_go_together(void **state)
{
    (void)state;
    enum { CALLS = 200 };
    for (int grouped = 0; grouped < 2; grouped++) {
        made_record r = made_record_new("a", 1, 4096, false);
        made_communicator(&r, 0x77fe000000000000, 0, 2);
        for (unsigned i = 0; i < CALLS; i++) {
            made_call c = {.operation = SLC_RECORD_ALL_REDUCE,
                           .dtype = 7,
                           .peer = -1,
                           .thread = 1,
                           .count = 512,
                           .time_ns = 1000000 + i * 1000,
                           .group = grouped ? 5 : 0,
                           .flags = grouped ? SLC_RECORD_GROUPED : 0,
                           .module = SLC_RECORD_NO_MODULE};
            made_entry(&r, &c);
        }
        made_record_write(&r, path_of("r.nccl"), 0);
        json_t *json = json_of("--json - .");
        json_t *found = json_object_get(json_object_get(json, "grouping"), "sequences");
        assert_int_equal(json_array_size(found), 1);
        json_t *sequence = json_array_get(found, 0);
        assert_int_equal(json_integer_value(json_object_get(sequence, "calls")), CALLS);
        assert_int_equal(json_is_true(json_object_get(sequence, "grouped")), grouped);
        double alpha = grouped ? 1e-6 : 12e-6;
        is_near(json_number_value(json_object_get(sequence, "saved_s")), (CALLS - 1) * alpha);
        is_near(json_number_value(json_object_get(sequence, "spent_s")), 2 * 2e-6 + 4 * CALLS * 2048 / 3e12);
        json_decref(json);
        assert_int_equal(run_nccl("."), 0);
        says(grouped ? "  a group " : "  no group ");
        made_record_free(&r);
    }
    /* The calls come at once, but each waits for what it sends: a group would hold them all up. */
    made_record r = made_record_new("a", 1, 4096, true);
    made_communicator(&r, 0x77fe000000000000, 0, 2);
    for (unsigned i = 0; i < CALLS; i++) {
        made_call c = {.operation = SLC_RECORD_ALL_REDUCE,
                       .dtype = 7,
                       .peer = -1,
                       .count = 512,
                       .time_ns = 1000000 + i * 1000,
                       .module = SLC_RECORD_NO_MODULE};
        made_time(&r, made_entry(&r, &c), 2000000 + i * 1000000, 2020000 + i * 1000000);
    }
    made_record_write(&r, path_of("r.nccl"), 0);
    made_record_free(&r);
    assert_int_equal(run_nccl("."), 0);
    says_not("go together");
    write_training(1, false, 64); /* what is 2 ms apart cannot go together */
    assert_int_equal(unlink(path_of("r.nccl")), 0);
    assert_int_equal(run_nccl("."), 0);
    says_not("go together");
}

static void transforms_and_why_calls_passed(void **state)
{
    (void)state;
    made_record r = training("a", 0, false, 64);
    slc_record_communicator *row = &r.communicators[0];
    row->fused_calls = 100;
    row->fused_groups = 5;
    row->compressed_calls = 7;
    row->bytes_compressed = 64 * MIB;
    row->bytes_sent_compressed = 2 * MIB;
    row->passed[SLC_RECORD_PASS_CAPTURED] = 3;
    row->passed[SLC_RECORD_PASS_STAGING] = 4;
    made_record_write(&r, path_of("r.nccl"), 0);
    assert_int_equal(run_nccl("."), 0);
    says("100 calls fused into 5; 7 compressed, 64.0 MiB as 2.0 MiB; 7 passed: captured 3, no staging left 4");
    made_record_free(&r);
}

/* Hosts' clocks begin at other moments; the same moment has the same place in the timeline. */
static void timeline_on_one_clock(void **state)
{
    (void)state;
    write_training(RANKS, true, 64);
    assert_int_equal(run_nccl("--timeline line.json ."), 0);
    json_error_t error;
    json_t *json = json_load_file(path_of("line.json"), 0, &error), *event;
    if (!json) fail_msg("%s", error.text);
    size_t i, calls = 0, operations = 0, names = 0;
    double first[RANKS + 1] = {0};
    json_array_foreach (json_object_get(json, "traceEvents"), i, event) {
        const char *kind = json_string_value(json_object_get(event, "ph"));
        json_int_t process = json_integer_value(json_object_get(event, "pid"));
        double at_us = json_number_value(json_object_get(event, "ts"));
        assert_true(process >= 1 && process <= RANKS);
        calls += *kind == 'i';
        operations += *kind == 'X';
        names += *kind == 'M';
        if (*kind == 'i' && first[process] == 0) first[process] = at_us;
        if (*kind == 'X') assert_true(json_number_value(json_object_get(event, "dur")) > 0);
    }
    assert_int_equal(calls, RANKS * STEPS * 3);
    assert_int_equal(operations, RANKS * STEPS * 3);
    assert_int_equal(names, RANKS * 3);
    for (int rank = 2; rank <= RANKS; rank++) is_near(first[rank], first[1]);
    json_decref(json);
}

static void no_records(void **state)
{
    (void)state;
    assert_int_equal(run_nccl("."), 2);
    says("LD_PRELOAD=/PATH/libsluice_nccl.so");
    assert_int_equal(run_nccl("nowhere"), 2);
    says("nowhere has no records");
    assert_int_equal(run_nccl("--json - --timeline - ."), 2);
    write_file("bad.nccl", "not a record", 12);
    assert_int_equal(run_nccl("."), 2);
    says("bad.nccl: it has 12 bytes");
}

/* The operations of a group are timed together, and are one bar in the timeline. */
static void groups_are_timed_once(void **state)
{
    (void)state;
    enum { GROUPS = 3, CALLS = 4 };
    made_record r = made_record_new("a", 1, 64, true);
    made_communicator(&r, 0x99, 0, 2);
    for (unsigned group = 1; group <= GROUPS; group++)
        for (unsigned i = 0; i < CALLS; i++) {
            made_call c = {.operation = i < 2 ? SLC_RECORD_ALL_REDUCE : SLC_RECORD_BROADCAST,
                           .dtype = 7,
                           .count = i < 2 ? 3 * MIB : MIB,
                           .group = group,
                           .flags = SLC_RECORD_GROUPED,
                           .time_ns = 1000000 * group,
                           .peer = -1,
                           .module = SLC_RECORD_NO_MODULE};
            made_time(&r, made_entry(&r, &c), 1000000 * group, 1000000 * group + 800000);
        }
    made_record_write(&r, path_of("r.nccl"), 0);
    made_record_free(&r);
    json_t *json = json_of("--json - --timeline line.json .");
    is_near(number_at(json, "traffic", 0, "time_s"), GROUPS * 600e-6); /* 24 of 32 MiB */
    is_near(number_at(json, "traffic", 1, "time_s"), GROUPS * 200e-6);
    is_near(number_at(json, "processes", 0, "nccl_s"), GROUPS * 800e-6);
    json_decref(json);
    json = json_load_file(path_of("line.json"), 0, NULL);
    size_t i, bars = 0;
    json_t *event;
    json_array_foreach (json_object_get(json, "traceEvents"), i, event) {
        if (strcmp(json_string_value(json_object_get(event, "ph")), "X")) continue;
        bars++;
        assert_string_equal(json_string_value(json_object_get(event, "name")), "group of 4, first all_reduce");
        assert_int_equal(json_integer_value(json_object_get(json_object_get(event, "args"), "bytes")), 32 * MIB);
    }
    assert_int_equal(bars, GROUPS);
    json_decref(json);
}

/* One process has several devices, whose rows may be in any order. */
static void several_ranks_in_a_process(void **state)
{
    (void)state;
    made_record r = made_record_new("a", 1, 64, false);
    static const int ranks[] = {2, 0, 1};
    for (unsigned i = 0; i < 3; i++) made_communicator(&r, 0x99, ranks[i], 3);
    for (unsigned step = 0; step < 4; step++)
        for (unsigned i = 0; i < 3; i++) {
            made_call c = {.operation = SLC_RECORD_BROADCAST,
                           .communicator = i,
                           .dtype = 0,
                           .count = 100,
                           .redop = SLC_RECORD_NO_REDOP,
                           .module = SLC_RECORD_NO_MODULE};
            made_entry(&r, &c);
        }
    made_record_write(&r, path_of("r.nccl"), 0);
    made_record_free(&r);
    assert_int_equal(run_nccl("."), 0);
    says("0-2     a ");
    says("3 of 3                   4\n");
    says("steps: 1 call and 100 B each, 4 times");
    says("3 of 3 ranks alike");
    json_t *json = json_of("--json - .");
    assert_int_equal(json_array_size(json_object_get(json, "steps")), 3);
    assert_int_equal(number_at(json, "steps", 0, "rank"), 2);
    json_decref(json);
}

/* A process that has called NCCL but has no communicator yet, and one with calls on none. */
static void records_with_little_in_them(void **state)
{
    (void)state;
    made_record r = made_record_new("a", 1, 16, true);
    made_record_write(&r, path_of("r.nccl"), 0);
    assert_int_equal(run_nccl("--timeline line.json ."), 0);
    made_call c = {.operation = SLC_RECORD_ALL_REDUCE,
                   .communicator = SLC_RECORD_NO_COMMUNICATOR,
                   .count = 5,
                   .module = SLC_RECORD_NO_MODULE,
                   .peer = -1};
    made_entry(&r, &c);
    made_communicator(&r, 5, -1, 0);
    made_record_write(&r, path_of("r.nccl"), 0);
    json_t *json = json_of("--timeline line.json --json - .");
    assert_int_equal(json_array_size(json_object_get(json, "traffic")), 0);
    json_decref(json);
    assert_int_equal(run_nccl("."), 0);
    made_record_free(&r);
}

static void a_damaged_record_is_named_once(void **state)
{
    (void)state;
    write_training(RANKS, false, 64);
    assert_int_equal(truncate(path_of("3.nccl"), 5000), 0);
    for (int watch = 0; watch < 2; watch++) {
        assert_int_equal(run_nccl(watch ? "--watch ." : "."), 0);
        says(watch ? "no fault found" : "all_reduce");
        const char *said = strstr(output, "3.nccl: the record is cut");
        if (!said || strstr(said + 1, "3.nccl: the record is cut")) fail_msg("not once: %s", output);
        says("; the file is left out\n");
    }
    assert_int_not_equal(run_nccl("3.nccl"), 0); /* nothing is left */
    says("3.nccl: the record is cut");
}

/* A record that only stays for a while is not the program that --watch waits for. */
static void watching_before_the_start(void **state)
{
    (void)state;
    made_record r = training("node-a", 0, false, 64);
    r.header->left_at_s = 1;
    made_record_write(&r, path_of("0.nccl"), 0);
    made_record_free(&r);
    char command[2 * PATH_MAX], line[PATH_MAX];
    long pid = 0;
    snprintf(command, sizeof command, "cd %s && echo $$ && exec \"$SLUICE_COMMAND\" nccl --watch . 2>&1",
             test_folder());
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    assert_int_equal(fscanf(pipe, "%ld\n", &pid), 1);
    assert_non_null(fgets(line, sizeof line, pipe));
    kill((pid_t)pid, SIGKILL);
    pclose(pipe);
    if (!strstr(line, "waiting for a program")) fail_msg("%s", line);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(traffic_is_added_up, empty_folder),
        cmocka_unit_test_setup(tables_for_people, empty_folder),
        cmocka_unit_test_setup(text_for_people, empty_folder),
        cmocka_unit_test_setup(small_calls_that_could_go_together, empty_folder),
        cmocka_unit_test_setup(transforms_and_why_calls_passed, empty_folder),
        cmocka_unit_test_setup(timeline_on_one_clock, empty_folder),
        cmocka_unit_test_setup(no_records, empty_folder),
        cmocka_unit_test_setup(groups_are_timed_once, empty_folder),
        cmocka_unit_test_setup(several_ranks_in_a_process, empty_folder),
        cmocka_unit_test_setup(records_with_little_in_them, empty_folder),
        cmocka_unit_test_setup(watching_before_the_start, empty_folder),
        cmocka_unit_test_setup(a_damaged_record_is_named_once, empty_folder),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
