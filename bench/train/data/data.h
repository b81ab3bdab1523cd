/* Micro-batches of real data in the form that a model wants. The content of a micro-batch is a function of
 * (seed, numbers of its sequences) alone, so a job that is resumed, or split in another way, sees the same.
 *
 *   gpt2             the next token of text
 *   bert, tokens     text with 15 % of its tokens to be guessed: 80 % of them masked, 10 % replaced, 10 % as they are
 *                    (Devlin et al., arXiv 1810.04805, section 3.1)
 *   bert, classes    which of the files a window is from, or the label of a record
 *   vit, beit        images and their classes
 *   beit, tokens     images with 40 % of their patches masked in blocks, whose visual tokens are to be guessed (Bao et
 *                    al., arXiv 2106.08254, algorithm 1); the tokens are those of a codebook of patches (k-means),
 *                    or of a file
 *
 * Records (JSON lines, CSV, TSV) are examples, one a sequence, or joined to one text, as --sequences says.
 *
 * Text is read in the tokens of the options' tokenizer, else in bytes. With a tokenizer the end token of GPT-2 stands
 * between one file and the next, and BERT's windows begin with [CLS] and end with [SEP]. */
#pragma once

#include "bench/train/data/beside.h"
#include "bench/train/data/data_about.h"
#include "bench/train/data/data_watch.h"
#include "bench/train/options/training_options.h"
#include "lib/data/dataset.h"

typedef struct slc_training_data slc_training_data;

/* --data-type. */
slc_data_type slc_training_data_type(const slc_training_options *options);
/* Says what --data is, by the first lines of its files. *out is TEXT without --data. Errors: those of slc_dataset_type;
 * ARGUMENT (--fields; --eval-data of another kind). */
sluice_status slc_training_data_look(const slc_training_options *options, slc_data_type *out);

/* Finds what is wrong with the data, in one process for all ranks. It reads every record, with labels, fields and
 * conversations, but only the first lines of a text. Large files leave an index for the ranks. Errors: those of
 * opening. */
sluice_status slc_training_data_check(const slc_training_options *options, const sluice_model_config *model,
                                      uint32_t length, const slc_training_data_watch *watch);

/* Opens the data that the options name, and sets the fields of the model that the data decides: classes of labelled
 * data; the vocabulary of a model with first values, if there is a tokenizer. `watch` may be NULL. The caller closes
 * it. Errors: PATH, IO, ARGUMENT (data or a tokenizer that this model cannot read, or too little data), FORMAT and
 * UNSUPPORTED (a tokenizer), MEMORY. */
sluice_status slc_training_data_open(const slc_training_options *options, sluice_model_config *model, uint32_t length,
                                     const slc_training_data_watch *watch, slc_training_data **out);
void slc_training_data_close(slc_training_data *data); /* NULL is allowed */

const slc_training_data_facts *slc_training_data_get_facts(const slc_training_data *data);
/* Counts what this rank has taken of the training part so far. */
slc_training_data_counts slc_training_data_get_counts(const slc_training_data *data);
/* Returns how often a run has seen the training part once all ranks together have taken so many sequences: 0.25 is a
 * quarter of it. */
double slc_training_data_passes(const slc_training_data *data, uint64_t sequences);

/* Hashes every byte of the data, reading each once. Errors: IO, MEMORY. */
sluice_status slc_training_data_content(const slc_training_data *data, uint64_t *hash);
/* The index-th line that the user should see once, on what was passed over and where files contradict each other; NULL
 * after the last. Valid as long as the data. */
const char *slc_training_data_note(const slc_training_data *data, uint32_t index);
/* Gives what the data say about a model's inputs and answers (names of classes, how an image becomes pixels), which
 * belongs beside its weights (beside.h). The caller decrefs *out. Errors: ARGUMENT (a class that is no UTF-8), MEMORY.
 */
sluice_status slc_training_data_beside(const slc_training_data *data, json_t **out);

/* Opens all of the data, to be gone through once and in order, for weights that exist: the model must have what the
 * data has. stride: tokens from the beginning of one window of a text to that of the next, if windows are what
 * `length` holds of the text; 0: as long as a window. A target is the token after its input, and each token is the
 * target of the first window that has it together with its predecessor
 * (https://huggingface.co/docs/transformers/perplexity); bert's windows do not overlap, and bert's classes are the
 * files; beit's masks are drawn as those of a held-out part. Errors: as slc_training_data_open, ARGUMENT (visual tokens
 * of which neither the weights nor --visual-tokens say anything). */
sluice_status slc_training_data_open_whole(const slc_training_options *options, sluice_model_config *model,
                                           uint32_t length, uint32_t stride, const slc_training_data_watch *watch,
                                           slc_training_data **out);
/* Takes the sequences (images) [first, first + batch) of data that slc_training_data_open_whole has opened. Those after
 * the last have no target. Otherwise the function is as slc_training_data_take. */
sluice_status slc_training_data_take_in_order(slc_training_data *data, uint64_t first, sluice_batch *out);

typedef enum { SLC_DATA_TRAIN, SLC_DATA_HELD_OUT } slc_training_data_part;

/* Takes the sequences (images) [first, first + batch) of a part. In the held-out part, sequences from number `held_out`
 * of the facts on have no target. *out points into `data` and is valid until the next call. Errors: IO (also a file
 * that has vanished since the data was opened), FORMAT, MEMORY. */
sluice_status slc_training_data_take(slc_training_data *data, slc_training_data_part part, uint64_t first,
                                     sluice_batch *out);
/* Sets the shape in which windows of a text are taken to train from now on: the first `pieces` times `length` tokens of
 * a window become `pieces` sequences, one after the other, and the rest of the window is left out. If windows are
 * framed, each sequence is framed; masks are drawn for all sequences of a window at once. length 0: whole windows.
 * Evaluations take whole windows. Data that have no other shape stay as they are. */
void slc_training_data_set_shape(slc_training_data *data, uint32_t length, uint32_t pieces);
/* Returns the shortest length that these data can be taken in; 0: they have no other shape than their own. */
uint32_t slc_training_data_least_length(const slc_training_data *data);
/* The number of targets that the sequences (images) [first, first + batch) of the training part have: a function of
 * their numbers, for which nothing is read. A micro-batch that was taken stays valid. */
uint64_t slc_training_data_targets(const slc_training_data *data, uint64_t first);
/* Returns the mean number of targets of a micro-batch in the group of lengths that sequence `first` lies in; it is the
 * same on all ranks. A step whose losses are divided by it weighs as much as it has targets; divided by its own number,
 * a step of short records would weigh as much as one of long ones. 0: the data have no groups of lengths, and each
 * step's losses are divided by its own number. */
double slc_training_data_usual_targets(const slc_training_data *data, uint64_t first);
