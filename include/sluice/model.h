/* Bundled models. Each is a client of the hook API, as a user's own program is: it registers its layers on a runtime
 * and computes between the hooks. Built only where oneDNN is found.
 *
 * GPT-2 (Radford et al., "Language models are unsupervised multitask learners", 2019), without dropout, fp32:
 *   x = wte[token] + wpe[position]
 *   L times: x += c_proj(attention(c_attn(ln_1(x)))); x += c_proj(gelu(c_fc(ln_2(x))))
 *   logits = ln_f(x) wte^T
 * Layers: "embed", "h.0" .. "h.(L-1)", "head". Parameters have the names of Hugging Face's GPT2LMHeadModel, so that
 * LAYER.NAME is "embed.wte.weight", "h.0.attn.c_attn.weight", "head.ln_f.weight"; matrices are [inputs][outputs].
 *
 * One thread calls a model at a time, the one that calls its runtime. After a failure the runtime can only be
 * destroyed, and so can the model. */
#ifndef SLUICE_MODEL_H
#define SLUICE_MODEL_H

#include <sluice/runtime.h>
#include <sluice/status.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    uint32_t layers, channels, heads; /* channels is a multiple of heads */
    uint32_t context;                 /* positions that wpe has */
    uint32_t vocabulary;
} sluice_gpt2_config;

typedef struct sluice_gpt2 sluice_gpt2;

/* By name: nano, mini (both on bytes: vocabulary 256), small, medium, large, xl. Errors: ARGUMENT lists the names. */
SLUICE_API sluice_status sluice_gpt2_config_named(const char *size, sluice_gpt2_config *out);
/* The names above, one by one; NULL behind the last. */
SLUICE_API const char *sluice_gpt2_size_name(uint32_t index);
SLUICE_API uint64_t sluice_gpt2_param_count(const sluice_gpt2_config *config);

/* Registers the model on `rt`, before commit, for micro-batches of `batch` sequences of `tokens` tokens
 * (<= context). The runtime must outlive the model's use; the caller destroys the model. */
SLUICE_API sluice_status sluice_gpt2_create(sluice_runtime *rt, const sluice_gpt2_config *config, uint32_t batch,
                                            uint32_t tokens, sluice_gpt2 **out);
SLUICE_API void sluice_gpt2_destroy(sluice_gpt2 *model); /* NULL is allowed; touches no runtime */

/* GPT-2's first values, after commit: normal with deviation .02, projections onto the residual stream .02/sqrt(2L),
 * biases 0, norms 1. A function of `seed` alone. */
SLUICE_API sluice_status sluice_gpt2_init(sluice_gpt2 *model, uint64_t seed);

/* One micro-batch, between sluice_step_begin and _end. tokens, targets: batch x tokens, row-major, each below the
 * vocabulary (a target may be -1: it counts neither in the loss nor in the gradient); both are read before forward
 * returns. backward adds the gradient of the mean loss over this micro-batch's targets and gives that loss. */
SLUICE_API sluice_status sluice_gpt2_forward(sluice_gpt2 *model, const int32_t *tokens, const int32_t *targets);
SLUICE_API sluice_status sluice_gpt2_backward(sluice_gpt2 *model, double *loss);

/* Between steps; brackets itself with sluice_evaluate_begin and _end, so every rank calls it equally often.
 * logits: NULL or batch x tokens x vocabulary, host memory. */
SLUICE_API sluice_status sluice_gpt2_evaluate(sluice_gpt2 *model, const int32_t *tokens, const int32_t *targets,
                                              double *loss, float *logits);

/* `check` is called before each layer; what it returns, if not SLUICE_OK, ends the micro-batch and is returned. NULL:
 * none. For a second Ctrl-C, say, in a step that takes minutes. */
SLUICE_API void sluice_gpt2_check(sluice_gpt2 *model, sluice_status (*check)(void *context), void *context);

#ifdef __cplusplus
}
#endif
#endif
