/* Finds libnccl and its functions. tests/nccl/transport/nccl_library_test.c covers this file. */
#include "library.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

/* 2.18.1 refuses a group for a moment after it has said that the one before is launched. A library that is newer than
 * the newest known one is used all the same, since NCCL keeps its interface. */
enum { OLDEST = 21803, NEWEST = 23099 };

#define NCCL_FUNCTION_NAME(name) "nccl" #name,
static const char *const names[] = {NCCL_FUNCTIONS_USED(NCCL_FUNCTION_NAME)};
enum { FUNCTIONS = sizeof names / sizeof *names };

void nccl_version_text(int version, char text[NCCL_VERSION_TEXT])
{
    snprintf(text, NCCL_VERSION_TEXT, "%d.%d.%d", version / 10000, version / 100 % 100, version % 100);
}

__attribute__((format(printf, 2, 3))) static sluice_status refuse(const sluice_transport_host_v1 *host,
                                                                  const char *format, ...)
{
    char line[800];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    return host->error(host->context, SLUICE_ERR_UNSUPPORTED, line);
}

/* Checks the version. This comes before the other functions are looked at, because an old library may lack some of
 * them. */
static sluice_status check_version(const sluice_transport_host_v1 *host, const nccl_library *nccl, const char *name)
{
    char text[NCCL_VERSION_TEXT], oldest[NCCL_VERSION_TEXT], line[160];
    nccl_version_text(nccl->version, text);
    nccl_version_text(OLDEST, oldest);
    if (nccl->version < OLDEST)
        return refuse(host,
                      "nccl: %s is NCCL %s, but %s or newer is needed: install it, or name it in SLUICE_COMM_NCCL",
                      name, text, oldest);
    const bool unknown = nccl->version > NEWEST;
    snprintf(line, sizeof line, "nccl: NCCL %s%s", text, unknown ? ", newer than this transport was written for" : "");
    host->log(host->context, unknown ? 1 : 3, line);
    return SLUICE_OK;
}

static sluice_status find_functions(const sluice_transport_host_v1 *host, void *library, const char *name,
                                    nccl_library *out)
{
    void *found[FUNCTIONS];
    for (int i = 0; i < FUNCTIONS; i++) found[i] = dlsym(library, names[i]);
    int next = 0;
    /* POSIX lets what dlsym gives be a function; C has no cast for it. */
#define NCCL_FUNCTION_TAKE(function) *(void **)(void *)&out->function = found[next++];
    NCCL_FUNCTIONS_USED(NCCL_FUNCTION_TAKE)
    if (!out->GetVersion || out->GetVersion(&out->version) != ncclSuccess)
        return refuse(host, "nccl: %s does not say which NCCL it is: name NCCL's library in SLUICE_COMM_NCCL", name);
    sluice_status status = check_version(host, out, name);
    for (int i = 0; !status && i < FUNCTIONS; i++)
        if (!found[i])
            status = refuse(host, "nccl: %s has no %s: name a whole NCCL in SLUICE_COMM_NCCL", name, names[i]);
    return status;
}

sluice_status nccl_library_load(const sluice_transport_host_v1 *host, nccl_library *out)
{
    const char *setting = host->setting(host->context, "nccl.library");
    const bool named = setting && *setting;
    const char *name = named ? setting : "libnccl.so.2";
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library) return find_functions(host, library, name, out);
    const char *why = dlerror(), *said = why ? why : "the loader does not say why";
    if (named) return refuse(host, "nccl: SLUICE_COMM_NCCL=%s cannot be loaded: %s", name, said);
    return refuse(host,
                  "nccl: no NCCL is here (%s): install NCCL 2.18.3 or newer where the loader looks, or name its "
                  "libnccl.so.2 in SLUICE_COMM_NCCL",
                  said);
}
