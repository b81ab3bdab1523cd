/* Sizes for people to read. */
#pragma once

#include <stdint.h>

typedef struct {
    char text[24];
} slc_size_text;

/* "157.6 MiB": a digit after the point and the largest unit of 1024s that leaves at least 1; below 1 KiB whole bytes.
 */
slc_size_text slc_size_of(uint64_t bytes);
