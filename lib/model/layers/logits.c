/* See logits.h. Padding between rows comes along with a piece, and is left out when the host copies the rows on.
 * lib/model/golden_models_test.c covers this file. */
#include "lib/model/layers/logits.h"

#include "lib/base/integer.h"

#include <string.h>

enum { PIECE_BYTES = 16 << 20 };

uint64_t slc_logits_stride(const sluice_model *m, uint64_t classes)
{
    return m->apart ? slc_round_up(classes, SLC_LOGITS_PADDED_TO) : classes;
}

static sluice_status give_piece(sluice_model *m, const float *logits, uint64_t rows, uint64_t classes, float *to)
{
    uint64_t stride = slc_logits_stride(m, classes);
    const float *piece = m->logits_piece.base;
    sluice_status status = slc_copy(m->stream, m->logits_piece.base, logits, rows * stride * sizeof *piece);
    if (!status) status = slc_stream_synchronize(m->stream);
    for (uint64_t row = 0; !status && row < rows; row++)
        memcpy(to + row * classes, piece + row * stride, classes * sizeof *to);
    return status;
}

sluice_status slc_logits_give(sluice_model *m, const float *logits, uint64_t rows, uint64_t classes, float *to)
{
    if (!m->apart) return slc_copy(m->stream, to, logits, rows * classes * sizeof *to);
    uint64_t stride = slc_logits_stride(m, classes), each = slc_most(1, PIECE_BYTES / (stride * sizeof *to));
    sluice_status status = SLUICE_OK;
    if (!m->logits_piece.base) status = slc_pinned_create(m->device, each * stride * sizeof *to, &m->logits_piece);
    for (uint64_t first = 0; !status && first < rows; first += each)
        status = give_piece(m, logits + first * stride, slc_least(each, rows - first), classes, to + first * classes);
    return status;
}
