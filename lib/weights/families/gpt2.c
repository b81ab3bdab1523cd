/* GPT-2. Keys and defaults: transformers' GPT2Config.
 * lib/model/golden_models_test.c covers this file. */
#include "lib/weights/families/rows.h"

static const slc_config_key keys[] = {
    COUNT("n_embd", channels),
    COUNT("n_layer", layers),
    COUNT("n_head", heads),
    KEY("n_inner", COUNT, inner, 1, LARGE, true),
    COUNT("n_positions", positions),
    KEY("activation_function", ACTIVATION, activation, 0, 0, false),
    REAL("layer_norm_epsilon", epsilon, 1),
    REAL("resid_pdrop", dropout, 1),
    REAL("embd_pdrop", embedding_dropout, 1),
    REAL("attn_pdrop", attention_dropout, 1),
    REAL("initializer_range", initializer_range, 1e3),
    COUNT("vocab_size", vocabulary),
    END,
};
static const slc_family_demand demands[] = {
    {"scale_attn_weights", "true"}, {"scale_attn_by_inverse_layer_idx", "false"}, END};

static const slc_param_row embed[] = {ONE(TOKEN_TABLE, "wte.weight", ALWAYS), ONE(POSITION_TABLE, "wpe.weight", ALWAYS),
                                      END};
static const slc_param_row block[] = {PAIR(NORM1, "ln_1", ALWAYS),
                                      PAIR(QKV, "attn.c_attn", ALWAYS),
                                      PAIR(PROJECTION, "attn.c_proj", ALWAYS),
                                      PAIR(NORM2, "ln_2", ALWAYS),
                                      PAIR(FC, "mlp.c_fc", ALWAYS),
                                      PAIR(MLP, "mlp.c_proj", ALWAYS),
                                      END};
static const slc_param_row head[] = {PAIR(HEAD_NORM, "ln_f", ALWAYS), END};
static const char *const dropped[] = {"h.#.attn.bias", "h.#.attn.masked_bias", NULL};

static const slc_family_size sizes[] = {SMALL_TEXT(128, 256),
                                        {"small", 12, 768, 12, 1024, 50257},
                                        {"medium", 24, 1024, 16, 1024, 50257},
                                        {"large", 36, 1280, 20, 1024, 50257},
                                        {"xl", 48, 1600, 25, 1024, 50257},
                                        END};

const slc_family slc_family_gpt2 = {
    .name = "gpt2",
    .causal = true,
    .prefix = "transformer.",
    .blocks = "h.",
    .embed = embed,
    .block = block,
    .head = head,
    .second_table = "lm_head.weight",
    .inputs_first = true,
    .shares_table = true,
    .norm_of_trunk = true,
    .scaled_residual = true,
    .classes = {[SLUICE_HEAD_TOKENS] = "GPT2LMHeadModel"},
    .trunk = "GPT2Model",
    .keys = keys,
    .demands = demands,
    .base = {BASE_OF_TEXT, .epsilon = 1e-5, .activation = SLC_ACTIVATION_GELU_TANH, .vocabulary = 50257,
             .positions = 1024, .begin_token = 50257, .end_token = 50257},
    .dropped = dropped,
    .inner_follows = true,
    .own_embedding_dropout = true,
    .sizes = sizes,
};
