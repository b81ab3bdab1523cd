/* A disk that loses power. It keeps everything of disk_recorder.h's record that was synchronized, and may or may not
 * keep anything else. A file holds what it held when it was last synchronized, or all that was written since, or half
 * of what it has grown by. Names that were made, moved or removed in a folder since the folder was synchronized may
 * each be there or not; a move within a folder happens or does not. POSIX promises no more. */
#pragma once

#include "lib/base/hash/fnv.h"
#include "tests/support/base/disk_recorder.h"

enum { MODEL_NODES = 512, MODEL_NAMES = 32, MODEL_PENDING = 48, MODEL_NAME = 48 };

typedef struct {
    char name[MODEL_NAME];
    int node;
} model_name;

/* The name `to` comes to mean `node`; then the name `from` comes to mean `back`, or is gone (-1). Either name may be
 * "". */
typedef struct {
    char from[MODEL_NAME], to[MODEL_NAME];
    int node, back;
} model_change_of_names;

typedef struct {
    model_name names[MODEL_NAMES];
    int count;
} model_names;

typedef struct {
    bool is_folder;
    model_names now, kept;
    model_change_of_names pending[MODEL_PENDING];
    int pending_count;
    unsigned char *bytes, *kept_bytes;
    uint64_t length, kept_length, writes, kept_writes;
    bool dirty, reachable;
} model_node;

typedef struct {
    model_node nodes[MODEL_NODES]; /* node 0 is the folder that was watched */
    int count;
} disk_model;

static inline void model_init(disk_model *m)
{
    memset(m, 0, sizeof *m);
    m->nodes[m->count++].is_folder = true;
}

static inline void model_fini(disk_model *m)
{
    for (int i = 0; i < m->count; i++) free(m->nodes[i].bytes), free(m->nodes[i].kept_bytes);
}

/* ---- Names ---- */

static inline int model_find(const model_names *names, const char *name)
{
    for (int i = 0; i < names->count; i++)
        if (!strcmp(names->names[i].name, name)) return names->names[i].node;
    return -1;
}

static inline void model_set(model_names *names, const char name[MODEL_NAME], int node)
{
    int i = 0;
    while (i < names->count && strcmp(names->names[i].name, name)) i++;
    if (node < 0) {
        if (i < names->count) names->names[i] = names->names[--names->count];
        return;
    }
    if (i == names->count && names->count++ == MODEL_NAMES) abort();
    memmove(names->names[i].name, name, MODEL_NAME);
    names->names[i].node = node;
}

static inline void model_apply(model_names *names, const model_change_of_names *change)
{
    if (change->to[0]) model_set(names, change->to, change->node);
    if (change->from[0]) model_set(names, change->from, change->back);
}

static inline void model_change_names(model_node *folder, const char *from, const char *to, int node, int back)
{
    if (folder->pending_count == MODEL_PENDING) abort();
    model_change_of_names *change = &folder->pending[folder->pending_count++];
    *change = (model_change_of_names){.node = node, .back = back};
    snprintf(change->from, MODEL_NAME, "%s", from);
    snprintf(change->to, MODEL_NAME, "%s", to);
    model_apply(&folder->now, change);
}

/* Returns the folder that holds the path's last name, which *last gets; -1: it is not there. */
static inline int model_walk(const disk_model *m, const char *path, const char **last)
{
    int at = 0;
    for (const char *slash; at >= 0 && (slash = strchr(path, '/')) != NULL; path = slash + 1) {
        char name[MODEL_NAME];
        snprintf(name, sizeof name, "%.*s", (int)(slash - path), path);
        at = model_find(&m->nodes[at].now, name);
    }
    *last = path;
    return at;
}

static inline int model_at(const disk_model *m, const char *path)
{
    const char *last;
    int folder = model_walk(m, path, &last);
    return folder < 0 || !*last ? folder : model_find(&m->nodes[folder].now, last);
}

/* ---- One operation ---- */

/* Gives a file another length; what is added is zeros. */
static inline void model_stretch(model_node *file, uint64_t length)
{
    if (length > file->length) {
        file->bytes = realloc(file->bytes, length);
        if (!file->bytes) abort();
        memset(file->bytes + file->length, 0, length - file->length);
    }
    file->length = length;
    file->dirty = true;
    file->writes++;
}

static inline void model_write(model_node *file, const disk_op *op, const unsigned char *data)
{
    const uint64_t end = op->offset + op->bytes;
    model_stretch(file, end > file->length ? end : file->length);
    memcpy(file->bytes + op->offset, data, op->bytes);
}

static inline void model_sync(model_node *node)
{
    node->kept = node->now;
    node->pending_count = 0;
    if (node->is_folder || !node->dirty) return;
    free(node->kept_bytes);
    node->kept_bytes = malloc(node->length + 1);
    if (!node->kept_bytes) abort();
    if (node->length) memcpy(node->kept_bytes, node->bytes, node->length);
    node->kept_length = node->length;
    node->kept_writes = node->writes;
    node->dirty = false;
}

/* Operations on a path that is unlinked by now change nothing. */
static inline void model_do(disk_model *m, const disk_op *op, const unsigned char *pool)
{
    const char *name, *other;
    int folder = model_walk(m, op->path, &name), node = model_at(m, op->path);
    model_walk(m, op->other, &other);
    if (folder < 0 || (node < 0 && op->call != DISK_MKDIR && op->call != DISK_CREATE)) return;
    switch (op->call) {
    case DISK_MKDIR:
    case DISK_CREATE:
        if (m->count == MODEL_NODES) abort();
        m->nodes[m->count].is_folder = op->call == DISK_MKDIR;
        model_change_names(&m->nodes[folder], "", name, m->count++, -1);
        break;
    case DISK_WRITE: model_write(&m->nodes[node], op, pool + op->data); break;
    case DISK_TRUNCATE: model_stretch(&m->nodes[node], op->offset); break;
    case DISK_SYNC: model_sync(&m->nodes[node]); break;
    case DISK_RENAME: model_change_names(&m->nodes[folder], name, other, node, -1); break;
    case DISK_EXCHANGE:
        model_change_names(&m->nodes[folder], name, other, node, model_find(&m->nodes[folder].now, other));
        break;
    case DISK_UNLINK:
    case DISK_RMDIR: model_change_names(&m->nodes[folder], name, "", -1, -1); break;
    case DISK_RETURNED: break;
    }
}

/* ---- After the power is back ---- */

typedef enum { FILES_LOST, FILES_HALF, FILES_ALL, FILES_WAYS } files_way;

/* bits: one for each pending change, in the order of the nodes that can be reached; a bit that is set keeps its
 * change. */
typedef struct {
    uint64_t bits;
    files_way files;
} crash;

static inline void model_reach(disk_model *m, int node)
{
    if (node < 0 || m->nodes[node].reachable) return;
    model_node *n = &m->nodes[node];
    n->reachable = true;
    for (int i = 0; i < n->kept.count; i++) model_reach(m, n->kept.names[i].node);
    for (int i = 0; i < n->pending_count; i++) model_reach(m, n->pending[i].node), model_reach(m, n->pending[i].back);
}

/* Marks the nodes that can be reached and returns how many bits there are. */
static inline int model_bits(disk_model *m)
{
    int bits = 0;
    for (int i = 0; i < m->count; i++) m->nodes[i].reachable = false;
    model_reach(m, 0);
    for (int i = 0; i < m->count; i++) bits += m->nodes[i].reachable ? m->nodes[i].pending_count : 0;
    return bits;
}

static inline model_names model_kept_names(const disk_model *m, int folder, const crash *c)
{
    int bit = 0;
    for (int i = 0; i < folder; i++) bit += m->nodes[i].reachable ? m->nodes[i].pending_count : 0;
    model_names names = m->nodes[folder].kept;
    for (int i = 0; i < m->nodes[folder].pending_count; i++)
        if (c->bits >> ((bit + i) % 64) & 1) model_apply(&names, &m->nodes[folder].pending[i]);
    return names;
}

static inline uint64_t model_kept_bytes(const model_node *file, const crash *c, const unsigned char **bytes)
{
    bool all = !file->dirty || c->files != FILES_LOST;
    *bytes = all ? file->bytes : file->kept_bytes;
    if (!all) return file->kept_length;
    const bool half = file->dirty && c->files == FILES_HALF && file->length > file->kept_length;
    return half ? file->kept_length + (file->length - file->kept_length) / 2 : file->length;
}

/* A hash that tells one tree from another. */
static inline uint64_t model_hash(const disk_model *m, int node, const crash *c, int depth)
{
    uint64_t hash = SLC_FNV_START;
    if (depth > 8) abort();
    if (!m->nodes[node].is_folder) {
        const unsigned char *bytes;
        const model_node *file = &m->nodes[node];
        uint64_t length = model_kept_bytes(file, c, &bytes);
        uint64_t which[3] = {(uint64_t)node, length, bytes == file->bytes ? file->writes : file->kept_writes};
        return slc_fnv(hash, which, sizeof which);
    }
    model_names names = model_kept_names(m, node, c);
    uint64_t sum = 0; /* a sum does not depend on the order of names */
    for (int i = 0; i < names.count; i++) {
        uint64_t inner = model_hash(m, names.names[i].node, c, depth + 1);
        sum += slc_fnv(slc_fnv(hash, names.names[i].name, strlen(names.names[i].name)), &inner, sizeof inner);
    }
    return slc_fnv(hash, &sum, sizeof sum);
}

static inline void model_put_file(const model_node *file, const crash *c, const char *path)
{
    const unsigned char *bytes;
    uint64_t length = model_kept_bytes(file, c, &bytes);
    FILE *out = fopen(path, "w");
    if (!out || fwrite(bytes ? bytes : (const unsigned char *)"", 1, length, out) != length || fclose(out)) abort();
}

/* Writes the tree as files; makes `path`. */
static inline void model_put(const disk_model *m, int node, const crash *c, const char *path)
{
    if (!m->nodes[node].is_folder) {
        model_put_file(&m->nodes[node], c, path);
        return;
    }
    if (mkdir(path, 0777)) abort();
    model_names names = model_kept_names(m, node, c);
    for (int i = 0; i < names.count; i++) {
        char inner[PATH_MAX];
        if (snprintf(inner, sizeof inner, "%s/%s", path, names.names[i].name) >= PATH_MAX) abort();
        model_put(m, names.names[i].node, c, inner);
    }
}
