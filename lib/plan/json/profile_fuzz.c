/* Any text must be read as a profile or refused with a line; whatever is read must be written and read back the same.
 * Inputs that are not JSON mostly end in its parser, so the fuzzer starts from good texts: the first bytes of an input
 * choose the edits of one of them. */
#include "lib/plan/profile.h"
#include "tests/support/plan/profile_equal.h"
#include "tests/support/base/splice_fuzz.h"

#include <sluice/status.h>
#include <stdlib.h>

static const char *const seeds[] = {
    "{\"version\":1,\"world\":2,\"layers\":[{\"name\":\"a\",\"forward_s\":1,\"backward_s\":2}],"
    "\"units\":[{\"name\":\"a\",\"parameters\":100}],\"link\":{\"bytes_per_s\":1e9}}",
    "{\"version\":1,\"model\":\"m\",\"source\":\"s\",\"world\":4,\"micro_batches\":3,\"accumulate\":\"each\",\"wire\":"
    "\"bf16\","
    "\"barrier\":true,\"optimizer_states\":1,\"update_s_per_element\":1e-9,\"reserved_bytes\":77,"
    "\"scratch_in_flight_bytes\":4096,\"link\":{\"reduce_scatter\":{\"latency_s\":1e-5,\"bytes_per_s\":1e8},"
    "\"all_gather\":{\"bytes_per_s\":2e8},\"kappa\":0.5,\"sigma\":1.5,\"update_kappa\":1.25,\"thread_moves\":true,"
    "\"block_bytes\":65536,"
    "\"operation_s\":0.25},\"layers\":[{\"name\":\"a\",\"forward_s\":1,\"backward_s\":2,\"recompute_s\":0.1,"
    "\"can_recompute\":true},{\"name\":\"b\",\"forward_s\":1,\"backward_s\":2}],\"units\":[{\"name\":\"u\","
    "\"parameters\":5e3,\"block_bytes\":256,\"dtype\":\"bf16\",\"trainable\":false,\"uses\":[\"a\",{\"layer\":\"b\","
    "\"backward_value\":false}]}],\"activations\":[{\"name\":\"a\",\"bytes\":64,\"recomputable\":true},{\"name\":\"x\","
    "\"bytes\":8,\"first\":\"forward a\",\"last\":\"backward b\",\"last_in_evaluation\":null},{\"name\":\"y\","
    "\"bytes\":8,\"first\":\"backward b\",\"last\":\"backward a\",\"last_in_evaluation\":null}],"
    "\"workspaces\":[{\"name\":\"w\",\"bytes\":9,\"layer\":\"b\"},{\"name\":\"v\",\"bytes\":5,\"slot\":\"backward "
    "b\"}]}",
    "{\"version\":1,\"world\":3,\"compressed\":{\"refreshes\":true,\"norms_barrier\":true,\"local_arrays\":2},"
    "\"barrier\":true,\"compress_s_per_element\":1e-9,\"apply_s_per_element\":2e-9,\"average_s_per_element\":0,"
    "\"layers\":[{\"name\":\"a\",\"forward_s\":1,\"backward_s\":2}],\"units\":[{\"name\":\"a\",\"parameters\":100,"
    "\"tensors\":[64,0,36]}],\"link\":{\"bytes_per_s\":1e9}}",
    "{\"version\":1,\"world\":2,\"micro_batches\":2,\"update_s_per_element\":2e-9,"
    "\"update_compute_s_per_element\":1e-9,\"layers\":[{\"name\":\"a\",\"forward_s\":1,\"backward_s\":2},"
    "{\"name\":\"b\",\"forward_s\":1,\"backward_s\":2}],\"units\":[{\"name\":\"t\",\"parameters\":100,\"uses\":[\"b\"]}"
    ","
    "{\"name\":\"rows of t\",\"rows\":{\"of\":\"t\",\"row_elements\":9,\"row_count\":11,\"most_rows\":4},\"uses\":[{"
    "\"layer\":\"a\",\"backward_value\":false}]}],\"link\":{\"bytes_per_s\":1e9}}",
    "{\"version\":2,\"world\":1,\"link\":{\"bytes_per_s\":1e9,\"channel\":{\"latency_s\":0.5,\"bytes_per_s\":9e8}},"
    "\"layers\":[{\"name\":\"a\",\"forward_s\":1,\"input_s\":0.75,\"weight_s\":0.5},{\"name\":\"b\",\"forward_s\":1,"
    "\"backward_s\":2,\"weight_s\":1.5},{\"name\":\"c\",\"forward_s\":1,\"backward_s\":2}],\"units\":[{\"name\":\"a\","
    "\"parameters\":10}],\"activations\":[{\"name\":\"x\",\"bytes\":8,\"first\":\"forward a\",\"last\":\"backward b\","
    "\"readers\":[{\"layer\":\"b\",\"forward\":true,\"backward\":true},{\"layer\":\"c\",\"forward\":true}]},{\"name\":"
    "\"a\",\"bytes\":4,\"readers\":[]}]}",
};

static void check(const char *text, size_t length)
{
    slc_profile *profile, *back;
    char *again;
    if (slc_profile_from_json(text, length, &profile)) {
        if (!*sluice_last_error()) abort();
        return;
    }
    if (slc_profile_to_json(profile, &again)) abort();
    if (slc_profile_from_json(again, strlen(again), &back)) abort();
    if (!test_profiles_equal(profile, back)) abort();
    free(again);
    slc_profile_destroy(back);
    slc_profile_destroy(profile);
}

FUZZ_EDITS(seeds, check)
