/* See gemm_tiles.h. The numbers below were measured: oneDNN 2.6, one AVX-512 core, GPT-2's shapes (`sluice-lab
 * gemm`). gemm_test.c covers this file. */
#include "lib/kernels/gemm/gemm_tiles.h"

#include "lib/base/integer.h"
#include "lib/base/status.h"
#include "lib/kernels/gemm/gemm_few.h"
#include "lib/kernels/gemm/gemm_rows.h"

#include <string.h>

enum {
    ALIAS = 4096 / 4, /* fp32 rows of B this many elements apart fall into the same cache sets */
    DEEP = 2048,      /* from this many rows of B, reading them in place is slower than packing */
    REUSED = 256,     /* from this many rows of A, packing B pays */
    A_BYTES = 4 << 20,
    B_BYTES = 16 << 20,
    C_BYTES = 4 << 20,
    LEAST = 64, /* least rows of a tile */
    PROBE = 64  /* size of a product that shows what oneDNN has */
};

static uint32_t threads_of(const sluice_stream *stream)
{
#if defined(_OPENMP)
    return stream->threads ? stream->threads : 1;
#else
    (void)stream;
    return 1;
#endif
}

/* ---- Choosing the copies ---- */

/* Tells how good oneDNN is at dense products of these types. */
static sluice_status probe(sluice_dtype dtype, sluice_dtype out, uint32_t threads, slc_gemm_quality *quality)
{
    const slc_gemm_product product = {.shape = {.dtype = dtype, .out = out, .m = PROBE, .n = PROBE, .k = PROBE}};
    const slc_gemm_primitive *primitive = NULL;
    sluice_status status = slc_gemm_primitive_get(&product, threads, &primitive);
    if (!status) *quality = slc_gemm_primitive_quality(primitive);
    return status;
}

sluice_status slc_gemm_path(sluice_dtype dtype, bool *widened, bool *allocates, const char **name)
{
    slc_gemm_product product = {.shape = {.dtype = dtype, .out = dtype, .m = PROBE, .n = PROBE, .k = PROBE}};
    const slc_gemm_primitive *primitive = NULL;
    sluice_status status = slc_gemm_primitive_get(&product, 1, &primitive);
    if (status) return status;
    *widened = dtype == SLUICE_BF16 && slc_gemm_primitive_quality(primitive) < SLC_GEMM_BY_BRGEMM;
    if (*widened) {
        product.shape.dtype = product.shape.out = SLUICE_FP32;
        status = slc_gemm_primitive_get(&product, 1, &primitive);
    }
    if (status) return status;
    *allocates = slc_gemm_primitive_quality(primitive) < SLC_GEMM_BY_BRGEMM;
    *name = slc_gemm_primitive_name(primitive);
    return SLUICE_OK;
}

static bool b_hurts(const slc_gemm_shape *s)
{
    return s->dtype == SLUICE_FP32 && !s->transpose_b && s->m >= REUSED && s->n >= SLC_GEMM_PANEL &&
           (s->ldb % ALIAS == 0 || s->k >= DEEP);
}

static sluice_status in_place(const slc_gemm_route *r, slc_gemm_quality enough, bool *yes)
{
    const slc_gemm_product product = {.shape = r->shape};
    const slc_gemm_primitive *primitive = NULL;
    sluice_status status = slc_gemm_primitive_get(&product, r->threads, &primitive);
    *yes = !status && slc_gemm_primitive_quality(primitive) >= enough;
    return status;
}

static sluice_status choose_copies(slc_gemm_route *r)
{
    const slc_gemm_shape *s = &r->shape;
    slc_gemm_quality quality = SLC_GEMM_BY_NONE;
    bool direct = false;
    sluice_status status = probe(s->dtype, s->out, r->threads, &quality);
    if (status) return status;
    r->widen = s->dtype == SLUICE_BF16 && quality < SLC_GEMM_BY_BRGEMM;
    bool dense = quality == SLC_GEMM_BY_BRGEMM && !r->widen;
    r->pack_b = dense && b_hurts(s);
    if (!r->widen && !r->pack_b) status = in_place(r, quality, &direct);
    if (status || direct) return status;
    r->copy_a = r->widen || (dense && s->lda > (s->transpose_a ? s->m : s->k));
    r->pack_b |= dense && s->ldb > (s->transpose_b ? s->k : s->n);
    r->copy_c = r->widen || (dense && s->ldc > s->n) || (!r->copy_a && !r->pack_b);
    r->copy_c |= s->m == 1 || s->n == 1; /* their layouts are ambiguous: oneDNN refuses them with post-ops */
    return SLUICE_OK;
}

/* ---- Tiles ---- */

static uint64_t even(uint64_t whole, uint64_t tile, uint64_t unit)
{
    uint64_t count = (whole + tile - 1) / tile, each = (whole + count - 1) / count;
    return slc_least(whole, slc_round_up(each, unit));
}

/* Chooses how long the pieces of k are. Operands used in place must have whole rows, so if k is cut A and B are copied
 * unless k is their rows. */
static void choose_depth(slc_gemm_route *r)
{
    const slc_gemm_shape *s = &r->shape;
    const uint64_t width = sluice_dtype_bytes(s->dtype);
    r->k = s->k;
    if (r->pack_b) r->k = slc_least(r->k, slc_most(LEAST, B_BYTES / (s->n * width)));
    if (r->copy_a || (r->k < s->k && !s->transpose_a)) r->k = slc_least(r->k, DEEP);
    r->k = even(s->k, r->k, LEAST);
    if (r->k == s->k) return;
    r->copy_a |= !s->transpose_a;
    r->pack_b |= s->transpose_b;
    r->copy_c |= s->out == SLUICE_BF16 || s->factor; /* the sum of all pieces gets the factor */
}

static void choose_tiles(slc_gemm_route *r)
{
    const slc_gemm_shape *s = &r->shape;
    const uint64_t width = sluice_dtype_bytes(s->dtype);
    r->m = s->m, r->n = s->n;
    if (r->widen) {
        r->m = even(s->m, 512, LEAST), r->n = even(s->n, 1024, LEAST), r->k = even(s->k, 1024, LEAST);
        return;
    }
    choose_depth(r);
    if (r->copy_a) r->m = slc_least(r->m, slc_most(LEAST, A_BYTES / (r->k * width)));
    if (r->copy_c) r->m = slc_least(r->m, slc_most(LEAST, C_BYTES / (r->n * sizeof(float))));
    r->m = even(s->m, r->m, LEAST);
    r->pack_b |= r->m < s->m && r->k == s->k;
}

/* One product: its place and size. */
typedef struct {
    uint64_t m0, n0, k0, m, n, k;
    slc_gemm_product product;
    const slc_gemm_primitive *primitive;
} tile;

static slc_gemm_product product_of(const slc_gemm_route *r, const tile *t)
{
    const slc_gemm_shape *s = &r->shape;
    const bool first = t->k0 == 0, last = t->k0 + t->k == s->k;
    slc_gemm_product product = {.shape = *s, .packed_b = r->pack_b};
    slc_gemm_shape *x = &product.shape;
    if (r->widen) x->dtype = SLUICE_FP32, x->ldb = 0;
    if (r->copy_a) x->lda = 0;
    if (r->copy_c) x->out = SLUICE_FP32, x->ldc = 0;
    x->accumulate = !first || (s->accumulate && !r->copy_c);
    x->residual = last && s->residual && !r->copy_c;
    x->bias = last && s->bias;
    x->factor = s->factor && !r->copy_c;
    x->m = t->m, x->n = t->n, x->k = t->k;
    return product;
}

static sluice_status tile_begin(const slc_gemm_route *r, tile *t)
{
    const slc_gemm_shape *s = &r->shape;
    t->m = slc_least(r->m, s->m - t->m0), t->n = slc_least(r->n, s->n - t->n0), t->k = slc_least(r->k, s->k - t->k0);
    t->product = product_of(r, t);
    sluice_status status = slc_gemm_primitive_get(&t->product, r->threads, &t->primitive);
    if (!status && slc_gemm_primitive_quality(t->primitive) == SLC_GEMM_BY_NONE)
        status = slc_error(SLUICE_ERR_UNSUPPORTED, "kernel gemm: oneDNN has no product of %s for this processor",
                           sluice_dtype_name(s->dtype));
    return status;
}

typedef sluice_status tile_visit(const slc_gemm_route *route, const tile *t, void *context);

/* Visits tiles by n, then m, then k, so that a tile of C is summed without interruption, and B stays packed if k is
 * whole. */
static sluice_status each_tile(const slc_gemm_route *r, tile_visit *visit, void *context)
{
    sluice_status status = SLUICE_OK;
    tile t = {.m0 = 0};
    for (t.n0 = 0; t.n0 < r->shape.n; t.n0 += r->n)
        for (t.m0 = 0; t.m0 < r->shape.m; t.m0 += r->m)
            for (t.k0 = 0; t.k0 < r->shape.k; t.k0 += r->k) {
                status = tile_begin(r, &t);
                if (!status) status = visit(r, &t, context);
                if (status) return status;
            }
    return status;
}

/* ---- The workspace ---- */

typedef struct {
    uint64_t packed, scratch;
} needs;

static sluice_status need_of(const slc_gemm_route *r, const tile *t, void *context)
{
    needs *need = context;
    need->scratch = slc_most(need->scratch, slc_gemm_primitive_scratch_bytes(t->primitive));
    if (r->pack_b) need->packed = slc_most(need->packed, slc_gemm_primitive_packed_bytes(t->primitive));
    return SLUICE_OK;
}

static uint64_t place(uint64_t *end, bool wanted, uint64_t bytes)
{
    uint64_t at = *end;
    if (wanted) *end += (bytes + 63) / 64 * 64;
    return at;
}

sluice_status slc_gemm_route_find(const sluice_stream *stream, const slc_gemm_shape *shape, slc_gemm_route *r)
{
    needs need = {0, 0};
    memset(r, 0, sizeof *r);
    r->stream = stream, r->shape = *shape, r->threads = threads_of(stream);
    slc_gemm_shape *s = &r->shape;
    if (!s->lda) s->lda = s->transpose_a ? s->m : s->k;
    if (!s->ldb) s->ldb = s->transpose_b ? s->k : s->n;
    if (!s->ldc) s->ldc = s->n;
    if ((r->few = slc_gemm_few_takes(s))) {
        r->bytes = slc_gemm_few_bytes(s);
        return SLUICE_OK;
    }
    sluice_status status = choose_copies(r);
    if (status) return status;
    choose_tiles(r);
    status = each_tile(r, need_of, &need);
    if (status) return status;

    const uint64_t width = r->widen ? sizeof(float) : sluice_dtype_bytes(s->dtype);
    r->a_at = place(&r->bytes, r->copy_a, r->m * r->k * width);
    r->b_at = place(&r->bytes, r->widen || r->pack_b, r->widen ? r->k * r->n * width : need.packed);
    r->c_at = place(&r->bytes, r->copy_c, r->m * r->n * sizeof(float));
    r->bias_at = place(&r->bytes, r->widen && s->bias, r->n * sizeof(float));
    r->scratch_at = place(&r->bytes, true, need.scratch);
    return SLUICE_OK;
}

/* ---- Running ---- */

typedef struct {
    const slc_gemm_operands *operands;
    char *workspace;
    const slc_gemm_primitive *packed_by; /* the primitive whose B tile is in the workspace, and that tile's place */
    uint64_t packed_n0, packed_k0;
} run;

static const char *element(const void *x, sluice_dtype dtype, uint64_t at)
{
    return x ? (const char *)x + at * sluice_dtype_bytes(dtype) : NULL;
}

/* Copies size[0] rows from row at[0] and size[1] columns from column at[1] of a stored matrix, dense, in the product's
 * type. */
static void copy_stored(const slc_gemm_route *r, const void *data, uint64_t stride, const uint64_t at[2],
                        const uint64_t size[2], void *to)
{
    const sluice_dtype dtype = r->shape.dtype;
    slc_gemm_rows from = {.dtype = dtype, .data = element(data, dtype, at[0] * stride + at[1]), .stride = stride};
    slc_gemm_rows_copy(r->stream, size[0], size[1], from, r->widen ? SLUICE_FP32 : dtype, to);
}

static const void *prepare_a(const slc_gemm_route *r, const tile *t, const run *x)
{
    const slc_gemm_shape *s = &r->shape;
    const bool turned = s->transpose_a;
    const uint64_t at[] = {turned ? t->k0 : t->m0, turned ? t->m0 : t->k0};
    const uint64_t size[] = {turned ? t->k : t->m, turned ? t->m : t->k};
    if (!r->copy_a) return element(x->operands->a, s->dtype, at[0] * s->lda + at[1]);
    copy_stored(r, x->operands->a, s->lda, at, size, x->workspace + r->a_at);
    return x->workspace + r->a_at;
}

static sluice_status prepare_b(const slc_gemm_route *r, const tile *t, run *x, const void **b)
{
    const slc_gemm_shape *s = &r->shape;
    const bool turned = s->transpose_b;
    const uint64_t at[] = {turned ? t->n0 : t->k0, turned ? t->k0 : t->n0};
    const uint64_t size[] = {turned ? t->n : t->k, turned ? t->k : t->n};
    void *to = x->workspace + r->b_at;
    *b = r->widen || r->pack_b ? to : element(x->operands->b, s->dtype, at[0] * s->ldb + at[1]);
    if (x->packed_by == t->primitive && x->packed_n0 == t->n0 && x->packed_k0 == t->k0) return SLUICE_OK;
    x->packed_by = t->primitive, x->packed_n0 = t->n0, x->packed_k0 = t->k0;
    if (r->widen) copy_stored(r, x->operands->b, s->ldb, at, size, to);
    if (!r->pack_b) return SLUICE_OK;
    return slc_gemm_primitive_pack(t->primitive, r->stream, element(x->operands->b, s->dtype, at[0] * s->ldb + at[1]),
                                   to);
}

static const void *prepare_bias(const slc_gemm_route *r, const tile *t, const run *x)
{
    if (!t->product.shape.bias) return NULL;
    if (!r->widen) return element(x->operands->bias, r->shape.dtype, t->n0);
    copy_stored(r, x->operands->bias, 0, (const uint64_t[]){0, t->n0}, (const uint64_t[]){1, t->n},
                x->workspace + r->bias_at);
    return x->workspace + r->bias_at;
}

static sluice_status run_tile(const slc_gemm_route *r, const tile *t, void *context)
{
    const slc_gemm_shape *s = &r->shape;
    run *x = context;
    const uint64_t at = t->m0 * s->ldc + t->n0;
    const void *residual = element(x->operands->residual, s->out, at);
    void *c = (char *)x->operands->c + at * sluice_dtype_bytes(s->out), *sum = x->workspace + r->c_at;
    slc_gemm_operands operands = {
        .a = prepare_a(r, t, x), .bias = prepare_bias(r, t, x), .factor = x->operands->factor};
    sluice_status status = prepare_b(r, t, x, &operands.b);
    operands.c = r->copy_c ? sum : c;
    if (t->product.shape.residual) operands.residual = residual;
    if (!status) status = slc_gemm_primitive_run(t->primitive, &operands, x->workspace + r->scratch_at);
    const slc_gemm_finish finish = {.rows = t->m,
                                    .columns = t->n,
                                    .tile = sum,
                                    .residual = residual,
                                    .c = c,
                                    .stride = s->ldc,
                                    .dtype = s->out,
                                    .factor = s->factor ? x->operands->factor : 1,
                                    .accumulate = s->accumulate};
    if (!status && r->copy_c && t->k0 + t->k == s->k) slc_gemm_rows_finish(r->stream, &finish);
    return status;
}

sluice_status slc_gemm_route_run(const slc_gemm_route *route, const slc_gemm_operands *operands, void *workspace)
{
    run x = {.operands = operands, .workspace = workspace};
    if (route->few) {
        slc_gemm_few(route->stream, &route->shape, operands, workspace);
        return SLUICE_OK;
    }
    return each_tile(route, run_tile, &x);
}
