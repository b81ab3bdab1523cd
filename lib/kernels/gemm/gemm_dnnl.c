/* GEMM by oneDNN. Products with B transposed run as matmul primitives, made once a shape and kept, with the caller's
 * workspace as their scratchpad. The others go through dnnl_sgemm: on GPT-2's shapes (one AVX-512 core, oneDNN 2.6) it
 * is 3 to 90 % faster than the primitive, which reads B's rows where they lie and suffers when their stride is a
 * multiple of 4 KiB. Its price is a packing buffer of its own, 1 to 6 MiB for those shapes, outside the workspace. */
#include "lib/kernels/gemm/gemm.h"

#include "lib/base/status.h"
#include "lib/kernels/host.h"

#include <dnnl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

/* oneDNN's threads are OpenMP's, and their number is the calling thread's setting. Weak: an oneDNN that was built on
 * another runtime brings no libgomp. */
extern void omp_set_num_threads(int threads) __attribute__((weak));
extern int omp_get_max_threads(void) __attribute__((weak));

typedef struct {
    slc_gemm_shape shape;
    uint32_t threads;
} gemm_key;

typedef struct {
    gemm_key key;
    dnnl_primitive_desc_t description;
    dnnl_primitive_t primitive;
    uint64_t scratch_bytes;
    UT_hash_handle hh;
} gemm_entry;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all below; entries are never removed or changed */
static dnnl_engine_t engine;
static gemm_entry *entries;

static sluice_status failed(dnnl_status_t status, const slc_gemm_shape *s, const char *what)
{
    sluice_status code = status == dnnl_out_of_memory       ? SLUICE_ERR_MEMORY
                         : status == dnnl_unimplemented     ? SLUICE_ERR_UNSUPPORTED
                         : status == dnnl_invalid_arguments ? SLUICE_ERR_ARGUMENT
                                                            : SLUICE_ERR_SYSTEM;
    return slc_error(code, "kernel gemm %llu x %llu x %llu: oneDNN failed to %s (status %d)", (unsigned long long)s->m,
                     (unsigned long long)s->n, (unsigned long long)s->k, what, (int)status);
}

/* ---- What differs between oneDNN 2 and 3 ---- */

#if DNNL_VERSION_MAJOR >= 3
typedef dnnl_memory_desc_t matrix;
#define MATRIX(md) (md)
static dnnl_status_t matrix_init(matrix *md, dnnl_dims_t sizes, dnnl_dims_t strides)
{
    return dnnl_memory_desc_create_with_strides(md, 2, sizes, dnnl_f32, strides);
}
static void matrix_fini(matrix *md)
{
    if (*md) dnnl_memory_desc_destroy(*md);
}
static dnnl_status_t append_sum(dnnl_post_ops_t ops)
{
    return dnnl_post_ops_append_sum(ops, 1.0f, 0, dnnl_f32);
}
static dnnl_status_t describe_matmul(dnnl_primitive_desc_t *out, const matrix md[4], bool bias,
                                     dnnl_primitive_attr_t attributes)
{
    return dnnl_matmul_primitive_desc_create(out, engine, md[0], md[1], bias ? md[2] : NULL, md[3], attributes);
}
#else
typedef dnnl_memory_desc_t matrix;
#define MATRIX(md) (&(md))
static dnnl_status_t matrix_init(matrix *md, dnnl_dims_t sizes, dnnl_dims_t strides)
{
    return dnnl_memory_desc_init_by_strides(md, 2, sizes, dnnl_f32, strides);
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

/* ---- Matrices: A, B, bias, C ---- */

enum { MATRICES = 4 };
static const int argument_of[MATRICES] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_BIAS, DNNL_ARG_DST};

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

static dnnl_status_t matrices_init(const slc_gemm_shape *s, matrix md[MATRICES])
{
    dnnl_dim_t m = (dnnl_dim_t)s->m, n = (dnnl_dim_t)s->n, k = (dnnl_dim_t)s->k;
    dnnl_dims_t sizes[MATRICES] = {{m, k}, {k, n}, {1, n}, {m, n}};
    dnnl_dims_t strides[MATRICES] = {{lda(s), 1}, {ldb(s), 1}, {n, 1}, {ldc(s), 1}};
    if (s->transpose_a) strides[0][0] = 1, strides[0][1] = lda(s);
    if (s->transpose_b) strides[1][0] = 1, strides[1][1] = ldb(s);
    memset(md, 0, MATRICES * sizeof *md);
    dnnl_status_t status = dnnl_success;
    for (int i = 0; i < MATRICES && !status; i++) status = matrix_init(&md[i], sizes[i], strides[i]);
    return status;
}

static void matrices_fini(matrix md[MATRICES])
{
    for (int i = 0; i < MATRICES; i++) matrix_fini(&md[i]);
}

/* ---- The primitives, one a shape and thread count ---- */

static dnnl_status_t attributes_create(bool accumulate, dnnl_primitive_attr_t *out)
{
    dnnl_post_ops_t ops = NULL;
    *out = NULL;
    dnnl_status_t status = dnnl_primitive_attr_create(out);
    if (!status) status = dnnl_primitive_attr_set_scratchpad_mode(*out, dnnl_scratchpad_mode_user);
    if (status || !accumulate) return status;
    status = dnnl_post_ops_create(&ops);
    if (!status) status = append_sum(ops);
    if (!status) status = dnnl_primitive_attr_set_post_ops(*out, ops);
    if (ops) dnnl_post_ops_destroy(ops);
    return status;
}

static dnnl_status_t primitive_create(gemm_entry *entry)
{
    const slc_gemm_shape *s = &entry->key.shape;
    matrix md[MATRICES];
    dnnl_primitive_attr_t attributes = NULL;
    dnnl_status_t status = matrices_init(s, md);
    if (!status) status = attributes_create(s->accumulate, &attributes);
    if (!status) status = describe_matmul(&entry->description, md, s->bias, attributes);
    if (!status) status = dnnl_primitive_create(&entry->primitive, entry->description);
    if (!status)
        entry->scratch_bytes =
            dnnl_memory_desc_get_size(dnnl_primitive_desc_query_md(entry->description, dnnl_query_scratchpad_md, 0));
    if (attributes) dnnl_primitive_attr_destroy(attributes);
    matrices_fini(md);
    return status;
}

static gemm_key key_of(const slc_gemm_shape *s, uint32_t threads)
{
    gemm_key key;
    memset(&key, 0, sizeof key); /* padding is hashed too */
    key.shape.transpose_a = s->transpose_a;
    key.shape.transpose_b = s->transpose_b;
    key.shape.accumulate = s->accumulate;
    key.shape.bias = s->bias;
    key.shape.m = s->m, key.shape.n = s->n, key.shape.k = s->k;
    key.shape.lda = (uint64_t)lda(s), key.shape.ldb = (uint64_t)ldb(s), key.shape.ldc = (uint64_t)ldc(s);
    key.threads = threads;
    return key;
}

static sluice_status entry_create(const gemm_key *key, gemm_entry **out)
{
    gemm_entry *entry = calloc(1, sizeof *entry);
    if (!entry) return slc_error(SLUICE_ERR_MEMORY, "kernel gemm: no memory for a primitive");
    entry->key = *key;
    dnnl_status_t status = engine ? dnnl_success : dnnl_engine_create(&engine, dnnl_cpu, 0);
    if (!status) status = primitive_create(entry);
    if (status) {
        if (entry->description) dnnl_primitive_desc_destroy(entry->description);
        free(entry);
        return failed(status, &key->shape, "make a primitive");
    }
    HASH_ADD(hh, entries, key, sizeof entry->key, entry);
    *out = entry;
    return SLUICE_OK;
}

static sluice_status entry_get(const slc_gemm_shape *s, uint32_t threads, gemm_entry **out)
{
    gemm_key key = key_of(s, threads);
    sluice_status status = SLUICE_OK;
    pthread_mutex_lock(&lock);
    HASH_FIND(hh, entries, &key, sizeof key, *out);
    if (!*out) status = entry_create(&key, out);
    pthread_mutex_unlock(&lock);
    return status;
}

/* ---- Running ---- */

typedef struct {
    int outside; /* the calling thread's own setting */
} thread_scope;

static thread_scope threads_begin(uint32_t threads)
{
    thread_scope scope = {omp_get_max_threads ? omp_get_max_threads() : 0};
    if (omp_set_num_threads) omp_set_num_threads((int)threads);
    return scope;
}

static void threads_end(thread_scope scope)
{
    if (omp_set_num_threads) omp_set_num_threads(scope.outside);
}

static uint32_t threads_of(const slc_stream *stream)
{
#if defined(_OPENMP)
    return stream->threads ? stream->threads : 1;
#else
    (void)stream;
    return 1;
#endif
}

static dnnl_status_t execute(const gemm_entry *entry, dnnl_stream_t stream, const void *const data[MATRICES],
                             void *workspace)
{
    matrix md[MATRICES];
    dnnl_exec_arg_t arguments[MATRICES + 1];
    int count = 0;
    dnnl_status_t status = matrices_init(&entry->key.shape, md);
    for (int i = 0; i < MATRICES && !status; i++) {
        if (!data[i]) continue;
        arguments[count].arg = argument_of[i];
        status = dnnl_memory_create(&arguments[count].memory, MATRIX(md[i]), engine, (void *)(uintptr_t)data[i]);
        if (!status) count++;
    }
    if (!status && entry->scratch_bytes) {
        arguments[count].arg = DNNL_ARG_SCRATCHPAD;
        status = dnnl_memory_create(&arguments[count].memory,
                                    dnnl_primitive_desc_query_md(entry->description, dnnl_query_scratchpad_md, 0),
                                    engine, workspace);
        if (!status) count++;
    }
    if (!status) status = dnnl_primitive_execute(entry->primitive, stream, count, arguments);
    if (!status) status = dnnl_stream_wait(stream);
    while (count > 0) dnnl_memory_destroy(arguments[--count].memory);
    matrices_fini(md);
    return status;
}

static sluice_status run_matmul(const slc_gemm_shape *s, const gemm_entry *entry, const void *const data[MATRICES],
                                void *workspace)
{
    dnnl_stream_t stream; /* not shared: oneDNN does not say that one may be used from several threads */
    dnnl_status_t status = dnnl_stream_create(&stream, engine, dnnl_stream_default_flags);
    if (status) return failed(status, s, "make a stream");
    status = execute(entry, stream, data, workspace);
    dnnl_stream_destroy(stream);
    return status ? failed(status, s, "run") : SLUICE_OK;
}

/* C = bias, or C += bias, so that sgemm can add to it. */
static void bias_first(const slc_gemm_shape *s, const float *bias, float *c)
{
    for (uint64_t row = 0; row < s->m; row++) {
        float *to = c + row * (uint64_t)ldc(s);
        if (!s->accumulate)
            memcpy(to, bias, s->n * sizeof *to);
        else
            for (uint64_t i = 0; i < s->n; i++) to[i] += bias[i];
    }
}

/* sgemm of oneDNN 2.6 runs with its stack pointer inside its own buffer: a signal handler would write over that. So
 * signals wait until it is done. Threads that OpenMP starts inside inherit the mask. */
static sluice_status run_sgemm(const slc_gemm_shape *s, const float *a, const float *b, const float *bias, float *c)
{
    if (bias) bias_first(s, bias, c);
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    dnnl_status_t status =
        dnnl_sgemm(s->transpose_a ? 'T' : 'N', s->transpose_b ? 'T' : 'N', (dnnl_dim_t)s->m, (dnnl_dim_t)s->n,
                   (dnnl_dim_t)s->k, 1.0f, a, lda(s), b, ldb(s), bias || s->accumulate ? 1.0f : 0.0f, c, ldc(s));
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return status ? failed(status, s, "run sgemm") : SLUICE_OK;
}

static bool by_primitive(const slc_gemm_shape *s)
{
    return s->transpose_b && !s->transpose_a;
}

static sluice_status check(const slc_stream *stream, const slc_gemm_shape *s)
{
    const uint64_t most = INT32_MAX;
    if (!s->m || !s->n || !s->k || s->m > most || s->n > most || s->k > most)
        return slc_error(SLUICE_ERR_ARGUMENT, "kernel gemm: %llu x %llu x %llu; each from 1 to 2^31-1",
                         (unsigned long long)s->m, (unsigned long long)s->n, (unsigned long long)s->k);
    if (lda(s) < (dnnl_dim_t)(s->transpose_a ? s->m : s->k) || ldb(s) < (dnnl_dim_t)(s->transpose_b ? s->k : s->n) ||
        ldc(s) < (dnnl_dim_t)s->n)
        return slc_error(SLUICE_ERR_ARGUMENT, "kernel gemm: a row is longer than its distance to the next");
    return slc_host_check(stream, "gemm");
}

sluice_status slc_gemm_workspace_bytes(const slc_stream *stream, const slc_gemm_shape *shape, uint64_t *bytes)
{
    sluice_status status = check(stream, shape);
    if (status) return status;
    *bytes = 0;
    if (!by_primitive(shape)) return SLUICE_OK;

    gemm_entry *entry = NULL;
    uint32_t threads = threads_of(stream);
    thread_scope scope = threads_begin(threads);
    status = entry_get(shape, threads, &entry);
    threads_end(scope);
    if (!status) *bytes = entry->scratch_bytes;
    return status;
}

sluice_status slc_gemm(slc_stream *stream, const slc_gemm_shape *shape, const float *a, const float *b,
                       const float *bias, float *c, void *workspace, uint64_t workspace_bytes)
{
    sluice_status status = check(stream, shape);
    if (status) return status;
    if (shape->bias != (bias != NULL))
        return slc_error(SLUICE_ERR_ARGUMENT, "kernel gemm: a bias is given exactly when the shape has one");

    gemm_entry *entry = NULL;
    uint32_t threads = threads_of(stream);
    thread_scope scope = threads_begin(threads);
    if (!by_primitive(shape)) {
        status = run_sgemm(shape, a, b, bias, c);
    } else {
        status = entry_get(shape, threads, &entry);
        if (!status && workspace_bytes < entry->scratch_bytes)
            status = slc_error(SLUICE_ERR_ARGUMENT, "kernel gemm: workspace of %llu bytes, %llu are needed",
                               (unsigned long long)workspace_bytes, (unsigned long long)entry->scratch_bytes);
        if (!status) status = run_matmul(shape, entry, (const void *[]){a, b, bias, c}, workspace);
    }
    threads_end(scope);
    return status;
}
