/* The description of the training data that reports print. */
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
