/* The offsets of the members of CUDA's structs, in our header and in the toolkit's: layouts.c is compiled with each. */
#pragma once

#include <stddef.h>

typedef struct {
    const char *name; /* NULL ends the list */
    size_t offset, bytes;
} layout;

extern const layout layouts_here[], layouts_toolkit[];
