/* Groups waits by the names of slot and operation without their numbers.
 * tests/command/plan/plan_tools_test.sh covers this file. */
#include "bench/plan/words/exposed_table.h"

#include "lib/base/status.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { NAME = 64 };

typedef struct {
    char slots[NAME], causes[NAME], busy[NAME];
    double s, largest_s;
    uint32_t waits;
    const char *largest; /* layer or unit with the longest wait */
} group;

/* Turns "h.12" into "h.*". */
static void leave_numbers_out(const char *name, char *out, size_t size)
{
    size_t length = 0;
    for (const char *at = name; *at && length + 2 < size; at++) {
        bool digit = isdigit((unsigned char)*at);
        if (digit && length && out[length - 1] == '*') continue;
        out[length++] = digit ? '*' : *at;
    }
    out[length] = 0;
}

static void describe_operation(const slc_job *job, const slc_item *item, bool before, char *out)
{
    char unit[NAME / 2];
    leave_numbers_out(item->unit == SLC_NONE ? "" : job->units[item->unit].name, unit, sizeof unit);
    snprintf(out, NAME, "%s %s%s", slc_item_kind_name(item->kind), unit, before ? " (step before)" : "");
}

/* The name of the waiting item: a slot's layer, or the unit that the compute lane updates. */
static const char *waiting_name(const slc_job *job, const slc_item *item)
{
    return item->kind == SLC_ITEM_SLOT ? job->layers[slc_slot_layer(job, item->slot)] : job->units[item->unit].name;
}

static void describe(const slc_job *job, const slc_plan *plan, const slc_exposure *exposed, group *out)
{
    const slc_item *item = &plan->train.items[exposed->slot];
    char name[NAME - 8], what = item->kind != SLC_ITEM_SLOT ? 'U' : slc_slot_is_forward(job, item->slot) ? 'F' : 'B';
    leave_numbers_out(waiting_name(job, item), name, sizeof name);
    snprintf(out->slots, sizeof out->slots, "%c %s", what, name);
    snprintf(out->causes, sizeof out->causes, "?");
    if (exposed->cause != SLC_NONE) {
        const slc_item *cause = &plan->train.items[exposed->cause];
        describe_operation(job, cause, exposed->previous || cause->late, out->causes);
    }
    if (exposed->busy != SLC_NONE && exposed->busy != exposed->cause)
        describe_operation(job, &plan->train.items[exposed->busy], false, out->busy);
    /* The operation that keeps the lane busy is not named if it is one like the causes. */
    if (!strncmp(out->causes, out->busy, strlen(out->busy))) *out->busy = 0;
}

static group *find_group(group *groups, uint32_t *count, const group *like)
{
    for (uint32_t g = 0; g < *count; g++)
        if (!strcmp(groups[g].slots, like->slots) && !strcmp(groups[g].causes, like->causes) &&
            !strcmp(groups[g].busy, like->busy))
            return &groups[g];
    groups[*count] = *like;
    return &groups[(*count)++];
}

static int by_time(const void *a, const void *b)
{
    const group *x = a, *y = b;
    return (x->s < y->s) - (x->s > y->s);
}

static uint32_t make_groups(const slc_job *job, const slc_plan *plan, const slc_exposure *exposures, uint32_t count,
                            group *groups)
{
    uint32_t made = 0;
    for (uint32_t e = 0; e < count; e++) {
        group like = {0};
        describe(job, plan, &exposures[e], &like);
        group *in = find_group(groups, &made, &like);
        double s = exposures[e].to_s - exposures[e].from_s;
        in->s += s;
        in->waits++;
        if (in->largest && s <= in->largest_s) continue;
        in->largest_s = s;
        in->largest = waiting_name(job, &plan->train.items[exposures[e].slot]);
    }
    if (made) qsort(groups, made, sizeof *groups, by_time);
    return made;
}

sluice_status slc_exposed_table(FILE *out, const slc_job *job, const slc_plan *plan, const slc_exposure *exposures,
                                uint32_t count, double step_s, uint32_t most)
{
    if (count == 0) {
        fprintf(out, "compute never waits\n");
        return SLUICE_OK;
    }
    group *groups = calloc(count, sizeof *groups);
    if (!groups) return slc_error(SLUICE_ERR_MEMORY, "table of %u waits", count);
    uint32_t made = make_groups(job, plan, exposures, count, groups), rest = 0;
    double rest_s = 0;
    fprintf(out, "%-13s %-34s %-30s %5s %11s %8s   %s\n", "where exposed", "waits for", "meanwhile", "waits", "ms",
            "of step", "longest");
    for (uint32_t g = 0; g < made; g++) {
        if (g + 1 >= most && made > most) {
            rest += groups[g].waits;
            rest_s += groups[g].s;
            continue;
        }
        fprintf(out, "%-13s %-34s %-30s %5u %11.3f %6.1f %%   %s %.3f ms\n", groups[g].slots, groups[g].causes,
                groups[g].busy, groups[g].waits, groups[g].s * 1e3, 100 * groups[g].s / step_s, groups[g].largest,
                groups[g].largest_s * 1e3);
    }
    if (rest)
        fprintf(out, "%-13s %-34s %-30s %5u %11.3f %6.1f %%\n", "all others", "", "", rest, rest_s * 1e3,
                100 * rest_s / step_s);
    free(groups);
    return SLUICE_OK;
}
