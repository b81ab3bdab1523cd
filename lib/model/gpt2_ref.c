/* GPT-2 in float64. Forward keeps every intermediate of one sequence; backward walks them in reverse and adds to the
 * gradients. Nothing is fused, nothing is clever. */
#include "lib/model/gpt2_ref.h"

#include "lib/base/status.h"
#include "lib/model/params.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A block's parameters in registration order. */
typedef enum {
    LN1_GAMMA,
    LN1_BETA,
    QKV_WEIGHT,
    QKV_BIAS,
    PROJECTION_WEIGHT,
    PROJECTION_BIAS,
    LN2_GAMMA,
    LN2_BETA,
    FC_WEIGHT,
    FC_BIAS,
    MLP_WEIGHT,
    MLP_BIAS,
    BLOCK_PARAMS
} block_param;

static uint64_t block_param_count(const sluice_model_config *c, int which)
{
    slc_param_info info;
    return slc_param_info_at(c, 2 + (uint32_t)which, &info) ? info.count : 0; /* wte and wpe come first */
}

typedef struct {
    double *x, *norm1, *qkv, *weights, *attention, *mid, *norm2, *hidden, *active;
} block_values;

typedef struct {
    const sluice_model_config *config;
    size_t length;
    double *memory; /* holds all arrays below */
    block_values *blocks;
    double *last, *normed, *logits;              /* after the blocks */
    double *dx, *dnorm, *dqkv, *dwide, *dlogits; /* gradients on their way down */
} sequence;

/* ---- Small pieces: each backward adds to its outputs unless its comment says otherwise ---- */

static void linear(size_t rows, size_t in, size_t out, const double *x, const double *w, const double *b, double *y)
{
    for (size_t r = 0; r < rows; r++)
        for (size_t o = 0; o < out; o++) {
            double sum = b[o];
            for (size_t i = 0; i < in; i++) sum += x[r * in + i] * w[i * out + o];
            y[r * out + o] = sum;
        }
}

/* Stores dx. */
static void linear_backward(size_t rows, size_t in, size_t out, const double *x, const double *w, const double *dy,
                            double *dx, double *dw, double *db)
{
    for (size_t r = 0; r < rows; r++) {
        for (size_t o = 0; o < out; o++) db[o] += dy[r * out + o];
        for (size_t i = 0; i < in; i++) {
            double sum = 0;
            for (size_t o = 0; o < out; o++) {
                sum += dy[r * out + o] * w[i * out + o];
                dw[i * out + o] += x[r * in + i] * dy[r * out + o];
            }
            dx[r * in + i] = sum;
        }
    }
}

static void row_statistics(size_t channels, const double *x, double *mean, double *deviation)
{
    double sum = 0, square = 0;
    for (size_t i = 0; i < channels; i++) sum += x[i];
    *mean = sum / (double)channels;
    for (size_t i = 0; i < channels; i++) square += (x[i] - *mean) * (x[i] - *mean);
    *deviation = sqrt(square / (double)channels + 1e-5);
}

static void layer_norm(size_t rows, size_t channels, const double *x, const double *gamma, const double *beta,
                       double *y)
{
    for (size_t r = 0; r < rows; r++, x += channels, y += channels) {
        double mean, deviation;
        row_statistics(channels, x, &mean, &deviation);
        for (size_t i = 0; i < channels; i++) y[i] = (x[i] - mean) / deviation * gamma[i] + beta[i];
    }
}

static void layer_norm_backward(size_t rows, size_t channels, const double *x, const double *gamma, const double *dy,
                                double *dx, double *dgamma, double *dbeta)
{
    for (size_t r = 0; r < rows; r++, x += channels, dy += channels, dx += channels) {
        double mean, deviation, sum = 0, along = 0;
        row_statistics(channels, x, &mean, &deviation);
        for (size_t i = 0; i < channels; i++) {
            double unit = (x[i] - mean) / deviation;
            dgamma[i] += dy[i] * unit;
            dbeta[i] += dy[i];
            sum += dy[i] * gamma[i] / (double)channels;
            along += dy[i] * gamma[i] * unit / (double)channels;
        }
        for (size_t i = 0; i < channels; i++)
            dx[i] += (dy[i] * gamma[i] - sum - along * (x[i] - mean) / deviation) / deviation;
    }
}

static const double GELU_SCALE = 0.79788456080286535588; /* sqrt(2 / pi) */

static double gelu(double x)
{
    return x / 2 * (1 + tanh(GELU_SCALE * (x + 0.044715 * x * x * x)));
}

static double gelu_slope(double x)
{
    double t = tanh(GELU_SCALE * (x + 0.044715 * x * x * x));
    return (1 + t) / 2 + x / 2 * (1 - t * t) * GELU_SCALE * (1 + 3 * 0.044715 * x * x);
}

static void softmax(size_t count, double *x)
{
    double largest = x[0], sum = 0;
    for (size_t i = 1; i < count; i++) largest = fmax(largest, x[i]);
    for (size_t i = 0; i < count; i++) sum += x[i] = exp(x[i] - largest);
    for (size_t i = 0; i < count; i++) x[i] /= sum;
}

/* weights: heads x length x length; row t of a head holds the softmax over the positions <= t, then zeros. */
static void attention(size_t length, size_t channels, size_t heads, const double *qkv, double *weights, double *out)
{
    size_t size = channels / heads;
    for (size_t h = 0; h < heads; h++)
        for (size_t t = 0; t < length; t++) {
            const double *q = qkv + t * 3 * channels + h * size;
            double *w = weights + (h * length + t) * length;
            for (size_t s = 0; s <= t; s++) {
                const double *k = qkv + s * 3 * channels + channels + h * size;
                w[s] = 0;
                for (size_t i = 0; i < size; i++) w[s] += q[i] * k[i] / sqrt((double)size);
            }
            softmax(t + 1, w);
            for (size_t i = 0; i < size; i++) {
                double sum = 0;
                for (size_t s = 0; s <= t; s++) sum += w[s] * qkv[s * 3 * channels + 2 * channels + h * size + i];
                out[t * channels + h * size + i] = sum;
            }
        }
}

/* The backward of one head and position. */
static void attention_row_backward(size_t t, size_t channels, size_t first, size_t size, const double *qkv,
                                   const double *w, const double *dout, double *dqkv)
{
    const double *q = qkv + t * 3 * channels + first;
    double *dq = dqkv + t * 3 * channels + first;
    double dot = 0;
    for (size_t s = 0; s <= t; s++)
        for (size_t i = 0; i < size; i++) dot += w[s] * dout[i] * qkv[s * 3 * channels + 2 * channels + first + i];
    for (size_t s = 0; s <= t; s++) {
        const double *k = qkv + s * 3 * channels + channels + first, *v = k + channels;
        double *dk = dqkv + s * 3 * channels + channels + first, *dv = dk + channels;
        double dw = 0;
        for (size_t i = 0; i < size; i++) {
            dw += dout[i] * v[i];
            dv[i] += w[s] * dout[i];
        }
        double dscore = w[s] * (dw - dot) / sqrt((double)size);
        for (size_t i = 0; i < size; i++) {
            dq[i] += dscore * k[i];
            dk[i] += dscore * q[i];
        }
    }
}

/* Stores dqkv. */
static void attention_backward(size_t length, size_t channels, size_t heads, const double *qkv, const double *weights,
                               const double *dout, double *dqkv)
{
    size_t size = channels / heads;
    memset(dqkv, 0, length * 3 * channels * sizeof *dqkv);
    for (size_t h = 0; h < heads; h++)
        for (size_t t = 0; t < length; t++)
            attention_row_backward(t, channels, h * size, size, qkv, weights + (h * length + t) * length,
                                   dout + t * channels + h * size, dqkv);
}

/* ---- The model ---- */

static uint64_t block_floats(const sluice_model_config *c)
{
    uint64_t total = 0;
    for (int i = 0; i < BLOCK_PARAMS; i++) total += block_param_count(c, i);
    return total;
}

/* The index, among all parameters' elements, at which a parameter of a block begins. */
static size_t block_offset(const sluice_model_config *c, uint32_t block, block_param which)
{
    uint64_t at = (uint64_t)(c->vocabulary + c->context) * c->channels + block * block_floats(c);
    for (int i = 0; i < (int)which; i++) at += block_param_count(c, i);
    return (size_t)at;
}

static size_t norm_offset(const sluice_model_config *c)
{
    return block_offset(c, c->layers, LN1_GAMMA);
}

static double *take(double **at, size_t count)
{
    double *piece = *at;
    *at += count;
    return piece;
}

static sluice_status sequence_create(const sluice_model_config *c, size_t length, sequence *s)
{
    size_t vector = length * c->channels, square = c->heads * length * length, classes = length * c->vocabulary;
    *s = (sequence){.config = c, .length = length};
    s->blocks = calloc(c->layers, sizeof *s->blocks);
    s->memory = calloc(c->layers * (16 * vector + square) + 11 * vector + 2 * classes, sizeof *s->memory);
    if (!s->blocks || !s->memory) return slc_error(SLUICE_ERR_MEMORY, "gpt2 reference");
    double *at = s->memory;
    for (uint32_t i = 0; i < c->layers; i++) {
        block_values *b = &s->blocks[i];
        b->x = take(&at, vector);
        b->norm1 = take(&at, vector);
        b->qkv = take(&at, 3 * vector);
        b->weights = take(&at, square);
        b->attention = take(&at, vector);
        b->mid = take(&at, vector);
        b->norm2 = take(&at, vector);
        b->hidden = take(&at, 4 * vector);
        b->active = take(&at, 4 * vector);
    }
    s->last = take(&at, vector);
    s->normed = take(&at, vector);
    s->dx = take(&at, vector);
    s->dnorm = take(&at, vector);
    s->dqkv = take(&at, 3 * vector);
    s->dwide = take(&at, 4 * vector);
    s->logits = take(&at, classes);
    s->dlogits = take(&at, classes);
    return SLUICE_OK;
}

static void sequence_destroy(sequence *s)
{
    free(s->memory);
    free(s->blocks);
}

static void block_forward(sequence *s, uint32_t index, const double *params, double *out)
{
    const sluice_model_config *c = s->config;
    size_t n = s->length, ch = c->channels;
    block_values *b = &s->blocks[index];
    const double *p[BLOCK_PARAMS];
    for (int i = 0; i < BLOCK_PARAMS; i++) p[i] = params + block_offset(c, index, (block_param)i);

    layer_norm(n, ch, b->x, p[LN1_GAMMA], p[LN1_BETA], b->norm1);
    linear(n, ch, 3 * ch, b->norm1, p[QKV_WEIGHT], p[QKV_BIAS], b->qkv);
    attention(n, ch, c->heads, b->qkv, b->weights, b->attention);
    linear(n, ch, ch, b->attention, p[PROJECTION_WEIGHT], p[PROJECTION_BIAS], b->mid);
    for (size_t i = 0; i < n * ch; i++) b->mid[i] += b->x[i];
    layer_norm(n, ch, b->mid, p[LN2_GAMMA], p[LN2_BETA], b->norm2);
    linear(n, ch, 4 * ch, b->norm2, p[FC_WEIGHT], p[FC_BIAS], b->hidden);
    for (size_t i = 0; i < 4 * n * ch; i++) b->active[i] = gelu(b->hidden[i]);
    linear(n, 4 * ch, ch, b->active, p[MLP_WEIGHT], p[MLP_BIAS], out);
    for (size_t i = 0; i < n * ch; i++) out[i] += b->mid[i];
}

static void block_backward(sequence *s, uint32_t index, const double *params, double *gradients)
{
    const sluice_model_config *c = s->config;
    size_t n = s->length, ch = c->channels;
    const block_values *b = &s->blocks[index];
    const double *p[BLOCK_PARAMS];
    double *g[BLOCK_PARAMS];
    for (int i = 0; i < BLOCK_PARAMS; i++) {
        size_t offset = block_offset(c, index, (block_param)i);
        p[i] = params + offset;
        g[i] = gradients + offset;
    }

    linear_backward(n, 4 * ch, ch, b->active, p[MLP_WEIGHT], s->dx, s->dwide, g[MLP_WEIGHT], g[MLP_BIAS]);
    for (size_t i = 0; i < 4 * n * ch; i++) s->dwide[i] *= gelu_slope(b->hidden[i]);
    linear_backward(n, ch, 4 * ch, b->norm2, p[FC_WEIGHT], s->dwide, s->dnorm, g[FC_WEIGHT], g[FC_BIAS]);
    layer_norm_backward(n, ch, b->mid, p[LN2_GAMMA], s->dnorm, s->dx, g[LN2_GAMMA], g[LN2_BETA]);
    linear_backward(n, ch, ch, b->attention, p[PROJECTION_WEIGHT], s->dx, s->dnorm, g[PROJECTION_WEIGHT],
                    g[PROJECTION_BIAS]);
    attention_backward(n, ch, c->heads, b->qkv, b->weights, s->dnorm, s->dqkv);
    linear_backward(n, ch, 3 * ch, b->norm1, p[QKV_WEIGHT], s->dqkv, s->dnorm, g[QKV_WEIGHT], g[QKV_BIAS]);
    layer_norm_backward(n, ch, b->x, p[LN1_GAMMA], s->dnorm, s->dx, g[LN1_GAMMA], g[LN1_BETA]);
}

/* Returns the sum of the losses; dlogits is the gradient of that sum times `scale`. */
static double sequence_forward(sequence *s, const int32_t *token, const int32_t *target, const double *params,
                               double scale)
{
    const sluice_model_config *c = s->config;
    size_t n = s->length, ch = c->channels, classes = c->vocabulary;
    const double *wte = params, *wpe = params + classes * ch, *gamma = params + norm_offset(c), *beta = gamma + ch;
    double *first = c->layers ? s->blocks[0].x : s->last;
    for (size_t t = 0; t < n; t++)
        for (size_t i = 0; i < ch; i++) first[t * ch + i] = wte[(size_t)token[t] * ch + i] + wpe[t * ch + i];
    for (uint32_t l = 0; l < c->layers; l++)
        block_forward(s, l, params, l + 1 < c->layers ? s->blocks[l + 1].x : s->last);
    layer_norm(n, ch, s->last, gamma, beta, s->normed);

    double sum = 0;
    for (size_t t = 0; t < n; t++) {
        double *logits = s->logits + t * classes, *d = s->dlogits + t * classes;
        for (size_t v = 0; v < classes; v++) {
            logits[v] = 0;
            for (size_t i = 0; i < ch; i++) logits[v] += s->normed[t * ch + i] * wte[v * ch + i];
        }
        memcpy(d, logits, classes * sizeof *d);
        softmax(classes, d);
        if (target[t] >= 0) {
            sum -= log(d[target[t]]);
            d[target[t]] -= 1;
        }
        for (size_t v = 0; v < classes; v++) d[v] *= target[t] >= 0 ? scale : 0;
    }
    return sum;
}

static void sequence_backward(sequence *s, const int32_t *token, const double *params, double *gradients)
{
    const sluice_model_config *c = s->config;
    size_t n = s->length, ch = c->channels, classes = c->vocabulary;
    const double *wte = params, *gamma = params + norm_offset(c);
    double *dwte = gradients, *dwpe = gradients + classes * ch, *dgamma = gradients + norm_offset(c);
    memset(s->dx, 0, n * ch * sizeof *s->dx);
    memset(s->dnorm, 0, n * ch * sizeof *s->dnorm);
    for (size_t t = 0; t < n; t++)
        for (size_t v = 0; v < classes; v++)
            for (size_t i = 0; i < ch; i++) {
                s->dnorm[t * ch + i] += s->dlogits[t * classes + v] * wte[v * ch + i];
                dwte[v * ch + i] += s->dlogits[t * classes + v] * s->normed[t * ch + i];
            }
    layer_norm_backward(n, ch, s->last, gamma, s->dnorm, s->dx, dgamma, dgamma + ch);
    for (uint32_t l = c->layers; l-- > 0;) block_backward(s, l, params, gradients);
    for (size_t t = 0; t < n; t++)
        for (size_t i = 0; i < ch; i++) {
            dwte[(size_t)token[t] * ch + i] += s->dx[t * ch + i];
            dwpe[t * ch + i] += s->dx[t * ch + i];
        }
}

sluice_status slc_gpt2_ref(const sluice_model_config *config, uint32_t batch, uint32_t length, const int32_t *token,
                           const int32_t *target, const double *params, double *loss, double *logits, double *gradients)
{
    sequence s;
    sluice_status status = sequence_create(config, length, &s);
    if (status) goto destroy;
    size_t rows = (size_t)batch * length, classes = (size_t)length * config->vocabulary;
    double count = 0, sum = 0;
    for (size_t i = 0; i < rows; i++) count += target[i] >= 0;
    if (gradients) memset(gradients, 0, sluice_model_param_count(config) * sizeof *gradients);
    for (uint32_t b = 0; b < batch; b++) {
        size_t first = (size_t)b * length;
        sum += sequence_forward(&s, token + first, target + first, params, 1 / count);
        if (logits) memcpy(logits + b * classes, s.logits, classes * sizeof *logits);
        if (gradients) sequence_backward(&s, token + first, params, gradients);
    }
    *loss = sum / count;

destroy:
    sequence_destroy(&s);
    return status;
}
