/* Says what a plan's distance to the bound is made of. tests/command/plan/plan_table_test.sh covers this file. */
#include "bench/plan/words/distance_words.h"

#include "lib/base/text/size_text.h"

static const double SHOWN = 0.0005; /* a smaller share of the bound is not told */
static const double WORTH = 0.01;   /* a plan that is closer than this, but for what is unproven, needs no advice */

/* Lists the parts, the largest first. */
static void rank_parts(const slc_plan_distance *d, int *rank)
{
    for (int k = 0; k < SLC_DISTANCE_PARTS; k++) {
        int place = k;
        for (; place && d->part_s[rank[place - 1]] < d->part_s[k]; place--) rank[place] = rank[place - 1];
        rank[place] = k;
    }
}

void slc_distance_print_parts(FILE *out, const slc_plan_forecast *f)
{
    int rank[SLC_DISTANCE_PARTS];
    rank_parts(&f->distance, rank);
    for (int n = 0; n < SLC_DISTANCE_PARTS; n++) {
        const double share = f->distance.part_s[rank[n]] / f->bound_s;
        if (share < SHOWN) return;
        fprintf(out, "%s%.1f %% %s", n ? ", " : ": ", 100 * share, slc_distance_part_name(rank[n]));
    }
}

static void print_memory(FILE *out, const slc_shown_plan *shown)
{
    const uint64_t total = shown->plan->arena_bytes + shown->profile->job.reserved_bytes;
    const uint64_t holes = shown->plan->arena_bytes - shown->plan->lower_bound;
    if (shown->budget_bytes <= total) return;
    fprintf(out, "           packing leaves %s of the budget unused", slc_size_of(shown->budget_bytes - total).text);
    if (holes) fprintf(out, ", and holes of %s in the rest", slc_size_of(holes).text);
    fputc('\n', out);
}

void slc_distance_print_advice(FILE *out, const slc_shown_plan *shown)
{
    const slc_plan_forecast *f = &shown->forecast;
    const slc_plan_distance *d = &f->distance;
    int rank[SLC_DISTANCE_PARTS];
    rank_parts(d, rank);
    if (!(f->step_s - f->bound_s - d->part_s[SLC_DISTANCE_UNPROVEN] >= WORTH * f->bound_s)) return;
    if (d->known && (rank[0] == SLC_DISTANCE_CHOICES || rank[0] == SLC_DISTANCE_PACKING)) print_memory(out, shown);
}

json_t *slc_distance_json(const slc_plan_distance *d)
{
    if (!d->known) return json_null();
    json_t *parts = json_object();
    for (int k = 0; parts && k < SLC_DISTANCE_PARTS; k++) {
        char key[24];
        snprintf(key, sizeof key, "%s_s", slc_distance_part_name(k));
        json_object_set_new(parts, key, json_real(d->part_s[k]));
    }
    return parts;
}
