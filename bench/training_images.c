/* Images for vit and beit. */
#include "bench/training_data_parts.h"

#include "lib/base/status.h"

#include <stdlib.h>

slc_training_data *slc_training_images_create(void)
{
    return calloc(1, sizeof(slc_training_data));
}

sluice_status slc_training_images_open(const slc_training_options *options, sluice_model_config *model,
                                       slc_training_data *data)
{
    (void)model, (void)data;
    return slc_error(SLUICE_ERR_UNSUPPORTED, "--model %s: training on images is not built in this version",
                     options->model);
}
