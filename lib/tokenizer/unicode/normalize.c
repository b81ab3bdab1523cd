/* See normalize.h. Each step reads the text once; ASCII passes the Unicode forms unchanged.
 * lib/tokenizer/golden_tokens_test.c covers this file. */
#include "lib/tokenizer/unicode/normalize.h"

#include "lib/base/status.h"
#include "lib/tokenizer/unicode/unicode.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static sluice_status clean(uint32_t rune, slc_chars *out)
{
    if (!rune || slc_rune_is_control(rune)) return SLUICE_OK;
    return slc_chars_append_rune(out, slc_rune_is_space(rune) ? ' ' : rune);
}

static sluice_status space_chinese(uint32_t rune, slc_chars *out)
{
    if (!slc_rune_is_chinese(rune)) return slc_chars_append_rune(out, rune);
    sluice_status status = slc_chars_append_rune(out, ' ');
    if (!status) status = slc_chars_append_rune(out, rune);
    return status ? status : slc_chars_append_rune(out, ' ');
}

static sluice_status strip_accents(uint32_t rune, slc_chars *out)
{
    return slc_rune_is_accent(rune) ? SLUICE_OK : slc_chars_append_rune(out, rune);
}

static sluice_status strip_marks(uint32_t rune, slc_chars *out)
{
    return slc_rune_is_mark(rune) ? SLUICE_OK : slc_chars_append_rune(out, rune);
}

static sluice_status lowercase(uint32_t rune, slc_chars *out)
{
    if (rune != 0x130) return slc_chars_append_rune(out, slc_rune_lowercase(rune));
    return slc_chars_append(out, "i\u0307", 3);
}

/* Returns true if every step that maps code points leaves this byte of ASCII as it is. */
static bool is_plain(char byte, bool lowercases)
{
    return byte >= ' ' && byte < 0x7F && !(lowercases && byte >= 'A' && byte <= 'Z');
}

static sluice_status map_runes(const char *text, size_t bytes, sluice_status (*map)(uint32_t, slc_chars *),
                               slc_chars *out)
{
    sluice_status status = SLUICE_OK;
    for (size_t at = 0; at < bytes && !status;) {
        size_t first = at;
        while (at < bytes && is_plain(text[at], map == lowercase)) at++;
        status = slc_chars_append(out, text + first, at - first);
        if (!status && at < bytes) status = map(slc_rune_next(text, &at), out);
    }
    return status;
}

/* ---- Decomposition (Unicode standard, section 3.11) ---- */

/* A run of code points whose combining classes are not 0, which the canonical order sorts by class. */
typedef struct {
    uint32_t *runes, *sorted;
    uint8_t *classes;
    size_t count, room;
} mark_run;

static sluice_status add_mark(mark_run *run, uint32_t rune, uint8_t class)
{
    if (run->count == run->room) {
        size_t room = run->room * 2 + 32;
        uint32_t *runes = realloc(run->runes, room * sizeof *runes);
        if (runes) run->runes = runes;
        uint32_t *sorted = realloc(run->sorted, room * sizeof *sorted);
        if (sorted) run->sorted = sorted;
        uint8_t *classes = realloc(run->classes, room);
        if (classes) run->classes = classes;
        if (!runes || !sorted || !classes) return slc_error(SLUICE_ERR_MEMORY, "run of %zu combining marks", room);
        run->room = room;
    }
    run->runes[run->count] = rune;
    run->classes[run->count++] = class;
    return SLUICE_OK;
}

/* Appends the run in canonical order: a stable sort by counting, so that no text takes quadratic time. */
static sluice_status append_marks(mark_run *run, slc_chars *out)
{
    size_t from[257] = {0};
    sluice_status status = SLUICE_OK;
    for (size_t i = 0; i < run->count; i++) from[run->classes[i] + 1]++;
    for (size_t i = 0; i < 256; i++) from[i + 1] += from[i];
    for (size_t i = 0; i < run->count; i++) run->sorted[from[run->classes[i]]++] = run->runes[i];
    for (size_t i = 0; i < run->count && !status; i++) status = slc_chars_append_rune(out, run->sorted[i]);
    run->count = 0;
    return status;
}

static sluice_status decompose(const char *text, size_t bytes, bool compatibility, slc_chars *out)
{
    mark_run run = {0};
    sluice_status status = SLUICE_OK;
    for (size_t at = 0; at < bytes && !status;) {
        uint32_t parts[18];
        size_t count = slc_rune_decompose(slc_rune_next(text, &at), compatibility, parts);
        for (size_t i = 0; i < count && !status; i++) {
            uint8_t class = slc_rune_combining_class(parts[i]);
            if (class) {
                status = add_mark(&run, parts[i], class);
                continue;
            }
            if (run.count) status = append_marks(&run, out);
            if (!status) status = slc_chars_append_rune(out, parts[i]);
        }
    }
    if (!status) status = append_marks(&run, out);
    free(run.runes);
    free(run.sorted);
    free(run.classes);
    return status;
}

/* Appends the canonical composition of decomposed text. A mark is composed with the starter before it unless another
 * mark of its class or a higher one stands between them. */
static sluice_status compose(const char *text, size_t bytes, slc_chars *out)
{
    uint32_t *runes = malloc((bytes + 1) * sizeof *runes);
    size_t count = 0, starter = 0;
    bool started = false;
    int last = -1; /* class of the mark before; -1: the starter is before */
    sluice_status status = SLUICE_OK;
    if (!runes) return slc_error(SLUICE_ERR_MEMORY, "%zu code points to compose", bytes);
    for (size_t at = 0; at < bytes;) {
        uint32_t rune = slc_rune_next(text, &at);
        int class = slc_rune_combining_class(rune);
        uint32_t composed = started && last < class ? slc_rune_compose(runes[starter], rune) : 0;
        if (composed) {
            runes[starter] = composed;
            continue;
        }
        if (!class) started = true, starter = count;
        last = class ? class : -1;
        runes[count++] = rune;
    }
    for (size_t i = 0; i < count && !status; i++) status = slc_chars_append_rune(out, runes[i]);
    free(runes);
    return status;
}

static sluice_status to_form(const char *text, size_t bytes, bool compatibility, bool composed, slc_chars *out)
{
    slc_chars apart = {0};
    bool ascii = true;
    for (size_t i = 0; i < bytes && ascii; i++) ascii = (unsigned char)text[i] < 0x80;
    if (ascii) return slc_chars_append(out, text, bytes);
    if (!composed) return decompose(text, bytes, compatibility, out);
    sluice_status status = decompose(text, bytes, compatibility, &apart);
    if (!status) status = compose(apart.data, apart.count, out);
    free(apart.data);
    return status;
}

/* ---- Steps ---- */

static sluice_status take_step(slc_normalize_step step, const char *text, size_t bytes, slc_chars *out)
{
    sluice_status status = slc_chars_reserve(out, bytes);
    if (status) return status;
    switch (step) {
    case SLC_NORMALIZE_CLEAN: return map_runes(text, bytes, clean, out);
    case SLC_NORMALIZE_CHINESE: return map_runes(text, bytes, space_chinese, out);
    case SLC_NORMALIZE_STRIP_ACCENTS: return map_runes(text, bytes, strip_accents, out);
    case SLC_NORMALIZE_STRIP_MARKS: return map_runes(text, bytes, strip_marks, out);
    case SLC_NORMALIZE_LOWERCASE: return map_runes(text, bytes, lowercase, out);
    case SLC_NORMALIZE_NFC: return to_form(text, bytes, false, true, out);
    case SLC_NORMALIZE_NFD: return to_form(text, bytes, false, false, out);
    case SLC_NORMALIZE_NFKC: return to_form(text, bytes, true, true, out);
    case SLC_NORMALIZE_NFKD: return to_form(text, bytes, true, false, out);
    }
    return slc_error(SLUICE_ERR_ARGUMENT, "unknown step of normalisation");
}

sluice_status slc_normalize(const slc_normalizer *normalizer, const char *text, size_t bytes, slc_chars *out,
                            slc_chars *work)
{
    sluice_status status = SLUICE_OK;
    out->count = 0;
    if (!normalizer->count) return slc_chars_append(out, text, bytes);
    for (size_t i = 0; i < normalizer->count && !status; i++) {
        slc_chars last = *work;
        if (i) {
            *work = *out;
            *out = last;
            text = work->data, bytes = work->count;
        }
        out->count = 0;
        status = take_step(normalizer->steps[i], text, bytes, out);
    }
    return status;
}
