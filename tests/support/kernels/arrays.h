/* Arrays for the tests of kernels: numbers from a seed, of either type, and their distance to float64. */
#pragma once

#include "tests/support/kernels/ways.h"
#include "tests/support/seed.h"

#include <math.h>
#include <setjmp.h>
#include <sluice/dtype.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* SplitMix64 (Steele, Lea & Flood, OOPSLA 2014). */
uint64_t test_random(uint64_t *state);

float test_uniform(uint64_t *state, float low, float high);

/* Returns 64-byte aligned memory of at least one byte, which test_release frees; if the tests run on a GPU, it reads
 * the memory in place. */
void *test_bytes(size_t bytes);

/* Return memory that is all zero: test_zeros of the kind that test_bytes gives, test_zeroed the host's own, which no
 * GPU reads. */
void *test_zeros(uint64_t bytes);
void *test_zeroed(uint64_t bytes);

/* Frees what test_bytes and its like gave, or malloc. */
void test_release(void *memory);

/* Returns a 64-byte aligned array of at least one element; the caller frees it with test_release. */
float *test_floats(uint64_t count);

float *test_uniform_floats(uint64_t count, float low, float high, uint64_t seed);

float *test_copy(uint64_t count, const float *from);

double *test_doubles(uint64_t count);

double *test_widen(uint64_t count, const float *from);

void test_close(const char *what, uint64_t count, const float *got, const double *want, double bar);

/* Sums of a GPU are in another order than the host's, so that each of the two has its own first bits. */
enum { TEST_KINDS = 2 };
#define TEST_FIRST(first) (&(first)[test_on_gpu()])

/* Fails unless the bits are those of `first`, which the first call (for the first instruction set) fills. */
void test_same_bits(const char *what, uint64_t count, const float *got, float **first);

#define TEST_EACH_DTYPE(dtype) for (sluice_dtype dtype = SLUICE_FP32; dtype <= SLUICE_BF16; dtype++)

/* Returns the numbers in `dtype`, 64-byte aligned; the caller frees them. */
void *test_typed(sluice_dtype dtype, uint64_t count, const float *from);

/* Returns gradients of a step in `dtype`, in (-0.1, 0.1); the caller frees them. A single element is positive in every
 * step: if steps cancelled each other, its momentum would have too few digits left to compare. */
void *test_gradients(sluice_dtype dtype, uint64_t count, uint64_t seed);

void *test_uniform_typed(sluice_dtype dtype, uint64_t count, float low, float high, uint64_t seed);

/* Gives what test_uniform_typed gives, for millions of numbers, in less time: a drawn piece of odd length is repeated.
 */
void *test_repeated_typed(sluice_dtype dtype, uint64_t count, float low, float high, uint64_t seed);

void *test_copy_typed(sluice_dtype dtype, uint64_t count, const void *from);

float *test_floats_of(sluice_dtype dtype, uint64_t count, const void *from);

double *test_widen_typed(sluice_dtype dtype, uint64_t count, const void *from);

/* Takes a bar for each type; 0 asks for exact results. Rounding many numbers to bf16 costs 1.7e-3, but up to 3.9e-3 if
 * a few large ones dominate the norm: so the bar is never below what rounding the true values costs. */
void test_close_typed(const char *what, sluice_dtype dtype, uint64_t count, const void *got, const double *want,
                      double fp32_bar, double bf16_bar);

/* Returns the absolute values; the caller frees them. */
double *test_magnitudes(uint64_t count, const double *from);

/* Compares sums that may nearly cancel. `terms` are sums of the magnitudes of what is added: 3 additions in a row round
 * by at most 3 * 2^-24 of them, and of random numbers many additions round by less, since partial sums stay small
 * beside terms. A sum in bf16 is rounded once more. */
void test_close_sums(const char *what, sluice_dtype dtype, uint64_t count, const void *got, const double *want,
                     const double *terms);

/* Compares numbers of either type as test_same_bits compares those of fp32. */
void test_same_bits_typed(const char *what, sluice_dtype dtype, uint64_t count, const void *got, float **first);
