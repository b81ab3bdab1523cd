/* A family of models is one row of traits, names and sizes, in a file of lib/weights/families. Code that reads files,
 * registers, computes or gives data asks for a trait, not for a family. Pure functions, any thread. */
#pragma once

#include "lib/weights/config.h"
#include "lib/weights/param_rows.h"

#include <sluice/model.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct slc_config_key slc_config_key; /* lib/weights/config_keys.h */

enum { SLC_HEADS = SLUICE_HEAD_CLASSES + 1 };

/* A size by name. A list of sizes ends with one without a name. */
typedef struct {
    const char *name;
    uint32_t layers, channels, heads;
    uint32_t extent; /* context or image_size */
    uint32_t grain;  /* vocabulary or patch_size */
} slc_family_size;

/* A key of config.json that changes a model's computation, and the one value, as JSON, that ours implements. A list
 * ends with a row without a key. */
typedef struct {
    const char *key, *wanted;
} slc_family_demand;

typedef struct {
    const char *name; /* model_type of config.json */

    /* The input */
    bool sees;    /* images, cut into patches; else tokens of a text */
    bool padding; /* a token fills texts up, and looking it up gives no gradient */
    bool frames;  /* [CLS] and [SEP] stand around a text */
    bool masks;   /* with a head of tokens it guesses masked tokens of a text */

    /* The computation */
    bool causal;              /* a position sees those before it alone, and answers with the next token */
    bool norm_of_embeddings;  /* a norm comes after the embeddings */
    bool norms_after;         /* norms come after each branch; else before each branch */
    const char *norms_before; /* the name of the family that is this one with norms before each branch; NULL: none */
    bool norm_before_head;    /* a norm of the last block's output comes before a head that begins with a dense layer */
    bool absolute_positions;  /* of images: always there, and other positions are not; else each can be chosen */
    bool positions_after_padding; /* the first position has the table's row behind that of number `padding` */
    bool mean_pooling; /* classes come from the mean of the patches, unless first_row_pooling; else the first row */
    bool dense_heads;  /* a dense layer begins each head: pooler, transform */
    bool drops_pooled; /* dropout comes before the dense layer of a head of classes too */

    /* The parameters: those of the embedding, of a block and of the head; what precedes their names, and a block's */
    const char *prefix, *blocks;
    const slc_param_row *embed, *block, *head;
    const char *second_table, *second_bias; /* slc_param_second_name */
    bool inputs_first;                      /* matrices are [inputs][outputs], as Conv1D has them */
    bool shares_table;                      /* the head of tokens is the token table */
    bool norm_of_trunk;                     /* the last norm is there without a head too */
    bool scaled_residual;                   /* projections onto the residual stream begin smaller, by its length */
    bool drawn_cls;                         /* the class token begins with drawn values; else 0 */

    /* The files */
    const char *classes[SLC_HEADS]; /* transformers' class with each sluice_model_head; NULL: there is no such head */
    const char *trunk;              /* the class without a head, read as that with the usual one (slc_usual_head) */
    const char *two_heads;          /* a class that has a second head besides that of tokens; NULL: there is none */
    const slc_config_key *keys;
    const slc_family_demand *demands; /* besides those that all families have */
    slc_config base;                  /* transformers' defaults: the family's base model */
    /* Tensors that hold no parameter: buffers, and heads of pre-training that transformers drops too, as names behind
     * the prefix; "!": without prefix; "#": the number of a layer; "*": anything. NULL ends the list. */
    const char *const *dropped;
    bool chooses_qkv_bias;       /* config.json says whether queries, keys and values have a bias */
    bool inner_follows;          /* the MLP's width may be left out: 4 x channels */
    bool own_embedding_dropout;  /* config.json says it apart */
    bool own_classifier_dropout; /* likewise */
    const char *image_processor; /* image_processor_type of preprocessor_config.json */
    int resample;                /* its default there */

    const slc_family_size *sizes; /* what sluice_model_config_named knows */
} slc_family;

/* The rows of the families that sluice/model.h lists. */
#define SLC_FAMILY_DECLARE(enumerator, name) extern const slc_family slc_family_##name;
SLUICE_MODEL_FAMILY_LIST(SLC_FAMILY_DECLARE)

/* Returns the family's row; for a number that is no family, a row without a name or any trait. */
const slc_family *slc_family_of(sluice_model_family family);

/* The head of a model of which nothing else is said: tokens of text, classes of images. */
sluice_model_head slc_usual_head(sluice_model_family family);

/* Fills *out with transformers' defaults. */
void slc_config_defaults(sluice_model_family family, sluice_model_head head, slc_config *out);

/* Writes the names of all families, with ", " between them, into out[size] and returns it. */
const char *slc_family_names(char *out, size_t size);
