/* A plan written as text must be read back the same, and only for its own job; a wrong text is refused with its
 * path. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/support/plan/made_plan.h"
#include "lib/plan/profile.h"
#include "tests/support/plan/random_job.h"
#include "sched/layout/make_plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { JOBS = 60, DEEP = 320 };

typedef struct {
    test_job t;
    bool can[TEST_LAYERS], recompute[TEST_LAYERS];
    slc_strategy strategies[TEST_UNITS];
    slc_plan *plan;
    char *text;
} plan_case;

/* ---- Cases ---- */

static void draw_recomputation(plan_case *c, test_dice *dice)
{
    slc_job *job = &c->t.job;
    job->can_recompute = c->can;
    for (uint32_t l = 0; l < job->layer_count; l++) {
        c->can[l] = test_below(dice, 2);
        c->recompute[l] = c->can[l] && test_below(dice, 2);
    }
    for (uint32_t u = 0; u < job->unit_count; u++) /* running a forward again takes its values */
        for (uint32_t n = 0; n < job->units[u].use_count; n++)
            if (c->can[job->units[u].uses[n].layer]) job->units[u].uses[n].backward_value = true;
    for (uint32_t a = 0; a < job->activation_count; a++) {
        slc_activation_life *life = &job->activations[a];
        life->recomputable =
            life->first_slot < job->layer_count && life->last_slot == slc_backward_slot(job, life->first_slot);
    }
}

static void case_init(plan_case *c, const slc_scheduler *scheduler, uint64_t seed)
{
    test_dice dice = {.seed = seed};
    do test_job_draw(&c->t, &dice);
    while (!c->t.job.unit_count);
    draw_recomputation(c, &dice);
    test_strategies_draw(&c->t.job, &dice, c->strategies);
    slc_times times;
    assert_int_equal(slc_times_estimate(&c->t.job, &times), 0);
    slc_scheduling in = {.job = &c->t.job,
                         .strategies = c->strategies,
                         .recompute = c->recompute,
                         .times = &times,
                         .limit = UINT64_MAX,
                         .seed = seed};
    if (slc_plan_make(&in, scheduler, &c->plan)) fail_msg("%s", sluice_last_error());
    slc_times_fini(&times);
    assert_int_equal(slc_plan_to_json(&c->t.job, c->plan, NULL, &c->text), 0);
}

static void case_fini(plan_case *c)
{
    slc_plan_destroy(c->plan);
    free(c->text);
}

/* Finds the first case, from `seed` on, in which something can go wrong everywhere. */
static void case_of_many_kinds(plan_case *c, uint64_t seed)
{
    for (;; seed++) {
        case_init(c, slc_scheduler_find("one_ahead"), seed);
        const slc_job *job = &c->t.job;
        if (job->layer_count >= 4 && job->unit_count >= 3 && job->activation_count && job->workspace_count &&
            job->world > 1 && job->scratch_bytes && !c->plan->train.items[0].late &&
            strstr(c->text, "\"recompute\": [\""))
            return;
        case_fini(c);
    }
}

/* ---- Equality ---- */

static bool items_equal(const slc_item *a, const slc_item *b)
{
    if (a->kind != b->kind || a->late != b->late || a->on_compute != b->on_compute ||
        a->micro_batch != b->micro_batch || a->slot != b->slot || a->unit != b->unit || a->index != b->index ||
        a->first_block != b->first_block || a->block_count != b->block_count || a->after_count != b->after_count)
        return false;
    for (uint32_t n = 0; n < a->after_count; n++)
        if (a->after[n].item != b->after[n].item || a->after[n].previous != b->after[n].previous) return false;
    return true;
}

static bool programs_equal(const slc_program *a, const slc_program *b)
{
    if (a->item_count != b->item_count || a->claim_count != b->claim_count) return false;
    for (uint32_t i = 0; i < a->item_count; i++)
        if (!items_equal(&a->items[i], &b->items[i])) return false;
    for (uint32_t i = 0; i < a->claim_count; i++) {
        const slc_claim *x = &a->claims[i], *y = &b->claims[i];
        if (x->buffer != y->buffer || x->first_byte != y->first_byte || x->end_byte != y->end_byte ||
            x->from != y->from || x->to != y->to)
            return false;
    }
    return true;
}

static bool buffers_equal(const slc_plan *a, const slc_plan *b)
{
    if (a->buffer_count != b->buffer_count || a->static_count != b->static_count) return false;
    for (uint32_t i = 0; i < a->buffer_count; i++) {
        const slc_buffer *x = &a->buffers[i], *y = &b->buffers[i];
        if (x->kind != y->kind || x->unit != y->unit || x->index != y->index || x->bytes != y->bytes ||
            x->offset != y->offset)
            return false;
    }
    for (uint32_t i = 0; i < a->static_count; i++)
        if (a->statics[i].buffer != b->statics[i].buffer || a->statics[i].first_byte != b->statics[i].first_byte ||
            a->statics[i].end_byte != b->statics[i].end_byte)
            return false;
    return true;
}

static bool plans_equal(const slc_plan *a, const slc_plan *b)
{
    return !strcmp(a->schedule, b->schedule) && a->unit_count == b->unit_count && a->layer_count == b->layer_count &&
           !memcmp(a->strategies, b->strategies, a->unit_count * sizeof *a->strategies) &&
           !memcmp(a->recompute, b->recompute, a->layer_count * sizeof *a->recompute) &&
           a->arena_bytes == b->arena_bytes && a->lower_bound == b->lower_bound && buffers_equal(a, b) &&
           programs_equal(&a->train, &b->train) && programs_equal(&a->evaluate, &b->evaluate);
}

static void text_and_back_is_the_same_plan(void **state)
{
    (void)state;
    static plan_case c;
    size_t schedulers = 0;
    while (slc_scheduler_at(schedulers)) schedulers++;
    for (uint64_t seed = 0; seed < JOBS; seed++) {
        slc_plan *back;
        case_init(&c, slc_scheduler_at(seed % schedulers), seed);
        if (slc_plan_from_json(&c.t.job, c.text, strlen(c.text), &back))
            fail_msg("seed %llu: %s", (unsigned long long)seed, sluice_last_error());
        assert_true(plans_equal(c.plan, back));
        assert_true(slc_plan_fingerprint(c.plan) == slc_plan_fingerprint(back));
        char *again;
        assert_int_equal(slc_plan_to_json(&c.t.job, back, NULL, &again), 0);
        assert_string_equal(c.text, again);
        free(again);
        slc_plan_destroy(back);
        case_fini(&c);
    }
}

static void a_profile_of_the_job_takes_its_plan(void **state)
{
    (void)state;
    static plan_case c;
    case_of_many_kinds(&c, 0);
    slc_times times;
    slc_profile *profile, *read;
    char *text;
    slc_plan *back;
    uint64_t scratch = c.t.job.scratch_bytes;
    assert_int_equal(slc_times_estimate(&c.t.job, &times), 0);
    c.t.job.scratch_bytes = scratch / (c.t.job.world - 1) * (c.t.job.world - 1);
    assert_int_equal(slc_profile_create(&c.t.job, NULL, &times, "", "", &profile), 0);
    assert_int_equal(slc_profile_to_json(profile, &text), 0);
    assert_int_equal(slc_profile_from_json(text, strlen(text), &read), 0);
    read->job.scratch_bytes = scratch;
    assert_int_equal(slc_plan_from_json(&read->job, c.text, strlen(c.text), &back), 0);
    slc_plan_destroy(back);
    free(text);
    slc_profile_destroy(read);
    slc_profile_destroy(profile);
    slc_times_fini(&times);
    case_fini(&c);
}

/* The plan has a tied parameter split by its uses and every other update on the compute lane. */
static char *text_of_split(made *m, slc_strategy strategy)
{
    char *text;
    made_init(m, strategy, 2, strategy == SLC_SDP, true);
    made_step(m);
    for (uint32_t i = 0, updates = 0; i < m->count; i++)
        m->items[i].on_compute = m->items[i].kind == SLC_ITEM_UPDATE && updates++ % 2 == 0;
    made_plan(m);
    assert_int_equal(slc_plan_to_json(&m->job, m->plan, NULL, &text), 0);
    return text;
}

static void rows_and_computed_updates_come_back(void **state)
{
    (void)state;
    static made m;
    for (int k = SLC_OSS; k <= SLC_FSDP; k++) {
        slc_plan *back;
        char *again, *text = text_of_split(&m, (slc_strategy)k);
        if (slc_plan_from_json(&m.job, text, strlen(text), &back)) fail_msg("%s", sluice_last_error());
        assert_true(plans_equal(m.plan, back));
        assert_true(slc_plan_fingerprint(m.plan) == slc_plan_fingerprint(back));
        assert_int_equal(slc_plan_to_json(&m.job, back, NULL, &again), 0);
        assert_string_equal(text, again);
        for (char *cell; (cell = strstr(again, "],1]"));) memmove(cell + 1, cell + 3, strlen(cell + 3) + 1);
        slc_plan_destroy(back);
        assert_int_equal(slc_plan_from_json(&m.job, again, strlen(again), &back),
                         0); /* older files have no such cell */
        for (uint32_t i = 0; i < back->train.item_count; i++) assert_false(back->train.items[i].on_compute);
        assert_false(slc_plan_fingerprint(m.plan) == slc_plan_fingerprint(back));
        slc_plan_destroy(back);
        slc_plan_destroy(m.plan);
        free(again);
        free(text);
    }
}

/* ---- For another job ---- */

static void refused(const slc_job *job, const char *text, const char *error)
{
    slc_plan *plan = NULL;
    assert_int_equal(slc_plan_from_json(job, text, strlen(text), &plan), SLUICE_ERR_FORMAT);
    assert_null(plan);
    if (!strstr(sluice_last_error(), error) || strchr(sluice_last_error(), '\n'))
        fail_msg("\"%s\" lacks \"%s\"", sluice_last_error(), error);
}

static void numbers_differ(const plan_case *c, const slc_job *other, const char *path, uint64_t theirs, uint64_t ours)
{
    char error[256];
    snprintf(error, sizeof error, "%s: the plan was made for %llu, this job has %llu", path, (unsigned long long)theirs,
             (unsigned long long)ours);
    refused(other, c->text, error);
}

static void another_job_is_refused_with_both_values(void **state)
{
    (void)state;
    static plan_case c;
    case_of_many_kinds(&c, 100);
    slc_job other = c.t.job;
    other.world *= 2;
    numbers_differ(&c, &other, "$.job.world", c.t.job.world, other.world);
    other = c.t.job;
    other.micro_batches += 1;
    numbers_differ(&c, &other, "$.job.micro_batches", c.t.job.micro_batches, other.micro_batches);
    other = c.t.job;
    other.states += 1;
    numbers_differ(&c, &other, "$.job.optimizer_states", c.t.job.states, other.states);
    other = c.t.job;
    other.scratch_bytes += 64;
    numbers_differ(&c, &other, "$.job.scratch_bytes", c.t.job.scratch_bytes, other.scratch_bytes);
    other = c.t.job;
    other.barrier = !other.barrier;
    refused(&other, c.text,
            other.barrier ? "$.job.barrier: the plan was made for false, this job has true"
                          : "$.job.barrier: the plan was made for true, this job has false");
    other = c.t.job;
    other.each = !other.each;
    refused(&other, c.text, "$.job.accumulate: the plan was made for \"");
    other = c.t.job;
    other.wire = other.wire == SLUICE_FP32 ? SLUICE_BF16 : SLUICE_FP32;
    refused(&other, c.text,
            other.wire == SLUICE_BF16 ? "$.job.wire: the plan was made for \"fp32\", this job has \"bf16\""
                                      : "$.job.wire: the plan was made for \"bf16\", this job has \"fp32\"");
    other = c.t.job;
    other.reserved_bytes += 1; /* outside of the arena, so the plan does not depend on it */
    slc_plan *plan;
    assert_int_equal(slc_plan_from_json(&other, c.text, strlen(c.text), &plan), 0);
    slc_plan_destroy(plan);
    case_fini(&c);
}

static void another_phase_is_refused(void **state)
{
    (void)state;
    static plan_case c;
    uint64_t seed = 0;
    for (case_init(&c, &slc_scheduler_serial, seed); !c.t.job.compressed || !c.t.units[0].trainable;
         case_init(&c, &slc_scheduler_serial, ++seed))
        case_fini(&c);
    slc_job other = c.t.job;
    other.compressed = false;
    refused(&other, c.text, "$.job.compressed: the plan is of the compressed phase, this job is not");
    other = c.t.job;
    other.local_arrays++;
    numbers_differ(&c, &other, "$.job.compressed.local_arrays", c.t.job.local_arrays, other.local_arrays);
    other = c.t.job;
    other.refreshes = !other.refreshes;
    refused(&other, c.text, "$.job.compressed.refreshes: the plan was made for ");
    uint64_t wire = c.t.units[0].exchange.wire;
    c.t.units[0].exchange.wire += 4;
    numbers_differ(&c, &c.t.job, "$.job.units[0].exchange[4]", wire, wire + 4);
    slc_plan *plan;
    c.t.job.compressed = false;
    test_strategies_all(&c.t.job, SLC_DP, c.strategies);
    assert_int_equal(slc_plan_make(&(slc_scheduling){.job = &c.t.job, .strategies = c.strategies, .limit = UINT64_MAX},
                                   &slc_scheduler_serial, &plan),
                     0);
    char *text;
    assert_int_equal(slc_plan_to_json(&c.t.job, plan, NULL, &text), 0);
    c.t.job.compressed = true;
    refused(&c.t.job, text, "$.job.compressed: this job is of the compressed phase, the plan is not");
    free(text);
    slc_plan_destroy(plan);
    case_fini(&c);
}

static void other_layers_and_sizes_are_refused(void **state)
{
    (void)state;
    static plan_case c;
    case_of_many_kinds(&c, 200);
    slc_job *job = &c.t.job, other = *job;
    char error[256];
    const char *renamed[TEST_LAYERS];
    memcpy(renamed, c.t.layers, sizeof renamed);
    other.layers = renamed;
    renamed[1] = "block";
    refused(&other, c.text, "$.job.layers[1]: the plan was made for \"h.1\", this job has \"block\"");
    memmove(renamed + 1, c.t.layers + 2, (TEST_LAYERS - 2) * sizeof *renamed); /* h.1 is missing */
    other.layer_count--;
    refused(&other, c.text, "$.job.layers[1]: the plan was made for \"h.1\", this job has \"h.2\"");
    memcpy(renamed, c.t.layers, sizeof renamed);
    snprintf(error, sizeof error, "$.job.layers[%u]: the plan was made for \"h.%u\", this job has nothing",
             other.layer_count, other.layer_count);
    refused(&other, c.text, error);

    slc_unit units[TEST_UNITS];
    memcpy(units, c.t.units, sizeof units);
    other = *job;
    other.units = units;
    units[2].elements *= 2;
    numbers_differ(&c, &other, "$.job.units[2].elements", job->units[2].elements, units[2].elements);
    units[2] = job->units[2];
    units[0].block_elements *= 3;
    numbers_differ(&c, &other, "$.job.units[0].block_elements", job->units[0].block_elements, units[0].block_elements);
    units[0] = job->units[0];
    units[0].dtype = units[0].dtype == SLUICE_FP32 ? SLUICE_BF16 : SLUICE_FP32;
    refused(&other, c.text,
            units[0].dtype == SLUICE_BF16
                ? "$.job.units[0].dtype: the plan was made for \"fp32\", this job has \"bf16\""
                : "$.job.units[0].dtype: the plan was made for \"bf16\", this job has \"fp32\"");
    units[0] = job->units[0];
    units[0].name = "other";
    refused(&other, c.text, "$.job.units[0].name: the plan was made for \"");
    other = *job;
    other.activations[0].bytes += 4;
    numbers_differ(&c, &other, "$.job.activations[0][1]", job->activations[0].bytes - 4, job->activations[0].bytes);
    other.activations[0].bytes -= 4;
    other.workspaces[0].bytes += 4;
    numbers_differ(&c, &other, "$.job.workspaces[0][1]", job->workspaces[0].bytes - 4, job->workspaces[0].bytes);
    other.workspaces[0].bytes -= 4;
    bool none[TEST_LAYERS] = {0};
    other.can_recompute = none;
    refused(&other, c.text, "$.recompute[0]: layer \"");
    case_fini(&c);
}

/* Removes every `what` from `text`. */
static void leave_out(char *text, const char *what)
{
    for (char *at; (at = strstr(text, what)) != NULL;) memmove(at, at + strlen(what), strlen(at + strlen(what)) + 1);
}

/* Plans written before there was another type do not mention types. */
static void a_plan_without_types_is_of_fp32(void **state)
{
    (void)state;
    static plan_case c;
    slc_plan *plan;
    for (uint64_t seed = 0;; seed++, case_fini(&c)) {
        case_init(&c, slc_scheduler_find("one_ahead"), seed);
        bool all_fp32 = c.t.job.wire == SLUICE_FP32 && c.t.job.unit_count > 1;
        for (uint32_t u = 0; u < c.t.job.unit_count; u++) all_fp32 &= c.t.job.units[u].dtype == SLUICE_FP32;
        if (all_fp32) break;
    }
    size_t before = strlen(c.text);
    leave_out(c.text, ", \"dtype\": \"fp32\"");
    leave_out(c.text, "\n    \"wire\": \"fp32\",");
    assert_true(strlen(c.text) + 40 < before && !strstr(c.text, "fp32"));
    if (slc_plan_from_json(&c.t.job, c.text, strlen(c.text), &plan)) fail_msg("%s", sluice_last_error());
    slc_plan_destroy(plan);
    slc_job narrow = c.t.job;
    narrow.wire = SLUICE_BF16;
    refused(&narrow, c.text, "$.job.wire: the plan was made for nothing, this job has \"bf16\"");
    case_fini(&c);
}

/* ---- Not a plan ---- */

/* A copy of `text` in which the first `from` after `behind` is replaced. */
static char *changed(const char *text, const char *behind, const char *from, const char *to)
{
    const char *at = strstr(text, behind);
    at = at ? strstr(at + strlen(behind), from) : NULL;
    if (!at) fail_msg("no \"%s\" behind \"%s\"", from, behind);
    char *out = malloc(strlen(text) + strlen(to) + 1);
    assert_non_null(out);
    sprintf(out, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    return out;
}

static void other_rows_and_odd_lanes_are_refused(void **state)
{
    (void)state;
    static made m;
    static const struct {
        const char *behind, *from, *to, *error;
    } odd[] = {{"", "],1]", "],2]", "][9]: 2; give a whole number from 0 to 1"},
               {"", "],1]", "],true]", "][9]: true; give a whole number from 0 to 1"},
               {"", "],1]", "],1,1]", "]: give [kind, late, micro-batch, slot"},
               {"[\"agree\"", "]]", "],1]", "is no update, but on the compute lane"},
               {"", "\"most_rows\": 5", "\"most_rows\": 6",
                "$.job.units[1].rows.most_rows: the plan was made for 6, this job has 5"},
               {"", "\"of\": \"table\"", "\"of\": \"h\"",
                "$.job.units[1].rows.of: the plan was made for \"h\", this job has \"table\""},
               {"\"strategies\"", "\"fsdp\"", "\"dp\"", "invalid plan: unit table is dp"}};
    char *text = text_of_split(&m, SLC_FSDP);
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        char *bad = changed(text, odd[i].behind, odd[i].from, odd[i].to);
        refused(&m.job, bad, odd[i].error);
        free(bad);
    }
    m.units[ROWS].role = SLC_UNIT_WHOLE;
    refused(&m.job, text, "$.job.units[1]: \"rows\" is unknown");
    slc_plan_destroy(m.plan);
    free(text);
}

static const struct {
    const char *behind, *from, *to, *error;
} wrong[] = {
    {"", "\"version\": 1", "\"version\": 7", "$.version: version 7; this program reads 1"},
    {"", "\"schedule\"", "\"scheduler\"", "$: \"scheduler\" is unknown"},
    {"\"job\"", "\"world\"", "\"ranks\"", "$.job.world: the plan was made for nothing"},
    {"\"job\"", "\"world\"", "\"extra\": 1, \"world\"", "$.job: \"extra\" is unknown"},
    {"\"strategies\": {", "\": \"", "\": \"none", "is no strategy; give one of dp, oss, sdp, fsdp, onebit"},
    {"\"strategies\": {", "\"", "\"x\": \"dp\", \"", "$.strategies: there are"},
    {"\"recompute\": [", "\"", "\"h.99\", \"", "$.recompute[0]: \"h.99\" is no layer"},
    {"\"buffers\": [", "[\"", "[\"my ", "$.buffers[0][0]: \"my "},
    {"\"buffers\": [", "[\"", "[7,\"", "$.buffers[0]: give [kind, unit, index, bytes, offset]"},
    {"\"resident\": [", "0", "4000000000", "$.resident[0]: 4000000000; give a whole number from 0 to"},
    {"\"resident\": [", "0", "1", "invalid plan"},
    {"\"items\": [", "[\"", "[\"do ", "$.train.items[0][0]: \"do "},
    {"\"items\": [", "\",0", "\",2", "$.train.items[0][1]: 2; give a whole number from 0 to 1"},
    {"\"items\": [", "\",0,", "\",0,99", "$.train.items[0][2]: 99"},
    {"\"items\": [", "]]", "]", "line "},
    {"\"claims\": [", "[", "[9999999,", "$.train.claims[0]: give [buffer, first byte, end byte, from item, to item]"},
    {"\"claims\": [", "[", "[-", "$.train.claims[0]"},
    {"", "\"evaluate\"", "\"evaluation\"", "$: \"evaluation\" is unknown"},
    {"", "\"arena_bytes\": ", "\"arena_bytes\": -", "$.arena_bytes: -"},
};

static void what_is_no_plan_is_refused(void **state)
{
    (void)state;
    static plan_case c;
    case_of_many_kinds(&c, 300);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char *text = changed(c.text, wrong[i].behind, wrong[i].from, wrong[i].to);
        refused(&c.t.job, text, wrong[i].error);
        free(text);
    }
    case_fini(&c);
}

/* A wrong plan can be written, but reading it is refused. */
static void refused_as_it_is(const slc_job *job, const slc_plan *plan, const char *error)
{
    char *text;
    assert_int_equal(slc_plan_to_json(job, plan, NULL, &text), 0);
    refused(job, text, error);
    free(text);
}

static void waits_for_what_is_not_before_are_refused(void **state)
{
    (void)state;
    static plan_case c;
    case_of_many_kinds(&c, 350);
    slc_program *train = &c.plan->train;
    slc_after waits[] = {{3, false}, {train->item_count, true}}, *own = train->items[3].after;
    uint32_t count = train->items[3].after_count;
    train->items[3].after_count = 1;
    for (int w = 0; w < 2; w++) {
        train->items[3].after = &waits[w];
        refused_as_it_is(&c.t.job, c.plan, "$.train.items[3][8][0]: give the number of an earlier item");
    }
    train->items[3].after = own;
    train->items[3].after_count = count;
    case_fini(&c);
}

static void the_validator_judges_what_is_read(void **state)
{
    (void)state;
    static plan_case c;
    case_of_many_kinds(&c, 400);
    slc_plan bare = *c.plan;
    bare.train.claim_count = 0;
    refused_as_it_is(&c.t.job, &bare, "invalid plan");
    bare.train.item_count = 0;
    refused_as_it_is(&c.t.job, &bare, "invalid plan");
    case_fini(&c);
}

/* ---- Files, sizes, odd names ---- */

static void a_file_with_a_forecast(void **state)
{
    (void)state;
    static plan_case c;
    case_of_many_kinds(&c, 500);
    char folder[] = "/tmp/sluice-plan-XXXXXX", path[64];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/plan.json", folder);
    slc_plan_forecast forecast = {.step_s = 0.25, .exposed_s = 0.125, .compute_s = 0.1, .why = "serial: \"best\""};
    slc_plan *back;
    assert_int_equal(slc_plan_write(&c.t.job, c.plan, &forecast, path), 0);
    assert_int_equal(slc_plan_read(&c.t.job, path, &back), 0);
    assert_true(plans_equal(c.plan, back));
    slc_plan_destroy(back);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(slc_plan_read(&c.t.job, path, &back), SLUICE_ERR_PATH);
    assert_non_null(strstr(sluice_last_error(), path));
    assert_int_equal(rmdir(folder), 0);
    case_fini(&c);
}

static void names_that_are_no_text_are_refused(void **state)
{
    (void)state;
    static plan_case c;
    case_of_many_kinds(&c, 600);
    char *text = NULL;
    c.t.layers[0] = "\xff\xfe";
    assert_int_equal(slc_plan_to_json(&c.t.job, c.plan, NULL, &text), SLUICE_ERR_FORMAT);
    assert_null(text);
    case_fini(&c);
}

/* The bytes per item, with its claims and waits, must not grow with the depth of the model. */
static void a_plan_of_many_items_is_small(void **state)
{
    (void)state;
    static slc_unit units[DEEP];
    static slc_use uses[DEEP];
    static const char *layers[DEEP];
    static char names[DEEP][16];
    static slc_strategy strategies[DEEP];
    for (uint32_t l = 0; l < DEEP; l++) {
        snprintf(names[l], sizeof names[l], "h.%u", l);
        layers[l] = names[l];
        uses[l] = (slc_use){l, true};
        units[l] =
            (slc_unit){names[l], (uint64_t)1 << 26, (uint64_t)1 << 20, SLUICE_FP32, true, &uses[l], .use_count = 1};
        strategies[l] = l % 3 ? SLC_FSDP : SLC_SDP;
    }
    slc_job job = {.world = 8,
                   .micro_batches = 2,
                   .states = 2,
                   .layer_count = DEEP,
                   .layers = layers,
                   .units = units,
                   .unit_count = DEEP};
    slc_scheduling in = {.job = &job, .strategies = strategies, .limit = UINT64_MAX};
    slc_plan *plan;
    char *text;
    assert_int_equal(slc_plan_make(&in, slc_scheduler_find("one_ahead"), &plan), 0);
    assert_int_equal(slc_plan_to_json(&job, plan, NULL, &text), 0);
    uint64_t items = plan->train.item_count + plan->evaluate.item_count;
    assert_true(items > 2000);
    assert_true(strlen(text) < 400 * items);
    free(text);
    slc_plan_destroy(plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_and_back_is_the_same_plan),
        cmocka_unit_test(a_profile_of_the_job_takes_its_plan),
        cmocka_unit_test(rows_and_computed_updates_come_back),
        cmocka_unit_test(other_rows_and_odd_lanes_are_refused),
        cmocka_unit_test(another_job_is_refused_with_both_values),
        cmocka_unit_test(another_phase_is_refused),
        cmocka_unit_test(other_layers_and_sizes_are_refused),
        cmocka_unit_test(a_plan_without_types_is_of_fp32),
        cmocka_unit_test(what_is_no_plan_is_refused),
        cmocka_unit_test(waits_for_what_is_not_before_are_refused),
        cmocka_unit_test(the_validator_judges_what_is_read),
        cmocka_unit_test(a_file_with_a_forecast),
        cmocka_unit_test(names_that_are_no_text_are_refused),
        cmocka_unit_test(a_plan_of_many_items_is_small),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
