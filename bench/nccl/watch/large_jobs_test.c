/* Comparing ranks costs what their records hold, however large the job is, and whatever a record says of its size. */
#include "tests/support/bench/scene.h"

#include "bench/nccl/watch/faults.h"
#include "bench/nccl/watch/waits.h"

#include <string.h>

enum { MANY = 1500, AHEAD = 700 };

/* Ranks of one communicator, without entries; the first ones have called one collective more than the others. */
typedef struct {
    slc_nccl_process processes[MANY];
    slc_record_communicator rows[MANY];
    double quiet_s[MANY];
} large_job;

static large_job *new_job(size_t ahead, slc_record_row_state state, int size)
{
    large_job *job = calloc(1, sizeof *job);
    assert_non_null(job);
    for (int i = 0; i < MANY; i++) {
        uint64_t calls = (size_t)i < ahead ? 8 : 7;
        job->processes[i].state = SLC_NCCL_RUNNING;
        job->processes[i].header.state = SLC_RECORD_RUNNING;
        job->processes[i].header.communicators = 1;
        job->processes[i].communicators = &job->rows[i];
        job->rows[i] = (slc_record_communicator){
            .state = state, .rank = i, .size = size, .key = 5, .calls = calls, .collectives = calls};
        job->quiet_s[i] = 20;
    }
    return job;
}

static slc_nccl_records records_of(large_job *job)
{
    return (slc_nccl_records){.processes = job->processes, .count = MANY};
}

/* The waits of the job's communicator; each rank ahead waits for one, and each other one is waited for. */
static size_t count_waits(large_job *job, size_t ahead)
{
    slc_nccl_records records = records_of(job);
    slc_nccl_members all;
    slc_nccl_waits waits = {0};
    bool seen[MANY] = {0};
    assert_int_equal(slc_nccl_members_find(&records, job->quiet_s, &all), SLUICE_OK);
    assert_int_equal(all.communicator_count, 1);
    assert_int_equal(slc_nccl_waits_find(&all, &all.communicators[0], 10, &waits), SLUICE_OK);
    for (size_t i = 0; i < waits.count; i++) {
        const slc_nccl_wait *w = &waits.rows[i];
        seen[w->from->rank] = true;
        if (w->to) seen[w->to->rank] = true;
    }
    for (size_t i = 0; ahead && i < MANY; i++)
        if (!seen[i]) fail_msg("rank %zu has no wait", i);
    size_t count = waits.count;
    free(waits.rows);
    slc_nccl_members_free(&all);
    return count;
}

static void one_finding(large_job *job, slc_nccl_finding_kind kind, const char *text)
{
    slc_nccl_records records = records_of(job);
    slc_nccl_findings found;
    assert_int_equal(slc_nccl_compare(&records, job->quiet_s, 10, &found), SLUICE_OK);
    assert_int_equal(found.count, 1);
    assert_int_equal(found.rows[0].kind, kind);
    if (!strstr(found.rows[0].text, text)) fail_msg("%s", found.rows[0].text);
    slc_nccl_findings_free(&found);
}

static void half_of_the_ranks_lag(void **state)
{
    (void)state;
    large_job *job = new_job(AHEAD, SLC_RECORD_ROW_READY, MANY);
    assert_in_range(count_waits(job, AHEAD), MANY, (1 << 18) + MANY);
    one_finding(job, SLC_NCCL_FOUND_LAGS, "and 796 others likewise");
    free(job);
    job = new_job(0, SLC_RECORD_ROW_READY, MANY);
    for (int i = AHEAD; i < MANY; i++) job->processes[i].state = SLC_NCCL_GONE;
    assert_in_range(count_waits(job, AHEAD), MANY, (1 << 18) + MANY);
    one_finding(job, SLC_NCCL_FOUND_GONE, "and 796 others likewise");
    free(job);
}

static void most_ranks_are_missing(void **state)
{
    (void)state;
    large_job *job = new_job(0, SLC_RECORD_ROW_CREATING, 1 << 20);
    assert_int_equal(count_waits(job, 0), MANY);
    one_finding(job, SLC_NCCL_FOUND_MISSING, "and 1047072 others likewise");
    free(job);
}

/* A ring of sends, the last of which nobody receives; rows for each pair would take gigabytes. */
static void few_pairs_of_very_many(void **state)
{
    (void)state;
    large_job *job = new_job(0, SLC_RECORD_ROW_READY, 1 << 20);
    static slc_nccl_entry entries[MANY][2];
    for (int i = 0; i < MANY; i++) {
        slc_nccl_entry *send = &entries[i][0], *receive = &entries[i][1];
        *send = (slc_nccl_entry){.number = 1,
                                 .receive = 1,
                                 .count = 4,
                                 .time_ns = 1000,
                                 .operation = SLC_RECORD_SEND,
                                 .peer = (i + 1) % MANY,
                                 .module = SLC_RECORD_NO_MODULE};
        *receive = *send;
        receive->index = 1;
        receive->number = 2;
        receive->send = 1;
        receive->operation = SLC_RECORD_RECEIVE;
        receive->peer = (i + MANY - 1) % MANY;
        job->processes[i].entries = entries[i];
        job->processes[i].entry_count = i ? 2 : 1; /* rank 0 receives nothing */
        job->rows[i].calls = i ? 2 : 1;
        job->rows[i].collectives = 0;
    }
    one_finding(job, SLC_NCCL_FOUND_SEND_UNMATCHED, "rank 1499 sent int8[4] (4 bytes) to rank 0");
    free(job);
}

/* Two ranks of which one claims to have called very many: only what is kept is walked. */
static void ordinals_far_apart(void **state)
{
    (void)state;
    scene s;
    scene_begin(&s, 2);
    scene_join_all(&s, 0x3f2a000000000001);
    scene_all_call_times(&s, 0, 2);
    scene_lose(&s, 1, 1);
    s.rows[1][0].calls = s.rows[1][0].collectives = UINT64_C(1) << 50;
    s.processes[1].entries[0].number = UINT64_C(1) << 50;
    scene_all_quiet(&s, 1);
    scene_expect_nothing(&s);
    scene_all_quiet(&s, 12);
    scene_expect(&s, SLC_NCCL_FOUND_LAGS, "operation 3: rank 1 called it; rank 0");
    scene_end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(half_of_the_ranks_lag),
        cmocka_unit_test(most_ranks_are_missing),
        cmocka_unit_test(few_pairs_of_very_many),
        cmocka_unit_test(ordinals_far_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
