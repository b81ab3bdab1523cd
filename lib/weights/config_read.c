/* Reads config.json: a table of keys for all that a model needs, a list of keys that Sluice does not support, and
 * checks across keys. config_test.c covers this file. */
#include "lib/weights/config.h"

#include "lib/base/file/json_file.h"
#include "lib/base/file/path_in.h"
#include "lib/base/status.h"
#include "lib/base/text/python_json.h"
#include "lib/weights/config_keys.h"
#include "lib/weights/family.h"

#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { SHOWN_BYTES = 64 };

static const char *show(const json_t *value, char out[SHOWN_BYTES])
{
    size_t used = json_dumpb(value, out, SHOWN_BYTES - 4,
                             JSON_ENCODE_ANY | JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(15));
    if (used > SHOWN_BYTES - 4)
        memcpy(out + SHOWN_BYTES - 4, "...", 4);
    else
        out[used] = '\0';
    return out;
}

static sluice_status fault(const char *path, const char *key, const json_t *value, const char *expected)
{
    char shown[SHOWN_BYTES];
    return slc_error(SLUICE_ERR_FORMAT, "%s: \"%s\": %s: give %s", path, key, show(value, shown), expected);
}

static sluice_status unsupported(const char *path, const char *key, const json_t *value, const char *can)
{
    char shown[SHOWN_BYTES];
    return slc_error(SLUICE_ERR_UNSUPPORTED, "%s: \"%s\": %s is not supported; %s", path, key, show(value, shown), can);
}

/* ---- Keys ---- */

static bool number_within(const json_t *value, const slc_config_key *row)
{
    double number = json_number_value(value);
    return number >= row->least && number <= row->most;
}

static sluice_status read_activation(const char *path, const char *key, const json_t *value, slc_activation *out)
{
    static const struct {
        const char *name;
        slc_activation activation;
    } known[] = {
        {"gelu", SLC_ACTIVATION_GELU_ERF},
        {"gelu_new", SLC_ACTIVATION_GELU_TANH},
        {"gelu_pytorch_tanh", SLC_ACTIVATION_GELU_TANH},
    };
    if (!json_is_string(value)) return fault(path, key, value, "the name of an activation");
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(json_string_value(value), known[i].name) != 0) continue;
        *out = known[i].activation;
        return SLUICE_OK;
    }
    return unsupported(path, key, value, "gelu, gelu_new and gelu_pytorch_tanh are");
}

/* The value is n or [n, n]. */
static sluice_status read_side(const char *path, const slc_config_key *row, const json_t *value, uint32_t *out)
{
    const json_t *side = value;
    if (json_is_array(value) && json_array_size(value) == 2) {
        side = json_array_get(value, 0);
        if (!json_equal(side, json_array_get(value, 1)))
            return unsupported(path, row->key, value, "images and patches must be square");
    }
    if (!json_is_integer(side) || !number_within(side, row))
        return fault(path, row->key, value, "a whole number from 1 to 65536");
    *out = (uint32_t)json_integer_value(side);
    return SLUICE_OK;
}

static sluice_status read_key(const char *path, const slc_config_key *row, const json_t *value, void *field)
{
    char expected[80];
    switch (row->type) {
    case SLC_KEY_FLAG:
        if (!json_is_boolean(value)) return fault(path, row->key, value, "true or false");
        *(bool *)field = json_is_true(value);
        return SLUICE_OK;
    case SLC_KEY_ACTIVATION: return read_activation(path, row->key, value, field);
    case SLC_KEY_SIDE: return read_side(path, row, value, field);
    case SLC_KEY_COUNT:
        snprintf(expected, sizeof expected, "a whole number from %.0f to %.0f", row->least, row->most);
        if (!json_is_integer(value) || !number_within(value, row)) return fault(path, row->key, value, expected);
        *(uint32_t *)field = (uint32_t)json_integer_value(value);
        return SLUICE_OK;
    case SLC_KEY_REAL: break;
    }
    snprintf(expected, sizeof expected, "a number from %g to %g", row->least, row->most);
    if (!json_is_number(value) || !number_within(value, row)) return fault(path, row->key, value, expected);
    *(double *)field = json_number_value(value);
    return SLUICE_OK;
}

static sluice_status read_keys(const char *path, const json_t *root, slc_config *out)
{
    for (const slc_config_key *row = slc_family_of(out->family)->keys; row->key; row++) {
        const json_t *value = json_object_get(root, row->key);
        if (!value || (row->nullable && json_is_null(value))) continue;
        sluice_status status = read_key(path, row, value, (char *)out + row->offset);
        if (status) return status;
    }
    return SLUICE_OK;
}

/* ---- Family and head ---- */

static sluice_status read_family(const char *path, const json_t *root, sluice_model_family *out)
{
    const json_t *type = json_object_get(root, "model_type");
    char names[160], can[192];
    if (!json_is_string(type)) return slc_error(SLUICE_ERR_FORMAT, "%s: has no \"model_type\"", path);
    for (int family = 0; family < SLUICE_MODEL_FAMILIES; family++) {
        if (strcmp(json_string_value(type), slc_family_of((sluice_model_family)family)->name) != 0) continue;
        *out = (sluice_model_family)family;
        return SLUICE_OK;
    }
    snprintf(can, sizeof can, "these are: %s", slc_family_names(names, sizeof names));
    return unsupported(path, "model_type", type, can);
}

/* Finds which of the family's classes has the name, and sets `head` and `headless`. */
static bool find_class(const slc_family *family, const char *name, slc_config *out)
{
    out->headless = !name || !strcmp(name, family->trunk);
    out->head = slc_usual_head(out->family);
    if (out->headless) return true;
    for (int head = 0; head < SLC_HEADS; head++) {
        if (!family->classes[head] || strcmp(name, family->classes[head]) != 0) continue;
        out->head = head;
        return true;
    }
    out->head = SLUICE_HEAD_TOKENS;
    return family->two_heads && !strcmp(name, family->two_heads);
}

static sluice_status refuse_class(const char *path, const slc_family *family, const json_t *name)
{
    const char *const classes[] = {family->classes[0], family->classes[1], family->two_heads, family->trunk};
    char can[256];
    size_t used = (size_t)snprintf(can, sizeof can, "with model_type %s these are:", family->name);
    for (size_t i = 0, listed = 0; i < sizeof classes / sizeof *classes && used < sizeof can; i++)
        if (classes[i])
            used += (size_t)snprintf(can + used, sizeof can - used, "%s %s", listed++ ? "," : "", classes[i]);
    return unsupported(path, "architectures", name, can);
}

/* Sets *out to the defaults of the family and class that the file names. */
static sluice_status read_class(const char *path, const json_t *root, slc_config *out)
{
    slc_config of = {0};
    sluice_status status = read_family(path, root, &of.family);
    if (status) return status;
    const json_t *list = json_object_get(root, "architectures"), *name = json_array_get(list, 0);
    if (list && !json_is_null(list) && !json_is_string(name))
        return fault(path, "architectures", list, "a list with the name of a model's class");
    const slc_family *family = slc_family_of(of.family);
    if (!find_class(family, json_string_value(name), &of)) return refuse_class(path, family, name);
    slc_config_defaults(of.family, of.head, out);
    out->headless = of.headless;
    return SLUICE_OK;
}

/* Refuses keys that change a model's computation unless they have the one value (or null) that ours implements. */
static sluice_status refuse_others(const char *path, const json_t *root, const slc_family_demand *rows)
{
    for (; rows && rows->key; rows++) {
        const json_t *value = json_object_get(root, rows->key);
        if (!value || json_is_null(value)) continue;
        char shown[SHOWN_BYTES], can[SHOWN_BYTES];
        snprintf(can, sizeof can, "%s is", rows->wanted);
        if (strcmp(show(value, shown), rows->wanted) != 0) return unsupported(path, rows->key, value, can);
    }
    return SLUICE_OK;
}

static sluice_status refuse_unsupported(const char *path, const json_t *root, const slc_family *family)
{
    static const slc_family_demand all[] = {
        {"add_cross_attention", "false"},
        {"is_decoder", "false"},
        {"is_encoder_decoder", "false"},
        {"pruned_heads", "{}"},
        {"problem_type", "\"single_label_classification\""},
        {0},
    };
    sluice_status status = refuse_others(path, root, all);
    return status ? status : refuse_others(path, root, family->demands);
}

static sluice_status read_labels(const char *path, const json_t *root, slc_config *out)
{
    const slc_config_key row = {.key = "num_labels", .type = SLC_KEY_COUNT, .least = 1, .most = 1 << 24};
    const json_t *names = json_object_get(root, "id2label"), *number = json_object_get(root, row.key);
    sluice_status status = SLUICE_OK;
    if (number && !json_is_null(number)) status = read_key(path, &row, number, &out->labels);
    if (status || !names || json_is_null(names)) return status;
    if (!json_is_object(names) || !json_object_size(names))
        return fault(path, "id2label", names, "{\"0\": \"NAME\", ...}");
    if (number && !json_is_null(number) && json_object_size(names) != out->labels)
        return fault(path, "num_labels", number, "as many as id2label has");
    out->labels = (uint32_t)json_object_size(names);
    return SLUICE_OK;
}

/* A number beyond the vocabulary names no token: transformers writes 50256 for any GPT-2. */
static sluice_status read_token(const char *path, const json_t *root, const char *key, uint32_t vocabulary,
                                uint64_t *token)
{
    const json_t *value = json_object_get(root, key), *first = json_is_array(value) ? json_array_get(value, 0) : value;
    if (value && !json_is_null(value) && !json_is_integer(first))
        return fault(path, key, value, "the number of a token, or null");
    if (value)
        *token = json_is_integer(first) && json_integer_value(first) >= 0 ? (uint64_t)json_integer_value(first) + 1 : 0;
    if (*token > vocabulary) *token = 0;
    return SLUICE_OK;
}

/* A negative number counts from the end of the vocabulary, as in torch.nn.Embedding. */
static sluice_status read_padding(const char *path, const json_t *root, slc_config *out)
{
    const json_t *value = json_object_get(root, "pad_token_id");
    if (!value) return SLUICE_OK;
    json_int_t token = json_is_null(value) ? SLC_NO_PADDING : json_integer_value(value);
    if (token < 0) token += out->vocabulary;
    if (token < 0 || (!json_is_null(value) && !json_is_integer(value)))
        return fault(path, "pad_token_id", value, "the number of a token, a negative one from the end, or null");
    out->padding = token < out->vocabulary ? (uint32_t)token : SLC_NO_PADDING;
    return SLUICE_OK;
}

/* ---- Across keys ---- */

static sluice_status check(const char *path, const slc_config *config)
{
    if (config->channels % config->heads)
        return slc_error(SLUICE_ERR_FORMAT, "%s: %u heads do not divide a width of %u", path, config->heads,
                         config->channels);
    if (config->patch && config->image % config->patch)
        return slc_error(SLUICE_ERR_FORMAT, "%s: patches of %u do not divide an image of %u", path, config->patch,
                         config->image);
    const slc_family *family = slc_family_of(config->family);
    if (family->sees && config->head == SLUICE_HEAD_TOKENS && !config->mask_token)
        return slc_error(SLUICE_ERR_FORMAT, "%s: %s needs \"use_mask_token\": true", path,
                         family->classes[SLUICE_HEAD_TOKENS]);
    if (family->positions_after_padding && config->padding == SLC_NO_PADDING)
        return slc_error(SLUICE_ERR_UNSUPPORTED, "%s: has no \"pad_token_id\", behind which the positions of a %s come",
                         path, family->name);
    if (family->positions_after_padding && config->positions <= config->padding + 1)
        return slc_error(
            SLUICE_ERR_FORMAT,
            "%s: positions begin at pad_token_id + 1, which is %u, and there are %u (max_position_embeddings)", path,
            config->padding + 1, config->positions);
    if (config->head == SLUICE_HEAD_CLASSES && config->labels < 2)
        return slc_error(SLUICE_ERR_UNSUPPORTED, "%s: one label means regression, which is not supported", path);
    return SLUICE_OK;
}

/* Reads whether the head has a matrix of its own. A file may say so although the head shares the token table, if both
 * are equal; lib/model looks at that. */
static sluice_status read_tie(const char *path, const json_t *root, slc_config *out)
{
    const slc_config_key row = {.key = "tie_word_embeddings", .type = SLC_KEY_FLAG};
    const json_t *value = json_object_get(root, row.key);
    bool tied = true, shares = slc_family_of(out->family)->shares_table;
    sluice_status status = shares && value && !json_is_null(value) ? read_key(path, &row, value, &tied) : SLUICE_OK;
    out->untied = !tied;
    return status;
}

static sluice_status read_root(const char *path, const json_t *root, slc_config *out)
{
    if (!json_is_object(root)) return slc_error(SLUICE_ERR_FORMAT, "%s: is no {...}", path);
    sluice_status status = read_class(path, root, out);
    if (status) return status;
    uint32_t inner = out->inner;
    out->inner = 0;
    out->classifier_dropout = -1;
    const slc_family *family = slc_family_of(out->family);
    status = refuse_unsupported(path, root, family);
    if (!status) status = read_keys(path, root, out);
    if (!status) status = read_labels(path, root, out);
    if (!status) status = read_tie(path, root, out);
    if (!status && family->padding) status = read_padding(path, root, out);
    if (!status) status = read_token(path, root, "bos_token_id", out->vocabulary, &out->begin_token);
    if (!status) status = read_token(path, root, "eos_token_id", out->vocabulary, &out->end_token);
    if (status) return status;
    if (!out->inner) out->inner = family->inner_follows ? 4 * out->channels : inner;
    if (!family->own_embedding_dropout) out->embedding_dropout = out->dropout;
    if (out->classifier_dropout < 0) out->classifier_dropout = family->own_classifier_dropout ? out->dropout : 0;
    return check(path, out);
}

sluice_status slc_config_from_json(const char *path, const char *text, size_t length, slc_config *out)
{
    json_t *root = NULL;
    sluice_status status = slc_python_json_read(path, text, length, JSON_REJECT_DUPLICATES, &root);
    if (status) return status;
    slc_config config;
    status = read_root(path, root, &config);
    json_decref(root);
    if (!status) *out = config;
    return status;
}

sluice_status slc_config_read(const char *path, slc_config *out)
{
    char inside[PATH_MAX], *text;
    size_t length;
    struct stat info;
    sluice_status status = SLUICE_OK;
    if (!stat(path, &info) && S_ISDIR(info.st_mode)) {
        status = slc_path_in(path, "config.json", inside);
        path = inside;
    }
    if (!status) status = slc_json_file_read(path, &text, &length);
    if (status) return status;
    status = slc_config_from_json(path, text, length, out);
    free(text);
    return status;
}
