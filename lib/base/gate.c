/* Spins, unless that has been in vain lately, then waits on a futex. The waiter raises `waiters` before it looks at the
 * value a last time, and the poster looks at `waiters` after it wrote the value, both sequentially consistent, so no
 * wake-up is lost. */
#include "lib/base/gate.h"

#include "lib/base/clock.h"
#include "lib/base/gate_delay.h"
#include "lib/base/vain.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { SPIN_NS = 20000 };

static long futex(_Atomic uint32_t *word, int operation, uint32_t value, const struct timespec *timeout)
{
    return syscall(SYS_futex, (uint32_t *)word, operation, value, timeout, NULL, 0);
}

void slc_gate_init(slc_gate *gate)
{
    atomic_init(&gate->value, 0);
    atomic_init(&gate->waiters, 0);
    atomic_init(&gate->vain, 0);
}

static bool reached(uint32_t have, uint32_t want)
{
    return (int32_t)(have - want) >= 0;
}

bool slc_gate_passed(const slc_gate *gate, uint32_t value)
{
    bool passed = reached(atomic_load_explicit(&gate->value, memory_order_acquire), value);
    if (passed) slc_gate_delay();
    return passed;
}

void slc_gate_post(slc_gate *gate, uint32_t value)
{
    slc_gate_delay();
    uint32_t have = atomic_load(&gate->value);
    while (!reached(have, value))
        if (atomic_compare_exchange_weak(&gate->value, &have, value)) break;
    slc_gate_delay();
    if (atomic_load(&gate->waiters)) futex(&gate->value, FUTEX_WAKE_PRIVATE, INT_MAX, NULL);
    slc_gate_delay();
}

/* Spins for a short time, unless that has been in vain lately. True if the count was reached meanwhile. */
static bool spin(slc_gate *gate, uint32_t value, uint64_t start_ns)
{
    const uint32_t vain = atomic_load_explicit(&gate->vain, memory_order_relaxed);
    const bool tries = slc_spinning_pays(vain);
    while (tries && slc_clock_ns() - start_ns < SPIN_NS)
        for (int i = 0; i < 64; i++) {
            if (slc_gate_passed(gate, value)) {
                if (vain) atomic_store_explicit(&gate->vain, 0, memory_order_relaxed);
                return true;
            }
#if defined(__x86_64__)
            __builtin_ia32_pause();
#endif
        }
    atomic_store_explicit(&gate->vain, vain + 1, memory_order_relaxed);
    return false;
}

bool slc_gate_wait(slc_gate *gate, uint32_t value, uint64_t timeout_ns)
{
    slc_gate_delay();
    if (slc_gate_passed(gate, value)) return true;
    uint64_t start = slc_clock_ns();
    if (spin(gate, value, start)) return true;

    bool passed = false;
    slc_gate_delay();
    atomic_fetch_add(&gate->waiters, 1);
    for (;;) {
        slc_gate_delay();
        uint32_t have = atomic_load(&gate->value);
        if (reached(have, value)) {
            passed = true;
            break;
        }
        uint64_t elapsed = slc_clock_ns() - start;
        if (elapsed >= timeout_ns) break;
        uint64_t left = timeout_ns - elapsed;
        slc_gate_delay();
        struct timespec wait = {.tv_sec = (time_t)(left / 1000000000u), .tv_nsec = (long)(left % 1000000000u)};
        futex(&gate->value, FUTEX_WAIT_PRIVATE, have, timeout_ns == UINT64_MAX ? NULL : &wait);
    }
    atomic_fetch_sub(&gate->waiters, 1);
    return passed;
}
