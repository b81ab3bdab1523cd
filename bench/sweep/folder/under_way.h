/* Memory in which rank 0 of a sweep notes how far it is, for the launcher, which outlives the ranks and has to know in
 * which cell they ended. Cells have numbers from 0 on over the whole sweep. */
#pragma once

#include <sluice/status.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct {
    _Atomic uint64_t next;        /* cells before this one are done with */
    _Atomic bool running;         /* cell number `next` is run */
    _Atomic uint64_t limit_at_ns; /* when it has to be done (slc_clock_ns); 0: never */
} slc_under_way;

/* Makes such memory. *fd: its descriptor, which ranks inherit. Errors: SYSTEM. */
sluice_status slc_under_way_create(slc_under_way **out, int *fd);
/* A rank's view of it. Errors: SYSTEM. */
sluice_status slc_under_way_attach(int fd, slc_under_way **out);
void slc_under_way_detach(slc_under_way *way); /* NULL is allowed */
