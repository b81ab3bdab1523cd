/* GELU, Hendrycks & Gimpel, arXiv 1606.08415, and tanh. All are elementwise over `count` elements. */
#pragma once

#include "lib/kernels/isa.h"
#include "lib/kernels/kernel.h"

typedef enum {
    SLC_GELU_TANH, /* y = x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))): GPT-2's gelu_new */
    SLC_GELU_ERF,  /* y = x/2 (1 + erf(x / sqrt 2)): gelu of BERT, ViT and BEiT */
} slc_gelu_kind;

sluice_status slc_gelu_forward(sluice_stream *stream, slc_gelu_kind kind, sluice_dtype dtype, uint64_t count,
                               const void *x, void *y); /* y may be x */
/* dx = dy * gelu'(x); dx may be dy. */
sluice_status slc_gelu_backward(sluice_stream *stream, slc_gelu_kind kind, sluice_dtype dtype, uint64_t count,
                                const void *x, const void *dy, void *dx);

sluice_status slc_tanh_forward(sluice_stream *stream, sluice_dtype dtype, uint64_t count, const void *x,
                               void *y); /* y may be x */
/* dx = dy (1 - y^2), with y from forward; dx may be dy. */
sluice_status slc_tanh_backward(sluice_stream *stream, sluice_dtype dtype, uint64_t count, const void *y,
                                const void *dy, void *dx);

/* ---- Forms ---- */

/* The plain loops in float64. */
void slc_gelu_forward_ref(slc_gelu_kind kind, uint64_t count, const double *x, double *y);
void slc_gelu_backward_ref(slc_gelu_kind kind, uint64_t count, const double *x, const double *dy, double *dx);
void slc_tanh_forward_ref(uint64_t count, const double *x, double *y);
void slc_tanh_backward_ref(uint64_t count, const double *y, const double *dy, double *dx);

/* One kernel computes all functions of this header; this says which of them. */
typedef enum {
    SLC_GELU_TANH_FORWARD,
    SLC_GELU_TANH_BACKWARD,
    SLC_GELU_ERF_FORWARD,
    SLC_GELU_ERF_BACKWARD,
    SLC_TANH_FORWARD,
    SLC_TANH_BACKWARD,
} slc_gelu_function;

typedef struct {
    slc_gelu_function function;
    sluice_dtype dtype;
    uint64_t count;
    const void *x, *dy; /* forward: dy is x and unused */
    void *out;          /* may be x or dy */
    const float
        *table; /* of bf16 alone: what x gives, dy apart, in fp32, at the place of its bits; NULL: it is computed */
} slc_gelu_args;

SLC_ISA_DECLARE(slc_gelu_range); /* over ranges of elements */
SLC_C_LINKAGE sluice_status slc_gelu_cuda(sluice_stream *stream, const slc_gelu_args *args);
