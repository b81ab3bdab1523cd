/* Checkpoints survive a loss of power. Two ranks save, and everything that they ask of the disk is recorded. Then the
 * power is lost after every recorded call, in a model that keeps no more than POSIX promises, and what is left is
 * loaded: it must be the newest checkpoint whose save had returned, or the one that was being saved, whole. If any one
 * kind of synchronizing is left out, this test must find a loss. Every call that fails, in either rank, leaves a
 * checkpoint too: the save succeeds, or it fails with the system's reason on all ranks and the next one succeeds. */
#include "tests/checkpoint/checkpoint_model.h"
#include "tests/support/base/disk_model.h"
#include "tests/support/seed.h"

enum { SAVES = 7, EXHAUSTIVE_BITS = 9, DRAWS = 256, SEEN = 1 << 16 };

/* Each save writes a version of the contents; a step that is saved again is replaced. */
static const uint64_t step_of[SAVES + 1] = {0, 1, 2, 3, 3, 4, 4, 5};

static char top[64]; /* the folder that is watched; checkpoints are saved to `run` in it, which is not there yet */

/* ---- Recording ---- */

/* Odd versions are saved as `sluice train` saves, by a thread. */
static sluice_status save_number(model *m, const char *dir, uint64_t version)
{
    if (version % 2 == 0) return sluice_checkpoint_save(m->rt, dir, &version, sizeof version);
    sluice_status status = sluice_checkpoint_begin(m->rt, dir, &version, sizeof version);
    return status ? status : sluice_checkpoint_end(m->rt, true, NULL);
}

static int save_version(model *m, const char *dir, uint64_t version, uint64_t step)
{
    if (fill_values(m, version)) return 1;
    RANK_CHECK(!sluice_runtime_step_set(m->rt, step));
    RANK_CHECK(!save_number(m, dir, version));
    return 0;
}

static int save_all_versions(int rank, int size, void *context)
{
    (void)size;
    disk_rank = rank;
    model m = {.t = context};
    if (build(&m)) return 1;
    for (uint64_t version = 1; version <= SAVES; version++) {
        if (save_version(&m, m.t->dir, version, step_of[version])) return 1;
        if (rank == 0) disk_returned(version);
    }
    return destroy(&m, 0);
}

static void record(bool no_exchange)
{
    char run[128];
    make_folder_in_memory(top);
    snprintf(run, sizeof run, "%s/run", top);
    disk_watch(top, true);
    disk->no_exchange = no_exchange;
    trial t = {.dir = run, .seed = 3};
    assert_int_equal(run_ranks(2, save_all_versions, &t, 120), 0);
    disk->recording = false;
    disk->folder[0] = 0;
    assert_true(disk->count > 50);
}

/* ---- Losing power ---- */

typedef struct {
    model m;
    disk_model disk;
    uint64_t returned; /* the newest version whose save has returned */
    uint64_t seen[SEEN];
    uint64_t states, losses, saved_again;
    bool stop_at_loss;
    uint32_t points, stride; /* the power is lost at every `stride`-th of the possible points */
    char place[64], scratch[128];
} exploration;

static bool is_new(exploration *e, uint64_t hash)
{
    uint64_t key = slc_fnv(hash, &e->returned, sizeof e->returned) | 1, at = key % SEEN;
    while (e->seen[at] && e->seen[at] != key) at = (at + 1) % SEEN;
    bool fresh = !e->seen[at];
    e->seen[at] = key;
    return fresh;
}

/* Returns the version that the folder holds if all of it is right; 0 if there is none, UINT64_MAX if something is
 * lost. */
static uint64_t load_version(exploration *e, const char *run)
{
    void *extra = NULL;
    size_t bytes = 0;
    uint64_t version = UINT64_MAX;
    if (sluice_checkpoint_load(e->m.rt, run, &extra, &bytes))
        return strstr(sluice_last_error(), "there is no checkpoint in") ? 0 : UINT64_MAX;
    if (bytes == sizeof version) memcpy(&version, extra, sizeof version);
    free(extra);
    bool right = version && version <= SAVES + 1 && !check_values(&e->m, version);
    return right ? version : UINT64_MAX;
}

static int look_at(exploration *e, const crash *c)
{
    char run[192];
    if (!is_new(e, model_hash(&e->disk, 0, c, 0))) return 0;
    model_put(&e->disk, 0, c, e->scratch);
    snprintf(run, sizeof run, "%s/run", e->scratch);
    uint64_t version = load_version(e, run);
    bool loss = version < e->returned || version > e->returned + 1;
    if (loss && !e->stop_at_loss)
        fprintf(stderr, "%llu was saved, and there is %lld (%s)\n", (unsigned long long)e->returned, (long long)version,
                sluice_last_error());
    e->losses += loss;
    if (!loss && e->states % 16 == 0) { /* training goes on from this state */
        if (save_version(&e->m, run, SAVES + 1, 1000)) return 1;
        RANK_CHECK(load_version(e, run) == SAVES + 1);
        e->saved_again++;
    }
    e->states++;
    remove_tree(e->scratch);
    return 0;
}

static int lose_power(exploration *e, uint64_t point)
{
    int bits = model_bits(&e->disk);
    uint64_t all = bits < 64 ? (UINT64_C(1) << bits) - 1 : UINT64_MAX;
    bool exhaustive = bits <= EXHAUSTIVE_BITS;
    uint64_t tries = exhaustive ? all + 1 : DRAWS + 2 * (uint64_t)bits + 2;
    for (uint64_t i = 0; i < tries; i++) {
        uint64_t one = UINT64_C(1) << i / 2 % 64, drawn = slc_random_below(test_seed(1), point, i, UINT64_MAX);
        crash c = {.bits = exhaustive                   ? i
                           : i < 2 * (uint64_t)bits     ? (i % 2 ? one : all & ~one)
                           : i < 2 * (uint64_t)bits + 2 ? (i % 2 ? all : 0)
                                                        : drawn & all};
        for (c.files = FILES_LOST; c.files < FILES_WAYS; c.files++) {
            if (look_at(e, &c)) return 1;
            if (e->losses && e->stop_at_loss) return 0;
        }
    }
    return 0;
}

typedef bool (*sync_filter)(const char *path); /* whether this call to synchronize happens */

static int explore(exploration *e, sync_filter happens)
{
    model_init(&e->disk);
    for (uint32_t i = 0; i < disk->count && !(e->losses && e->stop_at_loss); i++) {
        const disk_op *op = &disk->ops[i];
        if (op->call == DISK_RETURNED) e->returned = op->offset;
        if (op->call != DISK_SYNC || !happens || happens(op->path)) model_do(&e->disk, op, disk->pool);
        bool more = op->call == DISK_WRITE && i + 1 < disk->count && disk->ops[i + 1].call == DISK_WRITE;
        if (more || e->points++ % e->stride) continue;
        if (lose_power(e, i)) return 1; /* nothing else tells writes in a row apart: only after the last */
    }
    model_fini(&e->disk);
    return 0;
}

static exploration *begin_exploration(const trial *t)
{
    exploration *e = calloc(1, sizeof *e);
    assert_non_null(e);
    e->m.t = t;
    e->stride = 1;
    make_folder_in_memory(e->place);
    snprintf(e->scratch, sizeof e->scratch, "%s/disk", e->place);
    return e;
}

static int every_crash_is_survived(int rank, int size, void *context)
{
    (void)rank, (void)size;
    exploration *e = begin_exploration(context);
    e->stride = 4 / test_rounds(4);
    if (build(&e->m) || explore(e, NULL)) return 1;
    printf("%u calls, %llu different states of the disk; saved again after %llu of them\n", disk->count,
           (unsigned long long)e->states, (unsigned long long)e->saved_again);
    RANK_CHECK(!e->losses && e->returned == SAVES && e->states > 100 / e->stride && e->saved_again);
    remove_tree(e->place);
    const int code = destroy(&e->m, 0);
    free(e);
    return code;
}

static void power_loss_loses_no_checkpoint(void **state)
{
    (void)state;
    for (int no_exchange = 0; no_exchange < 2; no_exchange++) {
        record(no_exchange);
        trial t = {.seed = 4};
        assert_int_equal(run_ranks(1, every_crash_is_survived, &t, 600), 0);
        remove_tree(top);
    }
}

/* ---- The test finds synchronizing that is left out ---- */

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), of_end = strlen(end);
    return length >= of_end && !strcmp(text + length - of_end, end);
}

static bool not_files(const char *path)
{
    return !ends_with(path, ".slc");
}

static bool not_extra(const char *path)
{
    return !ends_with(path, "/extra");
}

static bool not_manifest(const char *path)
{
    return !ends_with(path, "manifest.json");
}

static bool not_partial(const char *path)
{
    return !ends_with(path, ".partial");
}

static bool not_folder(const char *path)
{
    return strcmp(path, "run") != 0;
}

static bool not_parent(const char *path)
{
    return *path;
}

static bool none(const char *path)
{
    (void)path;
    return false;
}

static int each_kind_is_needed(int rank, int size, void *context)
{
    (void)rank, (void)size;
    static const struct {
        const char *what;
        sync_filter filter;
    } kinds[] = {{"nothing", none},          {"ranks' files", not_files},     {"extra", not_extra},
                 {"manifest", not_manifest}, {"partial folder", not_partial}, {"folder", not_folder},
                 {"its parent", not_parent}};
    exploration *e = begin_exploration(context);
    if (build(&e->m)) return 1;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        e->losses = e->returned = e->states = 0;
        e->stop_at_loss = true;
        memset(e->seen, 0, sizeof e->seen);
        remove_tree(e->scratch);
        if (explore(e, kinds[k].filter)) return 1;
        if (!e->losses) fprintf(stderr, "without synchronizing %s nothing is lost\n", kinds[k].what);
        RANK_CHECK(e->losses);
    }
    remove_tree(e->place);
    int code = destroy(&e->m, 0);
    free(e);
    return code;
}

static void each_synchronizing_is_needed(void **state)
{
    (void)state;
    record(false);
    trial t = {.seed = 4};
    assert_int_equal(run_ranks(1, each_kind_is_needed, &t, 600), 0);
    remove_tree(top);
}

/* ---- Calls that fail ---- */

typedef struct {
    sluice_status status;
    char line[500];
} outcome;

/* Fails unless all ranks have the same outcome. */
static int compare_outcomes(model *m, int size, sluice_status status, outcome *mine)
{
    outcome all[RANKS_MAX];
    *mine = (outcome){.status = status};
    if (status) snprintf(mine->line, sizeof mine->line, "%s", sluice_last_error());
    RANK_CHECK(!sluice_world_all_gather(m->world, mine, sizeof *mine, all));
    for (int r = 0; r < size; r++) {
        RANK_CHECK(all[r].status == mine->status);
        RANK_CHECK(!strcmp(all[r].line, mine->line));
    }
    return 0;
}

typedef struct {
    uint64_t version; /* the newest version that is saved */
    uint64_t failed, published;
} progress;

/* Saves the next version while call number `at` of rank `faulty` fails. *over: there is no such call. */
static int save_with_fault(model *m, int rank, int size, int faulty, uint32_t at, int error, progress *p, bool *over)
{
    outcome result;
    uint64_t next = p->version + 1, latest = 0;
    bool found = false;
    if (fill_values(m, next)) return 1;
    RANK_CHECK(!sluice_runtime_step_set(m->rt, next));
    RANK_CHECK(!sluice_world_barrier(m->world));
    if (rank == 0) disk_fault(faulty, at, error);
    RANK_CHECK(!sluice_world_barrier(m->world));
    sluice_status status = save_number(m, m->t->dir, next);
    if (compare_outcomes(m, size, status, &result)) return 1;
    RANK_CHECK(!sluice_world_barrier(m->world)); /* rank 0 removes old checkpoints while other ranks return */
    *over = !disk->fired;
    disk_call call = disk->fired_at;
    RANK_CHECK(!sluice_world_barrier(m->world));
    if (rank == 0) disk->fault_rank = -1;
    RANK_CHECK(!sluice_checkpoint_latest(m->t->dir, &found, &latest));
    if (status) {
        RANK_CHECK(!*over && call != DISK_UNLINK && call != DISK_RMDIR);
        RANK_CHECK(status == SLUICE_ERR_IO && strstr(result.line, strerror(error)) && strstr(result.line, top));
        RANK_CHECK(found == (p->version > 0) && latest == p->version);
        p->failed++;
        RANK_CHECK(!sluice_checkpoint_save(m->rt, m->t->dir, &next, sizeof next));
    } else {
        RANK_CHECK(found && latest == next);
        p->published += !*over;
    }
    p->version = next;
    return 0;
}

static int load_latest(model *m, uint64_t version)
{
    if (fill_values(m, 99)) return 1;
    RANK_CHECK(!sluice_checkpoint_load(m->rt, m->t->dir, NULL, NULL));
    return check(m, version);
}

static int fail_every_call(int rank, int size, void *context)
{
    disk_rank = rank;
    model m = {.t = context};
    if (build(&m)) return 1;
    progress p = {0};
    for (int faulty = 0; faulty < size; faulty++)
        for (int e = 0; e < 2; e++) {
            bool over = false;
            for (uint32_t at = 0; !over; at += 8 / test_rounds(8))
                if (save_with_fault(&m, rank, size, faulty, at, e ? EIO : ENOSPC, &p, &over)) return 1;
            if (load_latest(&m, p.version)) return 1;
        }
    if (rank == 0)
        printf("%llu saves failed, %llu were published all the same\n", (unsigned long long)p.failed,
               (unsigned long long)p.published);
    RANK_CHECK(p.failed > 20 && p.published > 0);
    return destroy(&m, 0);
}

static void calls_that_fail_leave_a_checkpoint(void **state)
{
    (void)state;
    char run[128];
    make_folder_in_memory(top);
    snprintf(run, sizeof run, "%s/run", top);
    disk_watch(top, false);
    setenv("SLUICE_LOG_LEVEL", "error", 1);
    trial t = {.dir = run, .seed = 12};
    assert_int_equal(run_ranks(2, fail_every_call, &t, 600), 0);
    unsetenv("SLUICE_LOG_LEVEL");
    disk->folder[0] = 0;
    assert_int_equal(entries(run), 2);
    remove_tree(top);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(power_loss_loses_no_checkpoint),
        cmocka_unit_test(each_synchronizing_is_needed),
        cmocka_unit_test(calls_that_fail_leave_a_checkpoint),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    disk_open();
    setenv("SLUICE_COMM_SPIN_US", "0", 1); /* ranks do not spin: hundreds of loads take turns with other tests */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
