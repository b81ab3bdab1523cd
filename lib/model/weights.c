/* Weights in and out. The table of parameters has Hugging Face's names and shapes. So loading looks up every parameter
 * in the file and makes sure that the file has nothing else. Everything is checked before anything is changed. */
#include "lib/base/hash/fnv.h"
#include "lib/base/status.h"
#include "lib/model/model.h"
#include "lib/model/shape.h"
#include "lib/weights/checkpoint.h"
#include "lib/weights/safetensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { PIECE = 1 << 18 }; /* elements at a time */

/* ---- Configurations ---- */

static const slc_architecture architectures[SLUICE_MODEL_FAMILIES][2] = {
    [SLUICE_GPT2] = {SLC_GPT2_LM_HEAD_MODEL, SLC_GPT2_LM_HEAD_MODEL},
    [SLUICE_BERT] = {SLC_BERT_FOR_MASKED_LM, SLC_BERT_FOR_SEQUENCE_CLASSIFICATION},
    [SLUICE_VIT] = {SLC_VIT_FOR_IMAGE_CLASSIFICATION, SLC_VIT_FOR_IMAGE_CLASSIFICATION},
    [SLUICE_BEIT] = {SLC_BEIT_FOR_MASKED_IMAGE_MODELING, SLC_BEIT_FOR_IMAGE_CLASSIFICATION},
};

static sluice_model_head head_of(slc_architecture architecture)
{
    bool tokens = architecture == SLC_GPT2_LM_HEAD_MODEL || architecture == SLC_BERT_FOR_MASKED_LM ||
                  architecture == SLC_BEIT_FOR_MASKED_IMAGE_MODELING;
    return tokens ? SLUICE_HEAD_TOKENS : SLUICE_HEAD_CLASSES;
}

static void from_file(const slc_config *c, sluice_model_config *out)
{
    sluice_model_head head = head_of(c->architecture);
    *out = (sluice_model_config){
        .struct_size = sizeof(sluice_model_config),
        .family = (sluice_model_family)c->family,
        .head = head,
        .layers = c->layers,
        .channels = c->channels,
        .heads = c->heads,
        .hidden = c->inner,
        .vocabulary = head == SLUICE_HEAD_TOKENS || c->positions ? c->vocabulary : 0,
        .context = c->positions,
        .types = c->types,
        .padding = c->padding,
        .image_size = c->image,
        .patch_size = c->patch,
        .image_channels = c->image_channels,
        .classes = head == SLUICE_HEAD_CLASSES ? c->labels : 0,
        .epsilon = c->epsilon,
        .mask_token = c->mask_token,
        .absolute_positions = c->family == SLC_FAMILY_VIT || c->absolute_positions,
        .relative_positions = c->relative_bias,
        .shared_positions = c->shared_relative_bias,
        .no_qkv_bias = c->family == SLC_FAMILY_VIT && !c->qkv_bias,
        .first_row_pooling = c->family == SLC_FAMILY_BEIT && !c->mean_pooling,
        .layer_scale = c->layer_scale,
        .gelu_tanh = c->activation == SLC_ACTIVATION_GELU_TANH,
        .begin_token = c->begin_token <= c->vocabulary ? c->begin_token : 0,
        .end_token = c->end_token <= c->vocabulary ? c->end_token : 0,
    };
}

static void to_file(const sluice_model_config *m, slc_config *out)
{
    slc_config_defaults(architectures[m->family][m->head == SLUICE_HEAD_CLASSES], out);
    out->channels = m->channels;
    out->layers = m->layers;
    out->heads = m->heads;
    out->inner = m->hidden;
    out->activation = m->gelu_tanh ? SLC_ACTIVATION_GELU_TANH : SLC_ACTIVATION_GELU_ERF;
    out->epsilon = m->epsilon;
    out->dropout = out->embedding_dropout = out->attention_dropout = out->classifier_dropout = m->dropout;
    if (m->classes) out->labels = m->classes;
    if (m->vocabulary) out->vocabulary = m->vocabulary;
    out->positions = m->context;
    out->types = m->types;
    out->padding = m->padding;
    out->image = m->image_size;
    out->patch = m->patch_size;
    out->image_channels = m->image_channels;
    out->qkv_bias = !m->no_qkv_bias;
    out->mask_token = m->mask_token;
    out->absolute_positions = m->family == SLUICE_BEIT && m->absolute_positions;
    out->relative_bias = m->relative_positions;
    out->shared_relative_bias = m->shared_positions;
    out->mean_pooling = !m->first_row_pooling;
    out->layer_scale = m->layer_scale;
    out->begin_token = m->begin_token;
    out->end_token = m->end_token;
}

static sluice_status give_config(const slc_config *config, const char *path, sluice_model_config *out)
{
    sluice_model_config model;
    from_file(config, &model);
    sluice_status status = slc_error_context(sluice_model_config_check(&model), "%s", path);
    return status ? status : slc_model_config_give(&model, out);
}

sluice_status sluice_model_config_read(const char *path, sluice_model_config *out)
{
    slc_config config;
    slc_tensors *tensors = NULL;
    if (!path || !out) return slc_model_lacks("model_config_read", path ? "place for the result" : "path");
    sluice_status status = slc_checkpoint_open(path, &config, &tensors);
    slc_tensors_close(tensors);
    if (status) return status;
    return give_config(&config, path, out);
}

sluice_status slc_model_shape_read(const char *path, sluice_model_config *out)
{
    slc_config config;
    struct stat info;
    const char *ending = strrchr(path, '.');
    const bool alone = ending && !strcmp(ending, ".json");
    if (!alone && (stat(path, &info) || !S_ISDIR(info.st_mode))) return sluice_model_config_read(path, out);
    sluice_status status = slc_config_read(path, &config);
    return status ? status : give_config(&config, path, out);
}

/* ---- Loading ---- */

typedef struct {
    const slc_tensors *tensors;
    const slc_tensor **of_param; /* NULL: the parameter is kept as it is */
    bool *used;                  /* by index in the set of tensors */
    uint32_t *checksum;          /* the same: of the values, where they are used */
} matches;

/* Tensors that a file may have besides the parameters: copies of tied tensors, buffers, and heads of pre-training that
 * Hugging Face drops too. */
static bool is_harmless(const char *name)
{
    static const char *const endings[] = {".attn.bias",
                                          ".attn.masked_bias",
                                          "lm_head.weight",
                                          "cls.predictions.decoder.weight",
                                          "cls.predictions.decoder.bias",
                                          "embeddings.position_ids",
                                          "cls.seq_relationship.weight",
                                          "cls.seq_relationship.bias",
                                          "relative_position_index",
                                          "pooler.dense.weight",
                                          "pooler.dense.bias"};
    size_t length = strlen(name);
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        size_t ending = strlen(endings[i]);
        if (length >= ending && !strcmp(name + length - ending, endings[i])) return true;
    }
    return false;
}

/* Old BERT files call a norm's parameters gamma and beta. */
static const slc_tensor *find_old_norm(const slc_tensors *tensors, const char *name)
{
    char old[128];
    const char *dot = strrchr(name, '.');
    if (!dot || !strstr(name, "LayerNorm.")) return NULL;
    snprintf(old, sizeof old, "%.*s%s", (int)(dot - name), name, !strcmp(dot, ".weight") ? ".gamma" : ".beta");
    return slc_tensors_find(tensors, old);
}

/* Looks for the name in the model with its head, then for the name in the bare model, which has no prefix. */
static const slc_tensor *find(const slc_tensors *tensors, const char *name, const char *prefix)
{
    const slc_tensor *tensor = slc_tensors_find(tensors, name);
    if (!tensor) tensor = find_old_norm(tensors, name);
    size_t length = strlen(prefix);
    if (tensor || strncmp(name, prefix, length)) return tensor;
    tensor = slc_tensors_find(tensors, name + length);
    return tensor ? tensor : find_old_norm(tensors, name + length);
}

static sluice_status check_tensor(const slc_tensors *tensors, const slc_tensor *tensor, const slc_param_info *info,
                                  uint32_t *checksum)
{
    char has[64], wants[64];
    bool same = tensor->rank == info->rank && !memcmp(tensor->shape, info->shape, info->rank * sizeof *info->shape);
    if (!slc_tensor_dtype_is_real(tensor->dtype))
        return slc_error(SLUICE_ERR_FORMAT, "%s: tensor \"%s\" has type %s; a weight is F32, F16, BF16 or F64",
                         slc_tensors_path(tensors, tensor), tensor->name, slc_tensor_dtype_name(tensor->dtype));
    if (!same) {
        slc_tensor_shape_text(tensor->rank, tensor->shape, has, sizeof has);
        slc_tensor_shape_text(info->rank, info->shape, wants, sizeof wants);
        return slc_error(SLUICE_ERR_FORMAT, "%s: tensor \"%s\" has shape %s, the model's is %s",
                         slc_tensors_path(tensors, tensor), tensor->name, has, wants);
    }
    return slc_tensors_check_finite(tensors, tensor, checksum);
}

static size_t index_of(const slc_tensors *tensors, const slc_tensor *tensor)
{
    return (size_t)(tensor - slc_tensors_at(tensors, 0));
}

static sluice_status match_params(const sluice_model *m, const char *path, bool trunk, matches *out)
{
    slc_param_info info;
    const char *prefix = slc_model_prefix(m->config.family);
    sluice_status status = SLUICE_OK;
    for (uint32_t i = 0; !status && slc_param_info_at(&m->config, i, &info); i++) {
        if (trunk && info.layer == SLC_LAYER_HEAD) continue;
        const slc_tensor *tensor = find(out->tensors, info.full_name, prefix);
        if (!tensor) return slc_error(SLUICE_ERR_FORMAT, "%s: tensor \"%s\" is missing", path, info.full_name);
        size_t index = index_of(out->tensors, tensor);
        status = check_tensor(out->tensors, tensor, &info, &out->checksum[index]);
        out->of_param[i] = tensor;
        out->used[index] = true;
    }
    return status;
}

/* Does the tensor belong to a head, of this or another kind? */
static bool is_head(const char *name, const char *prefix)
{
    size_t length = strlen(prefix);
    if (strncmp(name, prefix, length)) return true;
    name += length;
    return !strncmp(name, "pooler.", 7) || !strncmp(name, "layernorm.", 10);
}

static sluice_status match_rest(const sluice_model *m, bool trunk, const matches *found)
{
    const char *prefix = slc_model_prefix(m->config.family);
    for (size_t i = 0; i < slc_tensors_count(found->tensors); i++) {
        const slc_tensor *tensor = slc_tensors_at(found->tensors, i);
        if (found->used[i] || is_harmless(tensor->name)) continue;
        if (trunk && is_head(tensor->name, prefix)) continue;
        return slc_error(SLUICE_ERR_FORMAT, "%s: tensor \"%s\" is none of the model's",
                         slc_tensors_path(found->tensors, tensor), tensor->name);
    }
    return SLUICE_OK;
}

/* ---- The same on every rank ---- */

/* A file, and a hash of what is used of it. */
typedef struct {
    const char *path;
    uint64_t hash;
} used_file;

static uint32_t list_used_files(const matches *found, used_file *files)
{
    uint32_t count = 0;
    for (size_t i = 0; i < slc_tensors_count(found->tensors); i++) {
        if (!found->used[i]) continue;
        const char *path = slc_tensors_path(found->tensors, slc_tensors_at(found->tensors, i));
        uint32_t f = 0;
        while (f < count && strcmp(files[f].path, path)) f++;
        if (f == count) files[count++] = (used_file){path, SLC_FNV_START};
        files[f].hash = slc_fnv(files[f].hash, &found->checksum[i], sizeof *found->checksum);
    }
    return count;
}

/* A hash of all that a configuration says: of its numbers one by one, for there are bytes between them. */
static uint64_t hash_config(const slc_config *config)
{
    sluice_model_config m;
    from_file(config, &m);
    const double numbers[] = {m.family,
                              m.head,
                              m.layers,
                              m.channels,
                              m.heads,
                              m.hidden,
                              m.vocabulary,
                              m.context,
                              m.types,
                              m.padding,
                              m.image_size,
                              m.patch_size,
                              m.classes,
                              m.image_channels,
                              m.epsilon,
                              m.mask_token,
                              m.layer_scale,
                              m.gelu_tanh,
                              m.absolute_positions,
                              m.relative_positions,
                              m.shared_positions,
                              m.no_qkv_bias,
                              m.first_row_pooling,
                              (double)m.begin_token,
                              (double)m.end_token};
    return slc_fnv(SLC_FNV_START, numbers, sizeof numbers);
}

/* One path may lead to another file on each host: what has been read is compared, file by file, before anything is
 * changed. */
static sluice_status compare_files(const sluice_model *m, const char *path, const slc_config *config,
                                   const matches *found)
{
    sluice_world *world = sluice_runtime_world(m->rt);
    char what[4200];
    used_file *files = malloc((slc_tensors_count(found->tensors) + 1) * sizeof *files);
    if (!files) return slc_error(SLUICE_ERR_MEMORY, "loading %s", path);
    uint32_t count = list_used_files(found, files);
    snprintf(what, sizeof what, "configuration in %s (config.json)", path);
    sluice_status status = sluice_world_same(world, what, hash_config(config));
    snprintf(what, sizeof what, "number of weight files in %s", path);
    if (!status) status = sluice_world_same(world, what, count);
    for (uint32_t f = 0; !status && f < count; f++) {
        snprintf(what, sizeof what, "%s", files[f].path);
        status = sluice_world_same(world, what, files[f].hash);
    }
    free(files);
    return status;
}

static sluice_status write_param(sluice_param *param, const slc_tensors *tensors, const slc_tensor *tensor,
                                 float *piece)
{
    sluice_status status = SLUICE_OK;
    for (uint64_t first = 0; !status && first < tensor->elements; first += PIECE) {
        uint64_t left = tensor->elements - first, count = left < PIECE ? left : PIECE;
        status = slc_tensors_read_float(tensors, tensor, first, count, piece);
        if (!status) status = sluice_param_write(param, first, count, piece);
    }
    return status;
}

sluice_status sluice_model_load(sluice_model *m, const char *path, bool trunk)
{
    slc_config config;
    slc_tensors *tensors = NULL;
    if (!m || !path) return slc_model_lacks("model_load", m ? "path" : "model");
    sluice_status status = slc_checkpoint_open(path, &config, &tensors);
    if (status) return status;
    uint32_t params = sluice_runtime_param_count(m->rt);
    matches found = {.tensors = tensors,
                     .of_param = calloc(params, sizeof *found.of_param),
                     .used = calloc(slc_tensors_count(tensors) + 1, sizeof *found.used),
                     .checksum = calloc(slc_tensors_count(tensors) + 1, sizeof *found.checksum)};
    float *piece = malloc(PIECE * sizeof *piece);
    if (!found.of_param || !found.used || !found.checksum || !piece) {
        status = slc_error(SLUICE_ERR_MEMORY, "loading %s", path);
        goto done;
    }
    status = match_params(m, path, trunk, &found);
    if (!status) status = match_rest(m, trunk, &found);
    if (!status) status = compare_files(m, path, &config, &found);
    for (uint32_t i = 0; !status && i < params; i++)
        if (found.of_param[i]) status = write_param(sluice_runtime_param(m->rt, i), tensors, found.of_param[i], piece);

done:
    free(piece);
    free(found.checksum);
    free(found.used);
    free(found.of_param);
    slc_tensors_close(tensors);
    return status;
}

/* ---- Saving ---- */

static sluice_status declare_all(const sluice_model *m, slc_safetensors_writer *writer)
{
    slc_param_info info;
    sluice_status status = SLUICE_OK;
    for (uint32_t i = 0, index; !status && slc_param_info_at(&m->config, i, &info); i++)
        status = slc_safetensors_declare(writer, info.full_name, SLC_TENSOR_F32, info.rank, info.shape, &index);
    return status;
}

/* Every rank reads, because reading is collective; only rank 0 has a writer. */
static sluice_status stream_all(const sluice_model *m, slc_safetensors_writer *writer, float *piece)
{
    sluice_status status = SLUICE_OK, written = SLUICE_OK;
    for (uint32_t i = 0; !status && i < sluice_runtime_param_count(m->rt); i++) {
        sluice_param *param = sluice_runtime_param(m->rt, i);
        uint64_t elements = sluice_param_count(param);
        for (uint64_t first = 0; !status && first < elements; first += PIECE) {
            uint64_t left = elements - first, count = left < PIECE ? left : PIECE;
            status = sluice_param_read(param, first, count, piece);
            if (!status && writer && !written) written = slc_safetensors_write_float(writer, i, count, piece);
        }
    }
    return status ? status : written;
}

static sluice_status begin_folder(const sluice_model *m, const char *folder, slc_safetensors_writer **out)
{
    char path[4096];
    if (snprintf(path, sizeof path, "%s/model.safetensors", folder) >= (int)sizeof path)
        return slc_error(SLUICE_ERR_ARGUMENT, "%s: the path is too long", folder);
    sluice_status status = slc_safetensors_create(path, out);
    return status ? status : declare_all(m, *out);
}

sluice_status sluice_model_save(sluice_model *m, const char *folder)
{
    if (!m || !folder) return slc_model_lacks("model_save", m ? "folder" : "model");
    sluice_world *world = sluice_runtime_world(m->rt);
    bool writes = sluice_world_rank(world) == 0;
    slc_safetensors_writer *writer = NULL;
    slc_config config;
    float *piece = malloc(PIECE * sizeof *piece);
    sluice_status mine = piece ? SLUICE_OK : slc_error(SLUICE_ERR_MEMORY, "saving to %s", folder);
    if (!mine && writes) mine = begin_folder(m, folder, &writer);
    double failed = mine != SLUICE_OK;
    sluice_status status = sluice_world_all_reduce(world, &failed, 1);
    if (!status && !mine && !failed) mine = stream_all(m, writer, piece);
    to_file(&m->config, &config);
    if (!status && !mine && !failed && writer) mine = slc_config_write(folder, &config);
    if (!status && !mine && !failed && writer) mine = slc_safetensors_commit(writer);
    slc_safetensors_destroy(writer);
    free(piece);
    if (mine || status) return mine ? mine : status;
    if (failed) return slc_error(SLUICE_ERR_IO, "another rank could not write %s", folder);
    return SLUICE_OK;
}
