/* Records of a TensorBoard event file, as bytes to append: each is a TFRecord (length and content, each followed by its
 * masked CRC-32C, little endian) whose content is a message Event of tensorflow/core/util/event.proto, with the fields
 * that TensorBoard reads of scalars. Any thread. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum {
    SLC_TRAINING_EVENT_SCALARS = 24,
    SLC_TRAINING_EVENT_TAG = 40,
    SLC_TRAINING_EVENT_BYTES = 64 + SLC_TRAINING_EVENT_SCALARS * (SLC_TRAINING_EVENT_TAG + 16)
};

typedef struct {
    const char *tag; /* "train/loss": at most SLC_TRAINING_EVENT_TAG bytes */
    double value;    /* rounded to fp32; not finite: TensorBoard shows it as such */
} slc_training_event_scalar;

/* All return the bytes written to `out`, which has room for SLC_TRAINING_EVENT_BYTES. `time_s`: seconds since 1970. */

/* The first record of a file: which version it has. */
size_t slc_training_event_version(double time_s, char *out);
/* Writes the record that a run goes on after step `step` - 1: readers then forget what earlier files say of `step` and
 * later ones. */
size_t slc_training_event_restart(double time_s, uint64_t step, char *out);
/* Writes the scalars of a step, SLC_TRAINING_EVENT_SCALARS at most. */
size_t slc_training_event_scalars(double time_s, uint64_t step, const slc_training_event_scalar *scalars, size_t count,
                                  char *out);
