/* Opens a checkpoint: whether the path is a folder or a file decides its format. golden_weights_test.c covers this
 * file. */
#include "lib/weights/checkpoint.h"

#include "lib/base/file/path_error.h"
#include "lib/weights/llmc.h"
#include "lib/weights/safetensors/safetensors.h"

#include <errno.h>
#include <sys/stat.h>

sluice_status slc_checkpoint_open(const char *path, slc_config *config, slc_tensors **out)
{
    struct stat info;
    slc_config read;
    if (stat(path, &info)) return slc_path_error("cannot read", path, errno);
    if (!S_ISDIR(info.st_mode)) return slc_llmc_open(path, config, out);
    sluice_status status = slc_config_read(path, &read);
    if (!status) status = slc_safetensors_open(path, out);
    if (!status) *config = read;
    return status;
}
