/* tests/command/plan/estimate_test.sh covers this file. */
#include "bench/estimate/report.h"

#include "bench/plan/words/quantities.h"
#include "lib/base/text/size_text.h"

#include <inttypes.h>

/* ---- Text ---- */

static void print_head(FILE *out, const slc_survey *s, const slc_answers *a)
{
    const slc_training_options *o = s->training;
    fprintf(out, "%s %s: %.1f M parameters, %s, %s; ", o->model, o->size, (double)a->parameters / 1e6, o->optimizer,
            o->precision);
    if (s->length)
        fprintf(out, "%" PRIu64 " x %u tokens", o->batch, s->length);
    else
        fprintf(out, "%" PRIu64 " images", o->batch);
    fprintf(out, ", %" PRIu64 " micro-batch%s a step; %d rank%s", o->micro_batches, o->micro_batches == 1 ? "" : "es",
            s->ranks, s->ranks == 1 ? "" : "s");
    if (s->pace.ranks > (uint32_t)s->ranks) fprintf(out, " of the %u that --machines has", s->pace.ranks);
    if (s->ranks > 1 && s->ranks_a_host < s->ranks)
        fprintf(out, ", %d a host", s->ranks_a_host);
    else if (s->ranks > 1)
        fprintf(out, " on one host");
    fputc('\n', out);
}

static void print_pace(FILE *out, const slc_survey *s)
{
    char latency[24];
    fprintf(out, "compute    %.1f GFLOP/s in matrix products, %.1f GB/s through memory, %s (--pace)\n",
            s->pace.flops / 1e9, s->pace.bytes_per_s / 1e9, s->pace.compute);
    if (s->ranks > 1)
        fprintf(out, "link       %.2f GB/s, latency %s, %s (--throttle)\n", s->pace.link_bytes_per_s / 1e9,
                slc_plan_seconds(s->pace.link_latency_s, latency), s->pace.link);
    fprintf(out, "Times are estimates from these figures; bytes are those that `sluice train` plans with.\n");
    if (*s->no_data) fprintf(out, "The bytes of training data are not counted: %s\n", s->no_data);
}

static void print_needs(FILE *out, const slc_answers *a)
{
    char step[24], step_again[24];
    fprintf(out, "\n%-10s %14s %10s   %14s %10s\n", "every layer", "memory a rank", "step", "recomputing", "step");
    for (uint32_t i = 0; i + 1 < a->need_count; i += 2) {
        const slc_strategy_need *kept = &a->needs[i], *recomputed = &a->needs[i + 1];
        fprintf(out, "  %-9s %14s %10s   %14s %10s\n", slc_strategy_name(kept->strategy), slc_size_of(kept->bytes).text,
                slc_plan_seconds(kept->step_s, step), slc_size_of(recomputed->bytes).text,
                slc_plan_seconds(recomputed->step_s, step_again));
    }
    fprintf(out,
            "  without overlap, as --strategy NAME --schedule serial plans it; --recompute all drops activations\n");
}

static void print_choice(FILE *out, const slc_budget_plan *p)
{
    fputs(slc_strategy_counts_in_words(&p->units).text, out);
    if (p->recomputed) fprintf(out, "; %u layer%s recomputed", p->recomputed, p->recomputed == 1 ? "" : "s");
}

static void print_plans(FILE *out, const slc_survey *s, const slc_answers *a)
{
    char step[24], exposed[24];
    fprintf(out, "\n%-22s %12s %10s %10s   %s\n", "--budget", "planned", "step", "waiting", "units");
    for (uint32_t i = 0; i < a->plan_count; i++) {
        const slc_budget_plan *p = &a->plans[i];
        fprintf(out, "  %3.0f%%  %14s ", 100 * p->of_dp, slc_size_of(p->budget_bytes).text);
        if (!p->fits) {
            fprintf(out, "%12s\n", "too small");
            continue;
        }
        fprintf(out, "%12s %10s %10s   ", slc_size_of(p->peak_bytes).text, slc_plan_seconds(p->forecast.step_s, step),
                slc_plan_seconds(p->forecast.exposed_s, exposed));
        print_choice(out, p);
        fputc('\n', out);
    }
    fprintf(out, "  of the least that dp works in; strategy %s, schedule %s, recompute %s\n", s->training->strategy,
            s->training->schedule, s->training->recompute);
}

void slc_estimate_print(FILE *out, const slc_survey *s, const slc_answers *a)
{
    print_head(out, s, a);
    print_pace(out, s);
    fprintf(out, "\nsmallest budget: %" PRIu64 " bytes (%s) a rank\n", a->smallest_bytes,
            slc_size_of(a->smallest_bytes).text);
    print_needs(out, a);
    print_plans(out, s, a);
}

/* ---- JSON ---- */

static json_t *need_json(const slc_strategy_need *n)
{
    return json_pack("{s:s, s:b, s:I, s:f}", "strategy", slc_strategy_name(n->strategy), "recompute", n->recompute,
                     "bytes", (json_int_t)n->bytes, "step_s", n->step_s);
}

static json_t *plan_json(const slc_budget_plan *p)
{
    json_t *units = json_object();
    for (int k = 0; k < SLC_STRATEGIES; k++)
        if (p->units.of[k])
            json_object_set_new(units, slc_strategy_name((slc_strategy)k), json_integer(p->units.of[k]));
    json_t *budget = p->budget_bytes ? json_integer((json_int_t)p->budget_bytes) : json_null();
    json_t *of_dp = p->of_dp > 0 ? json_real(p->of_dp) : json_null();
    if (!p->fits) {
        json_decref(units);
        return json_pack("{s:o, s:o, s:b}", "budget_bytes", budget, "budget_of_dp", of_dp, "fits", 0);
    }
    return json_pack("{s:o, s:o, s:b, s:I, s:f, s:f, s:f, s:o, s:o, s:I}", "budget_bytes", budget, "budget_of_dp",
                     of_dp, "fits", 1, "planned_bytes", (json_int_t)p->peak_bytes, "step_s", p->forecast.step_s,
                     "compute_s", p->forecast.compute_s, "exposed_s", p->forecast.exposed_s, "bound_s",
                     p->forecast.bound_s > 0 ? json_real(p->forecast.bound_s) : json_null(), "units", units,
                     "recomputed_layers", (json_int_t)p->recomputed);
}

static json_t *pace_json(const slc_pace *p)
{
    return json_pack("{s:f, s:f, s:s, s:f, s:f, s:s}", "flops", p->flops, "bytes_per_s", p->bytes_per_s, "compute",
                     p->compute, "link_bytes_per_s", p->link_bytes_per_s, "link_latency_s", p->link_latency_s, "link",
                     p->link);
}

json_t *slc_estimate_json(const slc_survey *s, const slc_answers *a, const slc_budget_plan *planned)
{
    const slc_training_options *o = s->training;
    json_t *needs = json_array(), *plans = json_array();
    for (uint32_t i = 0; i < a->need_count; i++) json_array_append_new(needs, need_json(&a->needs[i]));
    for (uint32_t i = 0; i < a->plan_count; i++) json_array_append_new(plans, plan_json(&a->plans[i]));
    return json_pack("{s:s, s:s, s:I, s:i, s:i, s:s, s:s, s:I, s:I, s:I, s:b, s:I, s:I, s:o, s:o, s:o, s:o}", "model",
                     o->model, "size", o->size, "parameters", (json_int_t)a->parameters, "world", s->ranks,
                     "ranks_a_host", s->ranks_a_host, "precision", o->precision, "optimizer", o->optimizer, "batch",
                     (json_int_t)o->batch, "context", (json_int_t)s->length, "micro_batches",
                     (json_int_t)o->micro_batches, "data_counted", !*s->no_data, "smallest_budget_bytes",
                     (json_int_t)a->smallest_bytes, "dp_bytes", (json_int_t)a->dp_bytes, "pace", pace_json(&s->pace),
                     "strategies", needs, "budgets", plans, "plan", planned ? plan_json(planned) : json_null());
}
