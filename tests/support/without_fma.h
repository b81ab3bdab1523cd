/* Numbers that each rank computes for itself must have the same bits on a processor that has fused multiply-adds and on
 * one that has none. A test program runs itself again with a glibc that is told of none, and compares. Its main begins
 * with `if (argc == 2) return tell_bits();`, where tell_bits calls print_bits. */
#pragma once

#include "lib/base/hash/fnv.h"

#include <inttypes.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Hashes what libm itself gives: pow and cos of many numbers. */
static inline uint64_t bits_of_libm(void)
{
    uint64_t hash = SLC_FNV_START;
    for (int step = 1; step < 20000; step++) {
        const double both[] = {pow(0.999, step), cos(step * 0x1p-14)};
        hash = slc_fnv(hash, both, sizeof both);
    }
    return hash;
}

static inline int print_bits(uint64_t hash)
{
    return printf("bits %" PRIx64 " %" PRIx64 "\n", hash, bits_of_libm()) < 0;
}

/* Skips if libm has one way only. */
static inline void same_bits_without_fma(uint64_t hash)
{
    char self[1024] = "", command[1200], line[256];
    uint64_t other = 0, libm = 0;
    int count = 0;
    assert_true(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
    snprintf(command, sizeof command, "GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX2,-FMA,-FMA4 '%s' bits", self);
    FILE *told = popen(command, "r");
    assert_non_null(told);
    while (fgets(line, sizeof line, told)) /* the device of the tests may be named before */
        if (!strncmp(line, "bits ", 5)) count = sscanf(line, "bits %" SCNx64 " %" SCNx64, &other, &libm);
    assert_int_equal(pclose(told), 0);
    assert_int_equal(count, 2);
    if (libm == bits_of_libm()) {
        print_message("SKIP: libm computes in one way here, with fused multiply-adds or without\n");
        skip();
    }
    assert_true(other == hash);
}
