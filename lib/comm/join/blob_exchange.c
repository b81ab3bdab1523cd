/* Exchanges blobs while a world is made: they go to rank 0, and all of them come back. A failed rank's line reaches
 * every rank.
 * rendezvous_test.c covers this file. */
#include "lib/base/error_line.h"
#include "lib/base/status.h"
#include "lib/comm/join/rendezvous.h"
#include "lib/comm/sockets/wire.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t largest_blob = 1u << 26;
/* The other ranks wait a little longer than rank 0, which knows better who is late. */
static const uint64_t grace_ns = 2000000000u;

static sluice_status write_blob(int fd, sluice_status status, const void *data, size_t bytes, uint64_t deadline_ns)
{
    slc_frame frame = {.kind = SLC_FRAME_BLOB, .status = status, .bytes = bytes};
    sluice_status wrote = slc_wire_write(fd, &frame, sizeof frame, deadline_ns);
    return wrote ? wrote : slc_wire_write(fd, data, bytes, deadline_ns);
}

/* Reads a blob into *data, which is allocated with a zero after the last byte. */
static sluice_status read_blob(int fd, uint64_t deadline_ns, sluice_status *status, char **data, size_t *bytes)
{
    slc_frame frame;
    sluice_status got = slc_wire_read(fd, &frame, sizeof frame, deadline_ns);
    if (got) return got;
    if (frame.kind != SLC_FRAME_BLOB || frame.bytes > largest_blob)
        return slc_error(SLUICE_ERR_FORMAT, "the connection carries something else");
    *data = calloc(1, frame.bytes + 1);
    if (!*data) return slc_error(SLUICE_ERR_MEMORY, "%llu bytes", (unsigned long long)frame.bytes);
    got = slc_wire_read(fd, *data, frame.bytes, deadline_ns);
    if (got) {
        free(*data);
        *data = NULL;
        return got;
    }
    *status = (sluice_status)frame.status;
    *bytes = frame.bytes;
    return SLUICE_OK;
}

/* Says between which ranks an exchange ended, with the calling thread's last error. If one of them falls silent
 * although it has joined, the network may carry small packets only. */
static sluice_status fail_exchange(const slc_rendezvous *rendezvous, int rank, sluice_status status)
{
    const bool silent = status == SLUICE_ERR_TIMEOUT || status == SLUICE_ERR_IO;
    return slc_error(status, "rank %d with rank %d, while the world was being made: %.1000s%s", rendezvous->rank, rank,
                     sluice_last_error(), silent ? ": does the network between them lose large packets (MTU)?" : "");
}

static sluice_status collect_from(slc_rendezvous *rendezvous, int rank, char **part, size_t *bytes)
{
    sluice_status told = SLUICE_OK;
    sluice_status status = read_blob(rendezvous->fds[rank], rendezvous->deadline_ns, &told, part, bytes);
    if (status == SLUICE_ERR_PEER) return slc_error(status, "rank %d went away while the world was being made", rank);
    if (status) return fail_exchange(rendezvous, rank, status);
    return told ? slc_error(told, "rank %d: %s", rank, *part) : SLUICE_OK;
}

/* Collects the parts of all ranks, even after a failure: that a rank is gone is usually a consequence, and a rank later
 * in the list may say what the cause was. */
static sluice_status collect_parts(slc_rendezvous *rendezvous, char **parts, size_t *sizes)
{
    sluice_status failed = SLUICE_OK;
    slc_kept_error kept;
    slc_error_keep(&kept);
    for (int rank = 1; rank < rendezvous->size; rank++) {
        sluice_status status = collect_from(rendezvous, rank, &parts[rank], &sizes[rank]);
        if (!status || (failed && (failed != SLUICE_ERR_PEER || status == SLUICE_ERR_PEER))) continue;
        failed = status;
        slc_error_keep(&kept);
    }
    return slc_error_restore(&kept, failed);
}

/* Joins all parts into one: first their sizes as uint64_t, then their bytes. */
static char *join_parts(int count, char *const *parts, const size_t *sizes, size_t *total)
{
    *total = (size_t)count * sizeof(uint64_t);
    for (int i = 0; i < count; i++) *total += sizes[i];
    char *all = malloc(*total + 1), *at = all ? all + (size_t)count * sizeof(uint64_t) : NULL;
    for (int i = 0; all && i < count; i++) {
        uint64_t bytes = sizes[i];
        memcpy(all + (size_t)i * sizeof bytes, &bytes, sizeof bytes);
        if (bytes) memcpy(at, parts[i], bytes);
        at += bytes;
    }
    return all;
}

static sluice_status exchange_as_first(slc_rendezvous *rendezvous, sluice_status status, const void *blob, size_t bytes,
                                       char **all, size_t *total)
{
    int size = rendezvous->size;
    char line[SLC_ERROR_BYTES] = "";
    char **parts = calloc((size_t)size, sizeof *parts);
    size_t *sizes = calloc((size_t)size, sizeof *sizes);
    *all = NULL;
    if (!parts || !sizes) return slc_error(SLUICE_ERR_MEMORY, "exchange of %d ranks", size);
    if (status) snprintf(line, sizeof line, "%s", sluice_last_error());
    /* Parts are read even if this rank failed, because closing a connection with unread ones would lose the answer. */
    sluice_status collected = collect_parts(rendezvous, parts, sizes);
    bool consequence = status == SLUICE_ERR_PEER && collected && collected != SLUICE_ERR_PEER;
    if (consequence)
        status = collected;
    else if (status)
        slc_error(status, "%s", line);
    else
        status = collected;
    if (!status) {
        char *own = malloc(bytes + 1);
        if (own && bytes) memcpy(own, blob, bytes);
        parts[0] = own;
        sizes[0] = bytes;
        if (own) *all = join_parts(size, parts, sizes, total);
        if (!*all) status = slc_error(SLUICE_ERR_MEMORY, "exchange of %d ranks", size);
    }
    if (status) snprintf(line, sizeof line, "%s", sluice_last_error());
    for (int rank = 1; rank < size; rank++) {
        const char *data = status ? line : *all;
        sluice_status wrote = write_blob(rendezvous->fds[rank], status, data, status ? strlen(line) + 1 : *total,
                                         rendezvous->deadline_ns + grace_ns);
        if (wrote && !status) status = fail_exchange(rendezvous, rank, wrote);
    }
    if (*line) slc_error(status, "%s", line);
    for (int rank = 0; rank < size; rank++) free(parts[rank]);
    free(parts);
    free(sizes);
    return status;
}

static sluice_status exchange_as_other(slc_rendezvous *rendezvous, sluice_status status, const void *blob, size_t bytes,
                                       char **all, size_t *total)
{
    uint64_t deadline_ns = rendezvous->deadline_ns + grace_ns;
    if (status) {
        char line[SLC_ERROR_BYTES];
        snprintf(line, sizeof line, "%s", sluice_last_error());
        sluice_status wrote = write_blob(rendezvous->fds[0], status, line, strlen(line) + 1, deadline_ns);
        sluice_status told = SLUICE_OK;
        /* If another rank went away there is a cause, which rank 0 knows. */
        if (!wrote && status == SLUICE_ERR_PEER && !read_blob(rendezvous->fds[0], deadline_ns, &told, all, total)) {
            if (told) snprintf(line, sizeof line, "%s", *all);
            if (told) status = told;
            free(*all);
            *all = NULL;
        }
        return slc_error(status, "%s", line);
    }
    sluice_status wrote = write_blob(rendezvous->fds[0], SLUICE_OK, blob, bytes, deadline_ns);
    sluice_status told = SLUICE_OK;
    /* Reads even if this rank could not write, because rank 0 may have said why before it closed. */
    sluice_status got = read_blob(rendezvous->fds[0], deadline_ns, &told, all, total);
    if (got || wrote) {
        if (!got) free(*all);
        return fail_exchange(rendezvous, 0, got ? got : wrote);
    }
    if (told) {
        slc_error(told, "%s", *all);
        free(*all);
    }
    return told;
}

/* Lets blobs point into the joined parts. FORMAT: their sizes do not add up. */
static sluice_status split_parts(int count, const char *all, size_t total, const void **blobs, size_t *sizes)
{
    size_t at = (size_t)count * sizeof(uint64_t);
    for (int i = 0; i < count; i++) {
        uint64_t bytes;
        if (at > total) return slc_error(SLUICE_ERR_FORMAT, "exchange: too short");
        memcpy(&bytes, all + (size_t)i * sizeof bytes, sizeof bytes);
        if (bytes > total - at) return slc_error(SLUICE_ERR_FORMAT, "exchange: too short");
        blobs[i] = all + at;
        sizes[i] = bytes;
        at += bytes;
    }
    return SLUICE_OK;
}

sluice_status slc_rendezvous_exchange(slc_rendezvous *rendezvous, sluice_status status, const void *blob, size_t bytes,
                                      const void **blobs, size_t *sizes, void **memory)
{
    char *all = NULL;
    size_t total = 0;
    *memory = NULL;
    status = rendezvous->rank == 0 ? exchange_as_first(rendezvous, status, blob, bytes, &all, &total)
                                   : exchange_as_other(rendezvous, status, blob, bytes, &all, &total);
    if (status) return status;
    status = split_parts(rendezvous->size, all, total, blobs, sizes);
    if (status) {
        free(all);
        return status;
    }
    *memory = all;
    return SLUICE_OK;
}
