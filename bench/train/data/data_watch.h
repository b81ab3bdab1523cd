/* The watch that the opening of data is given: it says what the opening needs to know of the job, and is told how far
 * reading is. */
#pragma once

#include <sluice/status.h>
#include <stdint.h>

/* The functions are called now and then, with what is done of all of it; a status that is not OK ends the opening and
 * is returned. Either may be NULL. */
typedef struct {
    sluice_status (*tokenised)(uint64_t done, uint64_t bytes, void *context); /* a text is made into tokens */
    void *context;
    sluice_status (*indexed)(uint64_t done, uint64_t bytes, void *context); /* records are looked for */
    uint64_t ranks;      /* that take a step's sequences together; 0: one */
    uint64_t idle_cores; /* this rank's share of the cores that compute leaves idle: images are read ahead on them */
} slc_training_data_watch;
