/* Finds tensors by name; each has one legal shape. */
#include "lib/model/batch/inputs.h"

#include "lib/base/status.h"
#include "lib/model/params.h"
#include "lib/weights/safetensors/safetensors.h"

#include <stdlib.h>
#include <string.h>

enum { IGNORED = -100 };

typedef struct {
    const char *path;
    const slc_tensors *tensors;
    const sluice_model_config *config;
    slc_model_inputs *out;
} reading;

static sluice_status find(const reading *r, const char *name, bool needed, const slc_tensor **out)
{
    *out = slc_tensors_find(r->tensors, name);
    if (*out || !needed) return SLUICE_OK;
    return slc_error(SLUICE_ERR_FORMAT, "%s: tensor \"%s\" is missing; %s needs it", r->path, name,
                     sluice_model_family_name((uint32_t)r->config->family));
}

static sluice_status check_shape(const reading *r, const slc_tensor *tensor, uint32_t rank, const uint64_t *shape)
{
    char has[64], wants[64];
    if (tensor->rank == rank && !memcmp(tensor->shape, shape, rank * sizeof *shape)) return SLUICE_OK;
    slc_tensor_shape_text(tensor->rank, tensor->shape, has, sizeof has);
    slc_tensor_shape_text(rank, shape, wants, sizeof wants);
    return slc_error(SLUICE_ERR_FORMAT, "%s: tensor \"%s\" has shape %s; here it must be %s", r->path, tensor->name,
                     has, wants);
}

static sluice_status read_whole(const reading *r, const slc_tensor *tensor, int32_t **out)
{
    *out = malloc((tensor->elements + 1) * sizeof **out);
    if (!*out) return slc_error(SLUICE_ERR_MEMORY, "tensor \"%s\"", tensor->name);
    return slc_tensors_read_int32(r->tensors, tensor, 0, tensor->elements, *out);
}

static sluice_status read_bytes(const reading *r, const char *name, uint64_t rows, uint64_t columns, uint8_t **out)
{
    const slc_tensor *tensor;
    sluice_status status = find(r, name, false, &tensor);
    if (status || !tensor) return status;
    status = check_shape(r, tensor, 2, (const uint64_t[]){rows, columns});
    if (status) return status;
    *out = malloc(tensor->elements + 1);
    if (!*out) return slc_error(SLUICE_ERR_MEMORY, "tensor \"%s\"", name);
    return slc_tensors_read_bytes(r->tensors, tensor, 0, tensor->elements, *out);
}

static sluice_status read_text(const reading *r)
{
    slc_model_inputs *in = r->out;
    const slc_tensor *ids, *types;
    sluice_status status = find(r, "input_ids", true, &ids);
    if (status) return status;
    if (ids->rank != 2 || !ids->elements || ids->shape[0] > UINT32_MAX || ids->shape[1] > r->config->context)
        return slc_error(SLUICE_ERR_FORMAT,
                         "%s: tensor \"input_ids\" must be sequences x tokens, at most the model's %u tokens", r->path,
                         r->config->context);
    in->batch = (uint32_t)ids->shape[0];
    in->length = (uint32_t)ids->shape[1];
    status = read_whole(r, ids, &in->tokens);
    if (!status) status = find(r, "token_type_ids", false, &types);
    if (!status && types) status = check_shape(r, types, 2, ids->shape);
    if (!status && types) status = read_whole(r, types, &in->types);
    if (!status) status = read_bytes(r, "attention_mask", in->batch, in->length, &in->attention_mask);
    return status;
}

static sluice_status read_images(const reading *r)
{
    const sluice_model_config *c = r->config;
    slc_model_inputs *in = r->out;
    const slc_tensor *pixels;
    sluice_status status = find(r, "pixel_values", true, &pixels);
    if (status) return status;
    const uint64_t shape[] = {pixels->rank ? pixels->shape[0] : 0, c->image_channels, c->image_size, c->image_size};
    status = check_shape(r, pixels, 4, shape);
    if (status) return status;
    if (!shape[0] || shape[0] > UINT32_MAX) return slc_error(SLUICE_ERR_FORMAT, "%s: there are no images", r->path);
    in->batch = (uint32_t)shape[0];
    in->pixels = malloc(pixels->elements * sizeof *in->pixels);
    if (!in->pixels) return slc_error(SLUICE_ERR_MEMORY, "%u images", in->batch);
    status = slc_tensors_read_float(r->tensors, pixels, 0, pixels->elements, in->pixels);
    if (!status) status = read_bytes(r, "bool_masked_pos", in->batch, slc_model_patches(c), &in->masked_patches);
    return status;
}

/* ---- Labels to targets ---- */

static void ignore_ignored(int32_t *targets, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        if (targets[i] == IGNORED) targets[i] = -1;
}

static void shift(int32_t *targets, uint32_t batch, uint32_t length)
{
    for (uint32_t b = 0; b < batch; b++, targets += length) {
        memmove(targets, targets + 1, (length - 1) * sizeof *targets);
        targets[length - 1] = -1;
    }
}

/* Turns one label for each masked patch into one target for each patch. */
static sluice_status spread(const reading *r, const slc_tensor *labels)
{
    slc_model_inputs *in = r->out;
    uint64_t patches = (uint64_t)in->batch * slc_model_patches(r->config), masked = 0;
    for (uint64_t i = 0; in->masked_patches && i < patches; i++) masked += in->masked_patches[i] != 0;
    if (labels->elements != masked)
        return slc_error(SLUICE_ERR_FORMAT, "%s: tensor \"labels\" has %llu elements for %llu masked patches", r->path,
                         (unsigned long long)labels->elements, (unsigned long long)masked);
    int32_t *targets = malloc(patches * sizeof *targets);
    if (!targets) return slc_error(SLUICE_ERR_MEMORY, "targets");
    for (uint64_t i = 0, next = 0; i < patches; i++)
        targets[i] = in->masked_patches && in->masked_patches[i] ? in->targets[next++] : -1;
    free(in->targets);
    in->targets = targets;
    return SLUICE_OK;
}

static sluice_status read_labels(const reading *r)
{
    const sluice_model_config *c = r->config;
    slc_model_inputs *in = r->out;
    bool classes = c->head == SLUICE_HEAD_CLASSES;
    const slc_tensor *labels;
    sluice_status status = find(r, "labels", false, &labels);
    if (status || !labels) return status;
    const uint64_t shape[] = {in->batch, sluice_model_targets(c, in->length)};
    bool some = slc_model_sees(c) && !classes && labels->rank == 1;
    if (!some) status = check_shape(r, labels, classes ? 1 : 2, shape);
    if (!status) status = read_whole(r, labels, &in->targets);
    if (!status && some) status = spread(r, labels);
    if (status) return status;
    ignore_ignored(in->targets, some ? (uint64_t)in->batch * slc_model_patches(c) : labels->elements);
    if (slc_family_of(c->family)->causal) shift(in->targets, in->batch, in->length);
    return SLUICE_OK;
}

/* ---- The whole file ---- */

static sluice_status check_names(const reading *r)
{
    static const char *const text[] = {"input_ids", "attention_mask", "labels", "token_type_ids", NULL};
    static const char *const images[] = {"pixel_values", "labels", "bool_masked_pos", NULL};
    /* for token_type_ids, Hugging Face's GPT-2 adds rows of the token table, which ours does not */
    static const char *const causal[] = {"input_ids", "attention_mask", "labels", NULL};
    const char *const *known = slc_model_sees(r->config)                  ? images
                               : slc_family_of(r->config->family)->causal ? causal
                                                                          : text;
    for (size_t i = 0; i < slc_tensors_count(r->tensors); i++) {
        const char *name = slc_tensors_at(r->tensors, i)->name;
        size_t k = 0;
        while (known[k] && strcmp(known[k], name)) k++;
        if (!known[k])
            return slc_error(SLUICE_ERR_FORMAT, "%s: tensor \"%s\" is no input of %s", r->path, name,
                             sluice_model_family_name((uint32_t)r->config->family));
    }
    return SLUICE_OK;
}

sluice_status slc_model_inputs_read(const char *path, const sluice_model_config *config, slc_model_inputs *out)
{
    slc_tensors *tensors = NULL;
    *out = (slc_model_inputs){0};
    sluice_status status = slc_safetensors_open(path, &tensors);
    if (status) return status;
    const reading r = {.path = path, .tensors = tensors, .config = config, .out = out};
    status = check_names(&r);
    if (!status) status = slc_model_sees(config) ? read_images(&r) : read_text(&r);
    if (!status) status = read_labels(&r);
    out->given = (sluice_batch){.struct_size = sizeof(sluice_batch),
                                .tokens = out->tokens,
                                .types = out->types,
                                .attention_mask = out->attention_mask,
                                .pixels = out->pixels,
                                .masked_patches = out->masked_patches,
                                .targets = out->targets};
    slc_tensors_close(tensors);
    return status;
}

void slc_model_inputs_free(slc_model_inputs *inputs)
{
    free(inputs->tokens);
    free(inputs->types);
    free(inputs->targets);
    free(inputs->attention_mask);
    free(inputs->masked_patches);
    free(inputs->pixels);
    *inputs = (slc_model_inputs){0};
}
