/* Asks the system what the machine and the build are. tests/command/measure/bench_test.sh covers this file. */
#include "bench/cli/environment.h"

#include <sluice/runtime.h>
#include <sluice/version.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

static void processor_name(char *name, size_t bytes)
{
    snprintf(name, bytes, "unknown");
    FILE *file = fopen("/proc/cpuinfo", "re");
    char line[512];
    while (file && fgets(line, sizeof line, file)) {
        char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) || !colon) continue;
        line[strcspn(line, "\n")] = 0;
        snprintf(name, bytes, "%s", colon + 2);
        break;
    }
    if (file) fclose(file);
}

json_t *slc_machine_json(void)
{
    struct utsname host;
    char processor[256];
    if (uname(&host)) memset(&host, 0, sizeof host);
    processor_name(processor, sizeof processor);
    double memory = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    return json_pack("{s:s, s:s, s:s, s:s, s:I, s:I, s:s, s:s}", "sluice", sluice_version(), "host", host.nodename,
                     "kernel", host.release, "processor", processor, "cores", (json_int_t)sysconf(_SC_NPROCESSORS_ONLN),
                     "memory_bytes", (json_int_t)memory, "instruction_set", sluice_instruction_set(), "compiler",
                     __VERSION__);
}

json_t *slc_environment_json(const sluice_world *world)
{
    json_t *all = slc_machine_json();
    if (!all) return NULL;
    json_object_set_new(all, "transport", json_string(sluice_world_transport(world)));
    json_object_set_new(all, "path", json_string(sluice_world_path(world)));
    return all;
}
