/* The validator's messages: each rule has a plan that breaks it, and the message must name the item that does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "tests/support/sched/damaged_plan.h"
#include "tests/support/sched/legal_order.h"

enum { JOBS = 200, JOBS_MOST = 20000 };

/* Makes a fault and returns the item that the message must name, or SLC_NONE: this plan cannot have the fault. */
typedef uint32_t (*fault)(const slc_job *job, slc_plan *plan);

static uint32_t find_kind(const slc_plan *plan, slc_item_kind kind, uint32_t from)
{
    for (uint32_t i = from; i < plan->train.item_count; i++)
        if (plan->train.items[i].kind == kind) return i;
    return SLC_NONE;
}

static slc_unit_role role_of(const slc_job *job, const slc_item *item)
{
    return item->unit == SLC_NONE ? SLC_UNIT_WHOLE : job->units[item->unit].role;
}

/* The first slot, whose values are gathered for it, waits for nothing, so nothing can have told it that they are
 * there. */
static uint32_t waits_for_nothing(const slc_job *job, slc_plan *plan)
{
    for (uint32_t u = 0; u < job->unit_count; u++)
        if (plan->strategies[u] == SLC_FSDP && !job->units[u].uses[0].layer) {
            uint32_t i = find_kind(plan, SLC_ITEM_SLOT, 0);
            plan->train.items[i].after_count = 0;
            return i;
        }
    return SLC_NONE;
}

static uint32_t late_gather(const slc_job *job, slc_plan *plan)
{
    (void)job;
    uint32_t i = find_kind(plan, SLC_ITEM_GATHER_WINDOW, 0);
    if (i != SLC_NONE) plan->train.items[i].late = true;
    return i;
}

static uint32_t late_behind_barrier(const slc_job *job, slc_plan *plan)
{
    uint32_t i = find_kind(plan, SLC_ITEM_AGREE, 0);
    if (!job->barrier) return SLC_NONE;
    plan->train.items[i].late = true;
    return i;
}

static uint32_t late_too_early(const slc_job *job, slc_plan *plan)
{
    for (uint32_t i = 0; !job->barrier && i < plan->train.item_count; i++)
        if (plan->train.items[i].kind == SLC_ITEM_REDUCE_SCATTER &&
            role_of(job, &plan->train.items[i]) == SLC_UNIT_WHOLE &&
            plan->train.items[i].micro_batch + 1 < job->micro_batches) {
            plan->train.items[i].late = true;
            return i;
        }
    return SLC_NONE;
}

/* Returns true if a slot waits for the item. Such a slot waits through the item for all that is before it; if the item
 * became late, the validator might name the slot first, not the update. */
static bool holds_a_slot(const slc_plan *plan, uint32_t item)
{
    for (uint32_t i = item + 1; i < plan->train.item_count; i++)
        if (plan->train.items[i].kind == SLC_ITEM_SLOT && slc_waits_for_item(&plan->train.items[i], item)) return true;
    return false;
}

/* The reduction becomes late, its update does not. */
static uint32_t outrun(const slc_job *job, slc_plan *plan)
{
    slc_item *items = plan->train.items;
    uint32_t last = job->micro_batches - 1, agree = find_kind(plan, SLC_ITEM_AGREE, 0);
    for (uint32_t i = 0; !job->barrier && items[agree].late && i < plan->train.item_count; i++) {
        if (items[i].kind != SLC_ITEM_ALL_REDUCE || items[i].micro_batch != last || items[i].late) continue;
        if (holds_a_slot(plan, i)) continue;
        for (uint32_t k = i + 1; k < plan->train.item_count; k++)
            if (items[k].unit == items[i].unit && !items[k].late && runs_share_blocks(&items[i], &items[k])) {
                items[i].late = true;
                return k;
            }
    }
    return SLC_NONE;
}

static uint32_t beyond_the_unit(const slc_job *job, slc_plan *plan)
{
    uint32_t i = find_kind(plan, SLC_ITEM_UPDATE, 0);
    if (i != SLC_NONE) plan->train.items[i].first_block = slc_unit_blocks(&job->units[plan->train.items[i].unit]);
    return i;
}

static uint32_t forgotten_claim(const slc_job *job, slc_plan *plan)
{
    (void)job;
    for (uint32_t c = 0; c < plan->train.claim_count; c++) {
        slc_claim *claim = &plan->train.claims[c];
        if (plan->buffers[claim->buffer].kind != SLC_BUFFER_GATHERED) continue;
        claim->end_byte -= 4;
        return claim->from;
    }
    return SLC_NONE;
}

/* ---- onebit ---- */

static bool is_onebit(const slc_plan *plan, uint32_t item)
{
    uint32_t unit = plan->train.items[item].unit;
    return unit != SLC_NONE && plan->strategies[unit] == SLC_ONEBIT;
}

/* An item right after another one that it needs waits for nothing, and no item in between knows that the other one has
 * ended. */
static uint32_t unaware(slc_plan *plan, slc_item_kind before, slc_item_kind kind)
{
    slc_item *items = plan->train.items;
    for (uint32_t i = 1; i < plan->train.item_count; i++) {
        if (items[i - 1].kind != before || items[i].kind != kind || items[i - 1].late != items[i].late) continue;
        bool together = before == SLC_ITEM_AGREE || kind == SLC_ITEM_AGREE || items[i - 1].unit == items[i].unit;
        if (!together || !is_onebit(plan, kind == SLC_ITEM_AGREE ? i - 1 : i)) continue;
        items[i].after_count = 0;
        return i;
    }
    return SLC_NONE;
}

static uint32_t inspects_too_early(const slc_job *job, slc_plan *plan)
{
    (void)job;
    return unaware(plan, SLC_ITEM_ALL_REDUCE, SLC_ITEM_INSPECT);
}

static uint32_t agrees_before_the_inspection(const slc_job *job, slc_plan *plan)
{
    (void)job;
    return unaware(plan, SLC_ITEM_INSPECT, SLC_ITEM_AGREE);
}

static uint32_t agrees_before_compression(const slc_job *job, slc_plan *plan)
{
    return job->barrier && !job->norms_barrier ? SLC_NONE : unaware(plan, SLC_ITEM_COMPRESS, SLC_ITEM_AGREE);
}

static uint32_t compresses_before_the_agreement(const slc_job *job, slc_plan *plan)
{
    return job->barrier && !job->norms_barrier ? unaware(plan, SLC_ITEM_AGREE, SLC_ITEM_COMPRESS) : SLC_NONE;
}

static uint32_t exchanges_too_early(const slc_job *job, slc_plan *plan)
{
    (void)job;
    return unaware(plan, SLC_ITEM_COMPRESS, SLC_ITEM_EXCHANGE);
}

static uint32_t applies_too_early(const slc_job *job, slc_plan *plan)
{
    (void)job;
    return unaware(plan, SLC_ITEM_EXCHANGE, SLC_ITEM_UPDATE);
}

/* COMPRESS, right after the gradient's last slot, waits for nothing. */
static uint32_t compresses_too_early(const slc_job *job, slc_plan *plan)
{
    slc_item *items = plan->train.items;
    for (uint32_t i = 1; !job->refreshes && i < plan->train.item_count; i++) {
        uint32_t first, last;
        if (items[i].kind != SLC_ITEM_COMPRESS || items[i].late || items[i - 1].kind != SLC_ITEM_SLOT) continue;
        slc_unit_gradient_slots(job, &job->units[items[i].unit], &first, &last);
        if (items[i - 1].slot != last || items[i - 1].micro_batch + 1 != job->micro_batches) continue;
        items[i].after_count = 0;
        return i;
    }
    return SLC_NONE;
}

/* A pass begins with a slot that waits for nothing and needs the update that ends the previous pass. */
static uint32_t computes_with_old_values(const slc_job *job, slc_plan *plan)
{
    uint32_t last = plan->train.item_count - 1;
    const slc_item *update = &plan->train.items[last];
    if (update->kind != SLC_ITEM_UPDATE || update->late || !is_onebit(plan, last)) return SLC_NONE;
    if (plan->train.items[0].kind != SLC_ITEM_SLOT || job->units[update->unit].uses[0].layer) return SLC_NONE;
    plan->train.items[0].after_count = 0;
    return 0;
}

static uint32_t late_inspection(const slc_job *job, slc_plan *plan)
{
    (void)job;
    uint32_t i = find_kind(plan, SLC_ITEM_INSPECT, 0);
    if (i != SLC_NONE) plan->train.items[i].late = true;
    return i;
}

static uint32_t late_compression(const slc_job *job, slc_plan *plan)
{
    uint32_t i = job->norms_barrier ? find_kind(plan, SLC_ITEM_COMPRESS, 0) : SLC_NONE;
    if (i != SLC_NONE) plan->train.items[i].late = true;
    return i;
}

static uint32_t in_parts(const slc_job *job, slc_plan *plan)
{
    for (uint32_t i = 0; i < plan->train.item_count; i++) {
        uint64_t blocks = plan->train.items[i].block_count;
        if (!is_onebit(plan, i) || blocks < 2) continue;
        insert_twin(plan, i);
        plan->train.items[i].block_count = 1;
        plan->train.items[i + 1].first_block = 1;
        plan->train.items[i + 1].block_count = slc_unit_blocks(&job->units[plan->train.items[i].unit]) - 1;
        return i;
    }
    return SLC_NONE;
}

static uint32_t in_another_micro_batch(const slc_job *job, slc_plan *plan)
{
    uint32_t i = job->micro_batches > 1 ? find_kind(plan, SLC_ITEM_COMPRESS, 0) : SLC_NONE;
    if (i != SLC_NONE) plan->train.items[i].micro_batch = 0;
    return i;
}

/* ---- Parameters that are split by their uses, and lanes ---- */

static uint32_t late_of(const slc_job *job, slc_plan *plan, slc_unit_role role, slc_item_kind kind)
{
    for (uint32_t i = 0; i < plan->train.item_count; i++) {
        slc_item *item = &plan->train.items[i];
        if (item->kind != kind || role_of(job, item) != role) continue;
        item->late = true;
        return i;
    }
    return SLC_NONE;
}

static uint32_t late_update_of_split(const slc_job *job, slc_plan *plan)
{
    return late_of(job, plan, SLC_UNIT_SPLIT, SLC_ITEM_UPDATE);
}

static uint32_t late_rows(const slc_job *job, slc_plan *plan)
{
    return late_of(job, plan, SLC_UNIT_ROWS, SLC_ITEM_REDUCE_SCATTER);
}

static uint32_t computes_what_is_moved(const slc_job *job, slc_plan *plan)
{
    (void)job;
    uint32_t i = find_kind(plan, SLC_ITEM_AGREE, 0);
    plan->train.items[i].on_compute = true;
    return i;
}

static uint32_t computes_onebit(const slc_job *job, slc_plan *plan)
{
    (void)job;
    for (uint32_t i = 0; i < plan->train.item_count; i++)
        if (plan->train.items[i].kind == SLC_ITEM_UPDATE && is_onebit(plan, i)) {
            plan->train.items[i].on_compute = true;
            return i;
        }
    return SLC_NONE;
}

/* The buffer that one operation leaves for the next is released at once. */
static uint32_t given_up(slc_plan *plan, slc_buffer_kind kind)
{
    for (uint32_t c = 0; c < plan->train.claim_count; c++) {
        slc_claim *claim = &plan->train.claims[c];
        uint32_t reader = claim->to;
        if (plan->buffers[claim->buffer].kind != kind || claim->first_byte == claim->end_byte) continue;
        claim->to = claim->from;
        return reader;
    }
    return SLC_NONE;
}

static uint32_t packets_are_gone(const slc_job *job, slc_plan *plan)
{
    (void)job;
    return given_up(plan, SLC_BUFFER_PACKETS);
}

static uint32_t results_are_gone(const slc_job *job, slc_plan *plan)
{
    (void)job;
    return given_up(plan, SLC_BUFFER_RESULTS);
}

static const char WAIT[] = "may start before";

/* Returns true if the words say that a wait is missing. A wait that is taken away may have implied others, and the
 * validator names the first one that is missing. */
static bool is_wait(const char *words)
{
    return !strncmp(words, WAIT, strlen(WAIT));
}

/* An error names the item of the fault. It has the fault's own words, in some plan at least if it is a missing wait. */
static void faults_are_named(void **state)
{
    (void)state;
    static const struct {
        fault make;
        const char *words;
    } faults[] = {
        {waits_for_nothing, WAIT},
        {late_gather, "cannot be late"},
        {late_behind_barrier, "cannot be late after a barrier"},
        {late_too_early, "late in another than the last micro-batch"},
        {outrun, "of its step, which is late"},
        {beyond_the_unit, "blocks that the unit does not have"},
        {forgotten_claim, "does not stay in memory"},
        {inspects_too_early, "may start before all_reduce"},
        {agrees_before_the_inspection, "may start before inspect"},
        {agrees_before_compression, "may start before compress"},
        {compresses_before_the_agreement, "may start before agree"},
        {exchanges_too_early, "may start before compress"},
        {applies_too_early, "may start before exchange"},
        {compresses_too_early, "may start before slot"},
        {computes_with_old_values, "may start before update"},
        {late_inspection, "cannot be late after a barrier"},
        {late_compression, "cannot be late after a barrier"},
        {in_parts, "a part of a unit under onebit"},
        {in_another_micro_batch, "in the wrong micro-batch"},
        {packets_are_gone, "is not in memory from its writer on"},
        {results_are_gone, "is not in memory from its writer on"},
        {late_update_of_split, "cannot be late"},
        {late_rows, "cannot be late"},
        {computes_what_is_moved, "is no update, but on the compute lane"},
        {computes_onebit, "where no onebit unit is updated"},
    };
    enum { FAULTS = sizeof faults / sizeof *faults };
    uint32_t seen_named[FAULTS] = {0}, missing = FAULTS;
    for (uint64_t seed = 0; seed < JOBS || (missing && seed < JOBS_MOST); seed++)
        for (int f = 0; f < FAULTS; f++) {
            if (seed >= JOBS && seen_named[f]) continue; /* some faults need a job that is seldom drawn */
            static test_job t;
            char name[24];
            slc_plan *plan = plan_to_damage_of(&t, seed);
            uint32_t item = faults[f].make(&t.job, plan);
            if (item != SLC_NONE) {
                assert_int_equal(slc_plan_validate(&t.job, plan), SLUICE_ERR_FORMAT);
                const char *error = sluice_last_error();
                const bool named = strstr(error, faults[f].words);
                snprintf(name, sizeof name, "step item %u (", item);
                if (!strstr(error, name) || !(named || (is_wait(faults[f].words) && strstr(error, WAIT))))
                    fail_msg("job %llu, item %u, \"%s\": %s", (unsigned long long)seed, item, faults[f].words, error);
                missing -= named && !seen_named[f]++;
            }
            slc_plan_destroy(plan);
        }
    for (int f = 0; f < FAULTS; f++)
        if (!seen_named[f]) fail_msg("fault %d is in no plan that is refused by its words, \"%s\"", f, faults[f].words);
}

static void says(const slc_job *job, const slc_plan *plan, const char *words)
{
    assert_int_equal(slc_plan_validate(job, plan), SLUICE_ERR_FORMAT);
    if (!strstr(sluice_last_error(), words)) fail_msg("\"%s\": %s", words, sluice_last_error());
}

/* So many plans with onebit are damaged, out of so many drawn jobs at most. */
enum { PLANS_SEEN = 3, DRAWN_MOST = 2000 };

/* In a compressed job, in which ranks have gradients of their own, onebit's operations must exist and be where they
 * belong. */
static void onebit_has_its_place(void **state)
{
    (void)state;
    static test_job t;
    uint32_t seen = 0;
    for (uint64_t seed = 0; seen < PLANS_SEEN; seed++) {
        if (seed == DRAWN_MOST) fail_msg("%u of %d plans have onebit", seen, DRAWN_MOST);
        slc_plan *plan = plan_to_damage_of(&t, seed);
        uint32_t i = find_kind(plan, SLC_ITEM_COMPRESS, 0);
        if (i != SLC_NONE) {
            slc_job job = t.job;
            job.compressed = false;
            says(&job, plan, "outside of the compressed phase");
            job = t.job;
            job.each = true;
            says(&job, plan, "while gradients are reduced each micro-batch");
            job = t.job;
            job.world = 1;
            says(&job, plan, "with one rank");
            for (slc_item_kind kind = SLC_ITEM_COMPRESS; kind <= SLC_ITEM_EXCHANGE; kind++) {
                slc_item *item = &plan->train.items[find_kind(plan, kind, 0)];
                char words[64];
                snprintf(words, sizeof words, "no %s moves block 0", slc_item_kind_name(kind));
                item->kind = SLC_ITEM_GATHER_GRADIENT;
                says(&t.job, plan, words);
                item->kind = kind;
            }
            plan->strategies[plan->train.items[i].unit] = SLC_DP; /* its items are left over from another strategy */
            says(&t.job, plan, "invalid plan");
            seen++;
        }
        slc_plan_destroy(plan);
    }
}

/* A plan whose arena goes on behind its last buffer would take memory that nothing uses. */
static void an_arena_ends_with_its_buffers(void **state)
{
    (void)state;
    static test_job t;
    for (uint64_t seed = 0; seed < 5; seed++) {
        slc_plan *plan = plan_to_damage_of(&t, seed);
        plan->arena_bytes += 64;
        says(&t.job, plan, "but the last buffer ends at");
        plan->arena_bytes = UINT64_MAX;
        says(&t.job, plan, "but the last buffer ends at");
        slc_plan_destroy(plan);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(faults_are_named),
        cmocka_unit_test(onebit_has_its_place),
        cmocka_unit_test(an_arena_ends_with_its_buffers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
