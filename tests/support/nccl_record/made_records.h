/* Records of the NCCL shim that a test makes up, byte by byte as the shim would write them. */
#pragma once

#include "plugins/nccl/record/record.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct {
    unsigned char *file;
    slc_record_header *header; /* in the file, as are those below */
    slc_record_communicator *communicators;
    slc_record_module *modules;
    slc_record_entry *entries;
    slc_record_time *times; /* NULL: none */
} made_record;

/* An empty record of a process of this boot of the machine, which has ended; with room for times if `timed`. A test
 * may change the header. It ends the test if there is no memory. */
made_record made_record_new(const char *host, int64_t pid, uint32_t entry_count, bool timed);
void made_record_free(made_record *record);

/* Adds a ready communicator. Returns its row. */
unsigned made_communicator(made_record *record, uint64_t key, int rank, int size);

/* Adds a module. Returns its row. */
unsigned made_module(made_record *record, const char *path);

typedef struct {
    unsigned communicator, operation, dtype, redop, thread, group, flags, module;
    int peer;
    int64_t time_ns;
    uint64_t count, send, receive, stream, caller;
} made_call;

/* Does what the shim does for a call: the entry, and the row's calls, returned, collectives and hash. The value that a
 * send or a receive has in the place of an address is the test's. Returns the entry's index. */
uint64_t made_entry(made_record *record, const made_call *call);

/* Says when the operation of the nth entry ran. */
void made_time(made_record *record, uint64_t index, int64_t begin_ns, int64_t end_ns);

/* Writes the first `bytes` of the file (0: all) over what is at the path; ends the test if it cannot. */
void made_record_write(const made_record *record, const char *path, size_t bytes);
