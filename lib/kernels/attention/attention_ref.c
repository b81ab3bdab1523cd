/* softmax(q k^T / sqrt(d)) v and its derivative, one query at a time. */
#include "lib/kernels/attention/attention_ref.h"

#include <math.h>
#include <string.h>

typedef struct {
    const double *q, *k, *v; /* of one head of one sequence */
    uint64_t row;
} head;

static head head_at(const slc_attention_shape *s, const double *qkv, uint64_t b, uint64_t h)
{
    uint64_t all = s->heads * s->head_size;
    const double *q = qkv + b * s->tokens * 3 * all + h * s->head_size;
    return (head){q, q + all, q + 2 * all, 3 * all};
}

static uint64_t seen(const slc_attention_shape *s, uint64_t query)
{
    return s->causal ? query + 1 : s->tokens;
}

static double score(const slc_attention_shape *s, const head *at, uint64_t query, uint64_t key)
{
    double sum = 0;
    for (uint64_t d = 0; d < s->head_size; d++) sum += at->q[query * at->row + d] * at->k[key * at->row + d];
    return sum / sqrt((double)s->head_size);
}

static void forward_query(const slc_attention_shape *s, const head *at, uint64_t query, double *weights, double *out,
                          double *logsumexp)
{
    double largest = -INFINITY, sum = 0;
    for (uint64_t key = 0; key < seen(s, query); key++) {
        weights[key] = score(s, at, query, key);
        largest = fmax(largest, weights[key]);
    }
    for (uint64_t key = 0; key < seen(s, query); key++) sum += weights[key] = exp(weights[key] - largest);
    for (uint64_t d = 0; d < s->head_size; d++) {
        out[d] = 0;
        for (uint64_t key = 0; key < seen(s, query); key++) out[d] += weights[key] / sum * at->v[key * at->row + d];
    }
    *logsumexp = largest + log(sum);
}

void slc_attention_forward_ref(const slc_attention_shape *s, const double *qkv, double *out, double *logsumexp,
                               double *weights)
{
    for (uint64_t b = 0; b < s->batch; b++)
        for (uint64_t h = 0; h < s->heads; h++) {
            head at = head_at(s, qkv, b, h);
            for (uint64_t t = 0; t < s->tokens; t++)
                forward_query(s, &at, t, weights, out + ((b * s->tokens + t) * s->heads + h) * s->head_size,
                              logsumexp + (b * s->heads + h) * s->tokens + t);
        }
}

static void backward_query(const slc_attention_shape *s, const head *at, uint64_t query, double logsumexp,
                           const double *out, const double *dout, double *dq, double *dk, double *dv)
{
    const double scale = 1 / sqrt((double)s->head_size);
    double delta = 0;
    for (uint64_t d = 0; d < s->head_size; d++) delta += dout[d] * out[d];
    for (uint64_t key = 0; key < seen(s, query); key++) {
        double weight = exp(score(s, at, query, key) - logsumexp), dweight = 0;
        for (uint64_t d = 0; d < s->head_size; d++) {
            dweight += dout[d] * at->v[key * at->row + d];
            dv[key * at->row + d] += weight * dout[d];
        }
        double dscore = weight * (dweight - delta) * scale;
        for (uint64_t d = 0; d < s->head_size; d++) {
            dq[query * at->row + d] += dscore * at->k[key * at->row + d];
            dk[key * at->row + d] += dscore * at->q[query * at->row + d];
        }
    }
}

void slc_attention_backward_ref(const slc_attention_shape *s, const double *qkv, const double *out,
                                const double *logsumexp, const double *dout, double *dqkv)
{
    const uint64_t all = s->heads * s->head_size;
    memset(dqkv, 0, s->batch * s->tokens * 3 * all * sizeof *dqkv);
    for (uint64_t b = 0; b < s->batch; b++)
        for (uint64_t h = 0; h < s->heads; h++) {
            head at = head_at(s, qkv, b, h);
            double *dq = dqkv + b * s->tokens * 3 * all + h * s->head_size;
            for (uint64_t t = 0; t < s->tokens; t++) {
                uint64_t row = ((b * s->tokens + t) * s->heads + h) * s->head_size;
                backward_query(s, &at, t, logsumexp[(b * s->heads + h) * s->tokens + t], out + row, dout + row, dq,
                               dq + all, dq + 2 * all);
            }
        }
}
