/* A process is known by its number and by when it started, because numbers are used again.
 * records_test.c covers this file. */
#include "plugins/nccl/record/pid_namespace.h"
#include "plugins/nccl/record/read_file.h"

#include "lib/base/host/boot_id.h"
#include "lib/base/host/process_stat.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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
    if (slc_process_stat(header->pid, &state, &started) && started == header->started) {
        if (state == 'Z' || state == 'X') return SLC_NCCL_GONE;
        return state == 'T' || state == 't' ? SLC_NCCL_STOPPED : SLC_NCCL_RUNNING;
    }
    /* Without the namespace, another name on this boot counts as a container. */
    return known || of_this_host(header) ? SLC_NCCL_GONE : SLC_NCCL_ELSEWHERE;
}
