/* softmax(q k^T / sqrt(d) + bias) v and its derivative, one query at a time. attention_test.c covers this file. */
#include "lib/kernels/attention/attention.h"

#include "lib/kernels/dropout/dropout.h"

#include <math.h>
#include <string.h>

/* One head of one sequence, and the arrays. */
typedef struct {
    const slc_attention_shape *s;
    uint64_t batch, head;
    const double *q, *k, *v, *relative;
} place;

static uint64_t at(const place *p, uint64_t token)
{
    return ((p->batch * p->s->tokens + token) * p->s->heads + p->head) * p->s->head_size;
}

uint64_t slc_attention_relative_row(const slc_attention_shape *s, uint64_t query, uint64_t key)
{
    const uint64_t h = s->window_h, w = s->window_w, distances = (2 * h - 1) * (2 * w - 1);
    if (!query && !key) return distances + 2;
    if (!key) return distances + 1;
    if (!query) return distances;
    uint64_t y = (query - 1) / w + h - 1 - (key - 1) / w, x = (query - 1) % w + w - 1 - (key - 1) % w;
    return y * (2 * w - 1) + x;
}

static double score(const place *p, uint64_t query, uint64_t key)
{
    const slc_attention_shape *s = p->s;
    if (s->causal && key > query) return -INFINITY;
    if (s->key_mask && !s->key_mask[p->batch * s->tokens + key]) return -INFINITY;
    double sum = 0;
    for (uint64_t d = 0; d < s->head_size; d++) sum += p->q[at(p, query) + d] * p->k[at(p, key) + d];
    sum /= sqrt((double)s->head_size);
    if (s->bias) sum += (double)s->bias[p->batch * s->bias_batch + p->head * s->bias_head + query * s->tokens + key];
    if (s->relative) sum += p->relative[slc_attention_relative_row(s, query, key) * s->heads + p->head];
    return sum;
}

static double factor(const place *p, uint64_t query, uint64_t key)
{
    const slc_attention_shape *s = p->s;
    if (!s->dropout) return 1;
    return slc_dropout_factor_ref(s->dropout, ((p->batch * s->heads + p->head) * s->tokens + query) * s->tokens + key);
}

static void forward_query(const place *p, uint64_t query, double *weights, double *out, double *logsumexp)
{
    const slc_attention_shape *s = p->s;
    double largest = -INFINITY, sum = 0;
    for (uint64_t key = 0; key < s->tokens; key++) {
        weights[key] = score(p, query, key);
        largest = fmax(largest, weights[key]);
    }
    memset(out, 0, s->head_size * sizeof *out);
    *logsumexp = INFINITY;
    if (largest == -INFINITY) return; /* this query sees no key */
    for (uint64_t key = 0; key < s->tokens; key++) sum += weights[key] = exp(weights[key] - largest);
    for (uint64_t key = 0; key < s->tokens; key++)
        for (uint64_t d = 0; d < s->head_size; d++)
            out[d] += weights[key] / sum * factor(p, query, key) * p->v[at(p, key) + d];
    *logsumexp = largest + log(sum);
}

void slc_attention_forward_ref(const slc_attention_forward_args *args)
{
    const slc_attention_shape *s = &args->shape;
    double *out = args->out, *logsumexp = args->logsumexp;
    for (uint64_t b = 0; b < s->batch; b++)
        for (uint64_t h = 0; h < s->heads; h++) {
            place p = {s, b, h, args->q, args->k, args->v, s->relative};
            for (uint64_t t = 0; t < s->tokens; t++)
                forward_query(&p, t, args->workspace, out + at(&p, t), logsumexp + (b * s->heads + h) * s->tokens + t);
        }
}

static void backward_query(const place *p, uint64_t query, const slc_attention_backward_args *args)
{
    const slc_attention_shape *s = p->s;
    const double scale = 1 / sqrt((double)s->head_size);
    const double *out = (const double *)args->out + at(p, query), *dout = (const double *)args->dout + at(p, query);
    const double logsumexp = ((const double *)args->logsumexp)[(p->batch * s->heads + p->head) * s->tokens + query];
    double *dq = args->dq, *dk = args->dk, *dv = args->dv, *drelative = args->drelative;
    double delta = 0;
    for (uint64_t d = 0; d < s->head_size; d++) delta += dout[d] * out[d];
    for (uint64_t key = 0; key < s->tokens; key++) {
        double weight = exp(score(p, query, key) - logsumexp), dweight = 0, kept = factor(p, query, key);
        for (uint64_t d = 0; d < s->head_size; d++) {
            dweight += kept * dout[d] * p->v[at(p, key) + d];
            dv[at(p, key) + d] += weight * kept * dout[d];
        }
        double dscore = weight * (dweight - delta);
        for (uint64_t d = 0; d < s->head_size; d++) {
            dq[at(p, query) + d] += dscore * scale * p->k[at(p, key) + d];
            dk[at(p, key) + d] += dscore * scale * p->q[at(p, query) + d];
        }
        if (drelative) drelative[slc_attention_relative_row(s, query, key) * s->heads + p->head] += dscore;
    }
}

void slc_attention_backward_ref(const slc_attention_backward_args *args)
{
    const slc_attention_shape *s = &args->shape;
    const uint64_t bytes = s->batch * s->tokens * s->heads * s->head_size * sizeof(double);
    memset(args->dq, 0, bytes), memset(args->dk, 0, bytes), memset(args->dv, 0, bytes);
    if (args->drelative && args->fresh)
        memset(args->drelative, 0, ((2 * s->window_h - 1) * (2 * s->window_w - 1) + 3) * s->heads * sizeof(double));
    for (uint64_t b = 0; b < s->batch; b++)
        for (uint64_t h = 0; h < s->heads; h++) {
            place p = {s, b, h, args->q, args->k, args->v, s->relative};
            for (uint64_t t = 0; t < s->tokens; t++) backward_query(&p, t, args);
        }
}
