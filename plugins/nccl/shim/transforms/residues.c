/* A small table that is searched from its beginning: a step has some tens of buckets. */
#include "plugins/nccl/shim/transforms/residues.h"

#include <string.h>

static slc_shim_residue_row *find_row(slc_shim_residues *r, const void *address, uint64_t count)
{
    for (uint32_t i = 0; i < r->rows; i++)
        if (r->row[i].bytes && r->row[i].address == address && r->row[i].count == count) return &r->row[i];
    return NULL;
}

static bool is_old(const slc_shim_residues *r, const slc_shim_residue_row *row)
{
    return r->step - row->step > SLC_SHIM_RESIDUE_STEPS;
}

/* Frees the rows of buffers that were not used for long. */
static void drop_old(slc_shim_residues *r)
{
    for (uint32_t i = 0; i < r->rows; i++)
        if (r->row[i].bytes && is_old(r, &r->row[i])) r->row[i].bytes = 0;
    while (r->rows && !r->row[r->rows - 1].bytes) r->rows--;
}

/* Returns the lowest place where `bytes` are free. */
static uint64_t free_place(const slc_shim_residues *r, uint64_t bytes)
{
    uint64_t place = 0;
    for (uint32_t i = 0; i < r->rows;) {
        const slc_shim_residue_row *row = &r->row[i++];
        if (!row->bytes || row->place + row->bytes <= place || place + bytes <= row->place) continue;
        place = row->place + row->bytes;
        i = 0; /* rows before it may lie there */
    }
    return place;
}

static slc_shim_residue_row *add_row(slc_shim_residues *r, const void *address, uint64_t count, uint64_t bytes)
{
    uint32_t at = 0;
    drop_old(r);
    const uint64_t place = free_place(r, bytes);
    while (at < r->rows && r->row[at].bytes) at++;
    if (at == SLC_SHIM_RESIDUES || bytes > r->limit || place > r->limit - bytes) return NULL;
    if (at == r->rows) r->rows++;
    r->row[at] =
        (slc_shim_residue_row){.address = address, .count = count, .place = place, .bytes = bytes, .step = r->step};
    if (place + bytes > r->peak) r->peak = place + bytes;
    return &r->row[at];
}

static void begin_step(slc_shim_residues *r, uint32_t first)
{
    r->length = r->calls - r->began;
    r->began = r->calls, r->first = first, r->different = 0;
    r->step++;
}

/* True if the buffer with which steps began has not come for so long that it must be gone. */
static bool first_is_gone(const slc_shim_residues *r)
{
    const uint64_t since = r->calls - r->began;
    return r->length ? since >= 2 * r->length : since > 3 * (uint64_t)r->different;
}

/* Notes a use of a row that was used before. */
static void use_row(slc_shim_residues *r, slc_shim_residue_row *row)
{
    const uint32_t number = (uint32_t)(row - r->row);
    if (number == r->first) {
        begin_step(r, number);
    } else if (row->step == r->step && row->uses && first_is_gone(r)) {
        begin_step(r, number);
        for (uint32_t i = 0; i < r->rows; i++) r->row[i].uses = r->row[i].uses != 0; /* it was no step, but many */
    }
    if (row->step != r->step) {
        row->before = r->step - row->step == 1 ? row->uses : 0;
        row->step = r->step, row->uses = 0;
    }
    if (!row->uses++) r->different++;
}

bool slc_shim_residues_find(slc_shim_residues *r, const void *address, uint64_t count, uint64_t bytes, uint64_t *place,
                            bool *forget)
{
    slc_shim_residue_row *row = find_row(r, address, count);
    if (row && is_old(r, row)) row->bytes = 0, row = NULL;
    if (row) {
        use_row(r, row);
        *forget = row->uses > 1 || row->before > 1;
    } else {
        row = add_row(r, address, count, bytes);
        *forget = true;
        if (row) row->uses = 1, r->different++;
    }
    r->calls++;
    if (row) *place = row->place;
    return row != NULL;
}
