/* The shape of the images that a model wants. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

typedef enum { SLC_FILTER_BILINEAR, SLC_FILTER_BICUBIC, SLC_FILTER_NEAREST } slc_image_filter;

/* A pixel is (sample / white - mean) / deviation of its channel. One channel of a
 * coloured image is its luma (ITU-R BT.601), three of a grey one are alike. The whole image is resized to side x side,
 * as Pillow and Hugging Face's processors do; unlike them, nothing is rounded to 8 bits in between. */
typedef struct {
    uint32_t channels, side;     /* channels: 1 or 3 */
    float mean[3], deviation[3]; /* .5 and .5 are ViT's and BEiT's */
    slc_image_filter filter;
    bool draft; /* a JPEG file is decoded at 1/2, 1/4 or 1/8 of its size, the least that still has side x side pixels:
                   faster, and the pixels differ a little. As Pillow's Image.draft chooses */
} slc_image_shape;
