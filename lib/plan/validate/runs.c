/* The validator's index of a program (the runs of each operation by block, the uses of each layer, the workspaces of
 * each slot), and the first check that uses it: that everything is moved exactly once.
 * validate_split_test.c and tests/plan/validate_test.c cover this file. */
#include "lib/plan/validate/parts.h"

#include "lib/base/bisect.h"
#include "lib/base/status.h"

#include <stdlib.h>

/* A unit has these lists: two kinds of reductions for each micro-batch, six operations of the step, and its windows for
 * each micro-batch. */
enum { REDUCTIONS = 2, OF_STEP = 6 };

static uint32_t windows_of(const slc_validation *j, uint32_t u)
{
    slc_window window;
    uint32_t count = 0;
    while (slc_unit_window(j->job, &j->job->units[u], !j->evaluate, count, &window)) count++;
    return count;
}

static uint32_t list_of(const slc_validation *j, slc_item_kind kind, uint32_t m, uint32_t u, uint32_t window)
{
    uint32_t list = j->unit_lists[u], all = j->micro_batches;
    switch (kind) {
    case SLC_ITEM_REDUCE_SCATTER: return list + m;
    case SLC_ITEM_ALL_REDUCE: return list + all + m;
    case SLC_ITEM_GATHER_GRADIENT: return list + REDUCTIONS * all;
    case SLC_ITEM_UPDATE: return list + REDUCTIONS * all + 1;
    case SLC_ITEM_GATHER_VALUE: return list + REDUCTIONS * all + 2;
    case SLC_ITEM_INSPECT: return list + REDUCTIONS * all + 3;
    case SLC_ITEM_COMPRESS: return list + REDUCTIONS * all + 4;
    case SLC_ITEM_EXCHANGE: return list + REDUCTIONS * all + 5;
    default: return list + REDUCTIONS * all + OF_STEP + window * all + m;
    }
}

slc_block_runs slc_validate_list(const slc_validation *j, slc_item_kind kind, uint32_t micro_batch, uint32_t unit,
                                 uint32_t window)
{
    uint32_t list = list_of(j, kind, micro_batch, unit, window), start = j->run_start[list];
    return (slc_block_runs){j->runs + start, j->run_start[list + 1] - start};
}

uint32_t slc_block_run_at(slc_block_runs list, uint64_t block)
{
    SLC_BISECT(uint32_t, low, 0, list.count, list.at[low].end_block <= block);
    return low;
}

static int by_block(const void *a, const void *b)
{
    const slc_block_run *x = a, *y = b;
    return (x->first_block > y->first_block) - (x->first_block < y->first_block);
}

static bool is_run(const slc_item *item)
{
    return item->kind != SLC_ITEM_SLOT && item->kind != SLC_ITEM_AGREE && !slc_is_message(item->kind);
}

/* Turns the count of each list into its start; filling moves the starts on. */
static void sum_up(uint32_t *start, uint32_t lists)
{
    for (uint32_t l = 0, before = 0; l <= lists; l++) {
        uint32_t count = start[l];
        start[l] = before;
        before += count;
    }
}

/* Moves the starts back, because filling has moved each one to that of the next list. */
static void move_back(uint32_t *start, uint32_t lists)
{
    for (uint32_t l = lists; l > 0; l--) start[l] = start[l - 1];
    start[0] = 0;
}

static void fill_runs(slc_validation *j, uint32_t lists)
{
    for (uint32_t i = 0; i < j->program->item_count; i++) {
        const slc_item *item = &j->program->items[i];
        if (is_run(item)) j->run_start[list_of(j, item->kind, item->micro_batch, item->unit, item->index)]++;
    }
    sum_up(j->run_start, lists);
    for (uint32_t i = 0; i < j->program->item_count; i++) {
        const slc_item *item = &j->program->items[i];
        if (!is_run(item)) continue;
        uint32_t list = list_of(j, item->kind, item->micro_batch, item->unit, item->index);
        j->runs[j->run_start[list]++] = (slc_block_run){item->first_block, item->first_block + item->block_count, i};
    }
    move_back(j->run_start, lists);
    for (uint32_t l = 0; l < lists; l++) {
        uint32_t count = j->run_start[l + 1] - j->run_start[l];
        if (count > 1) qsort(j->runs + j->run_start[l], count, sizeof *j->runs, by_block);
    }
}

static void fill_uses(slc_validation *j)
{
    for (uint32_t u = 0; u < j->job->unit_count; u++)
        for (uint32_t n = 0; n < j->job->units[u].use_count; n++) j->use_start[j->job->units[u].uses[n].layer]++;
    sum_up(j->use_start, j->job->layer_count);
    for (uint32_t u = 0; u < j->job->unit_count; u++)
        for (uint32_t n = 0; n < j->job->units[u].use_count; n++)
            j->uses[j->use_start[j->job->units[u].uses[n].layer]++] = (slc_layer_use){u, n};
    move_back(j->use_start, j->job->layer_count);
}

static void fill_workspaces(slc_validation *j)
{
    for (uint32_t w = 0; w < j->job->workspace_count; w++) j->workspace_start[j->job->workspaces[w].slot]++;
    sum_up(j->workspace_start, slc_job_slots(j->job));
    for (uint32_t w = 0; w < j->job->workspace_count; w++)
        j->workspaces[j->workspace_start[j->job->workspaces[w].slot]++] = w;
    move_back(j->workspace_start, slc_job_slots(j->job));
}

sluice_status slc_validate_index_init(slc_validation *j)
{
    size_t uses = 0, layers = (size_t)j->job->layer_count + 2;
    uint32_t lists = 0;
    j->unit_lists = calloc((size_t)j->job->unit_count + 1, sizeof *j->unit_lists);
    for (uint32_t u = 0; j->unit_lists && u < j->job->unit_count; u++) {
        j->unit_lists[u] = lists;
        lists += (REDUCTIONS + windows_of(j, u)) * j->micro_batches + OF_STEP;
        uses += j->job->units[u].use_count;
    }
    j->runs = calloc((size_t)j->program->item_count + 1, sizeof *j->runs);
    j->run_start = calloc((size_t)lists + 2, sizeof *j->run_start);
    j->uses = calloc(uses + 1, sizeof *j->uses);
    j->use_start = calloc(layers, sizeof *j->use_start);
    j->workspaces = calloc((size_t)j->job->workspace_count + 1, sizeof *j->workspaces);
    j->workspace_start = calloc((size_t)slc_job_slots(j->job) + 2, sizeof *j->workspace_start);
    if (!j->unit_lists || !j->runs || !j->run_start || !j->uses || !j->use_start || !j->workspaces ||
        !j->workspace_start)
        return slc_error(SLUICE_ERR_MEMORY, "validator");
    fill_runs(j, lists);
    fill_uses(j);
    fill_workspaces(j);
    return SLUICE_OK;
}

void slc_validate_index_fini(slc_validation *j)
{
    free(j->workspace_start);
    free(j->workspaces);
    free(j->use_start);
    free(j->uses);
    free(j->run_start);
    free(j->runs);
    free(j->unit_lists);
}

/* ---- Once ---- */

/* Checks that operations of a kind move each block of a unit exactly once if `wanted`, else that there are none. */
static sluice_status check_list(const slc_validation *j, slc_item_kind kind, uint32_t m, uint32_t u, uint32_t window,
                                bool wanted)
{
    slc_block_runs list = slc_validate_list(j, kind, m, u, window);
    uint64_t next = 0, blocks = slc_unit_blocks(&j->job->units[u]);
    if (!wanted)
        return list.count ? slc_validate_fault(j, list.at[0].item, "is no operation of this unit's strategy")
                          : SLUICE_OK;
    for (uint32_t r = 0; r < list.count && list.at[r].first_block <= next; r++) {
        if (list.at[r].first_block < next) return slc_validate_fault(j, list.at[r].item, "moves a block twice");
        next = list.at[r].end_block;
    }
    if (next == blocks) return SLUICE_OK;
    return slc_error(SLUICE_ERR_FORMAT, "invalid plan: %s: unit %s, micro-batch %u: no %s moves block %llu of %llu",
                     j->where, j->job->units[u].name, m, slc_item_kind_name(kind), (unsigned long long)next,
                     (unsigned long long)blocks);
}

/* Checks that an operation on a onebit unit moves the whole unit, because a scale belongs to a whole tensor. */
static sluice_status check_whole(const slc_validation *j, uint32_t u, slc_item_kind kind)
{
    slc_block_runs list = slc_validate_list(j, kind, j->micro_batches - 1, u, 0);
    return list.count > 1 ? slc_validate_fault(j, list.at[0].item, "moves a part of a unit under onebit") : SLUICE_OK;
}

/* Checks the operations of a unit that may be onebit. Gradients are inspected only for an agreement that updates wait
 * for. */
static sluice_status check_onebit(const slc_validation *j, uint32_t u, bool compressed)
{
    static const slc_item_kind kinds[] = {SLC_ITEM_ALL_REDUCE, SLC_ITEM_COMPRESS, SLC_ITEM_EXCHANGE, SLC_ITEM_UPDATE};
    uint32_t last = j->micro_batches - 1;
    bool inspected = compressed && j->job->barrier && !j->job->norms_barrier;
    sluice_status status = check_list(j, SLC_ITEM_INSPECT, last, u, 0, inspected);
    if (!status) status = check_list(j, SLC_ITEM_COMPRESS, last, u, 0, compressed);
    if (!status) status = check_list(j, SLC_ITEM_EXCHANGE, last, u, 0, compressed);
    if (!status && inspected) status = check_whole(j, u, SLC_ITEM_INSPECT);
    for (int k = 0; !status && compressed && k < 4; k++) status = check_whole(j, u, kinds[k]);
    return status;
}

static sluice_status check_unit(const slc_validation *j, uint32_t u)
{
    const slc_unit *unit = &j->job->units[u];
    slc_strategy k = j->plan->strategies[u];
    uint32_t last = j->micro_batches - 1;
    bool train = unit->trainable && !j->evaluate, all = (k == SLC_DP && !j->job->each) || k == SLC_ONEBIT;
    bool updated = train && unit->role != SLC_UNIT_ROWS; /* the partner's update applies the rows' gradients */
    sluice_status status = SLUICE_OK;
    for (uint32_t m = 0; !status && m <= last; m++) {
        bool reduced = train && (j->job->each || m == last) && (k != SLC_ONEBIT || j->job->refreshes);
        status = check_list(j, SLC_ITEM_REDUCE_SCATTER, m, u, 0, reduced && !all);
        if (!status) status = check_list(j, SLC_ITEM_ALL_REDUCE, m, u, 0, reduced && all);
        slc_window window;
        for (uint32_t w = 0; !status && slc_unit_window(j->job, unit, !j->evaluate, w, &window); w++)
            status = check_list(j, SLC_ITEM_GATHER_WINDOW, m, u, w, k == SLC_FSDP && slc_gathered_in(unit, m) == m);
    }
    if (!status) status = check_list(j, SLC_ITEM_UPDATE, last, u, 0, updated);
    if (!status) status = check_onebit(j, u, train && k == SLC_ONEBIT);
    if (!status) status = check_list(j, SLC_ITEM_GATHER_VALUE, last, u, 0, train && (k == SLC_OSS || k == SLC_SDP));
    if (!status) status = check_list(j, SLC_ITEM_GATHER_GRADIENT, last, u, 0, train && k == SLC_DP && j->job->each);
    return status;
}

sluice_status slc_validate_once(const slc_validation *j)
{
    sluice_status status = SLUICE_OK;
    for (uint32_t u = 0; !status && u < j->job->unit_count; u++) status = check_unit(j, u);
    return status;
}
