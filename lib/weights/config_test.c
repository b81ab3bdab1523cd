/* config.json: defaults must be transformers', a written file must be read back, and models that Sluice cannot compute
 * must be refused by name. */
#include "tests/support/base/folder.h"

#include "lib/weights/config.h"
#include "lib/weights/family.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static slc_config read_text(const char *text)
{
    slc_config config;
    works(slc_config_from_json("config.json", text, strlen(text), &config));
    return config;
}

static void refused(const char *text, sluice_status expected, const char *why)
{
    slc_config config;
    fails(slc_config_from_json("here/config.json", text, strlen(text), &config), expected, why);
    assert_non_null(strstr(sluice_last_error(), "here/config.json"));
}

static void defaults_are_those_of_transformers(void **state)
{
    (void)state;
    slc_config gpt2 = read_text("{\"model_type\":\"gpt2\"}");
    assert_int_equal(gpt2.head, SLUICE_HEAD_TOKENS);
    assert_int_equal(gpt2.channels, 768);
    assert_int_equal(gpt2.inner, 3072);
    assert_int_equal(gpt2.vocabulary, 50257);
    assert_int_equal(gpt2.positions, 1024);
    assert_int_equal(gpt2.activation, SLC_ACTIVATION_GELU_TANH);
    assert_true(gpt2.epsilon == 1e-5 && gpt2.dropout == .1 && gpt2.embedding_dropout == .1);
    slc_config bert = read_text("{\"model_type\":\"bert\",\"hidden_dropout_prob\":0.25}");
    assert_int_equal(bert.head, SLUICE_HEAD_TOKENS);
    assert_int_equal(bert.types, 2);
    assert_int_equal(bert.positions, 512);
    assert_int_equal(bert.activation, SLC_ACTIVATION_GELU_ERF);
    assert_true(bert.epsilon == 1e-12 && bert.classifier_dropout == .25 && bert.embedding_dropout == .25);
    slc_config vit = read_text("{\"model_type\":\"vit\"}");
    assert_int_equal(vit.image, 224);
    assert_int_equal(vit.patch, 16);
    assert_int_equal(vit.image_channels, 3);
    assert_int_equal(vit.labels, 2);
    assert_true(vit.qkv_bias && vit.dropout == 0 && vit.layer_scale == 0);
    slc_config beit = read_text("{\"model_type\":\"beit\"}");
    assert_int_equal(beit.head, SLUICE_HEAD_CLASSES);
    assert_int_equal(beit.vocabulary, 8192);
    assert_true(beit.mean_pooling && !beit.relative_bias && !beit.mask_token && !beit.absolute_positions);
    assert_true(beit.layer_scale == .1 && beit.drop_path_rate == .1);
}

static void keys_are_read(void **state)
{
    (void)state;
    slc_config gpt2 = read_text("{\"model_type\":\"gpt2\",\"n_embd\":24,\"n_head\":3,\"n_layer\":5,\"n_inner\":null,"
                                "\"activation_function\":\"gelu\",\"task_specific_params\":{\"x\":[1]}}");
    assert_int_equal(gpt2.inner, 96);
    assert_int_equal(gpt2.layers, 5);
    assert_int_equal(gpt2.activation, SLC_ACTIVATION_GELU_ERF);
    slc_config beit = read_text(
        "{\"model_type\":\"beit\",\"architectures\":[\"BeitForMaskedImageModeling\"],\"use_mask_token\":true,"
        "\"image_size\":[12,12],\"patch_size\":4,\"num_channels\":1,\"use_shared_relative_position_bias\":true,"
        "\"layer_scale_init_value\":0,\"use_mean_pooling\":false,\"id2label\":{\"0\":\"a\",\"1\":\"b\",\"2\":\"c\"}}");
    assert_int_equal(beit.head, SLUICE_HEAD_TOKENS);
    assert_int_equal(beit.image, 12);
    assert_int_equal(beit.labels, 3);
    assert_true(beit.shared_relative_bias && !beit.mean_pooling && beit.mask_token && beit.layer_scale == 0);
}

static void says(const slc_config *config, const char *line)
{
    char *text;
    works(slc_config_to_json(config, &text));
    if (!strstr(text, line)) fail_msg("no %s in %s", line, text);
    free(text);
}

/* transformers takes 50256 if a GPT-2 says nothing. */
static void tokens_around_a_text_exist(void **state)
{
    (void)state;
    slc_config gpt2 = read_text("{\"model_type\":\"gpt2\"}");
    assert_true(gpt2.begin_token == 50257 && gpt2.end_token == 50257);
    says(&gpt2, "\"eos_token_id\": 50256");
    gpt2 = read_text("{\"model_type\":\"gpt2\",\"vocab_size\":256}");
    assert_true(gpt2.begin_token == 0 && gpt2.end_token == 0);
    says(&gpt2, "\"eos_token_id\": null");
    gpt2 = read_text("{\"model_type\":\"gpt2\",\"vocab_size\":600,\"bos_token_id\":0,\"eos_token_id\":[599,3]}");
    assert_true(gpt2.begin_token == 1 && gpt2.end_token == 600);
    says(&gpt2, "\"bos_token_id\": 0");
    says(&gpt2, "\"eos_token_id\": 599");
    gpt2 = read_text("{\"model_type\":\"gpt2\",\"vocab_size\":600,\"bos_token_id\":null,\"eos_token_id\":600}");
    assert_true(gpt2.begin_token == 0 && gpt2.end_token == 0);
    slc_config bert = read_text("{\"model_type\":\"bert\",\"vocab_size\":600,\"eos_token_id\":7}");
    assert_true(bert.begin_token == 0 && bert.end_token == 8);
    refused("{\"model_type\":\"gpt2\",\"eos_token_id\":\"x\"}", SLUICE_ERR_FORMAT, "the number of a token, or null");
    refused("{\"model_type\":\"gpt2\",\"eos_token_id\":[]}", SLUICE_ERR_FORMAT, "the number of a token, or null");
}

static slc_config read_bert(const char *keys)
{
    char text[512];
    snprintf(text, sizeof text, "{\"model_type\":\"bert\",\"vocab_size\":600%s}", keys);
    return read_text(text);
}

/* Python writes integers of any length, null if there is no padding, and -1 if others count from the end. */
static void python_writes_more_than_json(void **state)
{
    (void)state;
    slc_config bert = read_bert(",\"model_max_length\":1000000000000000019884624838656,\"x\":[-99999999999999999999]");
    assert_int_equal(bert.vocabulary, 600);
    assert_int_equal(bert.padding, 0);
    says(&bert, "\"pad_token_id\": 0");
    bert = read_bert(",\"pad_token_id\":null");
    assert_true(bert.padding == SLC_NO_PADDING);
    says(&bert, "\"pad_token_id\": null");
    bert = read_bert(",\"pad_token_id\":-1");
    assert_int_equal(bert.padding, 599);
    says(&bert, "\"pad_token_id\": 599");
    bert = read_bert(",\"pad_token_id\":-600");
    assert_int_equal(bert.padding, 0);
    bert = read_bert(",\"pad_token_id\":600");
    assert_true(bert.padding == SLC_NO_PADDING);
    read_text("{\"model_type\":\"gpt2\",\"pad_token_id\":-1}");
    refused("{\"model_type\":\"bert\",\"vocab_size\":600,\"pad_token_id\":-601}", SLUICE_ERR_FORMAT,
            "\"pad_token_id\": -601");
    refused("{\"model_type\":\"bert\",\"pad_token_id\":1.5}", SLUICE_ERR_FORMAT, "\"pad_token_id\": 1.5");
    refused("{\"model_type\":\"gpt2\",\"n_layer\":99999999999999999999}", SLUICE_ERR_FORMAT, "\"n_layer\": 1e20: give");
    refused("{\"model_type\":\"gpt2\",\"layer_norm_epsilon\":NaN}", SLUICE_ERR_FORMAT, "\"layer_norm_epsilon\": NaN");
    refused("{\"model_type\":\"gpt2\",\"x\":{\"y\":[1,-Infinity]}}", SLUICE_ERR_FORMAT, "\"y\": -Infinity");
}

/* A trunk is read as the first model of its family that is built on it. */
static void trunks_have_no_head(void **state)
{
    (void)state;
    static const struct {
        const char *type, *name;
        sluice_model_head head;
        bool headless;
    } cases[] = {
        {"gpt2", "GPT2Model", SLUICE_HEAD_TOKENS, true},
        {"gpt2", "GPT2LMHeadModel", SLUICE_HEAD_TOKENS, false},
        {"bert", "BertModel", SLUICE_HEAD_TOKENS, true},
        {"bert", "BertForPreTraining", SLUICE_HEAD_TOKENS, false},
        {"bert", "BertForSequenceClassification", SLUICE_HEAD_CLASSES, false},
        {"vit", "ViTModel", SLUICE_HEAD_CLASSES, true},
        {"beit", "BeitModel", SLUICE_HEAD_CLASSES, true},
    };
    char text[256];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(text, sizeof text, "{\"model_type\":\"%s\",\"architectures\":[\"%s\"]}", cases[i].type, cases[i].name);
        slc_config config = read_text(text);
        assert_int_equal(config.head, cases[i].head);
        assert_true(config.headless == cases[i].headless);
        assert_false(config.untied);
    }
    assert_true(read_text("{\"model_type\":\"vit\"}").headless);
    assert_true(read_text("{\"model_type\":\"gpt2\",\"tie_word_embeddings\":false}").untied);
    assert_false(read_text("{\"model_type\":\"vit\",\"tie_word_embeddings\":false}").untied);
    refused("{\"model_type\":\"gpt2\",\"tie_word_embeddings\":1}", SLUICE_ERR_FORMAT, "tie_word_embeddings");
    refused("{\"model_type\":\"vit\",\"architectures\":[\"BertModel\"]}", SLUICE_ERR_UNSUPPORTED, "BertModel");
}

static void bad_files_are_refused(void **state)
{
    (void)state;
    refused("{", SLUICE_ERR_FORMAT, ":1:1");
    refused("[]", SLUICE_ERR_FORMAT, "{...}");
    refused("{}", SLUICE_ERR_FORMAT, "model_type");
    refused("{\"model_type\":\"gpt2\",\"n_embd\":24.5}", SLUICE_ERR_FORMAT, "\"n_embd\": 24.5: give a whole number");
    refused("{\"model_type\":\"gpt2\",\"n_embd\":0}", SLUICE_ERR_FORMAT, "\"n_embd\": 0");
    refused("{\"model_type\":\"gpt2\",\"n_embd\":null}", SLUICE_ERR_FORMAT, "\"n_embd\": null");
    refused("{\"model_type\":\"gpt2\",\"n_layer\":99999999999}", SLUICE_ERR_FORMAT, "\"n_layer\"");
    refused("{\"model_type\":\"gpt2\",\"n_head\":7}", SLUICE_ERR_FORMAT, "7 heads do not divide a width of 768");
    refused("{\"model_type\":\"gpt2\",\"attn_pdrop\":1.5}", SLUICE_ERR_FORMAT, "\"attn_pdrop\": 1.5");
    refused("{\"model_type\":\"vit\",\"qkv_bias\":1}", SLUICE_ERR_FORMAT, "true or false");
    refused("{\"model_type\":\"vit\",\"patch_size\":15}", SLUICE_ERR_FORMAT, "patches of 15");
    refused("{\"model_type\":\"vit\",\"num_labels\":3,\"id2label\":{\"0\":\"a\"}}", SLUICE_ERR_FORMAT, "num_labels");
    refused("{\"model_type\":\"vit\",\"architectures\":\"x\"}", SLUICE_ERR_FORMAT, "architectures");
    refused("{\"model_type\":\"beit\",\"architectures\":[\"BeitForMaskedImageModeling\"]}", SLUICE_ERR_FORMAT,
            "use_mask_token");
}

static void what_sluice_cannot_do_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *text, *name;
    } cases[] = {
        {"{\"model_type\":\"llama\"}", "\"model_type\": \"llama\""},
        {"{\"model_type\":\"gpt2\",\"architectures\":[\"GPT2DoubleHeadsModel\"]}", "GPT2DoubleHeadsModel"},
        {"{\"model_type\":\"vit\",\"architectures\":[\"BertForMaskedLM\"]}", "BertForMaskedLM"},
        {"{\"model_type\":\"gpt2\",\"activation_function\":\"relu\"}", "\"activation_function\": \"relu\""},
        {"{\"model_type\":\"vit\",\"hidden_act\":\"silu\"}", "\"hidden_act\": \"silu\""},
        {"{\"model_type\":\"bert\",\"position_embedding_type\":\"relative_key\"}", "relative_key"},
        {"{\"model_type\":\"gpt2\",\"add_cross_attention\":true}", "add_cross_attention"},
        {"{\"model_type\":\"bert\",\"is_decoder\":true}", "is_decoder"},
        {"{\"model_type\":\"gpt2\",\"pruned_heads\":{\"1\":[0]}}", "pruned_heads"},
        {"{\"model_type\":\"gpt2\",\"scale_attn_by_inverse_layer_idx\":true}", "scale_attn_by_inverse_layer_idx"},
        {"{\"model_type\":\"vit\",\"problem_type\":\"regression\"}", "regression"},
        {"{\"model_type\":\"vit\",\"num_labels\":1}", "regression"},
        {"{\"model_type\":\"vit\",\"image_size\":[224,192]}", "square"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        refused(cases[i].text, SLUICE_ERR_UNSUPPORTED, cases[i].name);
    read_text("{\"model_type\":\"gpt2\",\"pruned_heads\":{},\"problem_type\":null,\"is_decoder\":false}");
}

static void what_is_written_is_read_back(void **state)
{
    (void)state;
    for (int i = 0; i < SLUICE_MODEL_FAMILIES * SLC_HEADS; i++) {
        slc_config config, back;
        char *before, *after;
        const sluice_model_family family = i / SLC_HEADS;
        const sluice_model_head head = i % SLC_HEADS;
        if (!slc_family_of(family)->classes[head]) continue;
        slc_config_defaults(family, head, &config);
        config.channels = 24;
        config.heads = 3;
        config.labels = 7;
        config.dropout = 1.0 / 3;
        config.mask_token = config.family == SLUICE_BEIT;
        works(slc_config_write(test_folder(), &config));
        works(slc_config_read(path_of("config.json"), &back));
        works(slc_config_to_json(&config, &before));
        works(slc_config_to_json(&back, &after));
        assert_string_equal(before, after);
        assert_int_equal(back.family, family);
        assert_int_equal(back.head, head);
        assert_int_equal(back.labels, config.family == SLUICE_GPT2 ? 2 : 7);
        assert_true(back.dropout == 1.0 / 3);
        free(before);
        free(after);
    }
    slc_config config;
    works(slc_config_read(test_folder(), &config));
    fails(slc_config_read(path_of("nowhere"), &config), SLUICE_ERR_PATH, "nowhere");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_those_of_transformers),
        cmocka_unit_test(keys_are_read),
        cmocka_unit_test(tokens_around_a_text_exist),
        cmocka_unit_test(python_writes_more_than_json),
        cmocka_unit_test(trunks_have_no_head),
        cmocka_unit_test(bad_files_are_refused),
        cmocka_unit_test(what_sluice_cannot_do_is_named),
        cmocka_unit_test(what_is_written_is_read_back),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
