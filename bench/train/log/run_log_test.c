/* The log of a run survives a loss of power. Everything that a log asks of the disk is recorded, while a first run
 * makes steps at drawn times and a second one goes on from the middle of it. Then the power is lost after every
 * recorded call, in a model that keeps no more than POSIX promises: all files must have, whole and right, each step
 * that is as old as SLC_TRAINING_LOG_SYNC_S says, and a run must be able to go on in what is left. If one kind of
 * synchronizing is left out, this test must find a loss.
 *
 * The time of the thread that synchronizes is made here: it passes only where the test says so. */
#include "tests/support/base/disk_model.h"
#include "tests/support/base/folder.h"
#include "tests/support/seed.h"

#include "bench/train/log/run_log.h"
#include "lib/base/hash/crc32c.h"
#include "lib/base/numbers/random.h"

#include <dirent.h>
#include <math.h>
#include <pthread.h>
#include <time.h>

enum { FIRST_RUN = 40, GOES_ON_AT = 22, LAST = 60, EXHAUSTIVE_BITS = 6, DRAWS = 40, SEEN = 1 << 14 };

/* ---- Time that is made ---- */

/* The thread's waits, guarded by the lock that it waits with. */
static struct {
    _Atomic(pthread_mutex_t *) lock; /* NULL: it has not waited yet */
    pthread_cond_t *changed;
    bool waits, woken;
    uint64_t now_ns, until_ns; /* UINT64_MAX: until it is woken */
} made = {.now_ns = 1000000000};

int __wrap_pthread_cond_wait(pthread_cond_t *changed, pthread_mutex_t *lock);
int __wrap_pthread_cond_timedwait(pthread_cond_t *changed, pthread_mutex_t *lock, const struct timespec *until);
int __wrap_pthread_cond_signal(pthread_cond_t *changed);
int __wrap_clock_gettime(clockid_t clock, struct timespec *out);
int __real_pthread_cond_wait(pthread_cond_t *changed, pthread_mutex_t *lock);
int __real_pthread_cond_signal(pthread_cond_t *changed);
int __real_clock_gettime(clockid_t clock, struct timespec *out);

static int wait_in_made_time(pthread_cond_t *changed, pthread_mutex_t *lock, uint64_t until_ns)
{
    made.changed = changed;
    made.until_ns = until_ns;
    made.woken = false;
    made.waits = true;
    atomic_store(&made.lock, lock);
    while (!made.woken) __real_pthread_cond_wait(changed, lock);
    made.waits = false;
    return made.now_ns >= until_ns ? ETIMEDOUT : 0;
}

int __wrap_pthread_cond_wait(pthread_cond_t *changed, pthread_mutex_t *lock)
{
    return wait_in_made_time(changed, lock, UINT64_MAX);
}

int __wrap_pthread_cond_timedwait(pthread_cond_t *changed, pthread_mutex_t *lock, const struct timespec *until)
{
    const uint64_t until_ns = (uint64_t)until->tv_sec * 1000000000 + (uint64_t)until->tv_nsec;
    return until_ns <= made.now_ns ? ETIMEDOUT : wait_in_made_time(changed, lock, until_ns);
}

int __wrap_pthread_cond_signal(pthread_cond_t *changed)
{
    made.woken = true;
    return __real_pthread_cond_signal(changed);
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *out)
{
    if (clock != CLOCK_MONOTONIC) return __real_clock_gettime(clock, out);
    *out = (struct timespec){(time_t)(made.now_ns / 1000000000), (long)(made.now_ns % 1000000000)};
    return 0;
}

/* Returns when the thread waits and nothing has woken it; until then its time stands still. */
static void let_thread_work(void)
{
    for (bool waits = false; !waits; sched_yield()) {
        pthread_mutex_t *lock = atomic_load(&made.lock);
        if (!lock) continue;
        pthread_mutex_lock(lock);
        waits = made.waits && !made.woken;
        pthread_mutex_unlock(lock);
    }
}

static void set_time(uint64_t now_ns)
{
    pthread_mutex_t *lock = atomic_load(&made.lock);
    pthread_mutex_lock(lock);
    made.now_ns = now_ns;
    if (now_ns >= made.until_ns) __wrap_pthread_cond_signal(made.changed);
    pthread_mutex_unlock(lock);
    let_thread_work();
}

/* ---- The runs ---- */

static uint64_t ended_ns[LAST + 1]; /* when a step ended */

static double loss_of(uint64_t run, uint64_t step)
{
    return run + 1 / (double)step;
}

/* The losses that must be there: those of earlier runs up to the step where a run goes on, then its own. */
static double right_loss(uint64_t run, uint64_t step)
{
    return loss_of(step <= GOES_ON_AT ? 1 : run, step);
}

/* Marks in the record which steps of a run must survive from now on. */
static void mark(uint64_t run, uint64_t done)
{
    const uint64_t within = (uint64_t)(SLC_TRAINING_LOG_SYNC_S * 1e9);
    uint64_t must = run > 1 ? GOES_ON_AT : 0;
    while (must < done && ended_ns[must + 1] + within <= made.now_ns) must++;
    disk_returned(run << 32 | must);
}

static void let_time_pass(uint64_t run, uint64_t done, uint64_t ns)
{
    const uint64_t end = made.now_ns + ns;
    let_thread_work();
    while (made.until_ns <= end) {
        set_time(made.until_ns);
        mark(run, done);
    }
    set_time(end);
    mark(run, done);
}

static void put_step(slc_training_log *log, uint64_t run, uint64_t step)
{
    const slc_training_step one = {.step = step,
                                   .loss = loss_of(run, step),
                                   .smoothed_loss = 1,
                                   .learning_rate = 1e-3,
                                   .gradient_norm = 1,
                                   .step_s = 0.5,
                                   .tokens = step * 64,
                                   .passes = 0.1,
                                   .evaluation_loss = NAN,
                                   .accuracy = NAN};
    slc_training_log_step(log, &one);
}

static slc_training_options options_of(const char *top, uint64_t run, char texts[2][PATH_MAX])
{
    slc_training_options o;
    slc_training_options_init(&o);
    snprintf(texts[0], PATH_MAX, "%s/runs/first", top);
    snprintf(texts[1], PATH_MAX, "%s/table.csv", top);
    o.log = texts[0];
    o.csv = texts[1];
    o.resume = run > 1 ? "run" : NULL;
    return o;
}

/* A step takes between a hundredth of a second and twelve. */
static uint64_t drawn_ns(uint64_t run, uint64_t step)
{
    const uint64_t longest[] = {20000000, 700000000, 3000000000, 12000000000};
    return 10000000 + slc_random_below(test_seed(7), run, step, longest[slc_random_below(test_seed(8), run, step, 4)]);
}

static void close_log(slc_training_log **log)
{
    let_thread_work();
    atomic_store(&made.lock, NULL); /* of the next log there will be another one */
    works(slc_training_log_close(log));
}

static void make_run(const char *top, uint64_t run, uint64_t first, uint64_t last)
{
    char texts[2][PATH_MAX];
    const slc_training_options o = options_of(top, run, texts);
    slc_training_log *log;
    mark(run, first - 1); /* steps that this run makes anew need not survive any more, nor does the table of --csv */
    works(slc_training_log_open(&o, &log));
    works(slc_training_log_begin(log, first - 1, json_object()));
    for (uint64_t step = first; step <= last; step++) {
        let_time_pass(run, step - 1, drawn_ns(run, step));
        put_step(log, run, step);
        ended_ns[step] = made.now_ns;
    }
    let_time_pass(run, last, drawn_ns(run, last + 1));
    close_log(&log);
    disk_returned(run << 32 | last);
}

static void record(const char *top)
{
    disk_watch(top, true);
    make_run(top, 1, 1, FIRST_RUN);
    make_run(top, 2, GOES_ON_AT + 1, LAST);
    disk->recording = false;
    disk->folder[0] = 0;
    assert_true(disk->count > 300);
}

/* ---- What is left ---- */

typedef struct {
    double loss[LAST + 2]; /* by step; 0: it is not there */
    uint64_t count;        /* steps in the order of the file, none of them twice: 1, 2, 3, ...; 0: another order */
} found_steps;

static void add_step(found_steps *found, uint64_t step, double loss)
{
    if (step > LAST + 1) return;
    found->count = found->count + 1 == step ? step : 0;
    found->loss[step] = loss;
}

static char *read_all(const char *path, size_t *bytes)
{
    FILE *file = fopen(path, "r");
    char *text = malloc(1 << 20);
    if (!text) abort();
    *bytes = file ? fread(text, 1, (1 << 20) - 1, file) : 0;
    text[*bytes] = 0;
    if (file) fclose(file);
    return text;
}

/* Returns false if a line that has its end is not what its writer wrote. */
static bool read_lines(const char *path, bool table, found_steps *found)
{
    size_t bytes;
    char *text = read_all(path, &bytes), *end;
    bool sound = true;
    *found = (found_steps){0};
    for (char *line = text; sound && (end = strchr(line, '\n')); line = end + 1) {
        unsigned long long step = 0;
        double loss = 0;
        if (table && line == text) continue; /* names of columns */
        *end = 0;
        json_t *parsed = table ? NULL : json_loads(line, 0, NULL);
        sound = table ? sscanf(line, "%llu,%lf,", &step, &loss) == 2 : json_is_object(parsed);
        if (parsed) step = (unsigned long long)json_integer_value(json_object_get(parsed, "step"));
        if (parsed) loss = json_number_value(json_object_get(parsed, "loss"));
        json_decref(parsed);
        if (sound) add_step(found, step, loss);
    }
    free(text);
    return sound;
}

static uint32_t masked(const char *data, size_t bytes)
{
    const uint32_t crc = slc_crc32c(0, data, bytes);
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

/* Finds the step and the loss of a record of TensorBoard by the bytes that lead to them: field 2, a number below 128;
 * the tag of the loss, then field 2, four bytes. */
static void read_event(const char *content, size_t bytes, found_steps *found)
{
    static const char tag[] = "train/loss";
    const char *at = memmem(content, bytes, tag, sizeof tag - 1);
    float loss;
    if (!at || content[9] != (2 << 3)) return;
    memcpy(&loss, at + sizeof tag, sizeof loss);
    found->loss[(unsigned char)content[10] % (LAST + 2)] = (double)loss;
}

/* The records of all event files of the folder, up to one that is cut. */
static bool read_events(const char *folder, found_steps *found)
{
    struct dirent **names;
    const int count = scandir(folder, &names, NULL, alphasort);
    *found = (found_steps){0};
    for (int i = 0; i < count; i++) {
        char path[PATH_MAX];
        size_t bytes = 0, at = 0;
        snprintf(path, sizeof path, "%s/%s", folder, names[i]->d_name);
        char *data = strncmp(names[i]->d_name, "events.", 7) ? NULL : read_all(path, &bytes);
        for (uint64_t length; data && at + 16 <= bytes; at += 16 + length) {
            uint32_t sum;
            memcpy(&length, data + at, sizeof length);
            if (length > bytes - at - 16) break;
            memcpy(&sum, data + at + 12 + length, sizeof sum);
            if (masked(data + at + 12, length) != sum) break;
            read_event(data + at + 12, length, found);
        }
        free(data);
        free(names[i]);
    }
    if (count >= 0) free(names);
    return true;
}

/* ---- Losing power ---- */

typedef struct {
    disk_model disk;
    uint64_t run, must; /* steps of a run, up to this one, that must survive; run 0: none has begun */
    uint64_t seen[SEEN];
    uint64_t states, losses, went_on;
    bool stop_at_loss;
    char scratch[128];
} exploration;

static bool has_steps(const exploration *e, const found_steps *found, uint64_t first, const char *what)
{
    for (uint64_t step = first; step <= e->must; step++) {
        if (fabs(found->loss[step] - right_loss(e->run, step)) <= 1e-6) continue;
        if (!e->stop_at_loss && !e->losses)
            print_message("step %llu of run %llu: %s has the loss %g\n", (unsigned long long)step,
                          (unsigned long long)e->run, what, found->loss[step]);
        return false;
    }
    return true;
}

static bool is_new(exploration *e, uint64_t hash)
{
    const uint64_t marks[2] = {e->run, e->must}, key = slc_fnv(hash, marks, sizeof marks) | 1;
    uint64_t at = key % SEEN;
    while (e->seen[at] && e->seen[at] != key) at = (at + 1) % SEEN;
    const bool fresh = !e->seen[at];
    e->seen[at] = key;
    return fresh;
}

static bool is_whole(const exploration *e)
{
    char folder[192], path[256];
    found_steps found;
    snprintf(folder, sizeof folder, "%s/runs/first", e->scratch);
    snprintf(path, sizeof path, "%s/metrics.jsonl", folder);
    bool whole = read_lines(path, false, &found) && has_steps(e, &found, 1, "metrics.jsonl");
    snprintf(path, sizeof path, "%s/metrics.csv", folder);
    whole = whole && read_lines(path, true, &found) && has_steps(e, &found, 1, "metrics.csv");
    snprintf(path, sizeof path, "%s/table.csv", e->scratch); /* --csv is of one run */
    whole = whole && read_lines(path, true, &found) && has_steps(e, &found, e->run > 1 ? GOES_ON_AT + 1 : 1, "--csv");
    return whole && read_events(folder, &found) && has_steps(e, &found, 1, "the event files");
}

/* A run goes on from a checkpoint of the last step that must be there. Its log has each step once, in order. */
static bool goes_on(exploration *e)
{
    char texts[2][PATH_MAX], path[192];
    const slc_training_options o = options_of(e->scratch, 2, texts);
    slc_training_log *log;
    found_steps found;
    works(slc_training_log_open(&o, &log));
    works(slc_training_log_begin(log, e->must, json_object()));
    put_step(log, 9, e->must + 1);
    close_log(&log);
    snprintf(path, sizeof path, "%s/runs/first/metrics.jsonl", e->scratch);
    const bool sound = read_lines(path, false, &found) && found.count == e->must + 1;
    snprintf(path, sizeof path, "%s/runs/first/metrics.csv", e->scratch);
    e->went_on++;
    return sound && read_lines(path, true, &found) && found.count == e->must + 1;
}

static void look_at(exploration *e, const crash *c)
{
    if (!e->run || !is_new(e, model_hash(&e->disk, 0, c, 0))) return;
    model_put(&e->disk, 0, c, e->scratch);
    bool whole = is_whole(e);
    if (whole && e->must && e->states % 16 == 0) whole = goes_on(e);
    e->losses += !whole;
    e->states++;
    remove_tree(e->scratch);
}

static void lose_power(exploration *e, uint64_t point)
{
    const int bits = model_bits(&e->disk);
    const bool exhaustive = bits <= EXHAUSTIVE_BITS;
    for (uint64_t i = 0; i < (exhaustive ? UINT64_C(1) << bits : (uint64_t)DRAWS); i++) {
        const uint64_t drawn = i < 2 ? -i : slc_random_below(test_seed(9), point, i, UINT64_MAX);
        crash c = {.bits = exhaustive ? i : drawn};
        for (c.files = FILES_LOST; c.files < FILES_WAYS; c.files++) {
            look_at(e, &c);
            if (e->losses && e->stop_at_loss) return;
        }
    }
}

typedef bool (*sync_filter)(const char *path); /* whether this call to synchronize happens */

static void explore(exploration *e, sync_filter happens)
{
    model_init(&e->disk);
    for (uint32_t i = 0; i < disk->count && !(e->losses && e->stop_at_loss); i++) {
        const disk_op *op = &disk->ops[i];
        if (op->call == DISK_RETURNED) e->run = op->offset >> 32, e->must = (uint32_t)op->offset;
        if (op->call != DISK_SYNC || !happens || happens(op->path)) model_do(&e->disk, op, disk->pool);
        lose_power(e, i);
    }
    model_fini(&e->disk);
}

static exploration *begin_exploration(void)
{
    exploration *e = calloc(1, sizeof *e);
    assert_non_null(e);
    snprintf(e->scratch, sizeof e->scratch, "%s", path_of("disk"));
    return e;
}

static void what_is_old_enough_survives(void **state)
{
    (void)state;
    record(path_of("top"));
    exploration *e = begin_exploration();
    explore(e, NULL);
    print_message("%u calls, %llu different states of the disk; a run went on in %llu of them\n", disk->count,
                  (unsigned long long)e->states, (unsigned long long)e->went_on);
    assert_int_equal(e->losses, 0);
    assert_true(e->run == 2 && e->must == LAST && e->states > 200 && e->went_on > 10);
    free(e);
}

/* ---- The test finds synchronizing that is left out ---- */

static bool ends_with(const char *text, const char *end)
{
    const size_t length = strlen(text), of_end = strlen(end);
    return length >= of_end && !strcmp(text + length - of_end, end);
}

static bool none(const char *path)
{
    (void)path;
    return false;
}

static bool not_lines(const char *path)
{
    return !ends_with(path, "metrics.jsonl");
}

static bool not_columns(const char *path)
{
    return !ends_with(path, "metrics.csv");
}

static bool not_table(const char *path)
{
    return !ends_with(path, "table.csv");
}

static bool not_events(const char *path)
{
    return !strstr(path, "events.");
}

static bool not_folder(const char *path)
{
    return !ends_with(path, "first");
}

static bool not_parent(const char *path)
{
    return !ends_with(path, "runs");
}

static bool not_top(const char *path)
{
    return *path;
}

static void each_synchronizing_is_needed(void **state)
{
    (void)state;
    static const struct {
        const char *what;
        sync_filter filter;
    } kinds[] = {{"nothing", none},
                 {"metrics.jsonl", not_lines},
                 {"metrics.csv", not_columns},
                 {"--csv", not_table},
                 {"event files", not_events},
                 {"the folder", not_folder},
                 {"what it lies in", not_parent},
                 {"what that lies in", not_top}};
    exploration *e = begin_exploration();
    e->stop_at_loss = true;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        e->losses = e->run = e->must = e->states = 0;
        memset(e->seen, 0, sizeof e->seen);
        explore(e, kinds[k].filter);
        if (!e->losses) print_message("without synchronizing %s nothing is lost\n", kinds[k].what);
        assert_true(e->losses);
    }
    free(e);
}

static int make_top(void **state)
{
    return make_folder(state) || mkdir(path_of("top"), 0777);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_old_enough_survives), /* the second one looks at its record */
        cmocka_unit_test(each_synchronizing_is_needed),
    };
    disk_open();
    return cmocka_run_group_tests(tests, make_top, remove_folder);
}
