/* A process is known by its number and by when it started, because numbers are used again.
 * records_test.c covers this file. */
#include "plugins/nccl/record/pid_namespace.h"
#include "plugins/nccl/record/read_file.h"

#include "lib/base/host/boot_id.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Reads a small file of /proc as a text; an empty one if that fails. */
static void read_text(const char *path, char *out, size_t size)
{
    FILE *file = fopen(path, "re");
    size_t bytes = file ? fread(out, 1, size - 1, file) : 0;
    out[bytes] = 0;
    if (file) fclose(file);
}

/* Finds the letter of the state and the start in /proc/PID/stat. The program's name before them ends with the last
 * bracket. */
static bool find_process(int64_t pid, char *state, uint64_t *started)
{
    char path[64], text[4096];
    snprintf(path, sizeof path, "/proc/%" PRId64 "/stat", pid);
    read_text(path, text, sizeof text);
    const char *at = strrchr(text, ')');
    if (!at || sscanf(at, ") %c", state) != 1) return false;
    for (int field = 2; field < 22; field++) { /* the bracket ends field 2 */
        at = strchr(at + 1, ' ');
        if (!at) return false;
    }
    return sscanf(at, " %" SCNu64, started) == 1;
}

static bool of_this_boot(const slc_record_header *header)
{
    char boot[SLC_BOOT_ID_BYTES];
    return slc_boot_id(boot) && !strcmp(boot, header->boot_id);
}

static bool of_this_host(const slc_record_header *header)
{
    char name[sizeof header->host] = "";
    gethostname(name, sizeof name - 1);
    return !strcmp(name, header->host);
}

slc_nccl_process_state slc_process_state_of(const slc_record_header *header)
{
    char state;
    uint64_t started, here = slc_record_pid_namespace();
    bool known = here && header->pid_namespace;
    if (header->state == SLC_RECORD_ENDED) return SLC_NCCL_ENDED;
    if (!of_this_boot(header) || (known && here != header->pid_namespace)) return SLC_NCCL_ELSEWHERE;
    if (find_process(header->pid, &state, &started) && started == header->started) {
        if (state == 'Z' || state == 'X') return SLC_NCCL_GONE;
        return state == 'T' || state == 't' ? SLC_NCCL_STOPPED : SLC_NCCL_RUNNING;
    }
    /* Without the namespace, another name on this boot counts as a container. */
    return known || of_this_host(header) ? SLC_NCCL_GONE : SLC_NCCL_ELSEWHERE;
}
