/* The environment's settings. They are read where they are used, because tests change them. */
#include "tests/nccl/bed/hostnccl/comm.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool read_number(const char *variable, double *out)
{
    const char *text = getenv(variable);
    char *end = NULL;
    *out = text ? strtod(text, &end) : 0;
    return !text || (end != text && *end == 0 && *out >= 0 && *out <= 1e18);
}

ncclResult_t hostnccl_settings_check(void)
{
    double number;
    const char *mismatch = getenv("HOSTNCCL_MISMATCH");
    if (mismatch && strcmp(mismatch, "hang") != 0 && strcmp(mismatch, "corrupt") != 0)
        return hostnccl_error(ncclInvalidArgument, "HOSTNCCL_MISMATCH=%s: it must be hang or corrupt", mismatch);
    if (!read_number("HOSTNCCL_LATENCY", &number))
        return hostnccl_error(ncclInvalidArgument, "HOSTNCCL_LATENCY=%s: it must be a number of microseconds",
                              getenv("HOSTNCCL_LATENCY"));
    if (!read_number("HOSTNCCL_BANDWIDTH", &number))
        return hostnccl_error(ncclInvalidArgument, "HOSTNCCL_BANDWIDTH=%s: it must be a number of bytes a second",
                              getenv("HOSTNCCL_BANDWIDTH"));
    if (!read_number("HOSTNCCL_LAUNCH_DELAY", &number))
        return hostnccl_error(ncclInvalidArgument, "HOSTNCCL_LAUNCH_DELAY=%s: it must be a number of microseconds",
                              getenv("HOSTNCCL_LAUNCH_DELAY"));
    if (!read_number("HOSTNCCL_SEED", &number) || number != floor(number))
        return hostnccl_error(ncclInvalidArgument, "HOSTNCCL_SEED=%s: it must be a whole number",
                              getenv("HOSTNCCL_SEED"));
    return ncclSuccess;
}

bool hostnccl_mismatch_corrupts(void)
{
    const char *setting = getenv("HOSTNCCL_MISMATCH");
    return setting && strcmp(setting, "corrupt") == 0;
}

double hostnccl_link_ns(double bytes)
{
    double latency_us, bytes_per_s;
    read_number("HOSTNCCL_LATENCY", &latency_us);
    read_number("HOSTNCCL_BANDWIDTH", &bytes_per_s);
    return latency_us * 1e3 + (bytes_per_s > 0 ? bytes / bytes_per_s * 1e9 : 0);
}

double hostnccl_launch_delay_ns(void)
{
    double most_us;
    read_number("HOSTNCCL_LAUNCH_DELAY", &most_us);
    return (getenv("HOSTNCCL_LAUNCH_DELAY") ? most_us : 200) * 1e3;
}

uint64_t hostnccl_sums_seed(void)
{
    double seed;
    read_number("HOSTNCCL_SEED", &seed);
    return (uint64_t)seed;
}
