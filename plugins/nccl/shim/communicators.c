/* The table of communicators: open addressing, one table after another when they fill. A place is taken once, by a
 * compare and exchange of the handle; what it names may change, since addresses are used again.
 * tests/nccl/on_the_bed.py covers this file. */
#include "plugins/nccl/shim/communicators.h"

#include "lib/base/hash/fnv.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>

enum { TABLE_PLACES = 2048, MOST_PROBES = 64 };

struct slc_shim_comm_table {
    struct {
        _Atomic(ncclComm_t) comm;
        _Atomic(slc_shim_comm *) made;
    } places[TABLE_PLACES];
    _Atomic(slc_shim_comm_table *) next;
    /* Children that have no handle yet; only the first table has these members. */
    _Atomic unsigned awaited_count;
    atomic_flag lock;
    slc_shim_comm *awaited; /* under the lock */
};

static size_t first_place(ncclComm_t comm)
{
    uint64_t address = (uint64_t)(uintptr_t)comm;
    return (size_t)((address >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 32) % TABLE_PLACES;
}

static slc_shim_comm *find_bound(const slc_shim_recorder *recorder, ncclComm_t comm)
{
    const slc_shim_comm_table *table = atomic_load_explicit(&recorder->communicators, memory_order_acquire);
    for (; table; table = atomic_load_explicit(&table->next, memory_order_acquire)) {
        size_t place = first_place(comm);
        for (int i = 0; i < MOST_PROBES; i++, place = (place + 1) % TABLE_PLACES) {
            ncclComm_t there = atomic_load_explicit(&table->places[place].comm, memory_order_acquire);
            if (there == comm) return atomic_load_explicit(&table->places[place].made, memory_order_acquire);
            if (!there) break;
        }
    }
    return NULL;
}

/* Puts the communicator into this table; false if its places are taken. */
static bool bind_in(slc_shim_comm_table *table, slc_shim_comm *made, ncclComm_t comm)
{
    size_t place = first_place(comm);
    for (int i = 0; i < MOST_PROBES; i++, place = (place + 1) % TABLE_PLACES) {
        ncclComm_t there = NULL;
        if (atomic_compare_exchange_strong(&table->places[place].comm, &there, comm) || there == comm) {
            atomic_store_explicit(&table->places[place].made, made, memory_order_release);
            return true;
        }
    }
    return false;
}

static void bind_from(_Atomic(slc_shim_comm_table *) *at, slc_shim_comm *made, ncclComm_t comm)
{
    made->comm = comm;
    for (;;) {
        slc_shim_comm_table *table = atomic_load(at);
        if (!table) {
            slc_shim_comm_table *more = calloc(1, sizeof *more);
            if (!more) return; /* then its calls are passed on, but not recorded */
            if (atomic_compare_exchange_strong(at, &table, more))
                table = more;
            else
                free(more);
        }
        if (bind_in(table, made, comm)) return;
        at = &table->next;
    }
}

void slc_shim_comm_bind(slc_shim_recorder *recorder, slc_shim_comm *made, ncclComm_t comm)
{
    bind_from(&recorder->communicators, made, comm);
}

/* ---- Children without a handle ---- */

static slc_shim_comm_table *lock_awaited(const slc_shim_recorder *recorder)
{
    slc_shim_comm_table *table = atomic_load_explicit(&recorder->communicators, memory_order_acquire);
    if (!table || !atomic_load_explicit(&table->awaited_count, memory_order_acquire)) return NULL;
    while (atomic_flag_test_and_set_explicit(&table->lock, memory_order_acquire)) sched_yield();
    return table;
}

static void unlock_awaited(slc_shim_comm_table *table)
{
    atomic_flag_clear_explicit(&table->lock, memory_order_release);
}

void slc_shim_comm_await(const slc_shim_recorder *recorder, slc_shim_comm *made)
{
    slc_shim_comm_table *table = atomic_load(&recorder->communicators); /* there is one: its parent is in it */
    atomic_fetch_add(&table->awaited_count, 1);
    lock_awaited(recorder);
    made->next = table->awaited;
    table->awaited = made;
    unlock_awaited(table);
}

/* Reads the handle that NCCL has stored where the program wants it. A program that never asked the parent whether it is
 * done may have given the memory back: then the kernel refuses to read it. */
static ncclComm_t read_handle(const slc_shim_comm *made)
{
    ncclComm_t handle = NULL;
    struct iovec to = {.iov_base = &handle, .iov_len = sizeof handle};
    struct iovec from = {.iov_base = made->out, .iov_len = sizeof handle};
    if (process_vm_readv(getpid(), &to, 1, &from, 1, 0) == (ssize_t)sizeof handle) return handle;
    return errno == EFAULT ? NULL : __atomic_load_n(made->out, __ATOMIC_ACQUIRE); /* a sandbox without this call */
}

/* Takes a communicator out of the list and binds it: a child of `parent`, or, if that is NULL, the one with the handle
 * `comm`. */
static slc_shim_comm *take_awaited(const slc_shim_recorder *recorder, const slc_shim_comm *parent, ncclComm_t comm)
{
    slc_shim_comm_table *table = lock_awaited(recorder);
    if (!table) return NULL;
    slc_shim_comm **at = &table->awaited, *made;
    for (; (made = *at); at = &made->next) {
        ncclComm_t handle = !parent || made->parent == parent ? read_handle(made) : NULL;
        if (!handle || (!parent && handle != comm)) continue;
        *at = made->next;
        made->next = NULL;
        atomic_fetch_sub(&table->awaited_count, 1);
        _Atomic(slc_shim_comm_table *) first = table;
        bind_from(&first, made, handle);
        break;
    }
    unlock_awaited(table);
    return made;
}

slc_shim_comm *slc_shim_comm_arrived(const slc_shim_recorder *recorder, const slc_shim_comm *parent)
{
    return take_awaited(recorder, parent, NULL);
}

void slc_shim_comm_forget(const slc_shim_recorder *recorder, const slc_shim_comm *parent)
{
    slc_shim_comm_table *table = lock_awaited(recorder);
    if (!table) return;
    for (slc_shim_comm **at = &table->awaited, *made; (made = *at);) {
        if (made->parent != parent) {
            at = &made->next;
            continue;
        }
        *at = made->next;
        atomic_fetch_sub(&table->awaited_count, 1);
        slc_shim_comm_state(made, SLC_RECORD_ROW_FAILED);
        slc_shim_comm_drop(made);
    }
    unlock_awaited(table);
}

slc_shim_comm *slc_shim_comm_find(const slc_shim_recorder *recorder, ncclComm_t comm)
{
    slc_shim_comm *made = find_bound(recorder, comm);
    if (made && !atomic_load_explicit(&made->is_gone, memory_order_acquire)) return made;
    return comm ? take_awaited(recorder, NULL, comm) : NULL;
}

/* ---- Beginning and end ---- */

slc_shim_comm *slc_shim_comm_create(slc_shim_recorder *recorder, const slc_shim_real *real, uint64_t key, int rank,
                                    int size)
{
    slc_shim_comm *made = calloc(1, sizeof *made);
    if (!made) return NULL;
    uint32_t number = __atomic_load_n(&recorder->header->communicators, __ATOMIC_RELAXED);
    do {
        if (number >= SLC_RECORD_COMMUNICATORS) break;
    } while (!__atomic_compare_exchange_n(&recorder->header->communicators, &number, number + 1, false,
                                          __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
    made->real = real;
    if (number >= SLC_RECORD_COMMUNICATORS) {
        __atomic_fetch_add(&recorder->header->communicators_lost, 1, __ATOMIC_RELAXED);
        made->number = SLC_RECORD_NO_COMMUNICATOR;
        made->row = calloc(1, sizeof *made->row); /* nobody reads it */
        if (!made->row) goto no_memory;
    } else {
        made->number = number;
        made->row = &recorder->rows[number];
    }
    made->row->rank = rank;
    made->row->size = size;
    made->row->device = -1;
    made->row->key = key;
    made->row->hash = key;
    slc_shim_comm_state(made, SLC_RECORD_ROW_CREATING);
    return made;

no_memory:
    free(made);
    return NULL;
}

void slc_shim_comm_drop(slc_shim_comm *made)
{
    if (made->number == SLC_RECORD_NO_COMMUNICATOR) free(made->row);
    free(atomic_load(&made->peers));
    free(made);
}

uint64_t slc_shim_comm_key(uint64_t start, const void *data, size_t bytes)
{
    uint64_t key = slc_fnv(start, data, bytes);
    return key ? key : 1;
}
