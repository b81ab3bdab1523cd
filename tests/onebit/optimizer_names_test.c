/* The table of names in sluice/optimizer.h is true: each array and number that it lists for an optimizer and a mode can
 * be read and written in its shape, and the error for an unknown name lists the same ones. */
#include "lib/optim/optimizers.h"
#include "tests/support/draw.h"
#include "tests/support/onebit_model.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

enum { ROWS_MAX = 64, STEPS = 24, LONGEST = PADDED_MAX * PARAMS_MAX };

typedef struct {
    char optimizer[16], mode[8], kind[12], name[24], shape[8];
} row;

static row rows[ROWS_MAX];
static int row_count;

/* Only lines of the table are indented like this and have these five columns, of which the second is a mode. */
static void read_table(void)
{
    char line[256];
    FILE *header = fopen(SLUICE_OPTIMIZER_HEADER, "r");
    assert_non_null(header);
    while (fgets(line, sizeof line, header)) {
        row *r = &rows[row_count];
        if (strncmp(line, " *   ", 5) != 0) continue;
        if (sscanf(line, " * %15s %7s %11s %23s %7s", r->optimizer, r->mode, r->kind, r->name, r->shape) != 5) continue;
        if (strcmp(r->mode, "all") && strcmp(r->mode, "compat") && strcmp(r->mode, "native")) continue;
        assert_true(++row_count < ROWS_MAX);
    }
    fclose(header);
    assert_true(row_count > 30);
}

static bool is_of(const row *r, const trial *t)
{
    return !strcmp(r->optimizer, t->optimizer) && strcmp(r->mode, t->compat ? "native" : "compat") != 0;
}

static bool is_kind(const row *r, const char *kind)
{
    return !strcmp(r->kind, kind);
}

static bool compresses(const char *optimizer)
{
    for (int i = 0; i < row_count; i++)
        if (!strcmp(rows[i].optimizer, optimizer) && is_kind(&rows[i], "own")) return true;
    return false;
}

/* The names of each kind, in the table's order, as errors list them. */
static void join_names(const trial *t, const char *kind, const char *other, char *out)
{
    *out = 0;
    for (int i = 0; i < row_count; i++) {
        if (!is_of(&rows[i], t) || (!is_kind(&rows[i], kind) && !is_kind(&rows[i], other))) continue;
        if (*out) strcat(out, ", ");
        strcat(out, rows[i].name);
    }
    if (!*out) strcpy(out, "none");
}

static int ends_with_names(const char *names)
{
    const char *line = sluice_last_error(), *end = line + strlen(line) - strlen(names);
    RANK_CHECK(end >= line && !strcmp(end, names) && end[-1] == ' ');
    return 0;
}

static uint64_t padded(uint64_t count, uint64_t ranks)
{
    uint64_t lcm = ranks;
    while (lcm % 8) lcm += ranks;
    return (count + ranks * lcm - 1) / (ranks * lcm) * (ranks * lcm);
}

/* The number of elements that the table says. In LAMB's compat mode a whole unit is one tensor. */
static uint64_t expected_count(const model *m, uint32_t p, const row *r)
{
    const uint64_t count = m->params[p].count, ranks = (uint64_t)m->size;
    const bool worker = !strcmp(r->shape, "padded"), server = !strcmp(r->shape, "share");
    if (is_kind(r, "state")) return count;
    if (strcmp(m->t->optimizer, "onebit_lamb") || !m->t->compat)
        return worker ? padded(count, ranks) : server ? padded(count, ranks) / ranks : count;
    uint64_t all = 0, before = 0;
    for (uint32_t q = 0; q < m->param_count; q++) {
        if (q < p) before += m->params[q].count;
        all += m->params[q].count;
    }
    if (server) return p ? 0 : padded(all, ranks) / ranks;
    return p + 1 == m->param_count ? padded(all, ranks) - before : count;
}

/* An array that was read can be written, and is then read again. */
static int check_array(model *m, uint32_t p, const row *r)
{
    static float x[LONGEST], again[LONGEST];
    sluice_param *param = m->params[p].param;
    const uint64_t count = sluice_param_state_count(param, r->name);
    if (count != expected_count(m, p, r))
        fprintf(stderr, "%s of %s has %llu elements, not %llu\n", r->name, sluice_param_name(param),
                (unsigned long long)count, (unsigned long long)expected_count(m, p, r));
    RANK_CHECK(count == expected_count(m, p, r) && count <= LONGEST);
    RANK_CHECK(!sluice_param_state_read(param, r->name, 0, count, x));
    for (uint64_t i = 0; i < count; i++) x[i] = noise(p, i);
    RANK_CHECK(!sluice_param_state_write(param, r->name, 0, count, x));
    RANK_CHECK(!sluice_param_state_read(param, r->name, 0, count, again));
    RANK_CHECK(!memcmp(x, again, count * sizeof *x));
    RANK_CHECK(sluice_param_state_read(param, r->name, 0, count + 1, again) == SLUICE_ERR_ARGUMENT);
    return 0;
}

static int check_number(model *m, sluice_param *param, const row *r)
{
    double x = -1, again = -2;
    RANK_CHECK(!strcmp(r->shape, "1"));
    RANK_CHECK(!sluice_runtime_progress_read(m->rt, param, r->name, &x) && x >= 0);
    RANK_CHECK(!sluice_runtime_progress_write(m->rt, param, r->name, x));
    RANK_CHECK(!sluice_runtime_progress_read(m->rt, param, r->name, &again) && again == x);
    return 0;
}

static int check_unknown(model *m)
{
    char names[512];
    float x;
    double number;
    for (uint32_t p = 0; p < m->param_count; p++) {
        sluice_param *param = m->params[p].param;
        RANK_CHECK(!sluice_param_state_count(param, "unknown"));
        join_names(m->t, "state", "own", names);
        RANK_CHECK(sluice_param_state_read(param, "unknown", 0, 1, &x) == SLUICE_ERR_ARGUMENT);
        if (ends_with_names(names)) return 1;
        RANK_CHECK(sluice_param_state_write(param, "unknown", 0, 1, &x) == SLUICE_ERR_ARGUMENT);
        if (ends_with_names(names)) return 1;
        join_names(m->t, "parameter", "parameter", names);
        RANK_CHECK(sluice_runtime_progress_read(m->rt, param, "phase", &number) == SLUICE_ERR_ARGUMENT);
        if (ends_with_names(names)) return 1;
    }
    join_names(m->t, "job", "job", names);
    RANK_CHECK(sluice_runtime_progress_write(m->rt, NULL, "phase", 1) == SLUICE_ERR_ARGUMENT);
    return ends_with_names(names);
}

/* Runs up to the phase in which every array exists. */
static int check_names(int rank, int size, void *context)
{
    model m;
    if (model_world(context, rank, size, &m) || model_build(&m)) return 1;
    for (uint64_t step = 1; step <= STEPS; step++) {
        m.exchange = step == STEPS;
        if (model_step(&m, NULL)) return 1;
    }
    if (check_unknown(&m)) return 1;
    for (int i = 0; i < row_count; i++) {
        const row *r = &rows[i];
        const bool array = is_kind(r, "state") || is_kind(r, "own");
        if (!is_of(r, m.t)) continue;
        if (is_kind(r, "job") && check_number(&m, NULL, r)) return 1;
        for (uint32_t p = 0; p < m.param_count; p++)
            if (array ? check_array(&m, p, r) : is_kind(r, "parameter") && check_number(&m, m.params[p].param, r))
                return 1;
    }
    return model_leave(&m);
}

static void the_header_names_what_there_is(void **state)
{
    (void)state;
    int checked = 0;
    read_table();
    for (size_t o = 0; slc_optimizer_at(o); o++)
        for (int compat = 0; compat < 2; compat++) {
            trial t = {.seed = 80, .optimizer = slc_optimizer_at(o)->name, .compat = compat, .freeze_step = 3};
            if (!compresses(t.optimizer)) t.strategy = "dp";
            assert_int_equal(compresses(t.optimizer), slc_optimizer_at(o)->compressed);
            t.var_freeze_step = 8, t.var_update_scaler = 2, t.local_step_scaler = 3, t.local_step_clipper = 4;
            assert_int_equal(run_ranks(2 + compat, check_names, &t, 60), 0);
            for (int i = 0; i < row_count; i++) checked += is_of(&rows[i], &t);
        }
    assert_true(checked > row_count); /* no row names an optimizer that there isn't */
    for (int i = 0; i < row_count; i++) assert_non_null(slc_optimizer_find(rows[i].optimizer));
}

/* An array of which each rank has its own does not exist before the compressed phase, nor under another strategy. */
static int check_elsewhere(int rank, int size, void *context)
{
    model m;
    float x;
    if (model_world(context, rank, size, &m) || model_build(&m)) return 1;
    RANK_CHECK(!sluice_param_state_count(m.params[0].param, "error_worker"));
    RANK_CHECK(sluice_param_state_read(m.params[0].param, "error_worker", 0, 1, &x) == SLUICE_ERR_ARGUMENT);
    if (ends_with_names("it has exp_avg, exp_avg_sq")) return 1;
    return model_leave(&m);
}

static void own_arrays_are_there_where_something_is_compressed(void **state)
{
    (void)state;
    trial t = {.seed = 81, .freeze_step = 3};
    assert_int_equal(run_ranks(2, check_elsewhere, &t, 60), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_header_names_what_there_is),
        cmocka_unit_test(own_arrays_are_there_where_something_is_compressed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
