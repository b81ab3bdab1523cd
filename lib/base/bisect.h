/* The binary search, for arrays of any type: the caller writes the comparison. */
#pragma once

/* Declares `at`, of an unsigned type: the first number from `from` to `end` of which `before`, an expression of `at`,
 * is false; `end` if it is of none. It must be true of all numbers below that one, and false of all above. */
#define SLC_BISECT(type, at, from, end, before)                                                                        \
    type at = (from);                                                                                                  \
    for (type bisect_end = (end), bisect_from; at < bisect_end;) {                                                     \
        bisect_from = at;                                                                                              \
        at += (bisect_end - at) / 2;                                                                                   \
        if (before) {                                                                                                  \
            at++;                                                                                                      \
        } else {                                                                                                       \
            bisect_end = at;                                                                                           \
            at = bisect_from;                                                                                          \
        }                                                                                                              \
    }
