/* The sources of training data share these types and functions. Private to bench/train/data. */
#pragma once

#include "bench/train/data/beside.h"
#include "bench/train/data/data_about.h"
#include "bench/train/data/data_watch.h"
#include "bench/train/data/masks.h"
#include "bench/train/data/words.h"
#include "lib/data/dataset.h"
#include "lib/data/text.h"

typedef struct slc_training_data slc_training_data;

enum { SLC_TRAINING_NOTES_MAX = 8 };

/* The first member of every source. */
struct slc_training_data {
    sluice_status (*content)(const slc_training_data *data, uint64_t *hash);
    sluice_status (*take)(slc_training_data *data, bool held_out, uint64_t first, sluice_batch *out);
    /* Targets of a sequence of the training part; NULL: all that the model has room for, targets_each. */
    uint64_t (*targets)(const slc_training_data *data, uint64_t sequence);
    /* Returns the targets of a sequence, mean over the group that this sequence lies in; NULL: sequences are alike. */
    double (*usual_targets)(const slc_training_data *data, uint64_t sequence);
    /* Returns how often a run that has taken so many sequences has seen the training part. */
    double (*passes)(const slc_training_data *data, uint64_t sequences);
    /* Sets the shape of what is taken to train, and targets_each with it; NULL: it is what it is. */
    void (*set_shape)(slc_training_data *data, uint32_t length, uint32_t pieces);
    sluice_status (*beside)(const slc_training_data *data, json_t *out); /* adds to it (beside.h); NULL: nothing */
    void (*close)(slc_training_data *data); /* frees all but the struct itself; also called after a failed opening */
    uint64_t seed;
    uint32_t batch, length, targets_each;
    uint32_t least_length; /* in which set_shape takes sequences; 0: in none */
    slc_training_data_facts facts;
    slc_training_data_counts counts;
    bool is_examples;
    char *notes[SLC_TRAINING_NOTES_MAX]; /* as slc_training_data_note says */
    uint32_t note_count;
    /* Data that was opened whole: */
    bool whole;
    uint32_t stride; /* tokens from one window of a text to the next */
    sluice_status (*take_in_order)(slc_training_data *data, uint64_t first, sluice_batch *out);
};

/* Adds a line that the user should see. A source has at most SLC_TRAINING_NOTES_MAX. Error: MEMORY. */
sluice_status slc_training_data_add_note(slc_training_data *data, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Adds such a line if --data is a folder that has files for training and for evaluation by their names, because all of
 * them are trained on. Error: MEMORY. */
sluice_status slc_training_data_note_parts(slc_training_data *data, const slc_training_options *options);

/* ---- Text ---- */

enum { SLC_TRAINING_FILES_MAX = 1024 };

typedef struct {
    slc_training_data base;
    slc_data_type type;
    slc_records *records, *evaluation_records; /* that the texts were made of; NULL: of files */
    slc_text *text, *evaluation;               /* evaluation: --eval-data; NULL: a part of `text` is held out */
    slc_text_range train, held_out;
    slc_training_words words; /* a framed window stands between words.special.first and .last */
    uint32_t inside;          /* tokens of the text in a window */
    bool labelled;            /* a window has one target, its file */
    /* A window that is trained on becomes so many sequences of so many tokens, with what frames them. */
    uint32_t pieces, piece_length;
    int32_t *row; /* of a window that becomes others */
    uint32_t file_count;
    slc_text_range files[SLC_TRAINING_FILES_MAX]; /* for labelled windows: the files that are long enough */
    int32_t *inputs, *targets;
    uint8_t *attention_mask; /* of data that was opened whole, bert only */
} slc_training_text;

/* Makes data of text, zeroed but for what is given, which it owns then. NULL without memory; then the records stay the
 * caller's. */
slc_training_data *slc_training_text_create(slc_data_type type, slc_records *records, slc_records *evaluation);
sluice_status slc_training_text_open(const slc_training_options *options, const slc_training_data_watch *watch,
                                     sluice_model_config *model, slc_training_data *data);

/* Fills in what data that was opened whole has of its own (text_in_order.c). Errors: ARGUMENT (too short a text, other
 * files than classes), MEMORY. */
sluice_status slc_training_text_in_order(slc_training_text *text, const sluice_model_config *model);

/* ---- Examples ---- */

/* Make and open examples, as slc_training_text_create and slc_training_text_open do text. */
slc_training_data *slc_training_examples_create(slc_records *records, slc_records *evaluation);
sluice_status slc_training_examples_open(const slc_training_options *options, const slc_training_data_watch *watch,
                                         sluice_model_config *model, slc_training_data *data);

/* ---- Images ---- */

slc_training_data *slc_training_images_create(void); /* zeroed; NULL: no memory */
sluice_status slc_training_images_open(const slc_training_options *options, const slc_training_data_watch *watch,
                                       sluice_model_config *model, slc_training_data *data);
