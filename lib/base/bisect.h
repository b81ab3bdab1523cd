/* The binary search, for arrays of any type: the caller writes the comparison. */
#pragma once

/* Declares `at`, of an unsigned type: the first number from `from` to `end` for which `before`, an expression of `at`,
 * is false; `end` if there is none. `before` must be true for all numbers below that one, and false for all above. */
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
