/* Measuring puts the right marks on streams at the right time. A driver that writes them down stands in for CUDA's. */
#include "plugins/nccl/shim/measure/measure.h"

#include "plugins/nccl/shim/measure/launches.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <cmocka.h>

enum { ENTRIES = 64, FIRST = 16, SECOND = 32 }; /* the last two: streams */

/* ---- The driver ---- */

static char put_down[4096]; /* "16 event, 16 done 3, " */
static _Atomic uint64_t last_done;
static _Atomic unsigned disorder; /* writes of a number that is not the one after the last */
static slc_record_communicator rows[4];

#define FAKE(name, parameters) static int fake##name parameters
FAKE(CtxGetCurrent, (slc_shim_driver_context * out))
{
    *out = (slc_shim_driver_context)(uintptr_t)1;
    return 0;
}
FAKE(CtxPushCurrent, (slc_shim_driver_context context))
{
    (void)context;
    return 0;
}
FAKE(CtxPopCurrent, (slc_shim_driver_context * out))
{
    return fakeCtxGetCurrent(out);
}
FAKE(CtxGetDevice, (int *device))
{
    *device = 0;
    return 0;
}
FAKE(DevicePrimaryCtxRetain, (slc_shim_driver_context * out, int device))
{
    (void)device;
    return fakeCtxGetCurrent(out);
}
FAKE(DevicePrimaryCtxRelease, (int device))
{
    (void)device;
    return 0;
}
FAKE(StreamIsCapturing, (slc_shim_driver_stream stream, int *status))
{
    (void)stream;
    *status = 0;
    return 0;
}
FAKE(StreamCreate, (slc_shim_driver_stream * out, unsigned flags))
{
    (void)flags;
    *out = NULL;
    return 0;
}
FAKE(StreamGetCtx, (slc_shim_driver_stream stream, slc_shim_driver_context *out))
{
    (void)stream;
    return fakeCtxGetCurrent(out);
}
FAKE(StreamWriteValue64, (slc_shim_driver_stream stream, uint64_t at, uint64_t value, unsigned flags))
{
    (void)flags;
    size_t used = strlen(put_down);
    bool first_row = at == (uintptr_t)&rows[0].done;
    assert_true(first_row || at == (uintptr_t)&rows[1].done);
    snprintf(put_down + used, sizeof put_down - used, "%u done %u, ", (unsigned)(uintptr_t)stream, (unsigned)value);
    if (atomic_exchange(&last_done, value) + 1 != value) atomic_fetch_add(&disorder, 1);
    return 0;
}
FAKE(EventCreate, (slc_shim_driver_event * out, unsigned flags))
{
    (void)flags;
    *out = (slc_shim_driver_event)(uintptr_t)1;
    return 0;
}
FAKE(EventRecord, (slc_shim_driver_event event, slc_shim_driver_stream stream))
{
    (void)event;
    size_t used = strlen(put_down);
    if (stream) snprintf(put_down + used, sizeof put_down - used, "%u event, ", (unsigned)(uintptr_t)stream);
    return 0;
}
FAKE(EventQuery, (slc_shim_driver_event event))
{
    (void)event;
    return SLC_SHIM_DRIVER_NOT_READY; /* times are never read, so that the streams' events alone are written down */
}
FAKE(EventElapsedTime, (float *milliseconds, slc_shim_driver_event begin, slc_shim_driver_event end))
{
    (void)begin, (void)end;
    *milliseconds = 0;
    return 0;
}
FAKE(MemHostRegister, (void *memory, size_t bytes, unsigned flags))
{
    (void)memory, (void)bytes, (void)flags;
    return 0;
}
FAKE(MemHostGetDevicePointer, (uint64_t * out, void *memory, unsigned flags))
{
    (void)flags;
    *out = (uintptr_t)memory;
    return 0;
}

bool slc_shim_driver_find(slc_shim_driver *out)
{
    *out = (slc_shim_driver){fakeCtxGetCurrent,
                             fakeCtxPushCurrent,
                             fakeCtxPopCurrent,
                             fakeCtxGetDevice,
                             fakeDevicePrimaryCtxRetain,
                             fakeDevicePrimaryCtxRelease,
                             NULL,
                             fakeStreamIsCapturing,
                             fakeStreamCreate,
                             fakeStreamGetCtx,
                             fakeStreamWriteValue64,
                             fakeEventCreate,
                             fakeEventRecord,
                             fakeEventQuery,
                             fakeEventElapsedTime,
                             fakeMemHostRegister,
                             fakeMemHostGetDevicePointer};
    return true;
}

/* ---- A program ---- */

static slc_record_header header;
static slc_record_entry entries[ENTRIES];
static slc_record_time times[ENTRIES];
static slc_shim_recorder recorder;
static slc_shim_comm comms[2];

static int begin(void **state)
{
    (void)state;
    memset(&header, 0, sizeof header);
    memset(rows, 0, sizeof rows);
    memset(&recorder, 0, sizeof recorder);
    memset(comms, 0, sizeof comms);
    memset(slc_shim_this_thread(), 0, sizeof(slc_shim_thread));
    recorder.header = &header;
    recorder.rows = rows;
    recorder.entries = entries;
    recorder.times = times;
    recorder.entry_mask = ENTRIES - 1;
    recorder.wants_done = true;
    slc_shim_measure_find_driver(&recorder, 0);
    for (unsigned i = 0; i < 2; i++) {
        comms[i].row = &rows[i];
        comms[i].number = i;
    }
    put_down[0] = 0;
    last_done = 0;
    disorder = 0;
    return 0;
}

static int end(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) slc_shim_measure_comm_ended(&recorder, &comms[i]);
    return 0;
}

/* Compares what was put on streams since the last time. */
static void expect_put(const char *expected)
{
    assert_string_equal(put_down, expected);
    put_down[0] = 0;
}

static slc_shim_call begin_call(int comm, uintptr_t stream)
{
    slc_shim_call call = SLC_SHIM_PLAIN_CALL;
    call.operation = SLC_RECORD_ALL_REDUCE;
    call.count = 1;
    call.recorder = &recorder;
    call.thread = slc_shim_this_thread();
    call.known = &comms[comm];
    call.stream = (cudaStream_t)stream;
    call.entry = header.entries++;
    rows[comm].calls++;
    slc_record_entry *entry = &entries[call.entry % ENTRIES];
    entry->sequence = (uint32_t)(call.entry + 1);
    entry->send_communicator = (uint64_t)comm << 48;
    entry->stream_operation_dtype = stream | (uint64_t)SLC_RECORD_ALL_REDUCE << 48;
    entry->group_flags = slc_shim_this_thread()->depth ? slc_shim_this_thread()->group : 0;
    slc_shim_measure_begin(&call);
    return call;
}

static void call_nccl(int comm, uintptr_t stream, ncclResult_t result)
{
    slc_shim_call call = begin_call(comm, stream);
    slc_shim_measure_end(&call, result);
}

static void ask(int comm, ncclResult_t state)
{
    slc_shim_measure_asked(&recorder, &comms[comm], slc_shim_measure_before_asking(&recorder, &comms[comm]), state);
}

/* ---- Tests ---- */

static void what_is_launched_is_measured_at_once(void **state)
{
    (void)state;
    call_nccl(0, FIRST, ncclSuccess);
    expect_put("16 event, 16 done 1, 16 event, ");
    ask(0, ncclSuccess);
    expect_put("");
    call_nccl(0, FIRST, ncclInvalidUsage);
    expect_put("16 event, ");
    assert_int_equal(rows[0].unlaunched, 0);
}

static void what_is_in_progress_is_measured_when_it_is_not(void **state)
{
    (void)state;
    call_nccl(0, FIRST, ncclInProgress);
    expect_put("16 event, ");
    assert_int_equal(rows[0].unlaunched, 1);
    ask(0, ncclInProgress);
    ask(1, ncclSuccess);
    expect_put("");
    ask(0, ncclSuccess);
    expect_put("16 done 1, 16 event, ");
    assert_int_equal(rows[0].unlaunched, 0);
    ask(0, ncclSuccess);
    expect_put("");
    assert_int_equal(header.times_lost, 0);
}

static void what_fails_in_progress_is_not_measured(void **state)
{
    (void)state;
    call_nccl(0, FIRST, ncclInProgress);
    ask(0, ncclRemoteError);
    expect_put("16 event, ");
    assert_int_equal(rows[0].unlaunched, 1);
}

static void what_nobody_asked_about_is_lost(void **state)
{
    (void)state;
    call_nccl(0, FIRST, ncclInProgress);
    expect_put("16 event, ");
    call_nccl(0, FIRST, ncclInProgress); /* the one before it may come onto the stream only now */
    expect_put("");
    assert_int_equal(header.times_lost, 2);
    assert_int_equal(rows[0].unlaunched, 1);
    ask(0, ncclSuccess);
    expect_put("16 done 2, ");
    assert_int_equal(rows[0].unlaunched, 0);
    call_nccl(0, FIRST, ncclInProgress);
    slc_shim_measure_comm_ended(&recorder, &comms[0]);
    expect_put("16 event, ");
    assert_int_equal(header.times_lost, 3);
    assert_null(comms[0].marks);
}

static void an_old_answer_says_nothing_of_a_new_call(void **state)
{
    (void)state;
    call_nccl(0, FIRST, ncclInProgress);
    uint64_t old = slc_shim_measure_before_asking(&recorder, &comms[0]);
    ask(0, ncclSuccess);
    uint64_t nothing = slc_shim_measure_before_asking(&recorder, &comms[0]);
    call_nccl(0, FIRST, ncclInProgress);
    expect_put("16 event, 16 done 1, 16 event, 16 event, ");
    slc_shim_measure_asked(&recorder, &comms[0], old, ncclSuccess);
    slc_shim_measure_asked(&recorder, &comms[0], nothing, ncclSuccess);
    expect_put("");
    ask(0, ncclSuccess);
    expect_put("16 done 2, 16 event, ");
}

static void groups_wait_for_each_communicator(void **state)
{
    (void)state;
    slc_shim_this_thread()->depth = 1;
    slc_shim_this_thread()->group = 7;
    const int of[] = {0, 1, 0, 0};
    const uintptr_t on[] = {FIRST, FIRST, SECOND, FIRST};
    for (int i = 0; i < 4; i++) {
        slc_shim_call call = begin_call(of[i], on[i]);
        slc_shim_measure_end(&call, ncclSuccess);
    }
    slc_shim_measure_group_begin(&recorder, slc_shim_this_thread());
    expect_put("16 event, 16 event, 32 event, ");
    slc_shim_measure_group_end(&recorder, slc_shim_this_thread(), ncclInProgress);
    slc_shim_this_thread()->depth = 0;
    expect_put("");
    assert_int_equal(rows[0].unlaunched, 1);
    assert_int_equal(rows[1].unlaunched, 1);
    ask(0, ncclSuccess);
    expect_put("16 done 3, 16 event, 32 done 2, 32 event, ");
    assert_int_equal(rows[0].unlaunched, 0);
    assert_int_equal(rows[1].unlaunched, 1);
    slc_shim_measure_comm_ended(&recorder, &comms[1]);
    assert_int_equal(header.times_lost, 1);
    expect_put("");
}

/* ---- Threads ---- */

enum { ROUNDS = 4000 };

static _Atomic ncclResult_t nccl_state;
static _Atomic bool over;

static void ask_nccl(void)
{
    uint64_t noted = slc_shim_measure_before_asking(&recorder, &comms[0]);
    slc_shim_measure_asked(&recorder, &comms[0], noted, nccl_state);
}

static void *watch(void *unused)
{
    while (!over) ask_nccl();
    return unused;
}

static void *launch(void *unused)
{
    while (!over) {
        if (nccl_state == ncclInProgress) nccl_state = ncclSuccess;
        sched_yield();
    }
    return unused;
}

/* A watchdog asks all the time. Each operation is written once, in order, and before the program goes on. */
static void threads_that_ask_keep_the_order(void **state)
{
    (void)state;
    pthread_t watcher, launcher;
    recorder.times = NULL;
    over = false;
    nccl_state = ncclSuccess;
    assert_int_equal(pthread_create(&watcher, NULL, watch, NULL), 0);
    assert_int_equal(pthread_create(&launcher, NULL, launch, NULL), 0);
    for (uint64_t number = 1; number <= ROUNDS; number++) {
        slc_shim_call call = begin_call(0, FIRST);
        nccl_state = ncclInProgress;
        slc_shim_measure_end(&call, ncclInProgress);
        do {
            sched_yield();
            ask_nccl();
        } while (nccl_state == ncclInProgress);
        ask_nccl();
        if (last_done != number || disorder) fail_msg("operation %u: %u", (unsigned)number, (unsigned)last_done);
        put_down[0] = 0;
    }
    over = true;
    pthread_join(watcher, NULL);
    pthread_join(launcher, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_launched_is_measured_at_once, begin, end),
        cmocka_unit_test_setup_teardown(what_is_in_progress_is_measured_when_it_is_not, begin, end),
        cmocka_unit_test_setup_teardown(what_fails_in_progress_is_not_measured, begin, end),
        cmocka_unit_test_setup_teardown(what_nobody_asked_about_is_lost, begin, end),
        cmocka_unit_test_setup_teardown(an_old_answer_says_nothing_of_a_new_call, begin, end),
        cmocka_unit_test_setup_teardown(groups_wait_for_each_communicator, begin, end),
        cmocka_unit_test_setup_teardown(threads_that_ask_keep_the_order, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
