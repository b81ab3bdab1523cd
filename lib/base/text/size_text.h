/* Sizes for people to read. */
#pragma once

#include <stdint.h>

typedef struct {
    char text[24];
} slc_size_text;

/* Returns a size such as "157.6 MiB": with one digit after the point, in the largest unit of 1024s that leaves at least
 * 1; whole bytes below 1 KiB. */
slc_size_text slc_size_of(uint64_t bytes);
