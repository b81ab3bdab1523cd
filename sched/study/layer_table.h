/* A table of layers, as papers give it: numbers of parameters, operations and activations. Models are written down as
 * such tables (image_tables.c, text_tables.c); published.c makes profiles of them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SLC_TABLE_NAME_BYTES = 24 };

/* All but `parameters` are of one sample: an image, or a sequence of the table's own length. */
typedef struct {
    char name[SLC_TABLE_NAME_BYTES];
    double parameters; /* of the layer's own unit */
    double flops;      /* of the forward; a product of numbers and its addition are two */
    double output;     /* numbers that later layers read */
    double kept;       /* numbers that only the layer's own backward reads */
    uint32_t readers;  /* layers from this one to the last that reads the output; 0: the next one */
    bool looks_up;     /* the parameters are rows that are looked up: the backward reads none, and the forward none but
                          those */
} slc_table_layer;

typedef struct {
    slc_table_layer *layers;
    uint32_t count, room;
    double tied;   /* parameters that the first layer looks up and the last one multiplies by; 0: none */
    double tokens; /* of a sequence; 0: the samples are no sequences */
    bool failed;   /* memory ran out */
} slc_layer_table;

/* Adds a copy of the layer and returns it, to be changed; without memory it sets `failed` and returns a layer that is
 * not in the table. */
slc_table_layer *slc_layer_table_add(slc_layer_table *table, const slc_table_layer *layer);
void slc_layer_table_fini(slc_layer_table *table);

/* A model: its name, and what writes its layers into an empty table. */
typedef struct {
    const char *name;
    void (*write)(slc_layer_table *table);
} slc_layer_model;

/* Tables of models for images and of the others; a model without a name ends each. */
extern const slc_layer_model slc_image_models[], slc_text_models[];
