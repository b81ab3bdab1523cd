/* Private to tests/nccl/bed/hostnccl: the two names of each of NCCL's functions. */
#pragma once

/* nccl_abi.h declares both names; NCCL's are weak, and each has a strong twin that begins with p. */
#define HOSTNCCL_EXPORT(name)                                                                                          \
    extern __typeof__(name) name __attribute__((weak));                                                                \
    extern __typeof__(name) p##name __attribute__((alias(#name)))
