/* All ranks of a one-bit exchange in one process, for tests. Each stage starts from the fast code's state and is
 * compared with float64. Signs must be equal unless the number is within 1e-6 of the size of its terms. */
#pragma once

#include "lib/kernels/compress/compress.h"
#include "tests/support/kernels/arrays.h"

/* Packets lie at odd addresses, an odd distance apart. */
enum { MOST_RANKS = 8, SHIFT = 1 };
static const double factor = 0.9, rest = 1 - 0.9, clip = 0.7;

/* All ranks of an exchange. */
typedef struct {
    slc_compress_shape shape;
    sluice_dtype gradient_dtype, momentum_dtype;
    uint64_t chunk, scales, stride;
    sluice_stream stream;
    slc_residue worker[MOST_RANKS], server[MOST_RANKS];
    void *gradient[MOST_RANKS], *momentum;
    char *packets[MOST_RANKS], *result;
    int64_t *bins; /* of servers */
    bool *finite;
} exchange;

exchange compress_ranks_create(uint32_t ranks, uint64_t count, uint64_t scale_elements, uint32_t threads,
                               sluice_dtype gradient, sluice_dtype momentum);
void compress_ranks_destroy(exchange *e);
void compress_ranks_draw(exchange *e, uint64_t seed);
void compress_ranks_forget(exchange *e); /* frees the gradients */

/* Compresses a rank's gradient into its packets. */
void compress_rank(exchange *e, uint32_t rank);

/* Serves in pieces of about `piece` elements, the last one first. */
void serve_chunk(exchange *e, uint32_t chunk, uint64_t piece);

/* An element's sign, as 1 or -1, and scale in a packet; the caller frees the errors. */
double packet_sign(const exchange *e, const char *packet, uint64_t i);
float packet_scale(const exchange *e, const char *packet, uint64_t i);
double *residue_errors(const exchange *e, const slc_residue *residue, uint32_t chunks);

/* Run the stages of compress_rank and serve_chunk, and compare each with float64. */
void compress_and_check(exchange *e, uint32_t rank);
void serve_and_check(exchange *e, uint32_t chunk, uint64_t piece);

/* Frozen variance (0 at every seventh element), values, and the values' copies in bf16. */
typedef struct {
    float *value, *variance;
    uint16_t *rounded;
} parameter;

parameter frozen_parameter_create(uint64_t count);
void frozen_parameter_destroy(parameter *p);

static const slc_adamw_settings settings = {.learning_rate = 3e-3,
                                            .beta1 = 0.9,
                                            .beta2 = 0.999,
                                            .epsilon = 1e-8,
                                            .weight_decay = 0.1,
                                            .gradient_factor = 0.7,
                                            .bias_correction1 = 0.6,
                                            .bias_correction2 = 0.3};

slc_frozen_range frozen_range_of(const exchange *e, const parameter *p, void *momentum, bool mask);

/* m64: the momentum before the mask and before rounding. */
void check_frozen_update(const exchange *e, const parameter *p, const void *momentum, const float *before,
                         const double *m64, bool mask, double bar);

/* Updates in two pieces, the second one first. */
void apply_and_check(exchange *e, parameter *p, bool mask);

/* Lays all that a step leaves in one row of floats and compares it. */
void check_exchange_bits(const exchange *e, const parameter *p, float **first);
