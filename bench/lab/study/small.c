/* Small jobs, whose every solution can be looked at: compares the slot model in whole blocks with every placement of
 * them, and the plan that ships with the best of all orders under the same budget. Messages have no latency, and
 * compute and communication do not slow each other down, as the search over orders requires. */
#include "bench/lab/study/study.h"
#include "ilp/enumerate.h"
#include "lib/base/clock.h"
#include "lib/base/random.h"
#include "lib/base/status.h"
#include "lib/plan/strategy_table.h"
#include "sched/study/every_order.h"
#include "sched/study/random_profile.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CASES = 500, STREAM = 0x6c, FOUR_STRATEGIES_UNTIL = 2, ORDER_TEXT = 1024 };
static const double case_s = 5, worth = 0.001, most_placings = 200000;

typedef struct {
    slc_profile *profile;
    uint64_t seed, limit, least, all_sdp;
    uint64_t drawn;
} small_case;

typedef struct {
    double shipped_s, best_s, search_s;
    bool complete;
    uint64_t orders, packed, refused;
    double model_s, enumerated_s; /* infinity: no answer fits */
    uint64_t placings;            /* 0: there were too many, and none was looked at */
} result;

static uint32_t below(small_case *c, uint32_t limit)
{
    return (uint32_t)slc_random_below(c->seed, STREAM, c->drawn++, limit);
}

/* ---- Drawing ---- */

/* Cuts a unit into one or two equal runs of one block each; with three layers or more, into one. */
static void cut_units(small_case *c)
{
    slc_job *job = &c->profile->job;
    uint64_t grain = 16 * (uint64_t)job->world;
    for (uint32_t u = 0; u < job->unit_count; u++) {
        slc_unit *unit = &job->units[u];
        uint32_t runs = job->layer_count < 3 ? 1 + below(c, 2) : 1;
        unit->block_elements = (unit->elements / runs + grain - 1) / grain * grain;
        unit->elements = runs * unit->block_elements;
    }
    c->profile->times.link.block_bytes = 1;
}

static sluice_status draw_case(uint64_t seed, small_case *c)
{
    slc_random_options options = slc_random_defaults();
    options.layers = (slc_random_range){1, 4};
    options.unit_bytes = (slc_random_range){8e6, 40e6};
    options.micro_batches = 1;
    options.unit_blocks = 1;
    options.latency_s = 0;
    options.kappa = 0;
    options.sigma = 1;
    options.tied_share = 0.2;
    *c = (small_case){.seed = seed};
    sluice_status status = slc_random_profile(&options, seed, &c->profile);
    if (status) return status;
    cut_units(c);
    status = slc_simple_plan_range(c->profile, false, &c->least, &c->all_sdp);
    uint64_t span = c->all_sdp > c->least ? c->all_sdp - c->least : 0;
    c->limit = c->least + span * below(c, 1001) / 1000;
    return status;
}

/* ---- The slot model ---- */

static sluice_status check_model(small_case *c, result *r)
{
    const slc_job *job = &c->profile->job;
    uint8_t allowed[SLC_EVERY_ORDER_UNITS];
    memset(allowed, (1 << SLC_EXACT_STRATEGIES) - 1, sizeof allowed);
    slc_slot_request ask = {.job = job,
                            .times = &c->profile->times,
                            .allowed = allowed,
                            .limit = c->limit,
                            .tie = 1,
                            .every_position = true,
                            .whole_blocks = 1 + below(c, 2)};
    slc_slot_solution answer = {0};
    sluice_status status = slc_slot_model_enumerate(&ask, most_placings, &r->enumerated_s, &r->placings);
    for (int smaller = 0; !status && !r->placings && smaller < 2; smaller++) {
        if (smaller) memset(allowed, 1 << SLC_SDP | 1 << SLC_FSDP, sizeof allowed);
        ask.whole_blocks = 1;
        status = slc_slot_model_enumerate(&ask, most_placings, &r->enumerated_s, &r->placings);
    }
    if (status || !r->placings) return status;
    status = slc_slot_model_solve(&ask, &answer);
    r->model_s = !status && answer.found ? answer.step_s : INFINITY;
    slc_slot_solution_fini(&answer);
    return status == SLUICE_ERR_BUDGET ? SLUICE_OK : status;
}

static bool model_is_equal(const result *r)
{
    if (isinf(r->model_s) || isinf(r->enumerated_s)) return isinf(r->model_s) && isinf(r->enumerated_s);
    return fabs(r->model_s - r->enumerated_s) <= 1e-6 * r->enumerated_s;
}

/* ---- All orders ---- */

static void write_item(const slc_item *item, FILE *to)
{
    static const char *const letters[SLC_ITEM_KINDS] = {"s", "R", "A", "g", "agree", "u", "G", "W"};
    if (item->kind == SLC_ITEM_UPDATE || item->kind == SLC_ITEM_AGREE) return;
    if (item->kind == SLC_ITEM_SLOT)
        fprintf(to, "[%" PRIu32 "] ", item->slot);
    else
        fprintf(to, "%s%s%" PRIu32 ".%" PRIu64 "+%" PRIu64 " ", item->late ? "*" : "", letters[item->kind], item->unit,
                item->first_block, item->block_count);
}

/* Writes slots in brackets; R reduces, G gathers, W gathers for a window; unit.block+count; a star: late. */
static json_t *plan_text(const slc_plan *plan)
{
    char *text = NULL;
    size_t length;
    FILE *to = open_memstream(&text, &length);
    if (!to) return json_null();
    for (uint32_t u = 0; u < plan->unit_count; u++) fprintf(to, "%s ", slc_strategy_name(plan->strategies[u]));
    for (uint32_t i = 0; i < plan->train.item_count; i++) write_item(&plan->train.items[i], to);
    fclose(to);
    json_t *made = json_string(text);
    free(text);
    return made;
}

typedef struct {
    slc_strategy strategies[SLC_EVERY_ORDER_UNITS];
    slc_every_order_request ask;
    result *result;
    slc_plan *best; /* NULL: the shipped plan is best */
} all_orders;

static sluice_status look(all_orders *a)
{
    slc_every_order_answer answer;
    a->ask.faster_than_s = a->result->best_s;
    sluice_status status = slc_every_order(&a->ask, &answer);
    if (status) return status;
    a->result->complete &= answer.complete;
    a->result->orders += answer.orders;
    a->result->packed += answer.packed;
    a->result->refused += answer.refused;
    if (!answer.plan) return SLUICE_OK;
    slc_plan_destroy(a->best);
    a->best = answer.plan;
    a->result->best_s = answer.step_s;
    return SLUICE_OK;
}

/* dp and oss send the same as sdp and keep more, so they are left out with more than two layers. */
static sluice_status choose_all(all_orders *a, uint32_t unit)
{
    const slc_job *job = a->ask.job;
    if (unit == job->unit_count) return look(a);
    sluice_status status = SLUICE_OK;
    for (int k = SLC_EXACT_STRATEGIES - 1; !status && k >= 0; k--) {
        bool looked_at = job->layer_count <= FOUR_STRATEGIES_UNTIL || k == SLC_SDP || k == SLC_FSDP;
        a->strategies[unit] = (slc_strategy)k;
        if (looked_at) status = choose_all(a, unit + 1);
    }
    return status;
}

static sluice_status check_orders(const slc_study *study, const small_case *c, result *r, json_t *row)
{
    slc_joint_answer shipped;
    uint64_t start_ns;
    all_orders a = {.result = r};
    sluice_status status = slc_study_joint(study, c->profile, c->limit, false, &shipped);
    if (status) return status;
    start_ns = slc_clock_ns();
    r->shipped_s = r->best_s = shipped.forecast.step_s;
    r->complete = true;
    a.ask = (slc_every_order_request){.job = &c->profile->job,
                                      .times = &c->profile->times,
                                      .strategies = a.strategies,
                                      .limit = c->limit,
                                      .worth = worth,
                                      .deadline_ns = start_ns + (uint64_t)(case_s * 1e9)};
    status = choose_all(&a, 0); /* a quick search first, in which no buffer lives longer than it has to */
    r->complete = true;
    a.ask.every_way = true;
    if (!status) status = choose_all(&a, 0);
    r->search_s = slc_seconds(slc_clock_ns() - start_ns);
    json_object_set_new(row, "shipped", plan_text(shipped.plan));
    json_object_set_new(row, "member", json_string(shipped.member));
    if (a.best) json_object_set_new(row, "best", plan_text(a.best));
    slc_plan_destroy(a.best);
    slc_plan_destroy(shipped.plan);
    return status;
}

/* ---- The table ---- */

typedef struct {
    uint32_t cases, enumerated, equal, complete, incomplete, within_1, within_5, incomplete_slower;
    double *ratios; /* ratios of the complete cases */
    double worst;
    uint64_t worst_seed;
} totals;

static void note(totals *t, uint64_t seed, const result *r)
{
    double ratio = r->shipped_s / r->best_s;
    t->cases++;
    if (ratio > t->worst) {
        t->worst = ratio;
        t->worst_seed = seed;
    }
    t->enumerated += r->placings > 0;
    t->equal += r->placings > 0 && model_is_equal(r);
    if (!r->complete) {
        t->incomplete++;
        t->incomplete_slower += ratio > 1.01;
        return;
    }
    t->within_1 += ratio <= 1.01;
    t->within_5 += ratio <= 1.05;
    t->ratios[t->complete++] = ratio;
}

static sluice_status one(const slc_study *study, uint64_t seed, totals *t)
{
    small_case c;
    result r = {0};
    sluice_status status = draw_case(seed, &c);
    json_t *row = json_object();
    if (!status) status = check_model(&c, &r);
    if (!status) status = check_orders(study, &c, &r, row);
    if (!status) {
        note(t, seed, &r);
        double span = (double)(c.all_sdp - c.least);
        json_t *figures = json_pack(
            "{s:s, s:I, s:i, s:I, s:f, s:f, s:f, s:f, s:b, s:I, s:I, s:I, s:f, s:I, s:b}", "study", "small", "seed",
            (json_int_t)seed, "layers", (int)c.profile->job.layer_count, "limit_bytes", (json_int_t)c.limit, "share",
            span > 0 ? (double)(c.limit - c.least) / span : 0.0, "shipped_s", r.shipped_s, "best_s", r.best_s, "ratio",
            r.shipped_s / r.best_s, "complete", r.complete, "orders", (json_int_t)r.orders, "packed",
            (json_int_t)r.packed, "refused", (json_int_t)r.refused, "search_s", r.search_s, "placings",
            (json_int_t)r.placings, "model_equal", r.placings ? model_is_equal(&r) : false);
        json_object_update_missing(row, figures);
        json_decref(figures);
        json_array_append(study->rows, row);
    }
    json_decref(row);
    slc_profile_destroy(c.profile);
    return slc_error_context(status, "profile of seed %" PRIu64, seed);
}

static void print_totals(FILE *out, const totals *t)
{
    double n = t->complete ? t->complete : 1;
    fprintf(out, "slot model in whole blocks equal to enumeration: %u of %u (too many placements to look at: %u)\n",
            t->equal, t->enumerated, t->cases - t->enumerated);
    fprintf(out, "shipped plan against the best of all orders, %u cases searched to the end:\n", t->complete);
    fprintf(out, "  within 1 %%: %.1f %%; within 5 %%: %.1f %%\n", 100 * t->within_1 / n, 100 * t->within_5 / n);
    if (t->complete)
        fprintf(out, "  ratio: median %.4f, 90th %.4f, 95th %.4f, 99th %.4f, most %.4f\n",
                slc_study_quantile(t->ratios, t->complete, 0.5), slc_study_quantile(t->ratios, t->complete, 0.9),
                slc_study_quantile(t->ratios, t->complete, 0.95), slc_study_quantile(t->ratios, t->complete, 0.99),
                slc_study_quantile(t->ratios, t->complete, 1));
    fprintf(out, "not searched to the end in %g s: %u cases; a plan faster by over 1 %% was found in %u of them\n",
            case_s, t->incomplete, t->incomplete_slower);
    fprintf(out, "slowest of all: %.4f, seed %" PRIu64 "\n", t->worst, t->worst_seed);
}

sluice_status slc_study_small(const slc_study *study)
{
    uint32_t count = study->count ? study->count : CASES;
    totals t = {.ratios = malloc((size_t)count * sizeof *t.ratios)};
    if (!t.ratios) return slc_error(SLUICE_ERR_MEMORY, "study");
    sluice_status status = SLUICE_OK;
    for (uint32_t i = 0; !status && i < count; i++) status = one(study, study->seed + i, &t);
    if (!status) print_totals(study->out, &t);
    free(t.ratios);
    return status;
}
