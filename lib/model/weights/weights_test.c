/* Files of weights and models that differ in their head: all that the file has is taken to the bit, what is new is
 * named, and whatever would be lost or taken for something else is refused. The files are transformers' (tests/golden),
 * with tensors renamed, left out and added as other classes and programs write them. */
#include "tests/support/base/folder.h"

#include "tests/support/model/lone_model.h"
#include "lib/model/params.h"
#include "lib/weights/safetensors/safetensors.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { EDITS_MAX = 8, TENSORS_MAX = 64, TEXT_MAX = 4096 };

typedef enum { NO_EDIT, DROP, RENAME, COPY, FLAWED_COPY, NAN_COPY, FLAT_COPY, DOUBLE_COPY } edit_kind;

/* DROP and RENAME are of all names that begin with `from`; a copy is of one tensor, under another name. */
typedef struct {
    edit_kind kind;
    const char *from, *to;
} edit;

/* A file made from a golden one. */
typedef struct {
    const char *folder;
    edit edits[EDITS_MAX];
    const char *was, *is; /* of config.json; NULL: as it was */
} variant;

typedef struct {
    const slc_tensor *from;
    char name[128];
    edit_kind kind;
} output;

/* ---- Making files ---- */

static bool begins(const char *text, const char *with)
{
    return !strncmp(text, with, strlen(with));
}

/* Returns false for a tensor that is left out. */
static bool edit_tensor(const variant *v, const slc_tensor *tensor, output *out)
{
    *out = (output){.from = tensor};
    snprintf(out->name, sizeof out->name, "%s", tensor->name);
    for (const edit *e = v->edits; e->kind; e++) {
        if (e->kind == DROP && begins(tensor->name, e->from)) return false;
        if (e->kind == RENAME && begins(tensor->name, e->from))
            snprintf(out->name, sizeof out->name, "%s%s", e->to, tensor->name + strlen(e->from));
    }
    return true;
}

static uint32_t list_outputs(const variant *v, const slc_tensors *golden, output outputs[TENSORS_MAX])
{
    uint32_t count = 0;
    for (size_t t = 0; t < slc_tensors_count(golden); t++)
        count += edit_tensor(v, slc_tensors_at(golden, t), &outputs[count]);
    for (const edit *e = v->edits; e->kind; e++) {
        if (e->kind < COPY) continue;
        output *copy = &outputs[count++];
        *copy = (output){.from = slc_tensors_find(golden, e->from), .kind = e->kind};
        if (!copy->from) fail_msg("%s has no %s", v->folder, e->from);
        snprintf(copy->name, sizeof copy->name, "%s", e->to);
    }
    return count;
}

static void write_output(slc_safetensors_writer *writer, uint32_t index, const slc_tensors *golden, const output *o)
{
    float *values = malloc(o->from->elements * sizeof *values);
    assert_non_null(values);
    works(slc_tensors_read_float(golden, o->from, 0, o->from->elements, values));
    if (o->kind == FLAWED_COPY) values[o->from->elements - 1] += 0x1p-20f;
    if (o->kind == NAN_COPY) values[3] = NAN;
    works(slc_safetensors_write_float(writer, index, o->from->elements, values));
    free(values);
}

static void write_tensors(const variant *v, const slc_tensors *golden)
{
    output outputs[TENSORS_MAX];
    slc_safetensors_writer *writer;
    const uint32_t count = list_outputs(v, golden, outputs);
    works(slc_safetensors_create(path_of("model.safetensors"), &writer));
    for (uint32_t i = 0, index; i < count; i++) {
        const output *o = &outputs[i];
        const bool flat = o->kind == FLAT_COPY;
        works(slc_safetensors_declare(writer, o->name, o->kind == DOUBLE_COPY ? SLC_TENSOR_F64 : SLC_TENSOR_F32,
                                      flat ? 1 : o->from->rank, flat ? &o->from->elements : o->from->shape, &index));
    }
    for (uint32_t i = 0; i < count; i++) write_output(writer, i, golden, &outputs[i]);
    works(slc_safetensors_commit(writer));
    slc_safetensors_destroy(writer);
}

static void write_config(const variant *v, const char *golden)
{
    char text[TEXT_MAX] = "", path[600];
    snprintf(path, sizeof path, "%s/config.json", golden);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    size_t length = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    if (!v->was) {
        write_file("config.json", text, length);
        return;
    }
    char changed[2 * TEXT_MAX];
    const char *at = strstr(text, v->was);
    if (!at) fail_msg("%s: no %s in config.json", v->folder, v->was);
    int used = snprintf(changed, sizeof changed, "%.*s%s%s", (int)(at - text), text, v->is, at + strlen(v->was));
    write_file("config.json", changed, (size_t)used);
}

static void make_files(const variant *v)
{
    char golden[512], path[600];
    slc_tensors *tensors;
    snprintf(golden, sizeof golden, "%s/%s", SLUICE_GOLDEN_DIR, v->folder);
    snprintf(path, sizeof path, "%s/model.safetensors", golden);
    works(slc_safetensors_open(path, &tensors));
    write_tensors(v, tensors);
    slc_tensors_close(tensors);
    write_config(v, golden);
}

/* ---- Loading them ---- */

/* A model with the shape of the weights in `folder`; classes 0: with a head of tokens. */
static test_model model_for(const char *folder, uint32_t classes)
{
    sluice_model_config config = SLUICE_INIT(sluice_model_config);
    works(sluice_model_config_read(folder, &config));
    config.head = classes ? SLUICE_HEAD_CLASSES : SLUICE_HEAD_TOKENS;
    config.classes = classes;
    if (config.family == SLUICE_BEIT && !classes) {
        config.mask_token = true;
        if (!config.vocabulary) config.vocabulary = 11;
    }
    test_model t = test_model_create(&config, 1, config.context ? 8 : 0, 1, 1, SLUICE_RECOMPUTE_NONE);
    works(sluice_model_init(t.model, 7));
    return t;
}

static float *values_of(sluice_param *param)
{
    float *values = malloc(sluice_param_count(param) * sizeof *values);
    assert_non_null(values);
    works(sluice_param_read(param, 0, sluice_param_count(param), values));
    return values;
}

static const slc_tensor *find_in(const slc_tensors *tensors, const char *name, const char *prefix)
{
    const slc_tensor *tensor = slc_tensors_find(tensors, name);
    return tensor || !begins(name, prefix) ? tensor : slc_tensors_find(tensors, name + strlen(prefix));
}

static bool is_new(const sluice_model *model, const char *name)
{
    const char *other;
    for (uint32_t i = 0; (other = sluice_model_new_param(model, i)); i++)
        if (!strcmp(name, other)) return true;
    return false;
}

/* Every parameter that is not new has the bits of the golden file, from which the other was made. */
static void has_the_bits(const variant *v, const test_model *t)
{
    char path[600];
    slc_tensors *golden;
    slc_param_info info;
    const sluice_model_config *config = sluice_model_get_config(t->model);
    snprintf(path, sizeof path, "%s/%s/model.safetensors", SLUICE_GOLDEN_DIR, v->folder);
    works(slc_safetensors_open(path, &golden));
    for (uint32_t i = 0; slc_param_info_at(config, i, &info); i++) {
        const char *name = info.full_name;
        for (const edit *e = v->edits; e->kind; e++)
            if (e->kind == COPY && e->to && strstr(info.full_name, e->to)) name = e->from;
        const slc_tensor *tensor = find_in(golden, name, slc_model_prefix(config->family));
        if (is_new(t->model, info.full_name)) continue;
        if (!tensor || tensor->elements != info.count) fail_msg("%s: %s is not new", v->folder, info.full_name);
        float *values = values_of(sluice_runtime_param(t->rt, i)), *wanted = malloc(info.count * sizeof *wanted);
        assert_non_null(wanted);
        works(slc_tensors_read_float(golden, tensor, 0, info.count, wanted));
        if (memcmp(values, wanted, info.count * sizeof *values)) fail_msg("%s: %s differs", v->folder, info.full_name);
        free(values);
        free(wanted);
    }
    slc_tensors_close(golden);
}

/* The model was drawn before it was loaded. What the file lacks may be drawn afterwards just as well. */
static void draws_what_is_new(const test_model *t)
{
    const float other = 0.75f;
    char before[65], after[65];
    slc_param_info info;
    works(sluice_runtime_weights_sha256(t->rt, before));
    for (uint32_t i = 0; slc_param_info_at(sluice_model_get_config(t->model), i, &info); i++)
        if (is_new(t->model, info.full_name)) works(sluice_param_write(sluice_runtime_param(t->rt, i), 0, 1, &other));
    works(sluice_model_init_new(t->model, 7));
    works(sluice_runtime_weights_sha256(t->rt, after));
    assert_string_equal(before, after);
}

/* `fresh`: the names of all new parameters, each before a space. */
static void takes_all_but(const variant *v, uint32_t classes, bool new_head, const char *fresh)
{
    char names[1024] = "";
    const char *name;
    make_files(v);
    test_model t = model_for(test_folder(), classes);
    works(sluice_model_load(t.model, test_folder(), new_head));
    for (uint32_t i = 0; (name = sluice_model_new_param(t.model, i)); i++)
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s ", name);
    if (strcmp(names, fresh)) fail_msg("%s, %u classes: new are %s, not %s", v->folder, classes, names, fresh);
    has_the_bits(v, &t);
    draws_what_is_new(&t);
    test_model_destroy(&t);
}

static void is_refused(const variant *v, uint32_t classes, bool new_head, sluice_status expected, const char *why)
{
    char golden[512], before[65], after[65];
    snprintf(golden, sizeof golden, "%s/%s", SLUICE_GOLDEN_DIR, v->folder);
    test_model t = model_for(golden, classes);
    make_files(v);
    works(sluice_runtime_weights_sha256(t.rt, before));
    fails(sluice_model_load(t.model, test_folder(), new_head), expected, why);
    works(sluice_runtime_weights_sha256(t.rt, after));
    assert_string_equal(before, after);
    test_model_destroy(&t);
}

#define DENSE "bert.encoder.layer.0.attention.output.dense"
#define POOLER                                                                                                         \
    {COPY, DENSE ".weight", "pooler.dense.weight"},                                                                    \
    {                                                                                                                  \
        COPY, DENSE ".bias", "pooler.dense.bias"                                                                       \
    }
#define BERT_POOLER                                                                                                    \
    {COPY, DENSE ".weight", "bert.pooler.dense.weight"},                                                               \
    {                                                                                                                  \
        COPY, DENSE ".bias", "bert.pooler.dense.bias"                                                                  \
    }
#define SECOND_HEAD                                                                                                    \
    {COPY, DENSE ".weight", "cls.seq_relationship.weight"},                                                            \
    {                                                                                                                  \
        COPY, DENSE ".bias", "cls.seq_relationship.bias"                                                               \
    }
#define CLASSIFIER "classifier.weight classifier.bias "
#define PREDICTIONS                                                                                                    \
    "cls.predictions.transform.dense.weight cls.predictions.transform.dense.bias "                                     \
    "cls.predictions.transform.LayerNorm.weight cls.predictions.transform.LayerNorm.bias cls.predictions.bias "
#define ARCHITECTURE(name) "\"architectures\": [\n    \"" name "\"\n  ]"

/* ---- Another head ---- */

static void other_heads_keep_all_that_the_file_has(void **state)
{
    (void)state;
    const variant pooled = {"bert_masked", {BERT_POOLER, SECOND_HEAD}, NULL, NULL};
    takes_all_but(&pooled, 4, true, CLASSIFIER);
    takes_all_but(&pooled, 0, false, "");
    const variant masked = {.folder = "bert_masked"};
    takes_all_but(&masked, 2, true, "bert.pooler.dense.weight bert.pooler.dense.bias " CLASSIFIER);
    const variant classifier = {.folder = "bert_classifier"};
    takes_all_but(&classifier, 2, true, CLASSIFIER);
    takes_all_but(&classifier, 5, true, "");
    takes_all_but(&classifier, 0, true, PREDICTIONS);
    const variant vit = {.folder = "vit"};
    takes_all_but(&vit, 3, true, CLASSIFIER);
    const variant beit = {.folder = "beit"};
    takes_all_but(&beit, 7, true, CLASSIFIER);
    takes_all_but(&beit, 0, true,
                  "beit.embeddings.mask_token layernorm.weight layernorm.bias lm_head.weight lm_head.bias ");
    const variant beit_masked = {.folder = "beit_masked"};
    takes_all_but(&beit_masked, 4, true, "beit.pooler.layernorm.weight beit.pooler.layernorm.bias " CLASSIFIER);
}

static void trunks_without_a_head_are_fine_tuned(void **state)
{
    (void)state;
    const variant vit = {"vit",
                         {{DROP, "classifier.", NULL},
                          {RENAME, "vit.", ""},
                          {COPY, "vit.encoder.layer.0.attention.output.dense.weight", "pooler.dense.weight"},
                          {COPY, "vit.encoder.layer.0.attention.output.dense.bias", "pooler.dense.bias"}},
                         ARCHITECTURE("ViTForImageClassification"),
                         ARCHITECTURE("ViTModel")};
    takes_all_but(&vit, 3, true, CLASSIFIER);
    takes_all_but(&vit, 5, true, CLASSIFIER);
    is_refused(&vit, 5, false, SLUICE_ERR_FORMAT, "tensor \"classifier.weight\" is missing; these are weights without");
    variant unnamed = vit;
    unnamed.is = "\"architectures\": null";
    takes_all_but(&unnamed, 5, true, CLASSIFIER);
    const variant bert = {"bert_masked",
                          {{DROP, "cls.", NULL}, {RENAME, "bert.", ""}, POOLER},
                          ARCHITECTURE("BertForMaskedLM"),
                          ARCHITECTURE("BertModel")};
    takes_all_but(&bert, 3, true, CLASSIFIER);
    takes_all_but(&bert, 0, true, PREDICTIONS);
    const variant pre_training = {
        "bert_masked", {BERT_POOLER, SECOND_HEAD}, ARCHITECTURE("BertForMaskedLM"), ARCHITECTURE("BertForPreTraining")};
    takes_all_but(&pre_training, 3, true, CLASSIFIER);
    takes_all_but(&pre_training, 0, false, "");
    const variant gpt2 = {
        "gpt2", {{RENAME, "transformer.", ""}}, ARCHITECTURE("GPT2LMHeadModel"), ARCHITECTURE("GPT2Model")};
    takes_all_but(&gpt2, 0, true, "");
    takes_all_but(&gpt2, 0, false, "");
    const variant beit = {"beit",
                          {{DROP, "classifier.", NULL}, {RENAME, "beit.", ""}},
                          ARCHITECTURE("BeitForImageClassification"),
                          ARCHITECTURE("BeitModel")};
    takes_all_but(&beit, 5, true, CLASSIFIER);
}

/* A head may be new; a part of the trunk, or of a head that the file is said to have, may not. */
static void what_is_lost_is_refused(void **state)
{
    (void)state;
    const variant no_bias = {"vit", {{DROP, "classifier.bias", NULL}}, NULL, NULL};
    is_refused(&no_bias, 5, true, SLUICE_ERR_FORMAT, "tensor \"classifier.bias\" is missing");
    const variant no_norm = {"vit", {{DROP, "vit.layernorm.", NULL}}, NULL, NULL};
    is_refused(&no_norm, 3, true, SLUICE_ERR_FORMAT, "tensor \"vit.layernorm.weight\" is missing");
    const variant gpt2 = {"gpt2",
                          {{DROP, "transformer.ln_f.", NULL}, {RENAME, "transformer.", ""}},
                          ARCHITECTURE("GPT2LMHeadModel"),
                          ARCHITECTURE("GPT2Model")};
    is_refused(&gpt2, 0, true, SLUICE_ERR_FORMAT, "tensor \"transformer.ln_f.weight\" is missing");
    const variant other_width = {
        "vit", {{DROP, "classifier.weight", NULL}, {COPY, "classifier.bias", "classifier.weight"}}, NULL, NULL};
    is_refused(&other_width, 3, true, SLUICE_ERR_FORMAT, "tensor \"classifier.weight\" has shape [5]");
    const variant stray = {"vit", {{COPY, "classifier.bias", "vit.encoder.layer.0.stray"}}, NULL, NULL};
    is_refused(&stray, 3, true, SLUICE_ERR_FORMAT, "tensor \"vit.encoder.layer.0.stray\" is none of the model's");
    const variant second = {"vit", {{COPY, "classifier.bias", "decoder.bias"}}, NULL, NULL};
    is_refused(&second, 5, true, SLUICE_ERR_FORMAT, "tensor \"decoder.bias\" is none of the model's");
    const variant buffer = {"gpt2", {{COPY, "transformer.wpe.weight", "transformer.h.1.attn.bias"}}, NULL, NULL};
    takes_all_but(&buffer, 0, false, "");
    const variant third_layer = {"gpt2", {{COPY, "transformer.wpe.weight", "transformer.h.2.attn.bias"}}, NULL, NULL};
    is_refused(&third_layer, 0, false, SLUICE_ERR_FORMAT, "\"transformer.h.2.attn.bias\" is none of the model's");
}

static void more_layers_than_the_file_has_are_refused(void **state)
{
    (void)state;
    const variant deep = {"gpt2", {{NO_EDIT, NULL, NULL}}, "\"n_layer\": 2", "\"n_layer\": 100000"};
    sluice_model_config config = SLUICE_INIT(sluice_model_config);
    make_files(&deep);
    fails(sluice_model_config_read(test_folder(), &config), SLUICE_ERR_FORMAT,
          "tensor \"transformer.h.2.ln_1.weight\" is missing, and the configuration has 100000 layers");
}

/* ---- A head that shares the token table ---- */

#define WTE "transformer.wte.weight"
#define WORDS "bert.embeddings.word_embeddings.weight"
#define DECODER "cls.predictions.decoder.weight"
#define UNTIED "\"tie_word_embeddings\": false"

static void equal_copies_load(void **state)
{
    (void)state;
    const variant copies[] = {
        {"gpt2", {{COPY, WTE, "lm_head.weight"}}, NULL, NULL},
        {"gpt2", {{DOUBLE_COPY, WTE, "lm_head.weight"}}, NULL, NULL},
        {"gpt2", {{COPY, WTE, "lm_head.weight"}}, "\"tie_word_embeddings\": true", UNTIED},
        {"gpt2", {{RENAME, WTE, "lm_head.weight"}}, NULL, NULL}, /* safetensors' save_model keeps one name */
        {"bert_masked",
         {{COPY, WORDS, DECODER}, {COPY, "cls.predictions.bias", "cls.predictions.decoder.bias"}},
         "\"tie_word_embeddings\": true",
         UNTIED},
        {"bert_masked",
         {{RENAME, WORDS, DECODER}, {RENAME, "cls.predictions.bias", "cls.predictions.decoder.bias"}},
         NULL,
         NULL},
    };
    for (size_t i = 0; i < sizeof copies / sizeof *copies; i++) takes_all_but(&copies[i], 0, false, "");
}

static void another_head_than_the_table_is_refused(void **state)
{
    (void)state;
    const variant heads[] = {
        {"gpt2", {{FLAWED_COPY, WTE, "lm_head.weight"}}, NULL, NULL},
        {"gpt2", {{FLAWED_COPY, WTE, "lm_head.weight"}}, "\"tie_word_embeddings\": true", UNTIED},
        {"gpt2", {{NAN_COPY, WTE, "lm_head.weight"}}, NULL, NULL},
        {"gpt2", {{FLAT_COPY, WTE, "lm_head.weight"}}, NULL, NULL},
        {"bert_masked", {{FLAWED_COPY, WORDS, DECODER}}, NULL, NULL},
        {"bert_masked", {{NAN_COPY, WORDS, DECODER}}, NULL, NULL},
        {"bert_masked", {{FLAWED_COPY, "cls.predictions.bias", "cls.predictions.decoder.bias"}}, NULL, NULL},
    };
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        const edit *e = &heads[i].edits[0];
        char both[200];
        snprintf(both, sizeof both, "tensor \"%s\" is not the same as \"%s\"", e->to, e->from);
        for (int new_head = 0; new_head < 2; new_head++)
            is_refused(&heads[i], 0, new_head, SLUICE_ERR_UNSUPPORTED, both);
    }
    const variant lost = {"gpt2", {{NO_EDIT, NULL, NULL}}, "\"tie_word_embeddings\": true", UNTIED};
    is_refused(&lost, 0, false, SLUICE_ERR_UNSUPPORTED, "tensor \"lm_head.weight\" is missing");
    takes_all_but(&heads[4], 3, true, "bert.pooler.dense.weight bert.pooler.dense.bias " CLASSIFIER);
}

/* If a file's configuration says that the head is a matrix of its own, the head is not taken for the token table. */
static void an_own_head_is_no_table(void **state)
{
    (void)state;
    const variant renamed = {"gpt2", {{RENAME, WTE, "lm_head.weight"}}, "\"tie_word_embeddings\": true", UNTIED};
    sluice_model_config config = SLUICE_INIT(sluice_model_config);
    make_files(&renamed);
    fails(sluice_model_config_read(test_folder(), &config), SLUICE_ERR_FORMAT, "tensor \"" WTE "\" is missing");
}

/* ---- Padding ---- */

/* A model without a padding token is saved as one, and padding that counts from the end as the token that it is. */
static void padding_comes_back(void **state)
{
    (void)state;
    const struct {
        const char *key, *saved;
        uint32_t padding;
    } cases[] = {{"\"pad_token_id\": null", "\"pad_token_id\": null", UINT32_MAX},
                 {"\"pad_token_id\": -1", "\"pad_token_id\": 28", 28}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const variant v = {"bert_masked", {{NO_EDIT, NULL, NULL}}, "\"pad_token_id\": 0", cases[i].key};
        sluice_model_config config = SLUICE_INIT(sluice_model_config);
        char text[TEXT_MAX] = "";
        make_files(&v);
        test_model t = model_for(test_folder(), 0);
        assert_int_equal(sluice_model_get_config(t.model)->padding, cases[i].padding);
        works(sluice_model_save(t.model, test_folder()));
        FILE *file = fopen(path_of("config.json"), "r");
        assert_non_null(file);
        assert_true(fread(text, 1, sizeof text - 1, file) > 0);
        fclose(file);
        if (!strstr(text, cases[i].saved)) fail_msg("no %s in %s", cases[i].saved, text);
        works(sluice_model_config_read(test_folder(), &config));
        assert_int_equal(config.padding, cases[i].padding);
        test_model_destroy(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(other_heads_keep_all_that_the_file_has),
        cmocka_unit_test(trunks_without_a_head_are_fine_tuned),
        cmocka_unit_test(what_is_lost_is_refused),
        cmocka_unit_test(more_layers_than_the_file_has_are_refused),
        cmocka_unit_test(equal_copies_load),
        cmocka_unit_test(another_head_than_the_table_is_refused),
        cmocka_unit_test(an_own_head_is_no_table),
        cmocka_unit_test(padding_comes_back),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
