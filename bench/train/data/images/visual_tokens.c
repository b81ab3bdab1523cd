/* tests/command/data/visual_tokens_test.sh covers this file. */
#include "bench/train/data/images/visual_tokens.h"

#include "bench/train/data/beside.h"
#include "bench/train/data/images/codebook_file.h"
#include "lib/base/hash/fnv.h"
#include "lib/base/status.h"
#include "lib/weights/safetensors/safetensors.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- A file ---- */

/* Finds the file to read; *path stays empty if there is none. */
static sluice_status find_file(const slc_visual_tokens_source *s, char path[PATH_MAX])
{
    int length = 0;
    *path = 0;
    if (s->file)
        length = snprintf(path, PATH_MAX, "%s", s->file);
    else if (s->weights)
        length = snprintf(path, PATH_MAX, "%s/" SLC_VISUAL_TOKENS_FILE, s->weights);
    if (length < 0 || length >= PATH_MAX)
        return slc_error(SLUICE_ERR_ARGUMENT, "--visual-tokens: the path is too long");
    if (!s->file && *path && access(path, F_OK)) *path = 0;
    return SLUICE_OK;
}

static sluice_status check_tokens(const slc_tensors *tensors, const slc_tensor *tensor, const int32_t *tokens,
                                  uint32_t vocabulary)
{
    for (uint64_t i = 0; i < tensor->elements; i++)
        if ((uint32_t)tokens[i] >= vocabulary)
            return slc_error(SLUICE_ERR_FORMAT, "%s: \"%s\" has the token %d, and the model answers with %u",
                             slc_tensors_path(tensors, tensor), tensor->name, tokens[i], vocabulary);
    return SLUICE_OK;
}

static sluice_status read_tokens(const slc_visual_tokens_source *s, const slc_tensors *tensors, const char *path,
                                 const char *name, const slc_images *images, slc_visual_tokens *out, int32_t **to)
{
    const slc_tensor *tensor = slc_tensors_find(tensors, name);
    const uint64_t count = slc_images_get_facts(images).count;
    char has[64];
    if (!tensor)
        return slc_error(SLUICE_ERR_FORMAT, "%s: there is no tensor \"%s\"%s", path, name,
                         *name == 'e' ? ", the visual tokens of the images that are evaluated"
                                      : ", and no \"codebook\": give one of the two");
    slc_tensor_shape_text(tensor->rank, tensor->shape, has, sizeof has);
    if (tensor->rank != 2 || tensor->shape[0] != count || tensor->shape[1] != out->patches)
        return slc_error(SLUICE_ERR_FORMAT, "%s: \"%s\" has shape %s, and there are %llu images of %u patches", path,
                         name, has, (unsigned long long)count, out->patches);
    *to = malloc((tensor->elements + 1) * sizeof **to);
    if (!*to) return slc_error(SLUICE_ERR_MEMORY, "visual tokens of %llu images", (unsigned long long)count);
    sluice_status status = slc_tensors_read_int32(tensors, tensor, 0, tensor->elements, *to);
    if (!status) status = check_tokens(tensors, tensor, *to, s->vocabulary);
    if (!status) out->reading = slc_fnv(out->reading, *to, tensor->elements * sizeof **to);
    return status;
}

static sluice_status read_file(const slc_visual_tokens_source *s, const char *path, slc_visual_tokens *out)
{
    slc_tensors *tensors = NULL;
    out->reading = SLC_FNV_START;
    sluice_status status = slc_safetensors_open(path, &tensors);
    const slc_tensor *codebook = status ? NULL : slc_tensors_find(tensors, "codebook");
    if (codebook) {
        status = slc_codebook_read(tensors, codebook, s->shape, s->patch, s->vocabulary, &out->codebook);
        if (!status) out->reading = slc_fnv(out->reading, out->codebook.centres, codebook->elements * sizeof(float));
    } else if (!status) {
        status = read_tokens(s, tensors, path, "tokens", s->images, out, &out->tokens[0]);
        if (!status && s->evaluation)
            status = read_tokens(s, tensors, path, "evaluation_tokens", s->evaluation, out, &out->tokens[1]);
    }
    slc_tensors_close(tensors);
    return status;
}

/* ---- Opening ---- */

sluice_status slc_visual_tokens_open(const slc_visual_tokens_source *s, slc_visual_tokens *out)
{
    char path[PATH_MAX];
    const uint32_t across = s->shape->side / s->patch;
    *out = (slc_visual_tokens){.patches = across * across};
    sluice_status status = find_file(s, path);
    if (!status && *path) return slc_error_context(read_file(s, path, out), "--visual-tokens");
    if (!status && !s->train.count)
        status = slc_error(SLUICE_ERR_ARGUMENT,
                           "%s: it has no " SLC_VISUAL_TOKENS_FILE ", which names the visual tokens that a beit "
                           "guesses; give --visual-tokens FILE",
                           s->weights ? s->weights : "--weights");
    if (status) return status;
    return slc_codebook_make(s->images, s->shape, s->train, s->patch, s->vocabulary, &out->codebook);
}

void slc_visual_tokens_free(slc_visual_tokens *tokens)
{
    slc_codebook_free(&tokens->codebook);
    free(tokens->tokens[0]);
    free(tokens->tokens[1]);
    *tokens = (slc_visual_tokens){0};
}

uint64_t slc_visual_tokens_bytes(const slc_visual_tokens *tokens, const slc_visual_tokens_source *s)
{
    uint64_t images = 0;
    if (tokens->tokens[0]) images += slc_images_get_facts(s->images).count;
    if (tokens->tokens[1]) images += slc_images_get_facts(s->evaluation).count;
    return slc_codebook_bytes(&tokens->codebook) + images * tokens->patches * sizeof(int32_t);
}

void slc_visual_tokens_take(const slc_visual_tokens *tokens, bool evaluation, uint64_t number, const float *pixels,
                            const uint8_t *masked, int32_t *targets)
{
    const int32_t *known = tokens->tokens[evaluation];
    for (uint32_t i = 0; i < tokens->patches; i++) {
        if (!masked[i])
            targets[i] = -1;
        else if (known)
            targets[i] = known[number * tokens->patches + i];
        else
            targets[i] = (int32_t)slc_codebook_code(&tokens->codebook, pixels, i);
    }
}
