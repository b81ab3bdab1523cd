/* The RAM is read from /proc/meminfo, the names of this process's control groups from /proc/self/cgroup, and the
 * folders in which these groups lie from /proc/self/mountinfo. Version 2 of control groups has one hierarchy; of
 * version 1 the hierarchy of the controller "memory" counts. A host may have both. */
#include "lib/base/host/host_memory.h"

#include "lib/base/text/size_text.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

typedef struct {
    bool second;          /* version 2 */
    char mount[PATH_MAX]; /* folder of the hierarchy */
    char top[PATH_MAX];   /* the group that lies there */
    char group[PATH_MAX]; /* this process's group */
    bool mounted, joined;
} hierarchy;

static FILE *open_under(const char *root, const char *path)
{
    char full[3 * PATH_MAX];
    return snprintf(full, sizeof full, "%s%s", root, path) < (int)sizeof full ? fopen(full, "re") : NULL;
}

/* Finds the number after `key` at the beginning of a line; 0: it is not there. */
static uint64_t find_number(const char *root, const char *path, const char *key)
{
    char line[512];
    unsigned long long value = 0;
    FILE *file = open_under(root, path);
    while (file && fgets(line, sizeof line, file))
        if (!strncmp(line, key, strlen(key)) && sscanf(line + strlen(key), " %llu", &value) == 1) break;
    if (file) fclose(file);
    return value;
}

/* ---- Control groups ---- */

/* True if the word is in the list, as "memory" is in "rw,memory,cpu". */
static bool in_list(const char *list, const char *word)
{
    const size_t length = strlen(word);
    for (const char *at = list; at; at = strchr(at, ',')) {
        at += *at == ',';
        if (!strncmp(at, word, length) && (!at[length] || at[length] == ',' || at[length] == '\n')) return true;
    }
    return false;
}

static void find_mounts(const char *root, hierarchy *first, hierarchy *second)
{
    char line[3 * PATH_MAX], top[PATH_MAX], mount[PATH_MAX], type[64], options[PATH_MAX];
    FILE *file = open_under(root, "/proc/self/mountinfo");
    while (file && fgets(line, sizeof line, file)) {
        const char *rest = strstr(line, " - ");
        if (!rest || sscanf(line, "%*s %*s %*s %4095s %4095s", top, mount) != 2) continue;
        if (sscanf(rest, " - %63s %*s %4095s", type, options) != 2) continue;
        hierarchy *of = !strcmp(type, "cgroup2")                                ? second
                        : !strcmp(type, "cgroup") && in_list(options, "memory") ? first
                                                                                : NULL;
        if (!of || of->mounted) continue;
        of->mounted = true;
        snprintf(of->mount, sizeof of->mount, "%s", mount);
        snprintf(of->top, sizeof of->top, "%s", strcmp(top, "/") ? top : "");
    }
    if (file) fclose(file);
}

static void find_groups(const char *root, hierarchy *first, hierarchy *second)
{
    char line[2 * PATH_MAX];
    FILE *file = open_under(root, "/proc/self/cgroup");
    while (file && fgets(line, sizeof line, file)) {
        char *controllers = strchr(line, ':'), *path = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!path) continue;
        *controllers++ = *path++ = 0;
        path[strcspn(path, "\n")] = 0;
        hierarchy *of = !*controllers ? second : in_list(controllers, "memory") ? first : NULL;
        if (!of) continue;
        of->joined = true;
        snprintf(of->group, sizeof of->group, "%.4095s", strcmp(path, "/") ? path : "");
    }
    if (file) fclose(file);
}

/* Takes the limit of the group in `folder` into account, if there is one. */
static void look_at_group(const char *root, const char *folder, bool second, slc_host_memory *out)
{
    static const char *const names[2][4] = {
        {"memory.limit_in_bytes", "memory.usage_in_bytes", "memory.stat", "total_inactive_file"},
        {"memory.max", "memory.current", "memory.stat", "inactive_file"}};
    char path[2 * PATH_MAX + 64];
    uint64_t values[3];
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[second][i]);
        values[i] = find_number(root, path, i == 2 ? names[second][3] : "");
    }
    const uint64_t limit = values[0], used = values[1] > values[2] ? values[1] - values[2] : 0;
    const uint64_t left = limit > used ? limit - used : 0;
    if (!limit || limit > UINT64_C(1) << 60 || left >= out->available_bytes) return; /* 0: "max" */
    out->available_bytes = left;
    out->cgroup_bytes = limit;
}

/* Looks at the process's group and at all groups above it. In a container the group's path may be the host's, which is
 * not seen there: then only the top of the mount is looked at, which is the container's own group. */
static void look_at_groups(const char *root, const hierarchy *h, slc_host_memory *out)
{
    char folder[2 * PATH_MAX];
    const size_t top = strlen(h->top), mount = strlen(h->mount);
    if (!h->mounted || !h->joined) return;
    const bool below = !strncmp(h->group, h->top, top) && (!h->group[top] || h->group[top] == '/');
    const char *group = below ? h->group + top : "";
    snprintf(folder, sizeof folder, "%s%s", h->mount, group);
    for (;;) {
        look_at_group(root, folder, h->second, out);
        char *slash = strrchr(folder, '/');
        if (!slash || strlen(folder) <= mount) return;
        *slash = 0;
    }
}

/* ---- All ---- */

static uint64_t addresses_left(const char *root)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_AS, &limit) || limit.rlim_cur == RLIM_INFINITY) return UINT64_MAX;
    const uint64_t used = 1024 * find_number(root, "/proc/self/status", "VmSize:");
    return limit.rlim_cur > used ? limit.rlim_cur - used : 0;
}

void slc_host_memory_read(const char *root, slc_host_memory *out)
{
    hierarchy first = {.second = false}, second = {.second = true};
    const uint64_t available = 1024 * find_number(root, "/proc/meminfo", "MemAvailable:");
    *out = (slc_host_memory){.available_bytes = available ? available : UINT64_MAX,
                             .ram_bytes = 1024 * find_number(root, "/proc/meminfo", "MemTotal:"),
                             .address_bytes = addresses_left(root)};
    find_mounts(root, &first, &second);
    find_groups(root, &first, &second);
    look_at_groups(root, &first, out);
    look_at_groups(root, &second, out);
}

char *slc_host_memory_describe(const slc_host_memory *m, char *text, size_t bytes)
{
    char total[64] = "", limit[96] = "", addresses[128] = "";
    if (m->ram_bytes) snprintf(total, sizeof total, " of the host's %s", slc_size_of(m->ram_bytes).text);
    if (m->cgroup_bytes)
        snprintf(limit, sizeof limit, " (a control group's limit is %s)", slc_size_of(m->cgroup_bytes).text);
    if (m->address_bytes != UINT64_MAX)
        snprintf(addresses, sizeof addresses, "; the limit of addresses (ulimit -v) leaves a rank %s",
                 slc_size_of(m->address_bytes).text);
    if (m->available_bytes == UINT64_MAX)
        snprintf(text, bytes, "the system does not say what memory is available%s", addresses);
    else
        snprintf(text, bytes, "%s%s are available%s%s", slc_size_of(m->available_bytes).text, total, limit, addresses);
    return text;
}
