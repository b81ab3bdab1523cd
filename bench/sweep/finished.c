/* Looks through all rows for each run: a sweep has hundreds of them at most.
 * tests/command/measure/bench_test.sh covers this file. */
#include "bench/sweep/finished.h"

#include "lib/base/status.h"

static bool has_row(const json_t *rows, const json_t *cell, bool same_repeat)
{
    size_t index;
    json_t *row;
    json_array_foreach ((json_t *)rows, index, row) {
        if (same_repeat && slc_bench_number(row, "repeat") != slc_bench_number(cell, "repeat")) continue;
        if (slc_bench_complete(row) && slc_bench_alike(row, cell, slc_bench_cell_keys)) return true;
    }
    return false;
}

sluice_status slc_bench_cell_state(const slc_bench_results *results, const slc_bench_case *one, slc_cell_state *state)
{
    json_t *cell = slc_bench_case_row(one);
    if (!cell) return slc_error(SLUICE_ERR_MEMORY, "a cell of the sweep");
    *state = has_row(results->runs, cell, true)        ? SLC_CELL_RAN
             : has_row(results->misfits, cell, false)  ? SLC_CELL_MISFIT
             : has_row(results->failures, cell, false) ? SLC_CELL_FAILED
                                                       : SLC_CELL_OPEN;
    json_decref(cell);
    return SLUICE_OK;
}

/* Counts one cell of a part, the first repetition of which is case number `index`. */
static sluice_status count_cell(const slc_bench_results *results, const slc_bench_options *o, uint64_t part,
                                uint64_t index, uint64_t cells, slc_bench_tally *out)
{
    uint64_t ran = 0;
    slc_cell_state state = SLC_CELL_OPEN;
    slc_bench_case one;
    sluice_status status = SLUICE_OK;
    for (uint64_t repeat = 0; !status && repeat < o->repeat; repeat++) {
        slc_bench_case_at(o, part, repeat * cells + index, &one);
        status = slc_bench_cell_state(results, &one, &state);
        ran += !status && state == SLC_CELL_RAN;
    }
    out->cells++;
    out->runs += o->repeat;
    out->ran += ran;
    out->misfits += state == SLC_CELL_MISFIT;
    out->failed += state == SLC_CELL_FAILED;
    out->finished += state == SLC_CELL_MISFIT || ran == o->repeat;
    return status;
}

sluice_status slc_bench_tally_make(const slc_bench_results *results, const slc_bench_options *options,
                                   slc_bench_tally *out)
{
    uint64_t cells = slc_bench_case_count(options) / options->repeat;
    sluice_status status = SLUICE_OK;
    *out = (slc_bench_tally){0};
    for (uint64_t p = 0; p < slc_bench_part_count(options); p++)
        for (uint64_t i = 0; !status && i < cells; i++) status = count_cell(results, options, p, i, cells, out);
    return status;
}
