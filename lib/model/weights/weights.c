/* Weights in and out. Everything that a file has is checked before anything is changed. */
#include "lib/base/file/path_in.h"
#include "lib/base/hash/fnv.h"
#include "lib/base/status.h"
#include "lib/model/model.h"
#include "lib/model/state.h"
#include "lib/model/weights/weights_parts.h"
#include "lib/weights/checkpoint.h"
#include "lib/weights/safetensors/safetensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE = 1 << 18 }; /* elements at a time */

/* ---- The same on every rank ---- */

/* A file, and a hash of what is used of it. */
typedef struct {
    const char *path;
    uint64_t hash;
} used_file;

static uint32_t list_used_files(const slc_weight_matches *found, used_file *files)
{
    uint32_t count = 0;
    for (size_t i = 0; i < slc_tensors_count(found->tensors); i++) {
        if (!found->used[i]) continue;
        const char *path = slc_tensors_path(found->tensors, slc_tensors_at(found->tensors, i));
        uint32_t f = 0;
        while (f < count && strcmp(files[f].path, path)) f++;
        if (f == count) files[count++] = (used_file){path, SLC_FNV_START};
        files[f].hash = slc_fingerprint_join(files[f].hash, found->fingerprint[i]);
    }
    return count;
}

/* A hash of all that a configuration says: of its numbers one by one, for there are bytes between them. */
static uint64_t hash_config(const slc_config *config)
{
    sluice_model_config m;
    slc_model_config_from_file(config, &m);
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

/* Compares what all ranks have read, file by file, before anything is changed: one path may lead to another file on
 * each host. */
static sluice_status compare_files(const sluice_model *m, const char *path, const slc_config *config,
                                   const slc_weight_matches *found)
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

/* Finds out whether all ranks have opened one and the same file: then they need no fingerprints of it. */
static sluice_status open_one_file(const sluice_model *m, const slc_tensors *tensors, bool *one)
{
    sluice_world *world = sluice_runtime_world(m->rt);
    const size_t size = (size_t)sluice_world_size(world);
    uint64_t mine = SLC_FNV_START, *all = malloc(size * sizeof *all);
    if (!all) return slc_error(SLUICE_ERR_MEMORY, "identities of the files of %zu ranks", size);
    sluice_status status = slc_tensors_identity(tensors, &mine);
    if (!status) status = sluice_world_all_gather(world, &mine, sizeof mine, all);
    *one = true;
    for (size_t rank = 0; !status && rank < size; rank++) *one &= all[rank] == mine;
    free(all);
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

/* Afterwards the model has the names of the parameters that are new. */
static sluice_status list_new(sluice_model *m, const slc_weight_matches *found)
{
    slc_param_info info;
    void *names = calloc(found->fresh + 1, sizeof *m->new_params);
    if (!names) return slc_error(SLUICE_ERR_MEMORY, "names of new parameters");
    free(m->new_params);
    m->new_params = names;
    m->new_count = 0;
    for (uint32_t i = 0; slc_param_info_at(&m->config, i, &info); i++)
        if (!found->of_param[i]) memcpy(m->new_params[m->new_count++], info.full_name, sizeof info.full_name);
    return SLUICE_OK;
}

const char *sluice_model_new_param(const sluice_model *m, uint32_t index)
{
    return m && index < m->new_count ? m->new_params[index] : NULL;
}

sluice_status sluice_model_load(sluice_model *m, const char *path, bool new_head)
{
    slc_config config;
    slc_tensors *tensors = NULL;
    slc_weight_matches found = {0};
    float *piece = NULL;
    bool one = false;
    if (!m || !path) return slc_model_lacks("model_load", m ? "path" : "model");
    sluice_status status = slc_checkpoint_open(path, &config, &tensors);
    if (!status) status = slc_weights_match(&m->config, &config, tensors, path, new_head, &found);
    if (!status) status = open_one_file(m, tensors, &one);
    if (!status) status = slc_weights_check_values(&found, !one);
    if (!status) status = compare_files(m, path, &config, &found);
    if (!status) status = list_new(m, &found);
    if (!status && !(piece = malloc(PIECE * sizeof *piece))) status = slc_error(SLUICE_ERR_MEMORY, "loading %s", path);
    for (uint32_t i = 0; !status && i < found.params; i++)
        if (found.of_param[i]) status = write_param(sluice_runtime_param(m->rt, i), tensors, found.of_param[i], piece);
    free(piece);
    slc_weight_matches_free(&found);
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

/* Reads all parameters, and writes them if there is a writer. Every rank reads, because reading is collective; only
 * rank 0 has a writer. */
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
    char path[PATH_MAX];
    sluice_status status = slc_path_in(folder, "model.safetensors", path);
    if (!status) status = slc_safetensors_create(path, out);
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
    slc_model_config_to_file(&m->config, &config);
    if (!status && !mine && !failed && writer) mine = slc_config_write(folder, &config);
    if (!status && !mine && !failed && writer) mine = slc_safetensors_commit(writer);
    slc_safetensors_destroy(writer);
    free(piece);
    if (mine || status) return mine ? mine : status;
    if (failed) return slc_error(SLUICE_ERR_IO, "another rank could not write %s", folder);
    return SLUICE_OK;
}
