/* The lock between compute and communication: a counter that only grows. Waiters spin for a short time, unless that
 * has been in vain lately, then sleep on a futex; a post without a sleeping waiter makes no system call. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct {
    _Atomic uint32_t value;   /* low 32 bits of the count; wraps */
    _Atomic uint32_t waiters; /* threads that sleep or are about to */
    _Atomic uint32_t vain;    /* waits in a row that spinning has not ended; a lost increment does no harm */
} slc_gate;

void slc_gate_init(slc_gate *gate);
void slc_gate_post(slc_gate *gate, uint32_t value); /* raises the count to `value` (modulo 2^32), and never lowers it */
bool slc_gate_passed(const slc_gate *gate, uint32_t value);

/* Waits until the count has reached `value` and returns true, or returns false once `timeout_ns` have passed
 * (UINT64_MAX: waits for ever). It never allocates. */
bool slc_gate_wait(slc_gate *gate, uint32_t value, uint64_t timeout_ns);
