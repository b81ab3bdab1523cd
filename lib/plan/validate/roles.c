/* Checks a job's tied parameters that are split by their uses: a SPLIT unit must be followed by the ROWS unit of its
 * look-up. validate_split_test.c covers this file. */
#include "lib/plan/validate/parts.h"

#include "lib/base/status.h"

/* Returns what is wrong with the rows of a look-up; NULL: nothing. */
static const char *fault_of_rows(const slc_job *job, const slc_unit *rows, const slc_unit *of)
{
    uint64_t grain = 16 * (uint64_t)job->world, table;
    if (!rows->row_elements || !rows->row_count || rows->row_count > UINT32_MAX)
        return "its rows are empty, or more than 2^32 - 1";
    if (rows->row_count > of->elements / rows->row_elements) return "its rows are longer than the unit they are of";
    if (!rows->most_rows || rows->most_rows > rows->row_count)
        return "the most rows of a micro-batch are none, or more than there are";
    table = rows->most_rows * rows->row_elements;
    if (rows->elements / grain != (table + grain - 1) / grain || rows->elements % grain)
        return "its length is not that of a table of its rows";
    if (rows->block_elements < rows->elements) return "its table is more than one block";
    if (rows->dtype != of->dtype || rows->trainable != of->trainable)
        return "it is of another type, or frozen where the unit that it is of is not";
    if (rows->use_count != 1 || rows->uses[0].layer >= of->uses[0].layer)
        return "it is one layer that looks rows up, in front of those that use all of the parameter";
    return NULL;
}

static const char *fault_of(const slc_job *job, uint32_t u)
{
    const slc_unit *unit = &job->units[u];
    if ((unsigned)unit->role > SLC_UNIT_ROWS) return "there is no such role";
    if (unit->role == SLC_UNIT_WHOLE) return NULL;
    bool split = unit->role == SLC_UNIT_SPLIT;
    uint32_t other = split ? u + 1 : u - 1;
    if (unit->fused) return "what is split by its uses is fused with nothing";
    if (other >= job->unit_count || unit->partner != other || job->units[other].partner != u ||
        job->units[other].role != (split ? SLC_UNIT_ROWS : SLC_UNIT_SPLIT))
        return split ? "it is split, but the next unit is not that of its rows"
                     : "it is of rows, but the unit before is not the one that they are of";
    return split ? NULL : fault_of_rows(job, unit, &job->units[other]);
}

sluice_status slc_validate_roles(const slc_job *job)
{
    for (uint32_t u = 0; u < job->unit_count; u++) {
        const char *fault = fault_of(job, u);
        if (fault)
            return slc_error(SLUICE_ERR_FORMAT, "invalid job: unit %s cannot be planned for: %s", job->units[u].name,
                             fault);
    }
    return SLUICE_OK;
}
