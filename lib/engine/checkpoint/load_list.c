/* Names match exactly, or by their beginning if a pattern ends with "*".
 * tests/checkpoint/load_list_test.c covers this file. */
#include "lib/engine/checkpoint/load_list.h"

#include "lib/base/hash/fnv.h"
#include "lib/base/status.h"

#include <stdio.h>
#include <string.h>

static size_t beginning(const char *pattern)
{
    const size_t length = strlen(pattern);
    return length && pattern[length - 1] == '*' ? length - 1 : length;
}

static bool is_pattern(const char *pattern)
{
    return pattern[beginning(pattern)] == '*';
}

static bool stands_for(const char *pattern, const char *name)
{
    return is_pattern(pattern) ? !strncmp(pattern, name, beginning(pattern)) : !strcmp(pattern, name);
}

static bool is_among(const char *const *patterns, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (stands_for(patterns[i], name)) return true;
    return false;
}

/* The first renaming of a name counts. */
bool slc_load_list_name(const sluice_checkpoint_list *list, const char *saved, char name[SLC_LOAD_NAME_ROOM])
{
    snprintf(name, SLC_LOAD_NAME_ROOM, "%s", saved);
    if (!list) return true;
    if (is_among(list->skip, list->skip_count, saved)) return false;
    for (size_t i = 0; i < list->rename_count; i++) {
        const char *from = list->rename[2 * i], *to = list->rename[2 * i + 1];
        if (!stands_for(from, saved)) continue;
        snprintf(name, SLC_LOAD_NAME_ROOM, "%.*s%s", (int)beginning(to), to,
                 is_pattern(from) ? saved + beginning(from) : "");
        return true;
    }
    return true;
}

bool slc_load_list_keeps(const sluice_checkpoint_list *list, const char *own)
{
    return list && is_among(list->keep, list->keep_count, own);
}

/* ---- Mistakes ---- */

static sluice_status check_pattern(const char *what, const char *pattern, const char *const *names, size_t count)
{
    if (!pattern || !*pattern)
        return slc_error(SLUICE_ERR_ARGUMENT, "sluice_checkpoint_list: an empty name in \"%s\"", what);
    if (memchr(pattern, '*', beginning(pattern)))
        return slc_error(SLUICE_ERR_ARGUMENT, "sluice_checkpoint_list: \"%s\" in \"%s\": \"*\" stands at the end only",
                         pattern, what);
    for (size_t i = 0; i < count; i++)
        if (stands_for(pattern, names[i])) return SLUICE_OK;
    return slc_error(SLUICE_ERR_ARGUMENT, "sluice_checkpoint_list: \"%s\" in \"%s\" is the name of no parameter there",
                     pattern, what);
}

sluice_status slc_load_list_check(const sluice_checkpoint_list *list, const char *const *saved, size_t saved_count,
                                  const char *const *own, size_t own_count)
{
    sluice_status status = SLUICE_OK;
    for (size_t i = 0; !status && i < list->skip_count; i++)
        status = check_pattern("skip", list->skip[i], saved, saved_count);
    for (size_t i = 0; !status && i < list->rename_count; i++) {
        const char *from = list->rename[2 * i], *to = list->rename[2 * i + 1];
        status = check_pattern("rename", from, saved, saved_count);
        if (!status) status = check_pattern("rename", to, own, own_count);
        if (!status && is_pattern(from) != is_pattern(to))
            status = slc_error(
                SLUICE_ERR_ARGUMENT,
                "sluice_checkpoint_list: \"%s\" becomes \"%s\": give both a \"*\" at the end, or neither", from, to);
    }
    for (size_t i = 0; !status && i < list->keep_count; i++)
        status = check_pattern("keep", list->keep[i], own, own_count);
    return status;
}

/* ---- Telling ---- */

static bool is_loaded(const sluice_checkpoint_list *list, const char *const *saved, size_t count, const char *own)
{
    char name[SLC_LOAD_NAME_ROOM];
    for (size_t i = 0; i < count; i++)
        if (slc_load_list_name(list, saved[i], name) && !strcmp(name, own)) return true;
    return false;
}

void slc_load_list_tell(const sluice_checkpoint_list *list, const char *const *saved, size_t saved_count,
                        const char *const *own, size_t own_count)
{
    char name[SLC_LOAD_NAME_ROOM], line[3 * SLC_LOAD_NAME_ROOM];
    for (size_t i = 0; list->told && i < saved_count; i++) {
        const bool loaded = slc_load_list_name(list, saved[i], name);
        if (!loaded)
            snprintf(line, sizeof line, "\"%s\" is left out", saved[i]);
        else if (strcmp(name, saved[i]) != 0)
            snprintf(line, sizeof line, "\"%s\" becomes \"%s\"", saved[i], name);
        if (!loaded || strcmp(name, saved[i]) != 0) list->told(line, list->context);
    }
    for (size_t i = 0; list->told && i < own_count; i++) {
        if (is_loaded(list, saved, saved_count, own[i])) continue;
        snprintf(line, sizeof line, "\"%s\" is new and keeps the values that it has", own[i]);
        list->told(line, list->context);
    }
}

static uint64_t hash_names(uint64_t hash, const char *const *names, size_t count)
{
    hash = slc_fnv(hash, &count, sizeof count);
    for (size_t i = 0; i < count; i++) hash = slc_fnv(hash, names[i], strlen(names[i]) + 1);
    return hash;
}

uint64_t slc_load_list_hash(const sluice_checkpoint_list *list)
{
    uint64_t hash = hash_names(SLC_FNV_START, list->skip, list->skip_count);
    hash = hash_names(hash, list->rename, 2 * list->rename_count);
    return hash_names(hash, list->keep, list->keep_count);
}
