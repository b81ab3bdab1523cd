/* Models for text and for recommendations, layer by layer, from the papers that published them. Lengths of sequences
 * are those of the papers, or what they train with. published_test.c covers this file. */
#include "sched/study/layer_table.h"

#include <stdio.h>

/* The sizes of a block: attention of `heads` numbers in all for queries, `keys` for keys and for values, and a
 * feed-forward part of `matrices` matrices of d x wide. Of `experts` such parts each token uses `used`. */
typedef struct {
    double d, heads, keys, wide, matrices, experts, used;
    double small;   /* parameters of norms and biases */
    bool also_read; /* a second attention, to what an encoder gives */
} block_shape;

static slc_table_layer *block(slc_layer_table *table, const char *format, int number, const block_shape *s)
{
    double attention = 2 * s->d * s->heads + 2 * s->d * s->keys, tokens = table->tokens;
    double part = s->matrices * s->d * s->wide, experts = s->experts > 1 ? s->experts : 1;
    double attentions = s->also_read ? 2 : 1, used = s->experts > 1 ? s->used : 1;
    double router = s->experts > 1 ? s->d * s->experts : 0;
    slc_table_layer layer = {
        .parameters = attentions * attention + experts * part + router + s->small,
        .flops = tokens * (attentions * (2 * attention + 4 * tokens * s->heads) + 2 * used * part + 2 * router),
        .output = tokens * s->d,
        .kept = tokens * (4 * s->d + attentions * (2 * s->heads + 2 * s->keys) + used * s->matrices * s->wide)};
    snprintf(layer.name, sizeof layer.name, format, number);
    return slc_layer_table_add(table, &layer);
}

/* Rows of d numbers that are looked up, one for each token; `parameters` of the layer's own unit. */
static void look_up(slc_layer_table *table, double parameters, double d)
{
    slc_table_layer layer = {"embed", parameters, 4 * d * table->tokens, d * table->tokens, 0, 0, true};
    slc_layer_table_add(table, &layer);
}

/* Products of every token with a row of `words`; `own` parameters of the layer's own unit. The logits are not kept:
 * their gradient takes their place. */
static void head(slc_layer_table *table, double own, double d, double words)
{
    slc_table_layer layer = {"head", own,  2 * d * words * table->tokens, words * table->tokens, d * table->tokens,
                             0,      false};
    slc_layer_table_add(table, &layer);
}

/* Devlin et al. 2018, with the pooler as the head. */
static void bert_large(slc_layer_table *table)
{
    double d = 1024;
    const block_shape shape = {.d = d, .heads = d, .keys = d, .wide = 4 * d, .matrices = 2, .small = 13 * d};
    table->tokens = 512;
    look_up(table, (30522 + 512 + 2 + 2) * d, d);
    for (int i = 0; i < 24; i++) block(table, "h.%d", i, &shape);
    slc_table_layer pooler = {"pooler", d * d + d, 2 * d * d, d, d, 0, false};
    slc_layer_table_add(table, &pooler);
}

/* Radford et al. 2019. */
static void gpt2_xl(slc_layer_table *table)
{
    double d = 1600;
    const block_shape shape = {.d = d, .heads = d, .keys = d, .wide = 4 * d, .matrices = 2, .small = 13 * d};
    table->tokens = 1024;
    table->tied = 50257 * d;
    look_up(table, 1024 * d, d);
    for (int i = 0; i < 48; i++) block(table, "h.%d", i, &shape);
    head(table, 2 * d, d, 50257);
}

/* Adds `blocks` blocks of an encoder, and as many of a decoder, each of which reads what the encoder gives. */
static void encoder_and_decoder(slc_layer_table *table, int blocks, const block_shape *encoder)
{
    block_shape decoder = *encoder;
    decoder.also_read = true;
    for (int i = 0; i < blocks; i++) {
        slc_table_layer *layer = block(table, "encoder.%d", i, encoder);
        if (i == blocks - 1) layer->readers = (uint32_t)blocks;
    }
    for (int i = 0; i < blocks; i++) block(table, "decoder.%d", i, &decoder);
}

/* Raffel et al. 2020, "11B". */
static void t5_11b(slc_layer_table *table)
{
    const block_shape encoder = {.d = 1024, .heads = 16384, .keys = 16384, .wide = 65536, .matrices = 2, .small = 2048};
    table->tokens = 512;
    table->tied = 32128.0 * 1024;
    look_up(table, 32 * 128, 1024);
    encoder_and_decoder(table, 24, &encoder);
    head(table, 1024, 1024, 32128);
}

/* Vaswani et al. 2017, table 3, "big". */
static void transformer_big(slc_layer_table *table)
{
    double d = 1024;
    const block_shape encoder = {.d = d, .heads = d, .keys = d, .wide = 4096, .matrices = 2, .small = 13 * d};
    table->tokens = 64;
    table->tied = 37000 * d;
    look_up(table, 2 * d, d);
    encoder_and_decoder(table, 6, &encoder);
    head(table, 37000, d, 37000);
}

/* Fedus et al. 2021: the base size, where every other feed-forward part is one of 128. */
static void switch_base(slc_layer_table *table)
{
    block_shape plain = {.d = 768, .heads = 768, .keys = 768, .wide = 3072, .matrices = 2, .small = 2 * 768};
    table->tokens = 512;
    table->tied = 32128.0 * 768;
    look_up(table, 32 * 12, 768);
    for (int i = 0; i < 24; i++) {
        block_shape shape = plain;
        shape.also_read = i >= 12;
        if (i % 2) {
            shape.experts = 128;
            shape.used = 1;
        }
        slc_table_layer *layer = block(table, "h.%d", i, &shape);
        if (i == 11) layer->readers = 12;
    }
    head(table, 768, 768, 32128);
}

static void decoder_model(slc_layer_table *table, int blocks, const block_shape *shape, double words, bool tied)
{
    table->tied = tied ? words * shape->d : 0;
    look_up(table, tied ? shape->d : words * shape->d, shape->d);
    for (int i = 0; i < blocks; i++) block(table, "h.%d", i, shape);
    head(table, tied ? shape->d : words * shape->d + shape->d, shape->d, words);
}

/* Jiang et al. 2024, table 1: two of eight experts a token. */
static void mixtral(slc_layer_table *table)
{
    const block_shape shape = {4096, 4096, 1024, 14336, 3, 8, 2, 2 * 4096, false};
    table->tokens = 4096;
    decoder_model(table, 32, &shape, 32000, false);
}

/* Gemma Team 2024, table 1: a vocabulary of 256 k beside blocks of 110 M parameters. */
static void gemma_2b(slc_layer_table *table)
{
    const block_shape shape = {2048, 2048, 256, 16384, 3, 1, 1, 2 * 2048, false};
    table->tokens = 2048;
    decoder_model(table, 18, &shape, 256128, true);
}

/* Grattafiori et al. 2024, table 3. */
static void llama3_8b(slc_layer_table *table)
{
    const block_shape shape = {4096, 4096, 1024, 14336, 3, 1, 1, 2 * 4096, false};
    table->tokens = 2048;
    decoder_model(table, 32, &shape, 128256, false);
}

static void llama3_405b(slc_layer_table *table)
{
    const block_shape shape = {16384, 16384, 1024, 53248, 3, 1, 1, 2 * 16384, false};
    table->tokens = 2048;
    decoder_model(table, 126, &shape, 128256, false);
}

/* 512 equal layers of 1024 x 1024, each on 64 rows. */
static void deep512(slc_layer_table *table)
{
    double d = 1024;
    table->tokens = 64;
    for (int i = 0; i < 512; i++) {
        slc_table_layer layer = {.parameters = d * d + d,
                                 .flops = 2 * d * d * table->tokens,
                                 .output = d * table->tokens,
                                 .kept = d * table->tokens};
        snprintf(layer.name, sizeof layer.name, "h.%d", i);
        slc_layer_table_add(table, &layer);
    }
}

/* ---- Recurrent networks ---- */

/* A layer of LSTM cells: four gates of h numbers, which read `in` and `recurrent` numbers; `projected` numbers of it go
 * on (0: all h). */
static slc_table_layer *cells(slc_layer_table *table, int number, double in, double recurrent, double h,
                              double projected)
{
    double weights = 4 * (in + recurrent) * h + h * projected, out = projected > 0 ? projected : h;
    slc_table_layer layer = {.parameters = weights + 4 * h,
                             .flops = 2 * weights * table->tokens,
                             .output = out * table->tokens,
                             .kept = 6 * h * table->tokens};
    snprintf(layer.name, sizeof layer.name, "lstm.%d", number);
    return slc_layer_table_add(table, &layer);
}

/* Wu et al. 2016: 8 layers that read, the first in both directions, and 8 that write; each of these takes what the
 * first attention finds. */
static void gnmt(slc_layer_table *table)
{
    double d = 1024, words = 32000;
    table->tokens = 50;
    look_up(table, 2 * words * d, d);
    cells(table, 0, d, d, 2 * d, 0);
    for (int i = 1; i < 8; i++) {
        slc_table_layer *layer = cells(table, i, i == 1 ? 2 * d : d, d, d, 0);
        if (i == 7) layer->readers = 8;
    }
    for (int i = 8; i < 16; i++) cells(table, i, 2 * d, d, d, 0);
    head(table, words * d + words, d, words);
}

/* Jozefowicz et al. 2016, "2-layer LSTM-8192-1024". */
static void big_lstm(slc_layer_table *table)
{
    double d = 1024, words = 793470;
    table->tokens = 20;
    look_up(table, words * d, d);
    cells(table, 0, d, d, 8192, d);
    cells(table, 1, d, d, 8192, d);
    head(table, words * d + words, d, words);
}

/* ---- Recommendations ---- */

/* Naumov et al. 2019, as trained on Criteo's Kaggle data: 26 tables of 33.76 M rows of 16 numbers, of which a sample
 * looks up one each. */
static void dlrm(slc_layer_table *table)
{
    static const double bottom[] = {13, 512, 256, 64, 16}, top[] = {367, 512, 256, 1};
    slc_table_layer tables = {"tables", 33762577.0 * 16, 26 * 16, 26 * 16, 0, 5, true};
    slc_layer_table_add(table, &tables);
    for (int i = 0; i < 7; i++) {
        double in = i < 4 ? bottom[i] : top[i - 4], out = i < 4 ? bottom[i + 1] : top[i - 3];
        slc_table_layer layer = {.parameters = in * out + out, .flops = 2 * in * out, .output = out, .kept = out};
        snprintf(layer.name, sizeof layer.name, "%s.%d", i < 4 ? "bottom" : "top", i < 4 ? i : i - 4);
        slc_layer_table_add(table, &layer);
    }
}

const slc_layer_model slc_text_models[] = {
    {"bert-large", bert_large},
    {"gpt2-xl", gpt2_xl},
    {"t5-11b", t5_11b},
    {"transformer-big", transformer_big},
    {"switch-base", switch_base},
    {"mixtral-8x7b", mixtral},
    {"gemma-2b", gemma_2b},
    {"llama3-8b", llama3_8b},
    {"llama3-405b", llama3_405b},
    {"deep-512", deep512},
    {"gnmt", gnmt},
    {"big-lstm", big_lstm},
    {"dlrm", dlrm},
    {NULL, NULL},
};
