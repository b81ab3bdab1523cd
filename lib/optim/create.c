#include "lib/optim/create.h"

#include "lib/base/status.h"
#include "lib/optim/adamw.h"
#include "lib/optim/lamb.h"
#include "lib/optim/onebit_adam.h"
#include "lib/optim/onebit_lamb.h"
#include "lib/optim/zero_one_adam.h"

#include <string.h>

typedef sluice_status create_compressed(const slc_optimizer_settings *settings, sluice_stream *stream,
                                        slc_compressed *out);

static create_compressed *find_compressed(const char *name)
{
    static const struct {
        const char *name;
        create_compressed *create;
    } rows[] = {{"onebit_adam", slc_onebit_adam_create},
                {"onebit_lamb", slc_onebit_lamb_create},
                {"zero_one_adam", slc_zero_one_adam_create}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!strcmp(name, rows[i].name)) return rows[i].create;
    return NULL;
}

bool slc_optimizer_is_compressed(const char *name)
{
    return find_compressed(name) != NULL;
}

sluice_status slc_optimizer_create(const char *name, const slc_optimizer_settings *settings, sluice_stream *stream,
                                   sluice_optimizer *out, slc_compressed *compressed)
{
    create_compressed *create = find_compressed(name);
    if (create) {
        sluice_status status = create(settings, stream, compressed);
        if (!status) *out = compressed->optimizer;
        return status;
    }
    if (!strcmp(name, "adamw")) return slc_adamw_create(&settings->adamw, stream, out);
    if (!strcmp(name, "lamb")) return slc_lamb_create(&settings->lamb, stream, out);
    return slc_error(SLUICE_ERR_ARGUMENT,
                     "there is no optimizer \"%s\"; give adamw, lamb, onebit_adam, onebit_lamb or zero_one_adam", name);
}

void slc_optimizer_destroy(sluice_optimizer *optimizer, slc_compressed *compressed)
{
    if (compressed->destroy)
        compressed->destroy(compressed->context);
    else
        slc_adam_destroy(optimizer);
}
