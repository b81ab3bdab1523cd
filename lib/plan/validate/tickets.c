/* The validator's check of tickets, over addresses and time: the claim that held a range last must surely have been
 * released when the next one begins. Looking at the last claim is enough: it has waited for those before it, and its
 * end proves its start. validate_split_test.c and tests/plan/validate_test.c cover this file. */
#include "lib/plan/validate/parts.h"

#include "lib/base/bisect.h"
#include "lib/base/status.h"

#include <stdlib.h>

/* A claim as made in one pass. */
typedef struct {
    uint32_t claim; /* SLC_NONE: nobody holds the range; RESIDENT */
    int made;
} holder;

enum { RESIDENT = UINT32_MAX - 1 };

typedef struct {
    uint32_t first, end; /* ranges of addresses */
} span;

struct slc_validate_addresses {
    uint64_t *edges; /* sorted; range s is between edge s and the next one */
    uint32_t edge_count;
    holder *holders; /* [edges] the last holder of each range */
    span *spans;     /* [claims + resident claims] the ranges that each covers */
};

static int ascending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static uint32_t edge_of(const slc_validate_addresses *a, uint64_t address)
{
    SLC_BISECT(uint32_t, low, 0, a->edge_count, a->edges[low] < address);
    return low;
}

static const slc_claim *claim_number(const slc_validation *j, size_t c)
{
    return c < j->program->claim_count ? &j->program->claims[c] : &j->plan->statics[c - j->program->claim_count];
}

void slc_validate_addresses_destroy(slc_validate_addresses *addresses)
{
    if (!addresses) return;
    free(addresses->spans);
    free(addresses->holders);
    free(addresses->edges);
    free(addresses);
}

sluice_status slc_validate_addresses_create(const slc_validation *j, slc_validate_addresses **out)
{
    size_t claims = (size_t)j->program->claim_count + j->plan->static_count, count = 0;
    slc_validate_addresses *a = calloc(1, sizeof *a);
    if (a) {
        a->edges = malloc((2 * claims + 1) * sizeof *a->edges);
        a->holders = malloc((2 * claims + 1) * sizeof *a->holders);
        a->spans = malloc((claims + 1) * sizeof *a->spans);
    }
    if (!a || !a->edges || !a->holders || !a->spans) {
        slc_validate_addresses_destroy(a);
        return slc_error(SLUICE_ERR_MEMORY, "validator");
    }
    for (size_t c = 0; c < claims; c++) {
        const slc_claim *claim = claim_number(j, c);
        a->edges[count++] = j->plan->buffers[claim->buffer].offset + claim->first_byte;
        a->edges[count++] = j->plan->buffers[claim->buffer].offset + claim->end_byte;
    }
    if (count) qsort(a->edges, count, sizeof *a->edges, ascending);
    for (size_t i = 0; i < count; i++)
        if (!a->edge_count || a->edges[a->edge_count - 1] != a->edges[i]) a->edges[a->edge_count++] = a->edges[i];
    for (size_t c = 0; c < claims; c++) {
        const slc_claim *claim = claim_number(j, c);
        uint64_t offset = j->plan->buffers[claim->buffer].offset;
        a->spans[c] = (span){edge_of(a, offset + claim->first_byte), edge_of(a, offset + claim->end_byte)};
    }
    *out = a;
    return SLUICE_OK;
}

static void hold(slc_validate_addresses *a, size_t c, holder who)
{
    for (uint32_t s = a->spans[c].first; s < a->spans[c].end; s++) a->holders[s] = who;
}

static sluice_status check_holder(const slc_validation *j, int pass, const slc_claim *mine, holder before)
{
    if (before.claim == SLC_NONE) return SLUICE_OK;
    if (before.claim == RESIDENT) return slc_validate_fault(j, mine->from, "a claim over resident memory");
    const slc_claim *other = &j->program->claims[before.claim];
    int end = before.made + slc_claim_wraps(j->program, other);
    if (end > pass || (end == pass && other->to >= mine->from))
        return slc_validate_fault(j, mine->from, "two claims overlap in address and time");
    if (slc_validate_surely_over(j, pass, mine->from, end, other->to)) return SLUICE_OK;
    return slc_validate_fault(j, mine->from,
                              end < pass ? "claims memory that the pass before may still hold: a ticket is missing"
                                         : "claims memory that an earlier item may still hold: a ticket is missing");
}

static sluice_status run_pass(const slc_validation *j, slc_validate_addresses *a, int pass, bool check)
{
    for (uint32_t c = 0; c < j->program->claim_count; c++) {
        const slc_claim *mine = &j->program->claims[c];
        if (!slc_validate_runs(j, pass, mine->from)) continue;
        for (uint32_t s = a->spans[c].first; check && s < a->spans[c].end; s++) {
            sluice_status status = check_holder(j, pass, mine, a->holders[s]);
            if (status) return status;
        }
        hold(a, c, (holder){c, pass});
    }
    return SLUICE_OK;
}

static void hold_residents(const slc_validation *j, slc_validate_addresses *a)
{
    for (uint32_t s = 0; s < j->plan->static_count; s++)
        hold(a, (size_t)j->program->claim_count + s, (holder){RESIDENT, 0});
}

/* The first pass leaves the holders as the second one finds them. */
sluice_status slc_validate_tickets(const slc_validation *j, slc_validate_addresses *addresses, bool first_too)
{
    for (uint32_t s = 0; s < addresses->edge_count; s++) addresses->holders[s] = (holder){SLC_NONE, 0};
    hold_residents(j, addresses);
    sluice_status status = run_pass(j, addresses, 0, first_too);
    hold_residents(
        j, addresses); /* a claim of the first pass, which may not have been checked, can have overwritten them */
    return status ? status : run_pass(j, addresses, 1, true);
}
