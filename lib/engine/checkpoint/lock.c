/* The lock is a record lock of fcntl, which belongs to a process: children do not inherit it, and NFS, Lustre and
 * similar file systems carry it between hosts. Its one weakness is that closing any descriptor of the file gives it up,
 * so this process lists the files that it holds and never opens one again. The file's text only says who holds it. */
#include "lib/engine/checkpoint/lock.h"

#include "lib/base/file/path_error.h"
#include "lib/base/log.h"
#include "lib/base/status.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { TRIES = 100, NOTE_BYTES = 256 };

typedef struct held {
    struct held *next;
    const void *owner;
    pid_t process; /* a forked child has the list but not the locks */
    int file;
    char *path;
    struct stat info;
} held;

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static held *all;

static bool is_same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

static const held *find_held(const char *path)
{
    struct stat info;
    if (stat(path, &info)) return NULL;
    const held *h = all;
    while (h && (h->process != getpid() || !is_same_file(&h->info, &info))) h = h->next;
    return h;
}

/* ---- Who holds it ---- */

static void write_note(int file)
{
    char host[128] = "?", since[32], note[NOTE_BYTES];
    time_t now = time(NULL);
    struct tm utc;
    gethostname(host, sizeof host - 1);
    strftime(since, sizeof since, "%Y-%m-%d %H:%M:%S UTC", gmtime_r(&now, &utc));
    int length = snprintf(note, sizeof note, "host %s, process %d, since %s\n", host, (int)getpid(), since);
    /* On a full disk the lock holds without the note. */
    if (ftruncate(file, 0) || pwrite(file, note, (size_t)length, 0) != length) return;
}

static void read_note(int file, char note[NOTE_BYTES])
{
    ssize_t length = pread(file, note, NOTE_BYTES - 1, 0);
    note[length > 0 ? length : 0] = 0;
    note[strcspn(note, "\n")] = 0;
    for (char *c = note; *c; c++)
        if (!isprint((unsigned char)*c)) *c = '?';
}

static sluice_status held_by_another(const char *dir, const char *note)
{
    return slc_error(SLUICE_ERR_IO, "another job saves to %s (%s); wait until it ends, or give another folder", dir,
                     *note ? note : "it has not said which");
}

/* Looks at the note in the folder, which alone can tell if there are no locks: the folder is held if the note names a
 * living process of this host. */
static sluice_status check_note(const char *dir, const char *note)
{
    char host[128] = "?", other[128] = "";
    int process = 0;
    gethostname(host, sizeof host - 1);
    bool named = sscanf(note, "host %127[^,], process %d", other, &process) == 2;
    bool here = named && !strcmp(host, other) && process > 0 && process != (int)getpid();
    if (here && (!kill(process, 0) || errno == EPERM))
        return slc_error_context(held_by_another(dir, note), "%s/.lock, to be removed if that is no such job", dir);
    slc_log(SLC_LOG_WARN,
            "%s: its file system has no locks, so a job of another host that saves there is not noticed%s%s", dir,
            named && !here ? "; the last to save was " : "", named && !here ? note : "");
    return SLUICE_OK;
}

/* ---- Taking and releasing ---- */

static bool has_no_locks(int why)
{
    return why == ENOLCK || why == ENOSYS || why == EOPNOTSUPP || why == EINVAL;
}

static sluice_status lock_file(const char *dir, const char *path, int file)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    char note[NOTE_BYTES];
    if (!fcntl(file, F_SETLK, &whole)) return SLUICE_OK;
    int why = errno;
    read_note(file, note);
    if (why == EAGAIN || why == EACCES) return held_by_another(dir, note);
    return has_no_locks(why) ? check_note(dir, note) : slc_path_error("cannot lock", path, why);
}

/* Opens and locks the file. The previous holder may have unlinked it between our open and our lock; then this tries
 * again. */
static sluice_status open_locked(const char *dir, held *h)
{
    for (int i = 0; i < TRIES; i++) {
        struct stat named;
        h->file = open(h->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
        if (h->file < 0 || fstat(h->file, &h->info)) return slc_path_error("cannot write", h->path, errno);
        if (!S_ISREG(h->info.st_mode)) return slc_error(SLUICE_ERR_PATH, "%s is not a regular file", h->path);
        sluice_status status = lock_file(dir, h->path, h->file);
        if (status) return status;
        if (!stat(h->path, &named) && is_same_file(&named, &h->info)) {
            write_note(h->file);
            return SLUICE_OK;
        }
        close(h->file);
        h->file = -1;
    }
    return slc_error(SLUICE_ERR_IO, "cannot lock %s: others take it and give it back all the time", h->path);
}

static void destroy(held *h)
{
    if (h && h->file >= 0) close(h->file);
    if (h) free(h->path);
    free(h);
}

static sluice_status take_lock(const void *owner, const char *dir)
{
    held *h = calloc(1, sizeof *h);
    if (!h || asprintf(&h->path, "%s/.lock", dir) < 0) {
        free(h);
        return slc_error(SLUICE_ERR_MEMORY, "lock of %s", dir);
    }
    h->owner = owner;
    h->process = getpid();
    h->file = -1;
    const held *before = find_held(h->path);
    sluice_status status = SLUICE_OK;
    if (before && before->owner != owner)
        status = slc_error(SLUICE_ERR_IO, "another runtime of this process saves to %s; give each its own folder", dir);
    if (!status && !before) status = open_locked(dir, h);
    if (status || before) {
        destroy(h);
        return status;
    }
    h->next = all;
    all = h;
    return SLUICE_OK;
}

sluice_status slc_checkpoint_lock_take(const void *owner, const char *dir)
{
    pthread_mutex_lock(&guard);
    sluice_status status = take_lock(owner, dir);
    pthread_mutex_unlock(&guard);
    return status;
}

/* The file is unlinked while it is held, so that nobody can lock the unlinked file and believe that it holds the
 * folder. */
void slc_checkpoint_lock_release(const void *owner)
{
    pthread_mutex_lock(&guard);
    for (held **at = &all, *h; (h = *at) != NULL;) {
        struct stat named;
        if (h->owner != owner || h->process != getpid()) {
            at = &h->next;
            continue;
        }
        if (!stat(h->path, &named) && is_same_file(&named, &h->info)) unlink(h->path);
        *at = h->next;
        destroy(h);
    }
    pthread_mutex_unlock(&guard);
}
