/* See gemm_dnnl.h. The factor comes first; C is added before the residual. gemm_test.c covers this file. */
#define HASH_NONFATAL_OOM 1
#include "lib/kernels/gemm/gemm_dnnl.h"

#include "lib/base/log.h"
#include "lib/base/status.h"
#include "lib/kernels/gemm/gemm_rows.h"
#include "lib/kernels/isa.h"

#include <dnnl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#undef uthash_nonfatal_oom
#define uthash_nonfatal_oom(entry) ((entry)->key.threads = 0)

/* oneDNN runs on OpenMP's threads, and takes their number from the calling thread's setting. The symbols are weak
 * because an oneDNN built on another runtime brings no libgomp. */
extern void omp_set_num_threads(int threads) __attribute__((weak));
extern int omp_get_max_threads(void) __attribute__((weak));

typedef struct {
    slc_gemm_product product;
    uint32_t threads;
} gemm_key;

struct slc_gemm_primitive {
    gemm_key key;
    dnnl_primitive_desc_t description, pack_description; /* pack: from B as given to B as the product wants it */
    dnnl_primitive_t primitive, pack;
    uint64_t scratch_bytes, packed_bytes;
    slc_gemm_quality quality;
    const char *name; /* owned by oneDNN */
    bool panels; /* packed B has the layout of slc_gemm_rows_panels, which is several times faster than oneDNN's own
                    reorder */
    UT_hash_handle hh;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards all below; entries are never removed or changed */
static dnnl_engine_t engine;
static slc_gemm_primitive *entries;

static sluice_status failed(dnnl_status_t status, const slc_gemm_shape *s, const char *what)
{
    sluice_status code = status == dnnl_out_of_memory       ? SLUICE_ERR_MEMORY
                         : status == dnnl_unimplemented     ? SLUICE_ERR_UNSUPPORTED
                         : status == dnnl_invalid_arguments ? SLUICE_ERR_ARGUMENT
                                                            : SLUICE_ERR_SYSTEM;
    return slc_error(code, "kernel gemm %llu x %llu x %llu in %s: oneDNN failed to %s (status %d)",
                     (unsigned long long)s->m, (unsigned long long)s->n, (unsigned long long)s->k,
                     sluice_dtype_name(s->dtype), what, (int)status);
}

/* ---- Differences between oneDNN 2 and 3 ---- */

typedef dnnl_memory_desc_t matrix;
#if DNNL_VERSION_MAJOR >= 3
typedef const_dnnl_memory_desc_t matrix_view;
#define MATRIX(md) (md)
static dnnl_status_t matrix_init(matrix *md, dnnl_dims_t sizes, dnnl_data_type_t type, dnnl_dims_t strides)
{
    return dnnl_memory_desc_create_with_strides(md, 2, sizes, type, strides);
}
static dnnl_status_t matrix_init_tag(matrix *md, dnnl_dims_t sizes, dnnl_data_type_t type, dnnl_format_tag_t tag)
{
    return dnnl_memory_desc_create_with_tag(md, 2, sizes, type, tag);
}
static void matrix_fini(matrix *md)
{
    if (*md) dnnl_memory_desc_destroy(*md);
}
static dnnl_status_t append_sum(dnnl_post_ops_t ops)
{
    return dnnl_post_ops_append_sum(ops, 1.0f, 0, dnnl_data_type_undef);
}
static dnnl_status_t describe_matmul(dnnl_primitive_desc_t *out, const matrix md[4], bool bias,
                                     dnnl_primitive_attr_t attributes)
{
    return dnnl_matmul_primitive_desc_create(out, engine, md[0], md[1], bias ? md[2] : NULL, md[3], attributes);
}
#else
typedef const dnnl_memory_desc_t *matrix_view;
#define MATRIX(md) (&(md))
static dnnl_status_t matrix_init(matrix *md, dnnl_dims_t sizes, dnnl_data_type_t type, dnnl_dims_t strides)
{
    return dnnl_memory_desc_init_by_strides(md, 2, sizes, type, strides);
}
static dnnl_status_t matrix_init_tag(matrix *md, dnnl_dims_t sizes, dnnl_data_type_t type, dnnl_format_tag_t tag)
{
    return dnnl_memory_desc_init_by_tag(md, 2, sizes, type, tag);
}
static void matrix_fini(matrix *md)
{
    (void)md;
}
static dnnl_status_t append_sum(dnnl_post_ops_t ops)
{
    return dnnl_post_ops_append_sum(ops, 1.0f);
}
static dnnl_status_t describe_matmul(dnnl_primitive_desc_t *out, const matrix md[4], bool bias,
                                     dnnl_primitive_attr_t attributes)
{
    dnnl_matmul_desc_t matmul;
    dnnl_status_t status = dnnl_matmul_desc_init(&matmul, &md[0], &md[1], bias ? &md[2] : NULL, &md[3]);
    return status ? status : dnnl_primitive_desc_create(out, &matmul, attributes, engine, NULL);
}
#endif

/* ---- Matrices ---- */

enum { A, B, BIAS, C, MATRICES };

static dnnl_dim_t leading(uint64_t given, uint64_t dense)
{
    return (dnnl_dim_t)(given ? given : dense);
}
static dnnl_dim_t lda(const slc_gemm_shape *s)
{
    return leading(s->lda, s->transpose_a ? s->m : s->k);
}
static dnnl_dim_t ldb(const slc_gemm_shape *s)
{
    return leading(s->ldb, s->transpose_b ? s->k : s->n);
}
static dnnl_dim_t ldc(const slc_gemm_shape *s)
{
    return leading(s->ldc, s->n);
}

static dnnl_data_type_t type_of(sluice_dtype dtype)
{
    return dtype == SLUICE_BF16 ? dnnl_bf16 : dnnl_f32;
}

static dnnl_status_t matrices_init(const slc_gemm_shape *s, matrix md[MATRICES])
{
    dnnl_dim_t m = (dnnl_dim_t)s->m, n = (dnnl_dim_t)s->n, k = (dnnl_dim_t)s->k;
    dnnl_data_type_t in = type_of(s->dtype), types[MATRICES] = {in, in, in, type_of(s->out)};
    dnnl_dims_t sizes[MATRICES] = {{m, k}, {k, n}, {1, n}, {m, n}};
    dnnl_dims_t strides[MATRICES] = {{lda(s), 1}, {ldb(s), 1}, {n, 1}, {ldc(s), 1}};
    if (s->transpose_a) strides[A][0] = 1, strides[A][1] = lda(s);
    if (s->transpose_b) strides[B][0] = 1, strides[B][1] = ldb(s);
    memset(md, 0, MATRICES * sizeof *md);
    dnnl_status_t status = dnnl_success;
    for (int i = 0; i < MATRICES && !status; i++) status = matrix_init(&md[i], sizes[i], types[i], strides[i]);
    return status;
}

static void matrices_fini(matrix md[MATRICES])
{
    for (int i = 0; i < MATRICES; i++) matrix_fini(&md[i]);
}

/* ---- The primitives, one for each shape and thread count ---- */

/* The factor is an argument of each call, so that one primitive serves all factors. */
static dnnl_status_t factor_init(matrix *md)
{
    dnnl_dims_t sizes = {1, 1}, strides = {1, 1};
    return matrix_init(md, sizes, dnnl_f32, strides);
}

static dnnl_status_t append_factor(dnnl_post_ops_t ops)
{
    matrix md;
    dnnl_status_t status = factor_init(&md);
    if (status) return status;
    status = dnnl_post_ops_append_binary(ops, dnnl_binary_mul, MATRIX(md));
    matrix_fini(&md);
    return status;
}

static dnnl_status_t append_post_ops(const slc_gemm_shape *s, const matrix *c, dnnl_post_ops_t ops)
{
    dnnl_status_t status = s->factor ? append_factor(ops) : dnnl_success;
    if (!status && s->accumulate) status = append_sum(ops);
    if (!status && s->residual) status = dnnl_post_ops_append_binary(ops, dnnl_binary_add, MATRIX(*c));
    return status;
}

static dnnl_status_t attributes_create(const slc_gemm_shape *s, const matrix *c, dnnl_primitive_attr_t *out)
{
    dnnl_post_ops_t ops = NULL;
    *out = NULL;
    dnnl_status_t status = dnnl_primitive_attr_create(out);
    if (!status) status = dnnl_primitive_attr_set_scratchpad_mode(*out, dnnl_scratchpad_mode_user);
    if (!status) status = dnnl_post_ops_create(&ops);
    if (!status) status = append_post_ops(s, c, ops);
    if (!status) status = dnnl_primitive_attr_set_post_ops(*out, ops);
    if (ops) dnnl_post_ops_destroy(ops);
    return status;
}

static matrix_view view_of(const slc_gemm_primitive *p, dnnl_query_t what)
{
    return dnnl_primitive_desc_query_md(p->description, what, 0);
}

static dnnl_status_t product_create(slc_gemm_primitive *p, const matrix md[MATRICES])
{
    const slc_gemm_shape *s = &p->key.product.shape;
    dnnl_dims_t size = {(dnnl_dim_t)s->k, (dnnl_dim_t)s->n};
    matrix wanted[MATRICES], any;
    memcpy(wanted, md, sizeof wanted);
    dnnl_status_t status = matrix_init_tag(&any, size, type_of(s->dtype), dnnl_format_tag_any);
    if (status) return status;
    if (p->key.product.packed_b) wanted[B] = any;
    dnnl_primitive_attr_t attributes = NULL;
    status = attributes_create(s, &md[C], &attributes);
    if (!status) status = describe_matmul(&p->description, wanted, s->bias, attributes);
    if (!status) status = dnnl_primitive_create(&p->primitive, p->description);
    if (!status) p->scratch_bytes = dnnl_memory_desc_get_size(view_of(p, dnnl_query_scratchpad_md));
    if (attributes) dnnl_primitive_attr_destroy(attributes);
    matrix_fini(&any);
    return status;
}

static dnnl_status_t panels_find(slc_gemm_primitive *p, matrix_view packed)
{
    const slc_gemm_shape *s = &p->key.product.shape;
    dnnl_dims_t size = {(dnnl_dim_t)s->k, (dnnl_dim_t)s->n};
    matrix panels;
    if (s->dtype != SLUICE_FP32 || s->transpose_b) return dnnl_success;
    dnnl_status_t status = matrix_init_tag(&panels, size, dnnl_f32, dnnl_BA16a64b);
    if (status) return status;
    p->panels = dnnl_memory_desc_equal(packed, MATRIX(panels));
    matrix_fini(&panels);
    return dnnl_success;
}

static dnnl_status_t pack_create(slc_gemm_primitive *p, const matrix *b)
{
    matrix_view packed = view_of(p, dnnl_query_weights_md);
    dnnl_status_t status =
        dnnl_reorder_primitive_desc_create(&p->pack_description, MATRIX(*b), engine, packed, engine, NULL);
    if (!status) status = dnnl_primitive_create(&p->pack, p->pack_description);
    if (!status) p->packed_bytes = dnnl_memory_desc_get_size(packed);
    if (!status) status = panels_find(p, packed);
    return status;
}

static void name_find(slc_gemm_primitive *p)
{
    if (dnnl_primitive_desc_query(p->description, dnnl_query_impl_info_str, 0, (void *)&p->name)) p->name = "";
    p->quality = !strncmp(p->name, "brg", 3)                ? SLC_GEMM_BY_BRGEMM
                 : !*p->name || !strncmp(p->name, "ref", 3) ? SLC_GEMM_BY_LOOPS
                                                            : SLC_GEMM_BY_GEMM;
}

/* Holds oneDNN to the instruction set that SLUICE_KERNELS_ISA names, which it takes only before it is first used. */
static void limit_instructions(void)
{
    static const dnnl_cpu_isa_t limits[SLC_ISA_COUNT] = {
        [SLC_ISA_BASELINE] = dnnl_cpu_isa_sse41,
        [SLC_ISA_AVX2] = dnnl_cpu_isa_avx2,
        [SLC_ISA_AVX512] = dnnl_cpu_isa_avx512_core,
    };
    slc_isa isa;
    if (!slc_isa_is_set(&isa)) return;
    dnnl_status_t status = dnnl_set_max_cpu_isa(limits[isa]);
    if (status)
        slc_log(SLC_LOG_WARN,
                "SLUICE_KERNELS_ISA=%s does not bind oneDNN (status %d), which was used before or is built without "
                "this: give ONEDNN_MAX_CPU_ISA too",
                slc_isa_name(isa), (int)status);
}

static dnnl_status_t engine_create(void)
{
    limit_instructions();
    return dnnl_engine_create(&engine, dnnl_cpu, 0);
}

static dnnl_status_t create(slc_gemm_primitive *p)
{
    matrix md[MATRICES];
    dnnl_status_t status = engine ? dnnl_success : engine_create();
    if (!status) status = matrices_init(&p->key.product.shape, md);
    if (status) return status;
    status = product_create(p, md);
    if (!status && p->key.product.packed_b) status = pack_create(p, &md[B]);
    if (!status) name_find(p);
    matrices_fini(md);
    return status;
}

static void destroy(slc_gemm_primitive *p)
{
    if (p->pack) dnnl_primitive_destroy(p->pack);
    if (p->pack_description) dnnl_primitive_desc_destroy(p->pack_description);
    if (p->primitive) dnnl_primitive_destroy(p->primitive);
    if (p->description) dnnl_primitive_desc_destroy(p->description);
    free(p);
}

static gemm_key key_of(const slc_gemm_product *product, uint32_t threads)
{
    const slc_gemm_shape *s = &product->shape;
    gemm_key key;
    memset(&key, 0, sizeof key); /* padding is hashed too */
    key.product.packed_b = product->packed_b;
    key.product.shape.dtype = s->dtype, key.product.shape.out = s->out;
    key.product.shape.transpose_a = s->transpose_a, key.product.shape.transpose_b = s->transpose_b;
    key.product.shape.accumulate = s->accumulate;
    key.product.shape.bias = s->bias, key.product.shape.residual = s->residual;
    key.product.shape.factor = s->factor;
    key.product.shape.m = s->m, key.product.shape.n = s->n, key.product.shape.k = s->k;
    key.product.shape.lda = (uint64_t)lda(s), key.product.shape.ldb = (uint64_t)ldb(s),
    key.product.shape.ldc = (uint64_t)ldc(s);
    key.threads = threads;
    return key;
}

/* ---- Threads: oneDNN asks OpenMP for the calling thread's setting ---- */

static int threads_begin(uint32_t threads)
{
    int outside = omp_get_max_threads ? omp_get_max_threads() : 0;
    if (omp_set_num_threads) omp_set_num_threads((int)threads);
    return outside;
}

static void threads_end(int outside)
{
    if (omp_set_num_threads) omp_set_num_threads(outside);
}

static sluice_status no_memory(void)
{
    return slc_error(SLUICE_ERR_MEMORY, "kernel gemm: no memory for a primitive");
}

static sluice_status add(const gemm_key *key, slc_gemm_primitive **out)
{
    slc_gemm_primitive *p = calloc(1, sizeof *p);
    if (!p) return no_memory();
    p->key = *key;
    int outside = threads_begin(key->threads);
    dnnl_status_t status = create(p);
    threads_end(outside);
    if (status && status != dnnl_unimplemented) { /* a primitive that does not exist is remembered too */
        destroy(p);
        return failed(status, &key->product.shape, "make a primitive");
    }
    HASH_ADD(hh, entries, key, sizeof p->key, p);
    if (!p->key.threads) {
        destroy(p);
        return no_memory();
    }
    *out = p;
    return SLUICE_OK;
}

sluice_status slc_gemm_primitive_get(const slc_gemm_product *product, uint32_t threads, const slc_gemm_primitive **out)
{
    gemm_key key = key_of(product, threads);
    slc_gemm_primitive *found = NULL;
    sluice_status status = SLUICE_OK;
    pthread_mutex_lock(&lock);
    HASH_FIND(hh, entries, &key, sizeof key, found);
    if (!found) status = add(&key, &found);
    pthread_mutex_unlock(&lock);
    *out = found;
    return status;
}

slc_gemm_quality slc_gemm_primitive_quality(const slc_gemm_primitive *p)
{
    return p->quality;
}

const char *slc_gemm_primitive_name(const slc_gemm_primitive *p)
{
    return p->name ? p->name : "none";
}

uint64_t slc_gemm_primitive_scratch_bytes(const slc_gemm_primitive *p)
{
    return p->scratch_bytes;
}

uint64_t slc_gemm_primitive_packed_bytes(const slc_gemm_primitive *p)
{
    return p->packed_bytes;
}

/* ---- Running ---- */

enum { ARGUMENTS = MATRICES + 3 };

typedef struct {
    dnnl_exec_arg_t list[ARGUMENTS];
    int count;
} arguments;

static dnnl_status_t argument_add(arguments *args, int name, matrix_view md, const void *data)
{
    if (!data) return dnnl_success;
    args->list[args->count].arg = name;
    dnnl_status_t status = dnnl_memory_create(&args->list[args->count].memory, md, engine, (void *)(uintptr_t)data);
    if (!status) args->count++;
    return status;
}

/* Makes a stream for each call: oneDNN does not say that one may be used from several threads. */
static dnnl_status_t execute(dnnl_primitive_t primitive, arguments *args, uint32_t threads)
{
    dnnl_stream_t stream = NULL;
    int outside = threads_begin(threads);
    dnnl_status_t status = dnnl_stream_create(&stream, engine, dnnl_stream_default_flags);
    if (!status) status = dnnl_primitive_execute(primitive, stream, args->count, args->list);
    if (!status) status = dnnl_stream_wait(stream);
    if (stream) dnnl_stream_destroy(stream);
    threads_end(outside);
    return status;
}

static void arguments_fini(arguments *args)
{
    while (args->count > 0) dnnl_memory_destroy(args->list[--args->count].memory);
}

static dnnl_status_t factor_add(arguments *args, const float *factor)
{
    matrix md;
    dnnl_status_t status = factor_init(&md);
    if (status) return status;
    status = argument_add(args, DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1, MATRIX(md), factor);
    matrix_fini(&md);
    return status;
}

sluice_status slc_gemm_primitive_run(const slc_gemm_primitive *p, const slc_gemm_operands *x, void *scratch)
{
    arguments args = {.count = 0};
    matrix_view c = view_of(p, dnnl_query_dst_md);
    const slc_gemm_shape *s = &p->key.product.shape;
    const int residual = DNNL_ARG_ATTR_MULTIPLE_POST_OP((int)s->factor + (int)s->accumulate) | DNNL_ARG_SRC_1;
    dnnl_status_t status = argument_add(&args, DNNL_ARG_SRC, view_of(p, dnnl_query_src_md), x->a);
    if (!status) status = argument_add(&args, DNNL_ARG_WEIGHTS, view_of(p, dnnl_query_weights_md), x->b);
    if (!status && x->bias)
        status = argument_add(&args, DNNL_ARG_BIAS,
                              dnnl_primitive_desc_query_md(p->description, dnnl_query_weights_md, 1), x->bias);
    if (!status && s->factor) status = factor_add(&args, &x->factor);
    if (!status) status = argument_add(&args, residual, c, x->residual);
    if (!status) status = argument_add(&args, DNNL_ARG_DST, c, x->c);
    if (!status && p->scratch_bytes)
        status = argument_add(&args, DNNL_ARG_SCRATCHPAD, view_of(p, dnnl_query_scratchpad_md), scratch);
    if (!status) status = execute(p->primitive, &args, p->key.threads);
    arguments_fini(&args);
    return status ? failed(status, s, "run") : SLUICE_OK;
}

sluice_status slc_gemm_primitive_pack(const slc_gemm_primitive *p, const sluice_stream *stream, const void *b,
                                      void *packed)
{
    const slc_gemm_shape *s = &p->key.product.shape;
    if (p->panels) {
        slc_gemm_rows from = {.dtype = SLUICE_FP32, .data = b, .stride = s->ldb};
        slc_gemm_rows_panels(stream, s->k, s->n, from, packed);
        return SLUICE_OK;
    }
    arguments args = {.count = 0};
    matrix_view from = dnnl_primitive_desc_query_md(p->pack_description, dnnl_query_src_md, 0);
    dnnl_status_t status = argument_add(&args, DNNL_ARG_FROM, from, b);
    if (!status) status = argument_add(&args, DNNL_ARG_TO, view_of(p, dnnl_query_weights_md), packed);
    if (!status) status = execute(p->pack, &args, p->key.threads);
    arguments_fini(&args);
    return status ? failed(status, s, "pack B") : SLUICE_OK;
}
