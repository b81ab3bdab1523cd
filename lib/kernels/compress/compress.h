/* One-bit compression with error feedback (1-bit Adam, Tang et al., arXiv 2102.02888; DeepSpeed 0.16.4's
 * compressed_allreduce, operation by operation) of one tensor that n ranks exchange, and the update that follows.
 *
 * The tensor has `count` elements; it is padded with zeros to N, a multiple of n * lcm(n, 8), and cut into n chunks of
 * C = N / n. Rank k is the server of chunk k. sgn(x) is -1 if x < 0, else +1 (also for 0, -0 and NaN).
 *   pass 1, rank r   b = x + e_w; w = ||b|| / sqrt(N); the bits are sgn(b); e_w becomes b - w sgn(b)
 *   server, chunk k  a = (sum over r, in rank order, of sgn_r * (w_r * (1/n))) + e_s; s = ||a|| / sqrt(C); bits sgn(a);
 *                    e_s becomes a - s sgn(a)
 *   pass 2           x becomes s_k sgn(a) of each chunk k, cut to `count`
 * The padding counts in the norms and collects error. A norm is exact but for its last rounding (norm.h), so neither
 * threads nor pieces nor instruction sets change a bit. With `scale_elements` S > 0 each chunk is cut into blocks of S
 * from its beginning (the last may be shorter), and each block has a scale of its own in both passes.
 *
 * Errors are lazy. The residue keeps b (or a) itself with its scale; the error is formed, rounded once, when it is next
 * read. A scale of 0 leaves b as it is: zeroed memory means no error. slc_compress_fold turns a residue into plain
 * errors with scale 0, for a checkpoint; going on from them gives the same bits.
 *
 * Non-finite numbers: if b has a non-finite element, or its norm overflows, its scale is INFINITY, and so are all
 * scales that servers make from it, on every rank alike. So a chunk scale that is not finite is the flag that the
 * exchange failed. Pass 2 then leaves the elements under that scale untouched, and an error whose scale is not finite
 * counts as 0 when it is next read. A bad step is thus skipped everywhere without asking anybody, and the next one is
 * whole again.
 *
 * A packet is the message between two ranks about one chunk: its scales (fp32), then its bits, 1 for +1, the first
 * element in the highest bit of a byte. It may lie anywhere: its scales need not be aligned. The packets of a buffer
 * lie `stride` bytes apart: slc_compress_stride, or more if several tensors are exchanged together (compress_group.h).
 * Everything runs in stream order, and on a GPU with the same bits: all pointers but those of shapes and of
 * slc_compress_served.packets itself are then memory of the stream's device. If `words` is not NULL, kernels read
 * from it, when they run, the factor of gradients and whether to change nothing.
 * Threads: any number; several streams at once only on different tensors. Errors: ARGUMENT, UNSUPPORTED (more than
 * SLC_COMPRESS_CUDA_MOST ranks at a GPU's server). */
#pragma once

#include "lib/kernels/adamw/adamw.h"
#include "lib/kernels/norm/norm.h"

typedef struct {
    uint64_t count;          /* may be 0: then there is nothing to do */
    uint64_t scale_elements; /* 0: one scale for all of pass 1, and one for each chunk at its server; else a multiple of
                                16 */
    uint32_t ranks;
} slc_compress_shape;

/* Returns ARGUMENT unless `ranks` is from 1 to 4096 and scale_elements a multiple of 16. */
sluice_status slc_compress_check(const slc_compress_shape *shape);

uint64_t slc_compress_chunk(const slc_compress_shape *shape);        /* C in elements, a multiple of 8; N = ranks * C */
uint64_t slc_compress_scales(const slc_compress_shape *shape);       /* number of scales of one chunk */
uint64_t slc_compress_packet_bytes(const slc_compress_shape *shape); /* bytes in a message: 4 * scales + C / 8 */
uint64_t slc_compress_stride(const slc_compress_shape *shape); /* for a tensor exchanged alone; a multiple of 64 */

/* State that an exchange leaves for the next one; the caller owns it, zeroed at first. A worker's has N sums and
 * ranks * scales (with scale_elements 0 they are all equal); a server's has C sums and one chunk's scales. */
typedef struct {
    float *sum, *scale;
    int64_t *bins; /* SLC_NORM_BINS, in which a GPU's pass 1 adds up its norm if there is one scale; it keeps nothing
                      there. Elsewhere NULL will do */
} slc_residue;

/* The moves are how far a rank has gone by itself since the last exchange, in units of the momentum (0/1 Adam):
 * (accumulator - decay * value) * (rescale * sqrt(exp_avg_sq) + epsilon). Arrays are `count` long and only read. */
typedef struct {
    const float *exp_avg_sq;  /* NULL: no such term */
    const float *accumulator; /* NULL: zeros */
    const float *value;       /* NULL: zeros */
    double decay, rescale, epsilon;
} slc_compress_moves;

/* x = factor * momentum + rest * (gradient_factor * gradient) + moves; arrays are `count` long. */
typedef struct {
    sluice_dtype gradient_dtype, momentum_dtype;
    const void *gradient, *momentum; /* only read; momentum may be NULL: zeros */
    double gradient_factor, factor, rest;
    slc_compress_moves moves;
    const sluice_step_words *words; /* or NULL */
} slc_compress_input;

/* Runs pass 1. Writes the packets of all chunks; packet k, at packets + k * stride, is for rank k. In fp32 it moves
 * 16.1 bytes for each element (gradient, momentum and b read, b written), and 4 more for each array of the moves. */
sluice_status slc_compress_worker(sluice_stream *stream, const slc_compress_shape *shape,
                                  const slc_compress_input *input, const slc_residue *worker, void *packets,
                                  uint64_t stride);

/* A tensor of those that go through pass 1 together. */
typedef struct {
    const slc_compress_shape *shape;
    slc_compress_input input;
    const slc_residue *worker;
    void *packets;
    uint64_t stride;
} slc_compress_tensor;

/* Runs pass 1 on many tensors, on a GPU by a few launches for all that have the same types. */
sluice_status slc_compress_worker_many(sluice_stream *stream, uint32_t count, const slc_compress_tensor *tensors);

/* The most ranks that a GPU's server takes: their addresses go among the arguments of its kernel. */
enum { SLC_COMPRESS_CUDA_MOST = 448 };

/* A chunk at its server. */
typedef struct {
    const slc_compress_shape *shape;
    const void *const *packets; /* packets[r] is the packet from rank r for this chunk */
    const slc_residue *server;
    int64_t *bins;                  /* SLC_NORM_BINS, zeroed before the first piece */
    void *packet;                   /* receives the result */
    const sluice_step_words *words; /* or NULL */
} slc_compress_served;

/* Runs the server's step in pieces, in any order: elements first..first+count-1 of its chunk, with `first` a multiple
 * of 64 (of scale_elements if that is not 0), and `count` too unless the piece ends the chunk. Writes the result's
 * bits. */
sluice_status slc_compress_server(sluice_stream *stream, const slc_compress_served *chunk, uint64_t first,
                                  uint64_t count);
/* Writes the result's scales; to be called after the last piece. Reads no packets. */
sluice_status slc_compress_server_end(sluice_stream *stream, const slc_compress_served *chunk);

/* A chunk at its server after an exchange that leaves what arrives at one address: the packet from rank r at
 * packets + r * stride, but this rank's own elsewhere. */
typedef struct {
    const slc_compress_shape *shape; /* of at most SLC_COMPRESS_CUDA_MOST ranks */
    const void *packets, *own;
    uint64_t stride;
    uint32_t rank;
    const slc_residue *server;      /* with bins, of any content */
    void *packet;                   /* receives the result */
    const sluice_step_words *words; /* or NULL */
} slc_compress_arrived;

/* Runs the server's step on whole chunks, scales included: on a GPU by a few launches for all. */
sluice_status slc_compress_server_many(sluice_stream *stream, uint32_t count, const slc_compress_arrived *chunks);

/* Replaces the sums by plain errors and the scales by 0. chunks: the number of ranks for a worker's residue, 1 for a
 * server's. */
sluice_status slc_compress_fold(sluice_stream *stream, const slc_compress_shape *shape, uint32_t chunks,
                                const slc_residue *residue);

/* The value of `skip` in the words of a tensor whose exchange has failed. */
enum { SLC_EXCHANGE_FAILED = 2 };

/* The arguments of slc_compress_look, which looks at all scales of a tensor's packets, one packet for each rank,
 * `stride` bytes apart, and says what is to be done with the tensor. *told becomes *words (factor 1 and no skip if
 * `words` is NULL). But if the words do not skip and a scale is not finite, the skip of *told is SLC_EXCHANGE_FAILED,
 * and *bad is lowered to `number`. told and bad may be NULL. The words at `cleared`, in the memory of the host or of
 * the device, become 0. */
typedef struct {
    const slc_compress_shape *shape;
    const void *packets;
    uint64_t stride;
    const sluice_step_words *words;
    sluice_step_words *told;
    uint32_t *bad, number;
    int64_t *cleared; /* [cleared_count] */
    uint32_t cleared_count;
} slc_compress_look_args;

sluice_status slc_compress_look(sluice_stream *stream, const slc_compress_look_args *args);
/* Looks at many tensors, on a GPU by one launch for many. */
sluice_status slc_compress_look_many(sluice_stream *stream, uint32_t count, const slc_compress_look_args *args);

/* The packets that an exchange gathered, and the elements of the tensor that a call works on: first..first+count-1,
 * with `first` a multiple of 16, and `count` too unless they end the tensor. */
typedef struct {
    const slc_compress_shape *shape;
    const void *packets; /* one for each chunk, `stride` bytes apart */
    uint64_t stride, first, count;
} slc_compress_results;

/* Adam's update with a variance that stays as it is:
 *   w -= lr wd w;  w -= lr / bias_correction1 * m / (sqrt(v) / sqrt(bias_correction2) + epsilon)
 * beta2 is ignored. The variance is that of the freeze, and so is its correction. */
typedef struct {
    uint64_t count;
    float *value;
    void *momentum; /* overwritten, rounded to its type; the update uses the rounded value */
    sluice_dtype momentum_dtype;
    const float *exp_avg_sq;
    void *rounded; /* receives the new values in bf16, or NULL */
    bool no_decay;
    bool mask; /* if exp_avg_sq is 0 the momentum becomes 0: that element never had a gradient, and m / epsilon would be
                  a wild step */
} slc_frozen_range;

/* Runs pass 2. range: the whole tensor (range->count is the shape's). *finite becomes false if a scale is not finite,
 * and is left alone otherwise; it may be NULL. In fp32 it moves 16.1 bytes for each element. Errors: ARGUMENT. */
sluice_status slc_compress_apply(sluice_stream *stream, const slc_adamw_settings *settings,
                                 const slc_compress_results *results, const slc_frozen_range *range, bool *finite);

/* Runs pass 2 on many tensors, on a GPU by one launch for many whose momenta have the same type. */
typedef struct {
    slc_adamw_settings settings;
    slc_compress_results results;
    slc_frozen_range range;
} slc_compress_update;
sluice_status slc_compress_apply_many(sluice_stream *stream, uint32_t count, const slc_compress_update *updates);

/* Does the same update without compression, on any range of elements, from the averaged gradient: m = beta1 m +
 * (1 - beta1) (gradient_factor * gradient). */
sluice_status slc_frozen_update(sluice_stream *stream, const slc_adamw_settings *settings, sluice_dtype gradient_dtype,
                                const void *gradient, const slc_frozen_range *range);
/* Does what slc_frozen_update does on many ranges, gradients[i] being those of ranges[i], on a GPU by one launch for
 * many. All gradients have one type, and so have all momenta. */
sluice_status slc_frozen_update_many(sluice_stream *stream, const slc_adamw_settings *settings, uint32_t count,
                                     sluice_dtype gradient_dtype, const void *const *gradients,
                                     const slc_frozen_range *ranges);

/* ---- Forms ---- */

/* The oracles, in float64; signs are +1 and -1. The first adds x (shape->count long, padded with zeros) to the errors
 * of one rank (N long, replaced by the new ones). sum: b; scale: ranks * slc_compress_scales. */
void slc_compress_worker_ref(const slc_compress_shape *shape, const double *x, double *error, double *sum,
                             double *scale);

/* sign[r] and scale[r] are from rank r, for this chunk only. error: the server's, C long. sum: a; result_scale: one
 * chunk's scales. */
void slc_compress_server_ref(const slc_compress_shape *shape, const double *const *sign, const double *const *scale,
                             double *error, double *sum, double *result_scale);
