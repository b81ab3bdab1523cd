/* tests/command/train/observe_test.sh covers this file. */
#include "bench/train/options/people.h"

#include "bench/cli/output/result_file.h"

FILE *slc_training_people(const slc_training_options *o)
{
    const char *const files[] = {o->trace, o->json, o->csv, o->plan_out, o->profile_out};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (slc_is_standard_output(files[i])) return stderr;
    return stdout;
}
