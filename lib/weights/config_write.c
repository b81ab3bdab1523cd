/* Writes the keys of the family, and the others that transformers needs.
 * config_test.c covers this file. */
#include "lib/weights/config.h"

#include "lib/base/file/json_file.h"
#include "lib/base/file/path_in.h"
#include "lib/base/status.h"
#include "lib/weights/config_keys.h"
#include "lib/weights/family.h"

#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

static json_t *value_of(const slc_config_key *row, const void *field)
{
    switch (row->type) {
    case SLC_KEY_COUNT:
    case SLC_KEY_SIDE: return json_integer(*(const uint32_t *)field);
    case SLC_KEY_FLAG: return json_boolean(*(const bool *)field);
    case SLC_KEY_ACTIVATION:
        return json_string(*(const slc_activation *)field == SLC_ACTIVATION_GELU_TANH ? "gelu_new" : "gelu");
    case SLC_KEY_REAL: break;
    }
    return json_real(*(const double *)field);
}

static int set_labels(json_t *root, uint32_t labels)
{
    json_t *names = json_object(), *ids = json_object();
    int failed = json_object_set_new(root, "id2label", names) | json_object_set_new(root, "label2id", ids);
    for (uint32_t i = 0; i < labels && !failed; i++) {
        char id[16], name[32];
        snprintf(id, sizeof id, "%u", i);
        snprintf(name, sizeof name, "LABEL_%u", i);
        failed = json_object_set_new(names, id, json_string(name)) | json_object_set_new(ids, name, json_integer(i));
    }
    return failed;
}

/* Writes the number of a token around a text. A GPT-2 without such a token says so, because transformers takes 50256 if
 * nothing is said. */
static int set_token(json_t *root, const slc_config *config, const char *key, uint64_t token)
{
    bool exists = token && token <= config->vocabulary;
    slc_config defaults;
    slc_config_defaults(config->family, config->head, &defaults);
    if (!exists && !defaults.end_token) return 0;
    return json_object_set_new(root, key, exists ? json_integer((json_int_t)token - 1) : json_null());
}

static int set_padding(json_t *root, const slc_config *config)
{
    bool exists = config->padding < config->vocabulary;
    return json_object_set_new(root, "pad_token_id", exists ? json_integer(config->padding) : json_null());
}

sluice_status slc_config_to_json(const slc_config *config, char **text)
{
    const slc_family *family = slc_family_of(config->family);
    json_t *root = json_pack("{s:s, s:[s], s:s}", "model_type", family->name, "architectures",
                             family->classes[config->head], "dtype", "float32");
    int failed = !root;
    for (const slc_config_key *row = family->keys; row->key && !failed; row++)
        failed = json_object_set_new(root, row->key, value_of(row, (const char *)config + row->offset));
    if (!failed && family->classes[SLUICE_HEAD_CLASSES]) failed = set_labels(root, config->labels);
    if (!failed && family->shares_table) failed = json_object_set_new(root, "tie_word_embeddings", json_true());
    if (!failed && family->padding) failed = set_padding(root, config);
    if (!failed) failed = set_token(root, config, "bos_token_id", config->begin_token);
    if (!failed) failed = set_token(root, config, "eos_token_id", config->end_token);
    *text = failed ? NULL : json_dumps(root, JSON_INDENT(2) | JSON_REAL_PRECISION(17));
    json_decref(root);
    return *text ? SLUICE_OK : slc_error(SLUICE_ERR_MEMORY, "config.json");
}

sluice_status slc_config_write(const char *path, const slc_config *config)
{
    char inside[PATH_MAX], *text;
    struct stat info;
    sluice_status status = SLUICE_OK;
    if (!stat(path, &info) && S_ISDIR(info.st_mode)) {
        status = slc_path_in(path, "config.json", inside);
        path = inside;
    }
    if (!status) status = slc_config_to_json(config, &text);
    if (status) return status;
    status = slc_json_file_write(path, text);
    free(text);
    return status;
}
