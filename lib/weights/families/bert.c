/* BERT, and the BERT whose norms come before its branches. Keys and defaults: transformers' BertConfig and
 * RobertaPreLayerNormConfig.
 * lib/model/golden_models_test.c covers this file. */
#include "lib/weights/families/rows.h"

static const slc_config_key keys[] = {
    ENCODER_KEYS,
    COUNT("vocab_size", vocabulary),
    COUNT("max_position_embeddings", positions),
    COUNT("type_vocab_size", types),
    KEY("classifier_dropout", REAL, classifier_dropout, 0, 1, true),
    END,
};
static const slc_family_demand demands[] = {{"position_embedding_type", "\"absolute\""}, END};
/* The head of tokens of a model with norms before its branches has the exact form of GELU, whatever "hidden_act" says.
 */
static const slc_family_demand demands_before[] = {
    {"position_embedding_type", "\"absolute\""}, {"hidden_act", "\"gelu\""}, END};

static const slc_param_row embed[] = {ONE(TOKEN_TABLE, "embeddings.word_embeddings.weight", ALWAYS),
                                      ONE(POSITION_TABLE, "embeddings.position_embeddings.weight", ALWAYS),
                                      ONE(TYPE_TABLE, "embeddings.token_type_embeddings.weight", TYPES),
                                      PAIR(EMBED_NORM, "embeddings.LayerNorm", ALWAYS), END};

#define ATTENTION                                                                                                      \
    PAIR(QUERY, "attention.self.query", ALWAYS), PAIR(KEY, "attention.self.key", ALWAYS),                              \
        PAIR(VALUE, "attention.self.value", ALWAYS), PAIR(PROJECTION, "attention.output.dense", ALWAYS)
#define MLP PAIR(FC, "intermediate.dense", ALWAYS), PAIR(MLP, "output.dense", ALWAYS)
static const slc_param_row block[] = {ATTENTION, PAIR(NORM1, "attention.output.LayerNorm", ALWAYS), MLP,
                                      PAIR(NORM2, "output.LayerNorm", ALWAYS), END};
static const slc_param_row block_before[] = {PAIR(NORM1, "attention.LayerNorm", ALWAYS), ATTENTION,
                                             PAIR(NORM2, "intermediate.LayerNorm", ALWAYS), MLP, END};

static const slc_param_row head[] = {PAIR(TRANSFORM, "!cls.predictions.transform.dense", TOKEN_HEAD),
                                     PAIR(HEAD_NORM, "!cls.predictions.transform.LayerNorm", TOKEN_HEAD),
                                     ONE(DECODER_BIAS, "!cls.predictions.bias", TOKEN_HEAD),
                                     PAIR(TRANSFORM, "pooler.dense", CLASS_HEAD),
                                     PAIR(DECODER, "!classifier", CLASS_HEAD),
                                     END};
static const slc_param_row head_before[] = {PAIR(TRUNK_NORM, "LayerNorm", ALWAYS),
                                            PAIR(TRANSFORM, "!lm_head.dense", TOKEN_HEAD),
                                            PAIR(HEAD_NORM, "!lm_head.layer_norm", TOKEN_HEAD),
                                            ONE(DECODER_BIAS, "!lm_head.bias", TOKEN_HEAD),
                                            PAIR(TRANSFORM, "!classifier.dense", CLASS_HEAD),
                                            PAIR(DECODER, "!classifier.out_proj", CLASS_HEAD),
                                            END};
static const char *const dropped[] = {"embeddings.position_ids", "pooler.dense.*", "!cls.seq_relationship.*", NULL};
static const char *const dropped_before[] = {"embeddings.position_ids", "pooler.dense.*", NULL};

static const slc_family_size sizes[] = {
    SMALL_TEXT(128, 264), {"base", 12, 768, 12, 512, 30522}, {"large", 24, 1024, 16, 512, 30522}, END};

const slc_family slc_family_bert = {
    .name = "bert",
    .padding = true,
    .frames = true,
    .masks = true,
    .norm_of_embeddings = true,
    .norms_after = true,
    .norms_before = "roberta-prelayernorm",
    .dense_heads = true,
    .prefix = "bert.",
    .blocks = "encoder.layer.",
    .embed = embed,
    .block = block,
    .head = head,
    .second_table = "cls.predictions.decoder.weight",
    .second_bias = "cls.predictions.decoder.bias",
    .shares_table = true,
    .classes = {[SLUICE_HEAD_TOKENS] = "BertForMaskedLM", [SLUICE_HEAD_CLASSES] = "BertForSequenceClassification"},
    .trunk = "BertModel",
    .two_heads = "BertForPreTraining",
    .keys = keys,
    .demands = demands,
    .base = {BASE_OF_TEXT, .epsilon = 1e-12, .activation = SLC_ACTIVATION_GELU_ERF, .vocabulary = 30522,
             .positions = 512, .types = 2, .classifier_dropout = .1},
    .dropped = dropped,
    .own_classifier_dropout = true,
    .sizes = sizes,
};

const slc_family slc_family_roberta_prelayernorm = {
    .name = "roberta-prelayernorm",
    .padding = true,
    .frames = true,
    .masks = true,
    .norm_of_embeddings = true,
    .norm_before_head = true,
    .positions_after_padding = true,
    .dense_heads = true,
    .drops_pooled = true,
    .prefix = "roberta_prelayernorm.",
    .blocks = "encoder.layer.",
    .embed = embed,
    .block = block_before,
    .head = head_before,
    .second_table = "lm_head.decoder.weight",
    .second_bias = "lm_head.decoder.bias",
    .shares_table = true,
    .classes = {[SLUICE_HEAD_TOKENS] = "RobertaPreLayerNormForMaskedLM",
                [SLUICE_HEAD_CLASSES] = "RobertaPreLayerNormForSequenceClassification"},
    .trunk = "RobertaPreLayerNormModel",
    .keys = keys,
    .demands = demands_before,
    .base = {BASE_OF_TEXT, .epsilon = 1e-12, .activation = SLC_ACTIVATION_GELU_ERF, .vocabulary = 50265,
             .positions = 512, .types = 2, .padding = 1, .begin_token = 1, .end_token = 3, .classifier_dropout = .1},
    .dropped = dropped_before,
    .own_classifier_dropout = true,
    .sizes = sizes,
};
