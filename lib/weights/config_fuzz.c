/* Any text must be read as a config.json or be refused with a line. A configuration that was read must be sound, and
 * must be the same after it is written and read back. */
#include "tests/support/base/splice_fuzz.h"
#include "lib/weights/config.h"

#include <stdlib.h>
#include <string.h>

static const char *const seeds[] = {
    "{\"model_type\":\"gpt2\",\"architectures\":[\"GPT2LMHeadModel\"],\"n_embd\":24,\"n_layer\":2,\"n_head\":3,"
    "\"n_inner\":null,\"n_positions\":16,\"vocab_size\":29,\"activation_function\":\"gelu_new\","
    "\"layer_norm_epsilon\":1e-05,\"resid_pdrop\":0.1,\"embd_pdrop\":0,\"attn_pdrop\":0.25,\"scale_attn_weights\":true,"
    "\"add_cross_attention\":false,\"tie_word_embeddings\":true}",
    "{\"model_type\":\"bert\",\"architectures\":[\"BertForSequenceClassification\"],\"hidden_size\":24,"
    "\"num_hidden_layers\":2,\"num_attention_heads\":3,\"intermediate_size\":40,\"hidden_act\":\"gelu\","
    "\"max_position_embeddings\":16,\"type_vocab_size\":2,\"vocab_size\":29,\"layer_norm_eps\":1e-12,"
    "\"classifier_dropout\":null,\"position_embedding_type\":\"absolute\",\"id2label\":{\"0\":\"a\",\"1\":\"b\"},"
    "\"num_labels\":2,\"pruned_heads\":{},\"problem_type\":\"single_label_classification\"}",
    "{\"model_type\":\"vit\",\"hidden_size\":24,\"num_attention_heads\":3,\"image_size\":[12,12],\"patch_size\":4,"
    "\"num_channels\":1,\"qkv_bias\":false,\"num_labels\":5}",
    "{\"model_type\":\"beit\",\"architectures\":[\"BeitForMaskedImageModeling\"],\"vocab_size\":29,"
    "\"use_mask_token\":true,\"use_absolute_position_embeddings\":true,\"use_relative_position_bias\":true,"
    "\"use_shared_relative_position_bias\":false,\"layer_scale_init_value\":0.1,\"drop_path_rate\":0,"
    "\"use_mean_pooling\":false}",
};

static void check(const char *text, size_t length)
{
    /* They are compared as text, because their padding bytes may differ. */
    slc_config config, back;
    char *again, *third;
    if (slc_config_from_json("fuzz", text, length, &config)) {
        if (!*sluice_last_error()) abort();
        return;
    }
    if (!config.heads || config.channels % config.heads || !config.inner || !config.labels) abort();
    if (config.patch && config.image % config.patch) abort();
    if (config.labels > 1000) return; /* it would take long to write */
    if (slc_config_to_json(&config, &again)) abort();
    if (slc_config_from_json("fuzz", again, strlen(again), &back)) abort();
    if (slc_config_to_json(&back, &third)) abort();
    if (strcmp(again, third) != 0) abort();
    free(again);
    free(third);
}

FUZZ_EDITS(seeds, check)
