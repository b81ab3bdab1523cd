/* The table of strategies must give what is counted by hand here: 640 elements on 4 ranks, an optimizer with two
 * states. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "lib/plan/exchange_sizes.h"
#include "lib/plan/strategy_table.h"
#include "lib/plan/times.h"

#include <math.h>

enum { ELEMENTS = 640, BLOCK = 256, RANKS = 4 };
static const sluice_dtype fp32 = SLUICE_FP32, bf16 = SLUICE_BF16;

typedef struct {
    sluice_dtype dtype, wire;
    uint32_t micro_batches;
    bool each, barrier, frozen;
    struct {
        uint64_t resident, gradient, reduced, gathered; /* bytes; all but the first are of buffers that come and go */
    } of[SLC_EXACT_STRATEGIES];
} count;

/* Bytes of an element in fp32: values 4, gradient 4, states 8; in bf16: values 2, master 4, gradient 2 or 4, states 8.
 * Sharded buffers have a quarter. */
static const count counts[] = {
    {fp32, bf16, 1, 0, 0, 0, {{10240, 0, 0, 0}, {6400, 0, 0, 0}, {3840, 2560, 0, 0}, {1920, 2560, 0, 2560}}},
    {fp32, fp32, 1, 0, 1, 0, {{10240, 0, 0, 0}, {6400, 0, 0, 0}, {3840, 2560, 640, 0}, {1920, 2560, 640, 2560}}},
    {fp32, fp32, 3, 1, 0, 0, {{10240, 0, 640, 0}, {6400, 0, 640, 0}, {3840, 2560, 640, 0}, {1920, 2560, 640, 2560}}},
    {bf16, bf16, 1, 0, 0, 0, {{10240, 0, 0, 0}, {4480, 0, 0, 0}, {3200, 1280, 0, 0}, {2240, 1280, 0, 1280}}},
    {bf16, fp32, 1, 0, 0, 0, {{11520, 0, 0, 0}, {5760, 0, 0, 0}, {3200, 2560, 0, 0}, {2240, 2560, 0, 1280}}},
    {bf16, bf16, 3, 0, 0, 0, {{11520, 0, 0, 0}, {5760, 0, 0, 0}, {3200, 2560, 0, 0}, {2240, 2560, 0, 1280}}},
    {bf16, bf16, 3, 0, 1, 0, {{11520, 0, 0, 0}, {5760, 0, 0, 0}, {3200, 2560, 640, 0}, {2240, 2560, 640, 1280}}},
    {bf16, bf16, 1, 0, 1, 0, {{10240, 0, 0, 0}, {4480, 0, 0, 0}, {3200, 1280, 320, 0}, {2240, 1280, 320, 1280}}},
    {bf16, bf16, 1, 1, 0, 0, {{10240, 0, 320, 0}, {4480, 0, 320, 0}, {3200, 1280, 320, 0}, {2240, 1280, 320, 1280}}},
    {bf16, bf16, 3, 1, 0, 0, {{10240, 0, 2560, 0}, {4480, 0, 640, 0}, {3200, 1280, 640, 0}, {2240, 1280, 640, 1280}}},
    {bf16, fp32, 3, 1, 0, 0, {{11520, 0, 640, 0}, {5760, 0, 640, 0}, {3200, 2560, 640, 0}, {2240, 2560, 640, 1280}}},
    {fp32, bf16, 1, 0, 0, 1, {{2560, 0, 0, 0}, {2560, 0, 0, 0}, {2560, 0, 0, 0}, {640, 0, 0, 2560}}},
    {bf16, bf16, 1, 0, 0, 1, {{1280, 0, 0, 0}, {1280, 0, 0, 0}, {1280, 0, 0, 0}, {320, 0, 0, 1280}}},
};
enum { COUNTS = sizeof counts / sizeof *counts };

static slc_job job_of(const count *c)
{
    return (slc_job){.world = RANKS,
                     .micro_batches = c->micro_batches,
                     .each = c->each,
                     .wire = c->wire,
                     .barrier = c->barrier,
                     .states = 2};
}

static slc_unit unit_of(const count *c)
{
    return (slc_unit){
        .name = "u", .elements = ELEMENTS, .block_elements = BLOCK, .dtype = c->dtype, .trainable = !c->frozen};
}

static uint64_t bytes_of(const slc_job *job, const slc_unit *unit, slc_strategy strategy, slc_life life)
{
    slc_buffer_rule rows[SLC_BUFFER_RULES_MAX];
    uint64_t bytes = 0;
    for (uint32_t i = slc_buffer_rules(job, unit, strategy, rows); i-- > 0;)
        if (rows[i].life == life) bytes += slc_buffer_bytes(job, unit, &rows[i]);
    return bytes;
}

static void memory_is_as_counted(void **state)
{
    (void)state;
    for (int c = 0; c < COUNTS; c++) {
        slc_job job = job_of(&counts[c]);
        slc_unit unit = unit_of(&counts[c]);
        for (int s = 0; s < SLC_EXACT_STRATEGIES; s++) {
            slc_strategy strategy = (slc_strategy)s;
            uint64_t got[] = {
                slc_resident_bytes(&job, &unit, strategy), bytes_of(&job, &unit, strategy, SLC_LIFE_GRADIENT),
                bytes_of(&job, &unit, strategy, SLC_LIFE_REDUCED), bytes_of(&job, &unit, strategy, SLC_LIFE_WINDOW)};
            uint64_t want[] = {counts[c].of[s].resident, counts[c].of[s].gradient, counts[c].of[s].reduced,
                               counts[c].of[s].gathered};
            for (int i = 0; i < 4; i++)
                if (got[i] != want[i])
                    fail_msg("row %d, %s, figure %d: %llu bytes, not %llu", c, slc_strategy_name(strategy), i,
                             (unsigned long long)got[i], (unsigned long long)want[i]);
        }
    }
}

/* The bytes and seconds of a reduction, a gather of the gradient and a gather of values. */
static void operations_move_what_they_should(void **state)
{
    (void)state;
    static const struct {
        sluice_dtype dtype, wire;
        uint32_t micro_batches;
        bool each;
        uint64_t reduction, gather_gradient, values;
    } moves[] = {{fp32, bf16, 1, true, 2560, 2560, 2560},
                 {bf16, bf16, 1, true, 1280, 1280, 1280},
                 {bf16, fp32, 1, true, 2560, 2560, 1280},
                 {bf16, bf16, 3, false, 2560, 2560, 1280},
                 {bf16, bf16, 3, true, 1280, 2560, 1280}};
    slc_times times = {.link = {.reduce_scatter = {0, 1e6}, .all_gather = {1e-3, 2e6}}};
    for (size_t i = 0; i < sizeof moves / sizeof *moves; i++) {
        count c = {.dtype = moves[i].dtype,
                   .wire = moves[i].wire,
                   .micro_batches = moves[i].micro_batches,
                   .each = moves[i].each};
        slc_job job = job_of(&c);
        slc_unit unit = unit_of(&c);
        const struct {
            slc_item_kind kind;
            uint64_t bytes;
            double seconds; /* N - 1 latencies, and N - 1 of N parts of the bytes */
        } expected[] = {
            {SLC_ITEM_REDUCE_SCATTER, moves[i].reduction, (double)moves[i].reduction * 0.75e-6},
            {SLC_ITEM_ALL_REDUCE, moves[i].reduction, (double)moves[i].reduction * (0.75e-6 + 0.375e-6) + 3e-3},
            {SLC_ITEM_GATHER_GRADIENT, moves[i].gather_gradient, (double)moves[i].gather_gradient * 0.375e-6 + 3e-3},
            {SLC_ITEM_GATHER_VALUE, moves[i].values, (double)moves[i].values * 0.375e-6 + 3e-3},
            {SLC_ITEM_GATHER_WINDOW, moves[i].values, (double)moves[i].values * 0.375e-6 + 3e-3}};
        for (size_t k = 0; k < sizeof expected / sizeof *expected; k++) {
            assert_int_equal(slc_operation_bytes(&job, &unit, expected[k].kind, ELEMENTS), expected[k].bytes);
            double seconds = slc_operation_s(&job, &times, expected[k].kind, &unit, ELEMENTS);
            assert_true(fabs(seconds - expected[k].seconds) < 1e-12);
        }
    }
}

/* ---- onebit ---- */

/* One tensor of 640 elements is 4 chunks of 160. A rank gets 24 bytes, at multiples of 64; errors have 640 and 160
 * elements and scales 4 and 1, at multiples of 64 bytes, and 832 and 384 bytes beside them. */
static void onebit_keeps_what_dp_keeps_and_errors(void **state)
{
    (void)state;
    const uint64_t elements = ELEMENTS;
    for (uint32_t local = 0; local < 3; local++)
        for (int narrow = 0; narrow < 2; narrow++) {
            count c = {.dtype = narrow ? bf16 : fp32, .wire = bf16, .micro_batches = 1};
            slc_job job = job_of(&c);
            slc_unit unit = unit_of(&c);
            job.compressed = true;
            job.local_arrays = local;
            unit.exchange = slc_exchange_of(&elements, 1, RANKS, local == 2);
            uint64_t more = 2560 + 64 + 832 + 640 + 64 + 384 + local * 2560;
            assert_int_equal(slc_resident_bytes(&job, &unit, SLC_ONEBIT), 10240 + more);
            assert_int_equal(bytes_of(&job, &unit, SLC_ONEBIT, SLC_LIFE_PACKETS), 256);
            assert_int_equal(bytes_of(&job, &unit, SLC_ONEBIT, SLC_LIFE_RESULTS), local == 2 ? 512 : 256);
            assert_int_equal(slc_operation_bytes(&job, &unit, SLC_ITEM_EXCHANGE, ELEMENTS), 96);
            unit.trainable = false;
            assert_int_equal(slc_resident_bytes(&job, &unit, SLC_ONEBIT), narrow ? 1280 : 2560);
        }
}

static void onebit_does_what_the_job_needs(void **state)
{
    (void)state;
    for (int refreshes = 0; refreshes < 2; refreshes++)
        for (int barrier = 0; barrier < 3; barrier++) { /* no barrier, one for all gradients, one for norms alone */
            slc_job job = {.world = RANKS,
                           .micro_batches = 1,
                           .compressed = true,
                           .refreshes = refreshes,
                           .barrier = barrier,
                           .norms_barrier = barrier == 2};
            slc_unit unit = {.elements = ELEMENTS, .block_elements = BLOCK, .trainable = true};
            slc_unit_operations of = slc_operations_of(&job, &unit, SLC_ONEBIT);
            assert_int_equal(slc_waits_for_agreement(&job, SLC_ONEBIT), barrier == 1);
            assert_int_equal(slc_waits_for_agreement(&job, SLC_SDP), barrier > 0);
            assert_int_equal(of.reduce, refreshes ? SLC_ITEM_ALL_REDUCE : SLC_ITEM_KINDS);
            assert_int_equal(of.inspect, barrier == 1 ? SLC_ITEM_INSPECT : SLC_ITEM_KINDS);
            assert_int_equal(of.compress, SLC_ITEM_COMPRESS);
            assert_int_equal(of.exchange, SLC_ITEM_EXCHANGE);
            assert_int_equal(of.update, SLC_ITEM_UPDATE);
            assert_int_equal(of.gather_gradient, SLC_ITEM_KINDS);
            assert_int_equal(of.gather_value, SLC_ITEM_KINDS);
            assert_false(of.windows || of.moves_sum || of.whole_sum);
            unit.trainable = false;
            of = slc_operations_of(&job, &unit, SLC_ONEBIT);
            assert_int_equal(of.compress, SLC_ITEM_KINDS);
            assert_int_equal(of.update, SLC_ITEM_KINDS);
        }
}

/* An exchange is two phases of 3/4 of 96 bytes, and the average of a fourth of the elements. */
static void items_cost_what_they_do(void **state)
{
    (void)state;
    const uint64_t elements = ELEMENTS;
    slc_times times = {.update_s_per_element = 1e-3,
                       .compress_s_per_element = 2e-3,
                       .apply_s_per_element = 3e-3,
                       .average_s_per_element = 4e-3,
                       .link = {.reduce_scatter = {0, 1e3}, .all_gather = {1, 2e3}, .operation_s = 7}};
    slc_unit unit = {.elements = ELEMENTS, .block_elements = BLOCK, .trainable = true};
    unit.exchange = slc_exchange_of(&elements, 1, RANKS, false);
    slc_job job = {.world = RANKS, .micro_batches = 1, .compressed = true, .units = &unit, .unit_count = 1};
    const struct {
        slc_item_kind kind;
        slc_strategy strategy;
        double seconds;
    } rows[] = {{SLC_ITEM_INSPECT, SLC_ONEBIT, 0},
                {SLC_ITEM_COMPRESS, SLC_ONEBIT, 2e-3 * ELEMENTS},
                {SLC_ITEM_EXCHANGE, SLC_ONEBIT, 7 + 3 + 72e-3 + 36e-3 + 4e-3 * ELEMENTS / RANKS},
                {SLC_ITEM_UPDATE, SLC_ONEBIT, 3e-3 * ELEMENTS},
                {SLC_ITEM_ALL_REDUCE, SLC_ONEBIT, 0},
                {SLC_ITEM_ALL_REDUCE, SLC_DP, 7 + 3 + 1.92 + 0.96},
                {SLC_ITEM_UPDATE, SLC_DP, 1e-3 * ELEMENTS},
                {SLC_ITEM_UPDATE, SLC_SDP, 1e-3 * ELEMENTS / RANKS}};
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        slc_item item = {.kind = rows[r].kind, .block_count = 3};
        double seconds = slc_item_s(&job, &times, &rows[r].strategy, &item);
        if (fabs(seconds - rows[r].seconds) > 1e-12) fail_msg("row %zu: %g s, not %g", r, seconds, rows[r].seconds);
        assert_int_equal(slc_is_on_thread(rows[r].kind), rows[r].kind == SLC_ITEM_INSPECT ||
                                                             rows[r].kind == SLC_ITEM_COMPRESS ||
                                                             rows[r].kind == SLC_ITEM_UPDATE);
    }
    slc_item agree = {.kind = SLC_ITEM_AGREE, .unit = SLC_NONE};
    assert_true(fabs(slc_item_s(&job, &times, NULL, &agree) - 10) < 1e-12);
}

/* The blocks have 256, 256 and 128 elements. */
static void blocks_begin_where_they_should(void **state)
{
    (void)state;
    static const uint64_t wide[] = {0, 1024, 2048, 2560, 2560};
    for (int narrow = 0; narrow < 2; narrow++) {
        count c = {.dtype = narrow ? bf16 : fp32, .wire = bf16, .micro_batches = 1};
        slc_job job = job_of(&c);
        slc_unit unit = unit_of(&c);
        for (uint64_t b = 0; b < 5; b++) {
            uint64_t whole = wide[b] / (narrow ? 2 : 1);
            assert_int_equal(slc_block_byte(&job, &unit, SLC_BUFFER_VALUE, false, b), whole);
            assert_int_equal(slc_block_byte(&job, &unit, SLC_BUFFER_GRADIENT, false, b), whole);
            assert_int_equal(slc_block_byte(&job, &unit, SLC_BUFFER_REDUCED, true, b), whole / RANKS);
            assert_int_equal(slc_block_byte(&job, &unit, SLC_BUFFER_MASTER, true, b), wide[b] / RANKS);
            assert_int_equal(slc_block_byte(&job, &unit, SLC_BUFFER_STATE, false, b), wide[b]);
        }
        job.units = &unit;
        job.unit_count = 1;
        assert_int_equal(slc_reading_bytes(&job), 1024);
    }
}

/* ---- A parameter that is split by its uses ---- */

/* The table has 20 rows of 24 elements. A micro-batch touches at most 5: 120 elements, padded to 128. */
static const struct {
    sluice_dtype dtype;
    uint32_t micro_batches;
    bool each;
    uint64_t reduced_rows, gradient_rows;
    uint64_t lists, table, gradient,
        reduction; /* bytes; a list of 5 or 15 rows takes 128, one of 20 rows 192, the marks 64 */
} look_ups[] = {{SLUICE_FP32, 1, false, 5, 5, 4 * (128 + 128) + 64, 512, 512, 480},
                {SLUICE_FP32, 3, true, 5, 5, 4 * (128 + 128) + 64, 512, 512, 480},
                {SLUICE_FP32, 3, false, 15, 20, 4 * (128 + 128) + 64, 512, 2048, 1440},
                {SLUICE_FP32, 5, false, 20, 25, 4 * (128 + 192) + 64, 512, 2560, 1920},
                {SLUICE_BF16, 1, false, 5, 5, 4 * (128 + 128) + 64, 256, 256, 240},
                {SLUICE_BF16, 3, true, 5, 5, 4 * (128 + 128) + 64, 256, 256, 240},
                {SLUICE_BF16, 3, false, 15, 20, 4 * (128 + 128) + 64, 256, 2048, 1440}};

static slc_unit rows_of(sluice_dtype dtype)
{
    return (slc_unit){.name = "rows",
                      .elements = 128,
                      .block_elements = 128,
                      .dtype = dtype,
                      .trainable = true,
                      .role = SLC_UNIT_ROWS,
                      .row_elements = 24,
                      .row_count = 20,
                      .most_rows = 5};
}

static void rows_keep_a_table_and_lists(void **state)
{
    (void)state;
    const slc_times times = {.link = {.reduce_scatter = {1e-3, 1e6}, .all_gather = {1e-2, 2e6}, .operation_s = 1}};
    for (size_t i = 0; i < sizeof look_ups / sizeof *look_ups; i++) {
        count c = {.dtype = look_ups[i].dtype,
                   .wire = bf16,
                   .micro_batches = look_ups[i].micro_batches,
                   .each = look_ups[i].each};
        slc_job job = job_of(&c);
        slc_unit rows = rows_of(look_ups[i].dtype);
        assert_int_equal(slc_reduced_rows(&job, &rows), look_ups[i].reduced_rows);
        assert_int_equal(slc_gradient_rows(&job, &rows), look_ups[i].gradient_rows);
        assert_int_equal(slc_resident_bytes(&job, &rows, SLC_FSDP), look_ups[i].lists);
        assert_int_equal(bytes_of(&job, &rows, SLC_FSDP, SLC_LIFE_WINDOW), look_ups[i].table);
        assert_int_equal(bytes_of(&job, &rows, SLC_FSDP, SLC_LIFE_GRADIENT), look_ups[i].gradient);
        assert_int_equal(bytes_of(&job, &rows, SLC_FSDP, SLC_LIFE_REDUCED), 0);
        assert_int_equal(slc_block_byte(&job, &rows, SLC_BUFFER_GRADIENT, false, 1), look_ups[i].gradient);
        assert_int_equal(slc_block_byte(&job, &rows, SLC_BUFFER_GATHERED, false, 1), look_ups[i].table);
        uint64_t reduction = look_ups[i].reduction;
        uint64_t list = 4 * (look_ups[i].reduced_rows > 16 ? 192 : 128); /* the lists of all ranks */
        assert_int_equal(slc_operation_bytes(&job, &rows, SLC_ITEM_REDUCE_SCATTER, 128), reduction);
        assert_int_equal(slc_operation_bytes(&job, &rows, SLC_ITEM_GATHER_WINDOW, 128), look_ups[i].table);
        double list_s = 3 * 1e-2 + 0.375e-6 * (double)list, reduce_s = 1 + 3 * 1e-3 + 0.75e-6 * (double)reduction;
        double gather_s = 1 + 2 * 3 * 1e-2 + 0.375e-6 * (double)(look_ups[i].table + (uint64_t)4 * 128);
        assert_true(fabs(slc_operation_s(&job, &times, SLC_ITEM_REDUCE_SCATTER, &rows, 128) - list_s - reduce_s) <
                    1e-9);
        assert_true(fabs(slc_operation_s(&job, &times, SLC_ITEM_GATHER_WINDOW, &rows, 128) - gather_s) < 1e-9);
        rows.trainable = false;
        assert_int_equal(bytes_of(&job, &rows, SLC_FSDP, SLC_LIFE_GRADIENT), 0);
        assert_int_equal(slc_operations_of(&job, &rows, SLC_FSDP).reduce, SLC_ITEM_KINDS);
    }
}

/* A split unit must keep its sum until the look-up's gradient is reduced too: it must have the operations and the
 * memory of a unit under a barrier. */
static void what_is_split_is_updated_last(void **state)
{
    (void)state;
    for (int barrier = 0; barrier < 2; barrier++)
        for (int each = 0; each < 2; each++) {
            count c = {.dtype = fp32, .micro_batches = 3, .each = each, .barrier = barrier}, behind = c;
            behind.barrier = true;
            slc_job job = job_of(&c), as = job_of(&behind);
            slc_unit whole = unit_of(&c), split = whole, units[2] = {whole, rows_of(fp32)};
            split.role = SLC_UNIT_SPLIT;
            assert_true(slc_updated_last(&job, &split) && slc_updated_last(&job, &whole) == barrier);
            for (int k = SLC_OSS; k <= SLC_FSDP; k++) {
                slc_unit_operations got = slc_operations_of(&job, &split, (slc_strategy)k);
                slc_unit_operations want = slc_operations_of(&as, &whole, (slc_strategy)k);
                assert_true(got.reduce == want.reduce && got.update == want.update && got.windows == want.windows &&
                            got.gather_value == want.gather_value && got.gather_gradient == want.gather_gradient &&
                            got.moves_sum == want.moves_sum && got.whole_sum == want.whole_sum);
                for (int life = SLC_LIFE_RESIDENT; life <= SLC_LIFE_REDUCED; life++)
                    assert_int_equal(bytes_of(&job, &split, (slc_strategy)k, (slc_life)life),
                                     bytes_of(&as, &whole, (slc_strategy)k, (slc_life)life));
            }
            slc_unit_operations of = slc_operations_of(&job, &units[1], SLC_FSDP);
            assert_true(of.reduce == SLC_ITEM_REDUCE_SCATTER && of.windows && of.moves_sum && !of.whole_sum);
            assert_true(of.update == SLC_ITEM_KINDS && of.gather_value == SLC_ITEM_KINDS);
            units[1].block_elements = units[1].elements = 6400; /* reading goes to the partner */
            job.units = units;
            job.unit_count = 2;
            assert_int_equal(slc_reading_bytes(&job), 4 * BLOCK);
        }
}

/* An estimated slot must follow the bytes that it reads: its parameters, and for a look-up only its rows. */
static void a_look_up_reads_its_rows(void **state)
{
    (void)state;
    slc_use uses[] = {{0, true}, {1, true}};
    slc_unit units[] = {
        {.elements = ELEMENTS, .block_elements = BLOCK, .trainable = true, .uses = uses + 1, .use_count = 1},
        rows_of(fp32)};
    units[0].role = SLC_UNIT_SPLIT;
    units[0].partner = 1;
    units[1].uses = uses;
    units[1].use_count = 1;
    slc_job job = {.world = RANKS, .micro_batches = 1, .layer_count = 2, .units = units, .unit_count = 2};
    slc_times times, copy;
    assert_int_equal(slc_times_estimate(&job, &times), 0);
    assert_true(fabs(times.slot_s[0] * ELEMENTS - times.slot_s[1] * 128) < 1e-15 && times.slot_s[1] > 0);
    assert_true(times.update_compute_s_per_element == 0); /* not known before it is measured */
    times.update_compute_s_per_element = 1e-9;
    assert_int_equal(slc_times_copy(&job, &times, &copy), 0);
    assert_true(copy.update_compute_s_per_element == 1e-9);
    slc_times_fini(&copy);
    slc_times_fini(&times);
}

static void updates_take_what_their_lane_does(void **state)
{
    (void)state;
    slc_unit unit = {.elements = ELEMENTS, .block_elements = BLOCK, .trainable = true};
    slc_job job = {.world = RANKS, .micro_batches = 1, .units = &unit, .unit_count = 1};
    slc_times times = {.update_s_per_element = 1e-3, .update_compute_s_per_element = 4e-4, .apply_s_per_element = 2e-3};
    slc_item item = {.kind = SLC_ITEM_UPDATE, .block_count = 2}; /* 512 elements */
    slc_strategy all = SLC_DP, own = SLC_OSS;
    assert_true(fabs(slc_item_s(&job, &times, &all, &item) - 0.512) < 1e-12);
    item.on_compute = true;
    assert_true(fabs(slc_item_s(&job, &times, &all, &item) - 0.2048) < 1e-12);
    assert_true(fabs(slc_item_s(&job, &times, &own, &item) - 0.0512) < 1e-12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(memory_is_as_counted),
                                       cmocka_unit_test(operations_move_what_they_should),
                                       cmocka_unit_test(onebit_keeps_what_dp_keeps_and_errors),
                                       cmocka_unit_test(onebit_does_what_the_job_needs),
                                       cmocka_unit_test(items_cost_what_they_do),
                                       cmocka_unit_test(blocks_begin_where_they_should),
                                       cmocka_unit_test(rows_keep_a_table_and_lists),
                                       cmocka_unit_test(what_is_split_is_updated_last),
                                       cmocka_unit_test(a_look_up_reads_its_rows),
                                       cmocka_unit_test(updates_take_what_their_lane_does)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
