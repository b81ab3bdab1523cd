/* `sluice info`: what this build and this machine offer. The facts are gathered as JSON; the text is made from it.
 * tests/command/info_test.sh covers this file. */
#include "bench/cli/command.h"
#include "bench/cli/options/command_line.h"
#include "bench/cli/output/provenance.h"
#include "ilp/slot_model.h"
#include "lib/comm/transport.h"
#include "lib/device/device.h"
#include "lib/kernels/gemm/gemm.h"
#include "lib/kernels/isa.h"
#include "lib/plan/request.h"
#include "lib/sluice/settings.h"

#include <jansson.h>
#include <sluice/version.h>
#include <sluice/world.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Names oneDNN's code for products of each type on the host; "none" in a build without oneDNN. */
static json_t *gemm(void)
{
    json_t *paths = json_object();
    for (sluice_dtype dtype = SLUICE_FP32; dtype <= SLUICE_BF16; dtype++) {
        bool widened, allocates;
        const char *name;
        if (slc_gemm_path(dtype, &widened, &allocates, &name)) name = "none", widened = false;
        json_object_set_new(paths, sluice_dtype_name(dtype), json_sprintf("%s%s", widened ? "as fp32, " : "", name));
    }
    return paths;
}

typedef struct {
    bool json, settings;
} info_options;

static const slc_option option_rows[] = {
    {"json", NULL, 0, SLC_OPTION_FLAG, SLC_OPTION_FIELD(info_options, json), NULL, 0, "Print JSON", .letter = 'j'},
    {"settings", NULL, 0, SLC_OPTION_FLAG, SLC_OPTION_FIELD(info_options, settings), NULL, 0,
     "Print what every SLUICE_ variable means, as Markdown", .letter = 's'},
    {0},
};

static json_t *devices(void)
{
    static const char *const names[] = {"cpu", "cuda"};
    json_t *list = json_array();
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        slc_device *device;
        if (slc_device_open(names[i], &device)) continue;
        json_array_append_new(list, json_string(slc_device_describe(names[i])));
        slc_device_close(device);
    }
    return list;
}

/* Describes the GPU that the device cuda would run on, or says why there is none. */
static json_t *gpu(void)
{
    slc_device *device;
    slc_device_facts facts;
    const char *runs_on = slc_device_describe("cuda");
    if (!runs_on) return json_string("none: this build has no device cuda (SLUICE_CUDA=OFF)");
    if (slc_device_open("cuda", &device)) return json_sprintf("none: %s", sluice_last_error());
    const sluice_status status = slc_device_get_facts(device, &facts);
    slc_device_close(device);
    if (status) return json_sprintf("none: %s", sluice_last_error());
    return json_pack("{s:s, s:s, s:i, s:o, s:i, s:I, s:I}", "device", runs_on, "name", facts.name, "number",
                     (int)facts.number, "capability",
                     json_sprintf("%u.%u", facts.capability / 10, facts.capability % 10), "multiprocessors",
                     (int)facts.processors, "memory_bytes", (json_int_t)facts.memory_bytes, "free_bytes",
                     (json_int_t)facts.free_bytes);
}

static void ignore_lost_peer(void *context, int rank, const char *why)
{
    (void)context;
    (void)rank;
    (void)why;
}

/* Lists the transports. Each is really opened, as a world of one, so that the listed ones do work here. */
static json_t *transports(void)
{
    static const struct {
        const char *name, *opened, *throttle;
    } rows[] = {{"ucx", "ucx", ""}, {"throttle", "ucx", "1gbit"}, {"nccl", "nccl", ""}};
    json_t *found = json_object();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        slc_transport transport;
        sluice_status status =
            slc_transport_open(&transport, rows[i].opened, rows[i].throttle, "", 0, 1, ignore_lost_peer, NULL);
        json_object_set_new(found, rows[i].name, json_string(status ? sluice_last_error() : "works"));
        if (!status) slc_transport_close(&transport, 0);
    }
    return found;
}

static json_t *planner(void)
{
    const char *solver = slc_slot_model_solver();
    return json_pack("{s:s, s:s}", "schedule", slc_schedule_default, "solver",
                     solver ? solver : "none, so no schedule ilp: built without GLPK");
}

static json_t *launcher(void)
{
    sluice_world_config config;
    const char *name = sluice_launcher_name() ? sluice_launcher_name() : "none";
    if (sluice_world_config_init(&config)) return json_pack("{s:s, s:s}", "name", name, "error", sluice_last_error());
    return json_pack("{s:s, s:i, s:i}", "name", name, "rank", config.rank, "size", config.size);
}

static json_t *collect(void)
{
    return json_pack("{s:s, s:o, s:o, s:o, s:s, s:i, s:o, s:b, s:o, s:o}", "version", sluice_version(), "transports",
                     transports(), "devices", devices(), "gpu", gpu(), "instruction_set", slc_isa_name(slc_isa_level()),
                     "processors", (int)sysconf(_SC_NPROCESSORS_ONLN), "planner", planner(), "models", 1, "gemm",
                     gemm(), "launcher", launcher());
}

static void print_value(const json_t *value)
{
    const char *key, *between = "";
    json_t *item;
    size_t index;
    if (json_is_string(value))
        printf("%s", json_string_value(value));
    else if (json_is_integer(value))
        printf("%lld", (long long)json_integer_value(value));
    else if (json_is_boolean(value))
        printf("%s", json_is_true(value) ? "yes" : "no");
    else if (json_is_array(value)) {
        if (!json_array_size(value)) printf("none");
        json_array_foreach (value, index, item) {
            printf("%s", index ? ", " : "");
            print_value(item);
        }
    } else
        json_object_foreach ((json_t *)value, key, item) {
            printf("%s%s: ", between, key);
            print_value(item);
            between = "; ";
        }
}

static int print_facts(bool as_json)
{
    json_t *facts = collect();
    if (!facts) {
        fprintf(stderr, "sluice info: out of memory\n");
        return EXIT_FAILED;
    }
    const char *key;
    json_t *value;
    if (as_json) {
        slc_provenance_add(facts);
        json_dumpf(facts, stdout, JSON_INDENT(2));
        printf("\n");
    } else {
        json_object_foreach (facts, key, value) {
            printf("%-16s ", key);
            print_value(value);
            printf("\n");
        }
    }
    json_decref(facts);
    return 0;
}

static int run_info(int argc, char **argv)
{
    const slc_command_line line = {
        .rows = option_rows,
        .doc =
            "Prints versions, transports, devices, the GPU or why there is none, instruction set, what plans, and the "
            "launcher that started this process.\v"
            "Examples:\n"
            "  sluice info\n"
            "  sluice info --settings\n"
            "  sluice run -n 2 -- sluice info --json\n"
            "More: docs/launching.md",
    };
    info_options options = {0};
    slc_command_line_parse(&line, argc, argv, &options);
    int exit_code = 0;
    if (options.settings)
        slc_settings_print(slc_all_settings, slc_all_settings_count, stdout);
    else
        exit_code = print_facts(options.json);
    return exit_code;
}

const sluice_command slc_command_info = {"info", "versions, transports, devices, instruction set, launcher seen",
                                         run_info};
