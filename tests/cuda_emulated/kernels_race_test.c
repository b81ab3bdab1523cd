/* Every kernel of the GPU once with small sizes, as a training step would call them: work is queued without waiting, so
 * that the thread sanitizer sees what orders it, and twice on two streams with an event between them, so that results
 * must be equal to the bit. */
#include "lib/device/device.h"
#include "lib/kernels/adamw/adamw.h"
#include "lib/kernels/attention/attention.h"
#include "lib/kernels/compress/compress_group.h"
#include "lib/kernels/compress/flat.h"
#include "lib/kernels/convert/convert.h"
#include "lib/kernels/cross_entropy/cross_entropy.h"
#include "lib/kernels/embedding/embedding.h"
#include "lib/kernels/gelu/gelu.h"
#include "lib/kernels/lamb/lamb_numbers.h"
#include "lib/kernels/layer_norm/layer_norm.h"
#include "lib/kernels/norm/norm.h"
#include "lib/kernels/patches/patches.h"
#include "lib/kernels/pool/pool.h"
#include "lib/kernels/reduce/reduce.h"
#include "lib/kernels/residual/residual.h"
#include "lib/kernels/step_words/step_words.h"
#include "lib/kernels/zero_one/zero_one.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <emulated.h>
#include <stdio.h>
#include <string.h>

#define ok(call) assert_int_equal(call, SLUICE_OK)

enum {
    BATCH = 2,
    TOKENS = 37,
    HEADS = 2,
    CHANNELS = 40,
    ROWS = BATCH * TOKENS,
    COUNT = ROWS * CHANNELS,
    CLASSES = 300
};
enum { ARRAYS = 24, ARRAY_BYTES = ROWS * CLASSES * 4, WORKSPACE = 1 << 20 };

typedef struct {
    slc_device *device;
    slc_segment memory; /* ARRAYS arrays, then the workspace */
    slc_pinned host;
} setting;

static void *array(const setting *s, int number)
{
    return (char *)s->memory.base + (size_t)number * ARRAY_BYTES;
}

/* Fills every array with numbers between -1 and 1 of the type, and the first with tokens and the order of their places.
 */
static void fill(setting *s, sluice_stream *stream, sluice_dtype dtype)
{
    float *host = s->host.base;
    uint32_t state = 1, scratch[ROWS];
    for (size_t i = 0; i < s->host.bytes / sizeof *host; i++) {
        state = state * 1664525u + 1013904223u;
        host[i] = (float)(int32_t)state * 0x1p-31f;
    }
    for (size_t i = 0; dtype == SLUICE_BF16 && i < s->host.bytes / sizeof *host; i++)
        ((uint16_t *)host)[i] = sluice_bf16_from_float(host[i]);
    for (int i = 0; i < ROWS; i++) ((int32_t *)host)[i] = i * 7 % 11;
    slc_embedding_order(ROWS, (int32_t *)host, (uint32_t *)host + ROWS, scratch);
    ok(slc_copy(stream, s->memory.base, host, s->host.bytes));
}

static void queue_forward(setting *s, sluice_stream *stream, sluice_dtype dtype)
{
    const slc_dropout rule = {0.2f, 5, 9};
    const slc_attention_shape shape = {.dtype = dtype,
                                       .batch = BATCH,
                                       .tokens = TOKENS,
                                       .heads = HEADS,
                                       .head_size = CHANNELS / HEADS,
                                       .causal = true,
                                       .dropout = &rule};
    const slc_embedding_forward_args embedding = {.dtype = dtype,
                                                  .batch = BATCH,
                                                  .length = TOKENS,
                                                  .channels = CHANNELS,
                                                  .tokens = array(s, 0),
                                                  .tables = {.token = array(s, 1), .position = array(s, 2)},
                                                  .out = array(s, 3)};
    ok(slc_embedding_forward(stream, &embedding));
    const slc_layer_norm_forward_args norm = {.dtype = dtype,
                                              .rows = ROWS,
                                              .channels = CHANNELS,
                                              .epsilon = 1e-5,
                                              .x = array(s, 3),
                                              .gamma = array(s, 6),
                                              .beta = array(s, 7),
                                              .residual = array(s, 4),
                                              .sum = array(s, 5),
                                              .y = array(s, 8),
                                              .mean = array(s, 9),
                                              .rstd = array(s, 10)};
    ok(slc_layer_norm_forward(stream, &norm));
    const slc_attention_forward_args attention = {.shape = shape,
                                                  .q = array(s, 8),
                                                  .k = array(s, 3),
                                                  .v = array(s, 5),
                                                  .out = array(s, 11),
                                                  .logsumexp = array(s, 12)};
    ok(slc_attention_forward(stream, &attention));
    const slc_residual_forward_args residual = {.dtype = dtype,
                                                .rows = ROWS,
                                                .channels = CHANNELS,
                                                .x = array(s, 11),
                                                .bias = array(s, 7),
                                                .scale = array(s, 6),
                                                .dropout = &rule,
                                                .residual = array(s, 5),
                                                .out = array(s, 13)};
    ok(slc_residual_forward(stream, &residual));
    ok(slc_gelu_forward(stream, SLC_GELU_TANH, dtype, COUNT, array(s, 13), array(s, 14)));
    const slc_pool_args pool = {.dtype = dtype,
                                .kind = SLC_POOL_MEAN_OF_REST,
                                .batch = BATCH,
                                .tokens = TOKENS,
                                .channels = CHANNELS,
                                .from = array(s, 14),
                                .to = array(s, 15)};
    ok(slc_pool_forward(stream, &pool));
    const slc_attention_backward_args slopes = {.shape = shape,
                                                .q = array(s, 8),
                                                .k = array(s, 3),
                                                .v = array(s, 5),
                                                .out = array(s, 11),
                                                .dout = array(s, 14),
                                                .logsumexp = array(s, 12),
                                                .dq = array(s, 16),
                                                .dk = array(s, 17),
                                                .dv = array(s, 18),
                                                .workspace = array(s, ARRAYS)};
    ok(slc_attention_backward(stream, &slopes));
}

static void queue_backward(setting *s, sluice_stream *stream, sluice_dtype dtype)
{
    const void *sources[] = {array(s, 16), array(s, 17)};
    void *destination = array(s, 18);
    void *workspace = array(s, ARRAYS);
    const slc_layer_norm_backward_args norm = {.dtype = dtype,
                                               .gradient = dtype,
                                               .rows = ROWS,
                                               .channels = CHANNELS,
                                               .dy = array(s, 16),
                                               .x = array(s, 5),
                                               .gamma = array(s, 6),
                                               .mean = array(s, 9),
                                               .rstd = array(s, 10),
                                               .dx_add = array(s, 18),
                                               .dx = array(s, 19),
                                               .dgamma = array(s, 20),
                                               .dbeta = array(s, 21),
                                               .workspace = workspace};
    ok(slc_layer_norm_backward(stream, &norm));
    const slc_bias_backward_args bias = {.dtype = dtype,
                                         .gradient = dtype,
                                         .rows = ROWS,
                                         .columns = CHANNELS,
                                         .dy = array(s, 19),
                                         .dbias = array(s, 7),
                                         .workspace = workspace};
    ok(slc_bias_backward(stream, &bias));
    const slc_embedding_backward_args embedding = {
        .dtype = dtype,
        .gradient = dtype,
        .batch = BATCH,
        .length = TOKENS,
        .channels = CHANNELS,
        .tokens = array(s, 0),
        .dout = array(s, 19),
        .gradients = {.token = array(s, 1), .position = array(s, 2), .token_order = (uint32_t *)array(s, 0) + ROWS}};
    ok(slc_embedding_backward(stream, &embedding));
    const slc_reduce_args reduction = {.count = COUNT,
                                       .from = dtype,
                                       .to = dtype,
                                       .sources = sources,
                                       .source_count = 2,
                                       .destination_count = 1,
                                       .destinations = &destination,
                                       .scale = 0.5f};
    ok(slc_reduce(stream, &reduction));
    ok(slc_fill_zero(stream, array(s, 22), SLC_NORM_BINS * sizeof(int64_t)));
    ok(slc_norm_add(stream, dtype, COUNT, array(s, 18), array(s, 22)));
    ok(slc_convert(stream, SLUICE_FP32, array(s, 9), SLUICE_BF16, array(s, 10), ROWS));
    const slc_cross_entropy_args entropy = {.gradient = dtype,
                                            .rows = ROWS,
                                            .classes = CLASSES,
                                            .stride = CLASSES,
                                            .logits = array(s, 4),
                                            .targets = array(s, 0),
                                            .smoothing = 0.1f,
                                            .gradient_scale = 0.1f,
                                            .losses = array(s, 12)};
    ok(slc_cross_entropy(stream, &entropy));
    const slc_patch_embedding_forward_args patches = {.dtype = dtype,
                                                      .batch = BATCH,
                                                      .patches = TOKENS - 1,
                                                      .channels = CHANNELS,
                                                      .x = array(s, 19),
                                                      .cls = array(s, 6),
                                                      .position = array(s, 13),
                                                      .out = array(s, 14)};
    const slc_patch_embedding_backward_args slopes = {.dtype = dtype,
                                                      .gradient = dtype,
                                                      .batch = BATCH,
                                                      .patches = TOKENS - 1,
                                                      .channels = CHANNELS,
                                                      .dout = array(s, 14),
                                                      .dx = array(s, 16),
                                                      .dcls = array(s, 17),
                                                      .dposition = array(s, 20),
                                                      .fresh = true};
    ok(slc_patch_embedding_forward(stream, &patches));
    ok(slc_patch_embedding_backward(stream, &slopes));
}

/* A step's end: the gradient in array 18 is inspected and measured, and both optimizers do what the words say. */
static void queue_updates(setting *s, sluice_stream *stream, sluice_dtype dtype)
{
    char *memory = array(s, 22);
    slc_step_words *words = (slc_step_words *)(memory + 1024);
    int64_t(*bins)[SLC_NORM_BINS] = (int64_t(*)[SLC_NORM_BINS])(memory + 4096);
    double *norms = (double *)(memory + 8192);
    const double *given = norms;
    float *state = array(s, 23);
    const slc_adamw_settings adam = {.learning_rate = 1e-3,
                                     .beta1 = 0.9,
                                     .beta2 = 0.95,
                                     .epsilon = 1e-8,
                                     .weight_decay = 0.1,
                                     .gradient_factor = 1,
                                     .bias_correction1 = 0.1,
                                     .bias_correction2 = 0.05,
                                     .words = &words->told};
    const slc_adamw_range range = {.count = COUNT,
                                   .gradient_dtype = dtype,
                                   .gradient = array(s, 18),
                                   .value = state,
                                   .exp_avg = state + COUNT,
                                   .exp_avg_sq = state + 2 * COUNT};
    const slc_lamb_bins measured = {bins[0], bins[1]};
    ok(slc_fill_zero(stream, state, ARRAY_BYTES));
    ok(slc_step_words_begin(stream, words, 2, bins));
    const slc_step_words_range looked_at[] = {{COUNT, range.gradient, 4}, {COUNT / 2, range.gradient, 5}};
    ok(slc_step_words_inspect(
        stream, &(slc_step_words_inspect_args){
                    .words = words, .dtype = dtype, .norm = true, .range_count = 2, .ranges = looked_at}));
    ok(slc_lamb_measure(stream, &adam, 1, &range, &measured));
    const slc_step_words_agree_args agreement = {.words = words,
                                                 .clip = 0.5,
                                                 .skip_non_finite = true,
                                                 .norm_count = 2,
                                                 .norms_each = 2,
                                                 .norm_bins = (const int64_t(*)[SLC_NORM_BINS])bins,
                                                 .norms = norms};
    ok(slc_step_words_agree(stream, &agreement));
    ok(slc_adamw_many(stream, &adam, 1, &range));
    ok(slc_lamb_apply_measured(stream, &adam, 1, &range, &given, &(slc_lamb_bounds){0, 10, 0, 100}));
}

/* An exchange of two ranks of which this one has all packets, and the updates of the compressed optimizers. */
static void queue_exchange(setting *s, sluice_stream *stream, sluice_dtype dtype)
{
    const slc_compress_shape shape = {COUNT, 0, 2};
    const uint64_t stride = slc_compress_stride(&shape);
    float *state = array(s, 23), *value = state, *momentum = value + COUNT, *variance = momentum + COUNT,
          *fresh = variance + COUNT, *moved = fresh + COUNT, *kept = moved + COUNT;
    slc_compress_room *rooms = array(s, 22);
    const slc_residue worker = {array(s, 15), array(s, 12), rooms[0].bins[0]};
    const slc_residue server = {(float *)array(s, 15) + 2 * COUNT, (float *)array(s, 12) + 16, rooms[1].bins[0]};
    char *packets = array(s, 3), *results = array(s, 4);
    const slc_compress_input input = {.gradient_dtype = dtype,
                                      .momentum_dtype = SLUICE_FP32,
                                      .gradient = array(s, 18),
                                      .momentum = momentum,
                                      .gradient_factor = 1,
                                      .factor = 0.9,
                                      .rest = 0.1,
                                      .moves = {.exp_avg_sq = variance, .rescale = 1, .epsilon = 1e-8}};
    uint32_t *bad = array(s, 13);
    slc_lamb_numbers *numbers = array(s, 14);
    const sluice_step_words *told = &rooms[0].told;
    slc_adamw_settings adam = slc_adamw_usual_settings();
    ok(slc_fill_zero(stream, state, ARRAY_BYTES));
    ok(slc_fill_zero(stream, array(s, 15), ARRAY_BYTES));
    ok(slc_fill_zero(stream, array(s, 12), ARRAY_BYTES));
    ok(slc_fill_zero(stream, numbers, sizeof *numbers));
    ok(slc_fill_zero(stream, rooms, 2 * sizeof *rooms));
    ok(slc_flat_write(stream, COUNT, &input, moved));
    ok(slc_compress_worker(stream, &shape, &input, &worker, packets, stride));
    for (int chunk = 0; chunk < 2; chunk++) {
        const void *from[] = {packets + chunk * stride, packets + chunk * stride};
        const slc_compress_served served = {&shape, from, &server, server.bins, results + chunk * stride, NULL};
        ok(slc_fill_zero(stream, server.bins, SLC_NORM_BINS * sizeof(int64_t)));
        ok(slc_compress_server(stream, &served, 0, slc_compress_chunk(&shape)));
        ok(slc_compress_server_end(stream, &served));
    }
    ok(slc_compress_look(stream, &(slc_compress_look_args){&shape, results, stride, NULL, &rooms[0].told, bad, 3,
                                                           rooms[0].bins[0], SLC_NORM_BINS}));
    adam.words = told;
    const slc_compress_results whole = {.shape = &shape, .packets = results, .stride = stride, .count = COUNT};
    const slc_frozen_range frozen = {
        .count = COUNT, .value = value, .momentum = momentum, .momentum_dtype = SLUICE_FP32, .exp_avg_sq = variance};
    slc_zero_one_range range = {.count = COUNT,
                                .value = value,
                                .exp_avg = momentum,
                                .exp_avg_sq = variance,
                                .accumulator = moved,
                                .kept = kept,
                                .begins = true,
                                .bad = bad};
    ok(slc_compress_apply(stream, &adam, &whole, &frozen, NULL));
    ok(slc_frozen_update(stream, &adam, dtype, array(s, 18), &frozen));
    ok(slc_zero_one_gradient(stream, &adam, &whole, &range, NULL));
    ok(slc_zero_one_local(stream, &adam, dtype, array(s, 18), &range));
    range.begins = false, range.clears = true;
    ok(slc_zero_one_exchanged(stream, &adam, -1, 1, &whole, &range, NULL));
    const slc_frozen_lamb_settings lamb = {.adam = adam, .fresh_correction = 1};
    const slc_frozen_lamb_range all = {.count = COUNT,
                                       .value = value,
                                       .momentum = momentum,
                                       .fresh = fresh,
                                       .exp_avg_sq = variance,
                                       .fresh_last = fresh};
    const slc_lamb_rules rules = {.trust = {0, 10, 0.1, 10}, .beta = 0.9, .least = 0.5, .most = 4, .threshold = 0.1};
    const slc_lamb_parameter parameter = {.numbers = numbers,
                                          .sums = {rooms[0].bins[0], rooms[0].bins[1], &rooms[0].most},
                                          .product = &rooms[0].product,
                                          .words = told};
    ok(slc_frozen_lamb_receive(stream, &lamb, &whole, 1.5, &all, &parameter.sums));
    ok(slc_lamb_factor(stream, &rules, 1, &parameter));
    ok(slc_frozen_lamb_move(stream, &lamb, &all, parameter.product));
    ok(slc_frozen_lamb_measure(stream, &lamb, dtype, array(s, 18), &all, &parameter.sums));
    ok(slc_frozen_lamb_update(stream, &lamb, dtype, array(s, 18), &all, parameter.product));
    ok(slc_flat_read(stream, &whole, told, moved));
    ok(slc_compress_fold(stream, &shape, 2, &worker));
}

static void kernels_are_ordered_and_repeat(void **state)
{
    (void)state;
    setting s;
    sluice_stream streams[2];
    slc_event event;
    slc_pinned first;
    const size_t bytes = (size_t)ARRAYS * ARRAY_BYTES;
    ok(slc_device_open("cuda", &s.device));
    ok(slc_segment_create(s.device, bytes + WORKSPACE, &s.memory));
    ok(slc_pinned_create(s.device, bytes, &s.host));
    ok(slc_pinned_create(s.device, bytes, &first));
    ok(slc_event_create(s.device, &event));
    for (int i = 0; i < 2; i++) ok(slc_stream_create(s.device, 1, &streams[i]));
    for (sluice_dtype dtype = SLUICE_FP32; dtype <= SLUICE_BF16; dtype++)
        for (int round = 0; round < 2; round++) {
            fill(&s, &streams[0], dtype);
            const emulated_counts before = emulated_count();
            queue_forward(&s, &streams[0], dtype);
            ok(slc_event_record(&streams[0], &event));
            ok(slc_stream_wait_event(&streams[1], &event));
            queue_backward(&s, &streams[1], dtype);
            queue_updates(&s, &streams[1], dtype);
            queue_exchange(&s, &streams[1], dtype);
            const emulated_counts after = emulated_count();
            assert_int_equal(after.waits, before.waits);
            assert_int_equal(after.allocations, before.allocations);
            ok(slc_copy(&streams[1], round ? s.host.base : first.base, s.memory.base, bytes));
            ok(slc_stream_synchronize(&streams[1]));
            if (round) assert_memory_equal(s.host.base, first.base, bytes);
        }
    for (int i = 0; i < 2; i++) slc_stream_destroy(&streams[i]);
    slc_event_destroy(&event);
    slc_pinned_destroy(&first);
    slc_pinned_destroy(&s.host);
    slc_segment_destroy(&s.memory);
    slc_device_close(s.device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(kernels_are_ordered_and_repeat)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
