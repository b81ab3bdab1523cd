/* `replay FOLDER` feeds the files of a folder to a fuzzer's function, in the order of their names: what fuzzing once
 * found interesting stays tested, without a compiler that has a fuzzer. A folder without a file is a failure. */
#include <dirent.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_BYTES = 1 << 20 };

static int is_input(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* The copy is as long as the file, so that a sanitizer sees a read beyond its end. */
static int feed(const char *folder, const char *name)
{
    static uint8_t buffer[MOST_BYTES];
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    printf("%s\n", name);
    fflush(stdout); /* the last name is that of the input that ends the program */
    FILE *file = fopen(path, "rb");
    if (!file) return 1;
    size_t size = fread(buffer, 1, sizeof buffer, file);
    int bad = ferror(file) || size == sizeof buffer;
    fclose(file);
    uint8_t *data = bad ? NULL : malloc(size ? size : 1);
    if (!data) return 1;
    memcpy(data, buffer, size);
    LLVMFuzzerTestOneInput(data, size);
    free(data);
    return 0;
}

int main(int count, char **words)
{
    struct dirent **entries = NULL;
    int inputs = count == 2 ? scandir(words[1], &entries, is_input, alphasort) : -1, failed = 0;
    for (int i = 0; i < inputs; i++) {
        if (feed(words[1], entries[i]->d_name)) {
            fprintf(stderr, "replay: %s: cannot be read, or is too long\n", entries[i]->d_name);
            failed = 1;
        }
        free(entries[i]);
    }
    free(entries);
    if (inputs <= 0) fprintf(stderr, "replay: no inputs in %s\n", count == 2 ? words[1] : "(no folder was given)");
    return failed || inputs <= 0;
}
