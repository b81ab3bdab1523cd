/* What a family of models is like: one row of traits. Whoever reads files, registers, computes or gives data asks for a
 * trait, not for a family. Pure functions, any thread. */
#ifndef SLC_WEIGHTS_FAMILY_H
#define SLC_WEIGHTS_FAMILY_H

#include <sluice/model.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct {
    const char *name;     /* model_type of config.json */
    bool tokens, classes; /* the heads that there are (sluice_model_head) */

    /* The input */
    bool sees;      /* images, cut into patches; else tokens of a text */
    uint32_t types; /* token types; 0: none */
    bool padding;   /* a token fills texts up, and looking it up gives no gradient */
    bool frames;    /* [CLS] and [SEP] stand around a text */
    bool masks;     /* with a head of tokens it guesses masked tokens of a text */

    /* The computation */
    bool causal;             /* a position sees those before it alone, and answers with the next token */
    bool norms_after;        /* norms come after the embeddings and after each branch; else before each branch */
    bool gelu_tanh;          /* the default form of GELU */
    double epsilon;          /* the default, of norms */
    bool absolute_positions; /* of images: always there, and other positions are not; else each can be chosen */
    bool mean_pooling; /* classes come from the mean of the patches, unless first_row_pooling; else the first row */
    bool dense_heads;  /* a dense layer begins each head: pooler, transform */

    /* The parameters */
    bool inputs_first;    /* matrices are [inputs][outputs], as Conv1D has them */
    bool shares_table;    /* the head of tokens is the token table */
    bool norm_of_trunk;   /* the last norm is there without a head too */
    bool scaled_residual; /* projections onto the residual stream begin smaller, by its length */
    bool drawn_cls;       /* the class token begins with drawn values; else 0 */

    /* The files */
    bool chooses_qkv_bias;       /* config.json says whether queries, keys and values have a bias */
    bool inner_follows;          /* the MLP's width may be left out: 4 x channels */
    bool own_embedding_dropout;  /* config.json says it apart */
    bool own_classifier_dropout; /* likewise */
    const char *image_processor; /* image_processor_type of preprocessor_config.json */
    int resample;                /* its default there */
} slc_family;

/* Returns the row; of a number that is no family one without a name or any trait. */
const slc_family *slc_family_of(sluice_model_family family);

#endif
