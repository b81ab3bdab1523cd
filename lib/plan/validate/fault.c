/* The wording of the faults that the validator finds in an item.
 * validate_split_test.c and tests/plan/validate_test.c cover this file. */
#include "lib/base/status.h"
#include "lib/plan/validate/parts.h"

sluice_status slc_validate_fault(const slc_validation *j, uint32_t item, const char *what)
{
    const slc_item *i = &j->program->items[item];
    if (i->kind == SLC_ITEM_SLOT)
        return slc_error(SLUICE_ERR_FORMAT, "invalid plan: %s item %u (slot %u, micro-batch %u): %s", j->where, item,
                         i->slot, i->micro_batch, what);
    const char *unit = i->unit < j->job->unit_count ? j->job->units[i->unit].name : "-";
    return slc_error(SLUICE_ERR_FORMAT,
                     "invalid plan: %s item %u (%s%s, micro-batch %u, unit %s, blocks %llu to %llu): %s", j->where,
                     item, i->late ? "late " : "", slc_item_kind_name(i->kind), i->micro_batch, unit,
                     (unsigned long long)i->first_block, (unsigned long long)(i->first_block + i->block_count), what);
}
