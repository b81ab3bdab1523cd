/* The settings say which transforms the user asked for. tests/nccl/on_the_bed.py covers this file. */
#include "plugins/nccl/shim/transforms/asked.h"

#include "lib/base/log.h"
#include "lib/base/text/parse_quantity.h"
#include "plugins/nccl/shim/settings.h"

enum { LEAST_STAGING = 4096, MOST_FUSED = 1 << 30 };

static slc_shim_transforms_settings asked;

static bool read_bytes(const char *name, uint64_t *out)
{
    if (!slc_parse_bytes(slc_setting_text(&slc_shim_settings, name), out)) return true;
    slc_log(SLC_LOG_ERROR, "%s: %s; fusing and compressing are off", name, sluice_last_error());
    return false;
}

/* Reads what follows once a transform is asked for; false: the setting is refused. */
static bool read_others(slc_shim_transforms_settings *s)
{
    if (!read_bytes("SLUICE_SHIM_STAGING", &s->staging)) return false;
    if (slc_setting_count(&slc_shim_settings, "SLUICE_SHIM_COMPRESS_AFTER", &s->compress_after)) {
        slc_log(SLC_LOG_ERROR, "%s; fusing and compressing are off", sluice_last_error());
        return false;
    }
    if (s->staging < LEAST_STAGING) {
        slc_log(SLC_LOG_ERROR,
                "SLUICE_SHIM_STAGING=%llu is too little for fusing and compressing, which are off: give "
                "4KiB or more",
                (unsigned long long)s->staging);
        return false;
    }
    if (s->fuse > MOST_FUSED) {
        slc_log(SLC_LOG_ERROR, "SLUICE_SHIM_FUSE=%llu is too much; it is for small calls, of at most 1GiB",
                (unsigned long long)s->fuse);
        return false;
    }
    return true;
}

const slc_shim_transforms_settings *slc_shim_transforms_read(void)
{
    slc_shim_transforms_settings s = {0};
    const bool fuse_is_read = read_bytes("SLUICE_SHIM_FUSE", &s.fuse);
    const bool compress_is_read = read_bytes("SLUICE_SHIM_COMPRESS", &s.compress);
    const bool are_read = fuse_is_read && compress_is_read;
    s.unusable = !are_read || ((s.fuse || s.compress) && !read_others(&s));
    asked = s;
    return &asked;
}

const slc_shim_transforms_settings *slc_shim_transforms_asked(void)
{
    return &asked;
}
