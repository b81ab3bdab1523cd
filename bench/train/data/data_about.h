/* Facts about training data that are known before any sequence or image is read. */
#pragma once

#include <stdint.h>

/* A description of the data for the start lines and the report. */
typedef struct {
    const char *own_path;     /* where it was read from if no --data was given */
    const char *what;         /* what is counted: "bytes", "tokens", "images" */
    const char *tokenizer;    /* path of what made the tokens; NULL: none did */
    uint64_t files;           /* of text, those that are read; 0: not counted */
    uint64_t train, held_out; /* of what is counted */
} slc_training_data_about;

/* Counts examples of the training part that a rank has taken; all 0 for windows and images. */
typedef struct {
    uint64_t examples;       /* taken */
    uint64_t cut, replaced;  /* because they were longer than --context (--too-long) */
    uint64_t tokens, places; /* of the examples; of the micro-batches, with padding */
} slc_training_data_counts;

typedef struct {
    slc_training_data_about about;
    uint64_t fingerprint; /* ranks compare it */
    uint64_t tokenizer;   /* a hash of the tokenizer that the text is read with; 0: none */
    uint64_t reading;     /* a hash of how images become pixels and classes, and records examples; 0: text */
    uint64_t bytes;       /* that the data keep in memory */
    uint64_t held_out;    /* images or examples held out; UINT64_MAX: windows of a text are drawn without end */
    uint64_t sequences;   /* (images) of data that were opened whole */
    uint32_t length_step; /* micro-batches are shorter than --context, in multiples of this; 0: they are not */
} slc_training_data_facts;
