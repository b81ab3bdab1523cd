/* Transitions from plan to plan, without ranks: random jobs, any strategies to any others, all arenas in one process.
 * Whatever a rank owned must lie where the new plan looks for it, whatever was whole must be whole again, and nothing
 * outside the larger of both arenas may be touched. */
#include "lib/engine/model/unit.h"
#include "lib/engine/replan/transition.h"
#include "lib/plan/strategy_table.h"
#include "tests/support/plan/random_job.h"
#include "sched/layout/make_plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { JOBS = 200, RANKS = 4, GUARD = 64 };

/* Array 0 of a unit is its value, array 1 its master (if it is trained in bf16), array 2 + s its state s. */
static uint32_t content(uint32_t unit, uint32_t array, uint64_t element)
{
    return (unit * 7 + array + 1) * 2654435761u + (uint32_t)element * 40503u;
}

typedef struct {
    unsigned char *data;
    bool shard;
    uint64_t width; /* bytes of an element */
} held_array;

static held_array find(const slc_job *job, const slc_plan *plan, unsigned char *arena, uint32_t unit, uint32_t array)
{
    slc_strategy strategy = plan->strategies[unit];
    bool shard = array ? !slc_updates_whole(strategy) : strategy == SLC_FSDP;
    slc_buffer_kind kind = array > 1    ? SLC_BUFFER_STATE
                           : array == 1 ? SLC_BUFFER_MASTER
                           : shard      ? SLC_BUFFER_VALUE_SHARD
                                        : SLC_BUFFER_VALUE;
    uint32_t buffer = slc_plan_buffer(plan, kind, unit, array > 1 ? array - 2 : 0);
    assert_true(buffer != SLC_NONE);
    uint64_t elements = job->units[unit].elements / (shard ? job->world : 1);
    uint64_t width = !array && job->units[unit].dtype == SLUICE_BF16 ? 2 : 4;
    assert_int_equal(plan->buffers[buffer].bytes, width * elements);
    return (held_array){arena + plan->buffers[buffer].offset, shard, width};
}

/* Arrays that only onebit keeps, of which each rank has its own: if both plans have one it moves, else it begins as
 * zeros. */
static const struct {
    slc_buffer_kind kind;
    uint32_t index;
} private[] = {
    {SLC_BUFFER_WORKER_ERROR, 0}, {SLC_BUFFER_SERVER_ERROR, 0}, {SLC_BUFFER_LOCAL, 0}, {SLC_BUFFER_LOCAL, 1}};
enum { PRIVATE = sizeof private / sizeof *private };

static void write_private(const slc_job *job, const slc_plan *plan, unsigned char *arena, uint32_t rank)
{
    for (uint32_t u = 0; u < job->unit_count; u++)
        for (uint32_t p = 0; p < PRIVATE; p++) {
            uint32_t buffer = slc_plan_buffer(plan, private[p].kind, u, private[p].index);
            for (uint64_t i = 0; buffer != SLC_NONE && i < plan->buffers[buffer].bytes; i++)
                arena[plan->buffers[buffer].offset + i] = (unsigned char)content(u, 100 + p * RANKS + rank, i);
        }
}

static bool is_zeroed(const slc_transition *t, const slc_buffer *buffer)
{
    for (size_t z = 0; z < t->zeroed_count; z++)
        if (t->zeroed[z].offset == buffer->offset && t->zeroed[z].bytes == buffer->bytes) return true;
    return false;
}

static void check_private(const slc_job *job, const slc_plan *from, const slc_plan *to, const slc_transition *t,
                          const unsigned char *arena, uint32_t rank)
{
    size_t zeroed = 0;
    for (uint32_t u = 0; u < job->unit_count; u++)
        for (uint32_t p = 0; p < PRIVATE; p++) {
            uint32_t buffer = slc_plan_buffer(to, private[p].kind, u, private[p].index);
            if (buffer == SLC_NONE || !to->buffers[buffer].bytes) continue;
            assert_int_equal(to->strategies[u], SLC_ONEBIT);
            bool fresh = from->strategies[u] != SLC_ONEBIT;
            assert_int_equal(is_zeroed(t, &to->buffers[buffer]), fresh);
            zeroed += fresh;
            for (uint64_t i = 0; !fresh && i < to->buffers[buffer].bytes; i++)
                assert_int_equal(arena[to->buffers[buffer].offset + i],
                                 (unsigned char)content(u, 100 + p * RANKS + rank, i));
        }
    assert_int_equal(zeroed, t->zeroed_count);
}

/* Writes or checks the elements that a rank owns, or all of them with `whole`. */
static void visit(const slc_unit *unit, uint32_t u, uint32_t world, uint32_t rank, uint32_t array, held_array at,
                  bool write, bool whole)
{
    for (uint64_t b = 0; b < slc_unit_blocks(unit); b++)
        for (uint32_t owner = 0; owner < world; owner++) {
            if (owner != rank && (at.shard || !whole)) continue;
            slc_part part = slc_unit_part(unit, world, b, owner);
            unsigned char *data = at.data + at.width * (at.shard ? part.shard_first : part.first);
            for (uint64_t i = 0; i < part.count; i++) {
                uint32_t expected = content(u, array, part.first + i);
                if (write)
                    memcpy(data + at.width * i, &expected, at.width);
                else
                    assert_memory_equal(data + at.width * i, &expected, at.width);
            }
        }
}

static bool has_array(const slc_job *job, uint32_t unit, uint32_t array)
{
    if (job->units[unit].role == SLC_UNIT_ROWS) return false;
    if (array == 1) return job->units[unit].trainable && job->units[unit].dtype == SLUICE_BF16;
    return !array || job->units[unit].trainable;
}

static void visit_all(const slc_job *job, const slc_plan *plan, unsigned char *arena, uint32_t rank, bool write,
                      bool whole)
{
    for (uint32_t u = 0; u < job->unit_count; u++)
        for (uint32_t a = 0; a < 2 + job->states; a++)
            if (has_array(job, u, a))
                visit(&job->units[u], u, job->world, rank, a, find(job, plan, arena, u, a), write, whole);
}

/* Does what an all-gather of every array of t->gathers would do. */
static void gather(const slc_job *job, const slc_transition *t, unsigned char **arenas)
{
    for (size_t g = 0; g < t->gather_count; g++) {
        const slc_unit *unit = &job->units[t->gathers[g].unit];
        for (uint64_t b = 0; b < slc_unit_blocks(unit); b++)
            for (uint32_t owner = 0; owner < job->world; owner++) {
                slc_part part = slc_unit_part(unit, job->world, b, owner);
                uint64_t width = sluice_dtype_bytes(t->gathers[g].dtype),
                         at = t->gathers[g].offset + width * part.first;
                for (uint32_t r = 0; r < job->world; r++)
                    if (r != owner) memcpy(arenas[r] + at, arenas[owner] + at, width * part.count);
            }
    }
}

static void check(sluice_stream *stream, const slc_job *job, const slc_plan *from, const slc_plan *to)
{
    unsigned char room[256];
    uint64_t bytes = from->arena_bytes > to->arena_bytes ? from->arena_bytes : to->arena_bytes;
    unsigned char *arenas[RANKS], guard[GUARD];
    slc_transition t = {0};
    memset(guard, 0xa5, sizeof guard);
    for (uint32_t r = 0; r < job->world; r++) {
        arenas[r] = malloc(bytes + GUARD);
        memset(arenas[r], 0xee, bytes);
        memcpy(arenas[r] + bytes, guard, GUARD);
        visit_all(job, from, arenas[r], r, true, true);
        write_private(job, from, arenas[r], r);
        slc_transition_fini(&t);
        assert_int_equal(slc_transition_init(job, from, to, r, &t), SLUICE_OK);
        assert_int_equal(slc_moves_run(stream, arenas[r], bytes, t.moves, t.move_count, room, sizeof room), SLUICE_OK);
        visit_all(job, to, arenas[r], r, false, false);
        check_private(job, from, to, &t, arenas[r], r);
    }
    gather(job, &t, arenas);
    for (uint32_t r = 0; r < job->world; r++) {
        visit_all(job, to, arenas[r], r, false, true);
        assert_memory_equal(arenas[r] + bytes, guard, GUARD);
        free(arenas[r]);
    }
    slc_transition_fini(&t);
}

static slc_plan *make(const slc_job *job, test_dice *dice)
{
    slc_strategy strategies[TEST_UNITS];
    slc_plan *plan;
    size_t count = 0;
    while (slc_scheduler_at(count)) count++;
    test_strategies_draw(job, dice, strategies);
    const slc_scheduler *scheduler = slc_scheduler_at(test_below(dice, (uint32_t)count));
    if (slc_plan_make(&(slc_scheduling){.job = job, .strategies = strategies, .limit = UINT64_MAX}, scheduler, &plan))
        fail_msg("%s", sluice_last_error());
    return plan;
}

static void any_plan_to_any_other(void **state)
{
    (void)state;
    slc_device *device;
    sluice_stream stream;
    assert_int_equal(slc_device_open("cpu", &device), SLUICE_OK);
    assert_int_equal(slc_stream_create(device, 1, &stream), SLUICE_OK);
    for (uint64_t seed = 0; seed < JOBS; seed++) {
        test_dice dice = {.seed = seed};
        static test_job t;
        test_job_draw(&t, &dice);
        slc_plan *from = make(&t.job, &dice), *to = make(&t.job, &dice);
        check(&stream, &t.job, from, to);
        slc_plan_destroy(from);
        slc_plan_destroy(to);
    }
    slc_stream_destroy(&stream);
    slc_device_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(any_plan_to_any_other)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
