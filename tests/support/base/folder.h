/* Files for a test, in a folder that only this test uses. */
#pragma once

#include <setjmp.h>
#include <sluice/status.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

/* The folder that make_folder has made. */
const char *test_folder(void);

/* A path in the folder; it lasts for three more calls. */
const char *path_of(const char *name);

/* Returns the path. */
const char *write_file(const char *name, const void *content, size_t bytes);

/* Fails with the error line if `status` is an error. */
void works(sluice_status status);

/* Fails unless `status` is the expected one, and the error line says why. */
void fails(sluice_status status, sluice_status expected, const char *why);

/* Makes an empty folder that nobody else has, and writes its path. */
void make_own_folder(char path[64]);
/* Makes such a folder in memory, /dev/shm, for a test that makes and removes thousands of files: on a disk each of them
 * may wait for what other programs write. If /dev/shm has not 64 MiB of room, the folder is made as above. */
void make_folder_in_memory(char path[64]);
/* Removes a folder, if it is there, with all that is in it. */
void remove_tree(const char *path);

/* The setup and the teardown of a group of tests; empty_folder is the setup of a test that wants nothing in it. */
int make_folder(void **state);
int remove_folder(void **state);
int empty_folder(void **state);
