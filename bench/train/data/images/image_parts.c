/* tests/command/data/train_images_test.sh covers this file. */
#include "bench/train/data/images/image_parts.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

static bool is_folder(const char *path, const char *name, char out[PATH_MAX])
{
    struct stat info;
    if (snprintf(out, PATH_MAX, "%s/%s", path, name) >= PATH_MAX) return false;
    return !stat(out, &info) && S_ISDIR(info.st_mode);
}

/* True if the folder has folders in it. A class may be called "train", too: such a folder has images in it, and no
 * folders. */
static bool has_folders(const char *path)
{
    DIR *folder = opendir(path);
    bool found = false;
    for (struct dirent *entry; folder && !found && (entry = readdir(folder)) != NULL;) {
        struct stat info;
        found = entry->d_name[0] != '.' && !fstatat(dirfd(folder), entry->d_name, &info, 0) && S_ISDIR(info.st_mode);
    }
    if (folder) closedir(folder);
    return found;
}

bool slc_image_parts_find(const char *path, slc_image_parts *out)
{
    static const char *const names[] = {"val", "valid", "validation", "test"};
    if (!is_folder(path, "train", out->train) || !has_folders(out->train)) return false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (is_folder(path, names[i], out->held_out) && has_folders(out->held_out)) return true;
    return false;
}
