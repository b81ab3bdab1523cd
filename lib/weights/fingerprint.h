/* A fingerprint of fp32 values, which tells two ranks that they have read the same, and whether all values are finite:
 * both in one pass, because the values must be in the processor for either.
 *
 * Values are taken as words of 64 bits (the last is filled up with zeros). Blocks have 512 words; word i of a block
 * belongs to lane i mod 16, where s = rotate(s, 29) + word, from s = 0. After a block each lane becomes
 * (rotate(lane, 23) ^ s) * M with an odd M, and at the end h = mix(h ^ lane) over the lanes, where mix(x) is x * M,
 * xored with its own upper half. Every one of these steps is one to one in what came before and in what is added. If
 * two files of the same length differ in one word, be it by one bit or by all of its 64, the lane of that word
 * therefore differs from there to the end and no other lane does, so the fingerprints differ: that is certain, whatever
 * the values are. If several words differ, the fingerprints are equal by chance only, as those of any hash of 64 bits
 * are; against someone who wants two files to look the same it protects as little. A lane's 32 words of a block are
 * rotated by as many different numbers of bits, and blocks multiplied, so that words and rows that have changed places
 * are seen.
 *
 * It is integer arithmetic in a fixed order, so that all processors get the same. Any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SLC_FINGERPRINT_LANES = 16, SLC_FINGERPRINT_BLOCK = 1024 /* fp32 values */ };

/* Begins as zeros. */
typedef struct {
    uint64_t lane[SLC_FINGERPRINT_LANES];
    uint64_t values; /* number of values so far */
} slc_fingerprint;

/* Returns whether all of `count` values are finite, and continues *fingerprint with them (NULL: nobody asks for it). A
 * call ends a block: give a multiple of SLC_FINGERPRINT_BLOCK values in all calls for one fingerprint but the last one,
 * or cut them in the same places wherever fingerprints are compared. */
bool slc_fingerprint_add(slc_fingerprint *fingerprint, const float *values, size_t count);

uint64_t slc_fingerprint_end(const slc_fingerprint *fingerprint);

/* Continues a hash of several fingerprints, whose order counts. It is one to one in each of the two. */
uint64_t slc_fingerprint_join(uint64_t hash, uint64_t fingerprint);

/* Returns the form of slc_fingerprint_add for processors with the widest vectors (way 0), or with narrower ones (1, 2),
 * for tests. Returns NULL if this processor cannot run it, or if there is no such way. */
enum { SLC_FINGERPRINT_WAYS = 3 };
typedef bool slc_fingerprint_adder(slc_fingerprint *fingerprint, const float *values, size_t count);
slc_fingerprint_adder *slc_fingerprint_way(int way);
