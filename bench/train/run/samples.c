/* The sequence holds zeros after its last token, at which a causal model does not look. Rank 0 writes; the others
 * evaluate as often. tests/command/train/log_test.sh covers this file. */
#include "bench/train/run/samples.h"

#include "bench/eval/sampling.h"
#include "bench/eval/token_text.h"
#include "lib/base/status.h"

#include <stdlib.h>
#include <string.h>

static const slc_sampling MANNER = {.temperature = 0.8, .top_k = 40};

struct slc_training_samples {
    slc_training_samples_of of;
    slc_token_list prompt;
    int32_t *tokens; /* of a micro-batch: the text is its first sequence */
    float *logits;   /* of a micro-batch; NULL on ranks that do not choose tokens */
    char *text;
};

static uint64_t count_tokens(const slc_training_samples_of *of)
{
    return (uint64_t)of->batch * of->length;
}

uint64_t slc_training_samples_bytes(const slc_training_samples_of *of)
{
    if (!of->options->sample_every) return 0;
    return count_tokens(of) * (sizeof(int32_t) + of->model->vocabulary * sizeof(float));
}

static bool writes(const slc_training_samples *s)
{
    return sluice_world_rank(s->of.world) == 0;
}

static bool chooses(const slc_training_samples *s)
{
    return sluice_world_rank(s->of.world) == s->of.chooser;
}

static sluice_status open_text(const slc_training_samples *s, slc_token_text **text)
{
    const slc_training_options *o = s->of.options;
    return slc_token_text_open(o->weights, o->tokenizer, s->of.model, text);
}

static sluice_status read_prompt(slc_training_samples *s)
{
    slc_token_text *text = NULL;
    const char *prompt = s->of.options->prompt;
    sluice_status status = open_text(s, &text);
    if (!status) status = slc_token_text_encode(text, prompt, strlen(prompt), &s->prompt);
    slc_token_text_close(text);
    if (status) return status;
    if (!s->prompt.count || s->prompt.count >= s->of.length)
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "it has %zu tokens, and a sequence has %u (--context); give 1 to %u of them", s->prompt.count,
                         s->of.length, s->of.length - 1);
    return SLUICE_OK;
}

sluice_status slc_training_samples_open(const slc_training_samples_of *of, slc_training_samples **out)
{
    *out = NULL;
    if (!of->options->sample_every) return SLUICE_OK;
    slc_training_samples *s = calloc(1, sizeof *s);
    if (!s) return slc_error(SLUICE_ERR_MEMORY, "samples");
    s->of = *of;
    *out = s;
    s->tokens = calloc(count_tokens(of), sizeof *s->tokens);
    if (chooses(s)) s->logits = malloc(count_tokens(of) * of->model->vocabulary * sizeof *s->logits);
    if (!s->tokens || (chooses(s) && !s->logits)) return slc_error(SLUICE_ERR_MEMORY, "samples");
    return slc_error_context(read_prompt(s), "--prompt");
}

void slc_training_samples_close(slc_training_samples *s)
{
    if (!s) return;
    free(s->prompt.tokens);
    free(s->tokens);
    free(s->logits);
    free(s->text);
    free(s);
}

/* Makes a text of the first `count` tokens. */
static sluice_status keep_text(slc_training_samples *s, size_t count)
{
    slc_token_text *text = NULL;
    sluice_status status = open_text(s, &text);
    for (size_t i = 0; !status && i < count; i++) {
        slc_text_piece piece;
        status = slc_token_text_add(text, s->tokens[i], &piece);
    }
    if (!status) {
        slc_token_text_finish(text);
        const slc_text_piece all = slc_token_text_all(text);
        s->text = strndup(all.at, all.bytes);
        if (!s->text) status = slc_error(SLUICE_ERR_MEMORY, "a sample");
    }
    slc_token_text_close(text);
    return status;
}

static sluice_status add_token(slc_training_samples *s, sluice_model *model, size_t count)
{
    const sluice_batch batch = SLUICE_INIT(sluice_batch, .tokens = s->tokens);
    slc_sampling manner = MANNER;
    double loss;
    sluice_status status = sluice_model_evaluate(model, &batch, &loss, s->logits);
    if (status) return status;
    manner.seed = s->of.options->seed;
    const uint32_t vocabulary = s->of.model->vocabulary;
    if (chooses(s))
        status = slc_sample_token(&manner, s->logits + (count - 1) * vocabulary, vocabulary, count, &s->tokens[count]);
    if (s->of.chooser == 0) return status;
    sluice_status sent = sluice_world_broadcast(s->of.world, &s->tokens[count], sizeof *s->tokens, s->of.chooser);
    return status ? status : sent;
}

sluice_status slc_training_sample(slc_training_samples *s, sluice_model *model, const char **text)
{
    sluice_status status = SLUICE_OK;
    size_t count = s->prompt.count, made = 0;
    memset(s->tokens, 0, s->of.length * sizeof *s->tokens);
    memcpy(s->tokens, s->prompt.tokens, count * sizeof *s->tokens);
    for (; !status && made < SLC_TRAINING_SAMPLE_TOKENS && count < s->of.length; made++, count++)
        status = add_token(s, model, count);
    free(s->text);
    s->text = NULL;
    if (!status && writes(s)) status = keep_text(s, count);
    *text = s->text ? s->text : "";
    return status;
}
