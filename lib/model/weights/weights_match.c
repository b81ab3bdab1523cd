/* Names decide: each parameter is looked up under Hugging Face's names, and every other tensor must be one of three
 * things: a copy of a shared tensor, a buffer that we compute ourselves, or a part of a head that the model does not
 * have. Whatever is none of them is refused, because it would be lost without a word.
 * weights_test.c covers this file. */
#include "lib/base/status.h"
#include "lib/model/params.h"
#include "lib/model/weights/weights_parts.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE = 1 << 16 }; /* elements of a copy at a time */

/* A model, and the file in which its parameters are looked up. */
typedef struct {
    const sluice_model_config *model;
    const slc_config *file;
    const slc_tensors *tensors;
    const char *path, *prefix;
    bool prefixed; /* the file's names have the prefix of a model with a head; those of a bare trunk do not */
    bool new_head; /* the head may have new parameters */
} matching;

static bool has_prefix(const slc_tensors *tensors, const char *prefix)
{
    for (size_t i = 0; i < slc_tensors_count(tensors); i++)
        if (!strncmp(slc_tensors_at(tensors, i)->name, prefix, strlen(prefix))) return true;
    return false;
}

static bool may_have_new_head(const sluice_model_config *model, const slc_config *file)
{
    sluice_model_config of_file;
    slc_model_config_from_file(file, &of_file);
    return file->headless || of_file.head != model->head ||
           (model->head == SLUICE_HEAD_CLASSES && of_file.classes != model->classes);
}

static matching begin(const sluice_model_config *model, const slc_config *file, const slc_tensors *tensors,
                      const char *path, bool new_head)
{
    const char *prefix = slc_model_prefix(model->family);
    return (matching){.model = model,
                      .file = file,
                      .tensors = tensors,
                      .path = path,
                      .prefix = prefix,
                      .prefixed = has_prefix(tensors, prefix),
                      .new_head = new_head && may_have_new_head(model, file)};
}

static size_t index_of(const slc_tensors *tensors, const slc_tensor *tensor)
{
    return (size_t)(tensor - slc_tensors_at(tensors, 0));
}

/* ---- Parameters ---- */

/* Old BERT files call a norm's parameters gamma and beta. */
static const slc_tensor *find_by_name(const slc_tensors *tensors, const char *name)
{
    char old[128];
    const slc_tensor *tensor = slc_tensors_find(tensors, name);
    const char *dot = strrchr(name, '.');
    if (tensor || !dot || !strstr(name, "LayerNorm.")) return tensor;
    snprintf(old, sizeof old, "%.*s%s", (int)(dot - name), name, !strcmp(dot, ".weight") ? ".gamma" : ".beta");
    return slc_tensors_find(tensors, old);
}

/* Finds the parameter that is the table of all blocks' positions in a model that shares one. */
static bool find_shared_positions(const sluice_model_config *model, slc_param_info *out)
{
    sluice_model_config sharing = *model;
    sharing.relative_positions = false;
    sharing.shared_positions = true;
    for (uint32_t i = 0; slc_param_info_at(&sharing, i, out) && out->layer == SLC_LAYER_EMBED; i++)
        if (out->place == SLC_RELATIVE_TABLE) return true;
    return false;
}

/* Finds the tensor of a parameter. A file may have a parameter under its second name, under the first, or under both,
 * equal. */
static const slc_tensor *find_named(const matching *m, const slc_param_info *info)
{
    const size_t length = strlen(m->prefix);
    const slc_tensor *tensor = find_by_name(m->tensors, info->full_name);
    if (!tensor && !m->prefixed && !strncmp(info->full_name, m->prefix, length))
        tensor = find_by_name(m->tensors, info->full_name + length);
    const char *second = slc_param_second_name(m->model, info->place);
    const bool own = m->file->untied && info->place == SLC_TOKEN_TABLE; /* the second name is another matrix's */
    return tensor || !second || own ? tensor : slc_tensors_find(m->tensors, second);
}

/* Finds the tensor of a parameter as find_named does. A block's own table of positions begins as a copy of the one that
 * the blocks of the file share. */
static const slc_tensor *find_tensor(const matching *m, const slc_param_info *info)
{
    slc_param_info shared;
    const slc_tensor *tensor = find_named(m, info);
    if (tensor || info->place != SLC_RELATIVE_TABLE || info->layer != SLC_LAYER_BLOCK) return tensor;
    return find_shared_positions(m->model, &shared) ? find_named(m, &shared) : NULL;
}

/* True if the parameter is one of the head. The last norm of GPT-2 and ViT is a part of every trunk; the mask token
 * comes and goes with BEiT's head. */
static bool belongs_to_head(const sluice_model_config *model, const slc_param_info *info)
{
    const bool norm = info->place == SLC_HEAD_NORM_WEIGHT || info->place == SLC_HEAD_NORM_BIAS;
    if (info->place == SLC_TRUNK_NORM_WEIGHT || info->place == SLC_TRUNK_NORM_BIAS) return false;
    if (norm && slc_family_of(model->family)->norm_of_trunk) return false;
    return info->layer == SLC_LAYER_HEAD || info->place == SLC_MASK_TOKEN;
}

/* Returns true if the tensor differs from the parameter in the number of classes at most. */
static bool has_other_classes(const sluice_model_config *model, const slc_param_info *info, const slc_tensor *tensor)
{
    if (model->head != SLUICE_HEAD_CLASSES || tensor->rank != info->rank) return false;
    if (info->place != SLC_DECODER_WEIGHT && info->place != SLC_DECODER_BIAS) return false;
    return !memcmp(tensor->shape + 1, info->shape + 1, (info->rank - 1) * sizeof *info->shape);
}

static sluice_status missing(const matching *m, const slc_param_info *info)
{
    const bool head = m->file->headless && belongs_to_head(m->model, info);
    return slc_error(SLUICE_ERR_FORMAT, "%s: tensor \"%s\" is missing%s", m->path, info->full_name,
                     head ? "; these are weights without a head, which training begins anew" : "");
}

/* *tensor becomes NULL if the parameter is new. */
static sluice_status check_shape(const matching *m, const slc_param_info *info, const slc_tensor **tensor)
{
    char has[64], wants[64];
    const slc_tensor *t = *tensor;
    const char *path = slc_tensors_path(m->tensors, t);
    if (!slc_tensor_dtype_is_real(t->dtype))
        return slc_error(SLUICE_ERR_FORMAT, "%s: tensor \"%s\" has type %s; a weight is F32, F16, BF16 or F64", path,
                         t->name, slc_tensor_dtype_name(t->dtype));
    if (t->rank == info->rank && !memcmp(t->shape, info->shape, info->rank * sizeof *info->shape)) return SLUICE_OK;
    if (m->new_head && has_other_classes(m->model, info, t)) {
        *tensor = NULL;
        return SLUICE_OK;
    }
    slc_tensor_shape_text(t->rank, t->shape, has, sizeof has);
    slc_tensor_shape_text(info->rank, info->shape, wants, sizeof wants);
    return slc_error(SLUICE_ERR_FORMAT, "%s: tensor \"%s\" has shape %s, the model's is %s", path, t->name, has, wants);
}

/* Finds the tensor of each parameter. passed[t] becomes true for every tensor that is known, even if no parameter takes
 * it. */
static sluice_status match_params(const matching *m, bool *passed, slc_weight_matches *out)
{
    slc_param_info info;
    sluice_status status = SLUICE_OK;
    for (uint32_t i = 0; !status && slc_param_info_at(m->model, i, &info); i++) {
        const slc_tensor *tensor = find_tensor(m, &info);
        if (!tensor && !(m->new_head && belongs_to_head(m->model, &info))) return missing(m, &info);
        if (tensor) passed[index_of(m->tensors, tensor)] = true;
        if (tensor) status = check_shape(m, &info, &tensor);
        if (tensor) out->used[index_of(m->tensors, tensor)] = true;
        out->of_param[i] = tensor;
        out->fresh += !tensor;
    }
    return status;
}

/* ---- Copies ---- */

static sluice_status own_head(const matching *m, const slc_tensor *copy, const slc_tensor *of, const char *how)
{
    return slc_error(SLUICE_ERR_UNSUPPORTED,
                     "%s: tensor \"%s\" is not the same as \"%s\"%s: a head that does not share the token table is not "
                     "supported",
                     slc_tensors_path(m->tensors, copy), copy->name, of->name, how);
}

static sluice_status match_copy(const matching *m, const slc_param_info *info, const slc_tensor *of, bool *passed,
                                slc_weight_matches *out)
{
    char how[160], has[64], wants[64];
    const char *second = slc_param_second_name(m->model, info->place);
    const slc_tensor *copy = slc_tensors_find(m->tensors, second);
    if (!copy && m->file->untied && info->place == SLC_TOKEN_TABLE)
        return slc_error(
            SLUICE_ERR_UNSUPPORTED,
            "%s: config.json says \"tie_word_embeddings\": false, and tensor \"%s\" is missing: a head that "
            "does not share the token table is not supported",
            m->path, second);
    if (!copy || copy == of) return SLUICE_OK;
    const size_t index = index_of(m->tensors, copy);
    passed[index] = true;
    out->copy_of[index] = of;
    if (!slc_tensor_dtype_is_real(copy->dtype)) {
        snprintf(how, sizeof how, ", for it has type %s", slc_tensor_dtype_name(copy->dtype));
        return own_head(m, copy, of, how);
    }
    if (copy->rank == of->rank && !memcmp(copy->shape, of->shape, of->rank * sizeof *of->shape)) return SLUICE_OK;
    slc_tensor_shape_text(copy->rank, copy->shape, has, sizeof has);
    slc_tensor_shape_text(of->rank, of->shape, wants, sizeof wants);
    snprintf(how, sizeof how, ", for it has shape %s and not %s", has, wants);
    return own_head(m, copy, of, how);
}

/* Finds the tensors that are copies of a shared parameter. A model that answers with classes has no use for them: they
 * belong to a head that it does not have. */
static sluice_status match_copies(const matching *m, bool *passed, slc_weight_matches *out)
{
    slc_param_info info;
    sluice_status status = SLUICE_OK;
    if (m->model->head != SLUICE_HEAD_TOKENS) return status;
    for (uint32_t i = 0; !status && slc_param_info_at(m->model, i, &info); i++) {
        if (slc_param_second_name(m->model, info.place) && out->of_param[i])
            status = match_copy(m, &info, out->of_param[i], passed, out);
    }
    return status;
}

/* ---- Everything else ---- */

/* Returns true if the name fits a pattern of slc_family.dropped. */
static bool fits(const char *pattern, const char *name, uint32_t layers)
{
    while (*pattern && *pattern != '*') {
        if (*pattern != '#') {
            if (*pattern++ != *name++) return false;
            continue;
        }
        char *end;
        if (!isdigit((unsigned char)*name) || strtoul(name, &end, 10) >= layers) return false;
        pattern++;
        name = end;
    }
    return *pattern == '*' || !*name;
}

/* Returns the name without the prefix. *lacks: the file's names have the prefix, and this one has not. */
static const char *without_prefix(const matching *m, const char *name, bool *lacks)
{
    const size_t length = strlen(m->prefix);
    const bool has = !strncmp(name, m->prefix, length);
    *lacks = m->prefixed && !has;
    return has ? name + length : name;
}

static bool is_dropped(const matching *m, const char *name)
{
    bool lacks;
    const char *rest = without_prefix(m, name, &lacks);
    for (const char *const *dropped = slc_family_of(m->model->family)->dropped; *dropped; dropped++)
        if (**dropped == '!' ? fits(*dropped + 1, name, m->model->layers)
                             : !lacks && fits(*dropped, rest, m->model->layers))
            return true;
    return false;
}

/* Returns true if the tensor of this name belongs to a head, of this or another kind. */
static bool is_of_a_head(const matching *m, const char *name)
{
    static const char *const modules[] = {"pooler.", "layernorm.", "cls.", "classifier.", "lm_head."};
    bool lacks;
    const char *rest = without_prefix(m, name, &lacks);
    if (lacks) return true;
    for (size_t i = 0; i < sizeof modules / sizeof *modules; i++)
        if (!strncmp(rest, modules[i], strlen(modules[i]))) return true;
    return false;
}

static sluice_status match_rest(const matching *m, const bool *passed)
{
    for (size_t i = 0; i < slc_tensors_count(m->tensors); i++) {
        const slc_tensor *tensor = slc_tensors_at(m->tensors, i);
        if (passed[i] || is_dropped(m, tensor->name) || (m->new_head && is_of_a_head(m, tensor->name))) continue;
        return slc_error(SLUICE_ERR_FORMAT, "%s: tensor \"%s\" is none of the model's",
                         slc_tensors_path(m->tensors, tensor), tensor->name);
    }
    return SLUICE_OK;
}

static uint32_t count_params(const sluice_model_config *model)
{
    slc_param_info info;
    uint32_t count = 0;
    while (slc_param_info_at(model, count, &info)) count++;
    return count;
}

sluice_status slc_weights_match(const sluice_model_config *model, const slc_config *file, const slc_tensors *tensors,
                                const char *path, bool new_head, slc_weight_matches *out)
{
    const matching m = begin(model, file, tensors, path, new_head);
    const size_t count = slc_tensors_count(tensors) + 1; /* never of 0 bytes */
    const uint32_t params = count_params(model);
    *out = (slc_weight_matches){.tensors = tensors,
                                .of_param = calloc(params, sizeof *out->of_param),
                                .params = params,
                                .used = calloc(count, sizeof *out->used),
                                .copy_of = calloc(count, sizeof *out->copy_of),
                                .fingerprint = calloc(count, sizeof *out->fingerprint)};
    bool *passed = calloc(count, sizeof *passed);
    sluice_status status = SLUICE_OK;
    if (!out->of_param || !out->used || !out->copy_of || !out->fingerprint || !passed)
        status = slc_error(SLUICE_ERR_MEMORY, "loading %s", path);
    if (!status) status = match_params(&m, passed, out);
    if (!status) status = match_copies(&m, passed, out);
    if (!status) status = match_rest(&m, passed);
    free(passed);
    return status;
}

void slc_weight_matches_free(slc_weight_matches *matches)
{
    free(matches->of_param);
    free(matches->used);
    free(matches->copy_of);
    free(matches->fingerprint);
}

sluice_status slc_weights_have_layers(const sluice_model_config *model, const slc_config *file,
                                      const slc_tensors *tensors, const char *path)
{
    const matching m = begin(model, file, tensors, path, false);
    slc_param_info info;
    for (uint32_t i = 0; slc_param_info_at(model, i, &info); i++) {
        if (belongs_to_head(model, &info) || find_tensor(&m, &info)) continue;
        if (info.layer != SLC_LAYER_BLOCK) return missing(&m, &info);
        return slc_error(SLUICE_ERR_FORMAT, "%s: tensor \"%s\" is missing, and the configuration has %u layers", path,
                         info.full_name, model->layers);
    }
    return SLUICE_OK;
}

/* ---- Values ---- */

/* Compares a copy with what it copies. Values are compared as numbers, so that NaN equals nothing. */
static sluice_status compare_copy(const slc_tensors *tensors, const slc_tensor *copy, const slc_tensor *of,
                                  float *pieces)
{
    sluice_status status = SLUICE_OK;
    for (uint64_t first = 0; !status && first < of->elements; first += PIECE) {
        uint64_t left = of->elements - first, count = left < PIECE ? left : PIECE;
        status = slc_tensors_read_float(tensors, of, first, count, pieces);
        if (!status) status = slc_tensors_read_float(tensors, copy, first, count, pieces + PIECE);
        for (uint64_t i = 0; !status && i < count; i++)
            if (pieces[i] != pieces[PIECE + i])
                return slc_error(SLUICE_ERR_UNSUPPORTED,
                                 "%s: tensor \"%s\" is not the same as \"%s\": element %llu is %.9g, not %.9g. A head "
                                 "that does not share the token table is not supported",
                                 slc_tensors_path(tensors, copy), copy->name, of->name, (unsigned long long)(first + i),
                                 (double)pieces[PIECE + i], (double)pieces[i]);
    }
    return status;
}

static sluice_status compare_copies(const slc_weight_matches *matches)
{
    float *pieces = NULL;
    sluice_status status = SLUICE_OK;
    for (size_t i = 0; !status && i < slc_tensors_count(matches->tensors); i++) {
        const slc_tensor *copy = slc_tensors_at(matches->tensors, i);
        if (!matches->copy_of[i]) continue;
        if (!pieces && !(pieces = malloc(2 * PIECE * sizeof *pieces)))
            return slc_error(SLUICE_ERR_MEMORY, "comparing tensor \"%s\"", copy->name);
        status = compare_copy(matches->tensors, copy, matches->copy_of[i], pieces);
    }
    free(pieces);
    return status;
}

sluice_status slc_weights_check_values(slc_weight_matches *matches, bool fingerprints)
{
    sluice_status status = SLUICE_OK;
    for (uint32_t i = 0; !status && i < matches->params; i++) {
        const slc_tensor *tensor = matches->of_param[i];
        slc_fingerprint of_values = {0};
        if (!tensor) continue;
        status = slc_tensors_check_finite(matches->tensors, tensor, fingerprints ? &of_values : NULL);
        if (!status && fingerprints)
            matches->fingerprint[index_of(matches->tensors, tensor)] = slc_fingerprint_end(&of_values);
    }
    return status ? status : compare_copies(matches);
}
