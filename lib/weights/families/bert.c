/* BERT. Keys and defaults: transformers' BertConfig.
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

static const slc_param_row embed[] = {ONE(TOKEN_TABLE, "embeddings.word_embeddings.weight", ALWAYS),
                                      ONE(POSITION_TABLE, "embeddings.position_embeddings.weight", ALWAYS),
                                      ONE(TYPE_TABLE, "embeddings.token_type_embeddings.weight", TYPES),
                                      PAIR(EMBED_NORM, "embeddings.LayerNorm", ALWAYS), END};
static const slc_param_row block[] = {PAIR(QUERY, "attention.self.query", ALWAYS),
                                      PAIR(KEY, "attention.self.key", ALWAYS),
                                      PAIR(VALUE, "attention.self.value", ALWAYS),
                                      PAIR(PROJECTION, "attention.output.dense", ALWAYS),
                                      PAIR(NORM1, "attention.output.LayerNorm", ALWAYS),
                                      PAIR(FC, "intermediate.dense", ALWAYS),
                                      PAIR(MLP, "output.dense", ALWAYS),
                                      PAIR(NORM2, "output.LayerNorm", ALWAYS),
                                      END};
static const slc_param_row head[] = {PAIR(TRANSFORM, "!cls.predictions.transform.dense", TOKEN_HEAD),
                                     PAIR(HEAD_NORM, "!cls.predictions.transform.LayerNorm", TOKEN_HEAD),
                                     ONE(DECODER_BIAS, "!cls.predictions.bias", TOKEN_HEAD),
                                     PAIR(TRANSFORM, "pooler.dense", CLASS_HEAD),
                                     PAIR(DECODER, "!classifier", CLASS_HEAD),
                                     END};
static const char *const dropped[] = {"embeddings.position_ids", "pooler.dense.*", "!cls.seq_relationship.*", NULL};

static const slc_family_size sizes[] = {
    SMALL_TEXT(128, 264), {"base", 12, 768, 12, 512, 30522}, {"large", 24, 1024, 16, 512, 30522}, END};

const slc_family slc_family_bert = {
    .name = "bert",
    .padding = true,
    .frames = true,
    .masks = true,
    .norms_after = true,
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
