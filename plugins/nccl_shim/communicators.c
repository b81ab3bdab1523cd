/* The table of communicators: open addressing, one table after another when they fill. A place is taken once, by a
 * compare and exchange of the handle; what it names may change, since addresses are used again. */
#include "plugins/nccl_shim/communicators.h"

#include "lib/base/hash/fnv.h"

#include <stdlib.h>

enum { TABLE_PLACES = 2048, MOST_PROBES = 64 };

struct slc_comm_table {
    struct {
        _Atomic(ncclComm_t) comm;
        _Atomic(slc_shim_comm *) made;
    } places[TABLE_PLACES];
    _Atomic(slc_comm_table *) next;
};

static size_t first_place(ncclComm_t comm)
{
    uint64_t address = (uint64_t)(uintptr_t)comm;
    return (size_t)((address >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 32) % TABLE_PLACES;
}

slc_shim_comm *slc_comm_find(const slc_recorder *recorder, ncclComm_t comm)
{
    const slc_comm_table *table = atomic_load_explicit(&recorder->communicators, memory_order_acquire);
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

/* Puts it into this table; false where its places are taken. */
static bool bind_in(slc_comm_table *table, slc_shim_comm *made, ncclComm_t comm)
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

void slc_comm_bind(slc_recorder *recorder, slc_shim_comm *made, ncclComm_t comm)
{
    made->comm = comm;
    for (_Atomic(slc_comm_table *) *at = &recorder->communicators;;) {
        slc_comm_table *table = atomic_load(at);
        if (!table) {
            slc_comm_table *more = calloc(1, sizeof *more);
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

slc_shim_comm *slc_comm_create(slc_recorder *recorder, const slc_nccl_real *real, uint64_t key, int rank, int size)
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
    slc_comm_state(made, SLC_RECORD_ROW_CREATING);
    return made;

no_memory:
    free(made);
    return NULL;
}

void slc_comm_drop(slc_shim_comm *made)
{
    if (made->number == SLC_RECORD_NO_COMMUNICATOR) free(made->row);
    free(atomic_load(&made->peers));
    free(made);
}

uint64_t slc_comm_key(uint64_t start, const void *data, size_t bytes)
{
    uint64_t key = slc_fnv(start, data, bytes);
    return key ? key : 1;
}
