/* A parameter after the other: they are few, and each takes some divisions. lib/optim/onebit/onebit_lamb_test.c covers
 * this file. */
#include "lib/kernels/lamb/lamb_numbers.h"

#include "lib/kernels/dispatch.h"
#include "lib/kernels/lamb/lamb_rules.h"

static void lamb_average_host(sluice_stream *stream, const slc_lamb_rules *rules, uint32_t count,
                              const slc_lamb_parameter *parameters)
{
    (void)stream;
    for (uint32_t i = 0; i < count; i++) lamb_average(rules, &parameters[i]);
}

sluice_status slc_lamb_average(sluice_stream *stream, const slc_lamb_rules *rules, uint32_t count,
                               const slc_lamb_parameter *parameters)
{
    return SLC_DEVICE_RUN(stream, lamb_average, rules, count, parameters);
}

static void lamb_factor_host(sluice_stream *stream, const slc_lamb_rules *rules, uint32_t count,
                             const slc_lamb_parameter *parameters)
{
    (void)stream;
    for (uint32_t i = 0; i < count; i++) lamb_factor(rules, &parameters[i]);
}

sluice_status slc_lamb_factor(sluice_stream *stream, const slc_lamb_rules *rules, uint32_t count,
                              const slc_lamb_parameter *parameters)
{
    return SLC_DEVICE_RUN(stream, lamb_factor, rules, count, parameters);
}
