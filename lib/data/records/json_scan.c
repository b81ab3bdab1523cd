/* Checks lines by looking at each byte once, which is several times as fast as making an object of them. Most lines of
 * a dataset are plain enough for that. A line that this check does not accept may be right too: then the parser
 * decides. record_files_test.c covers this file. */
#include "lib/base/text/utf8.h"
#include "lib/data/records/records_parts.h"

#include <string.h>

enum { DEEPEST = 32, DIGITS_MOST = 18, EXPONENT_DIGITS_MOST = 2 };

/* The rest of the line. */
typedef struct {
    const char *at, *end;
} scan;

static void pass_space(scan *s)
{
    while (s->at < s->end && (*s->at == ' ' || *s->at == '\t' || *s->at == '\r' || *s->at == '\n')) s->at++;
}

static bool pass(scan *s, char sign)
{
    if (s->at == s->end || *s->at != sign) return false;
    s->at++;
    return true;
}

static bool pass_between(scan *s, char sign)
{
    pass_space(s);
    const bool there = pass(s, sign);
    pass_space(s);
    return there;
}

/* ---- Strings ---- */

static uint64_t repeated(unsigned char byte)
{
    return UINT64_C(0x0101010101010101) * byte;
}

/* Returns true if one of the eight bytes is below 0x20, a quote, a backslash, or not of ASCII. (Anderson, Bit Twiddling
 * Hacks, "determine if a word has a byte less than n") */
static bool has_mark(uint64_t eight)
{
    const uint64_t quote = eight ^ repeated('"'), back = eight ^ repeated('\\');
    const uint64_t marks = (eight - repeated(0x20)) | (quote - repeated(1)) | (back - repeated(1)) | eight;
    return marks & repeated(0x80);
}

/* Returns four digits of a \u, or -1. */
static int hexadecimal(scan *s)
{
    int value = 0;
    if (s->end - s->at < 4) return -1;
    for (int i = 0; i < 4; i++) {
        const char c = *s->at++;
        const int digit = c >= '0' && c <= '9'   ? c - '0'
                          : c >= 'a' && c <= 'f' ? c - 'a' + 10
                          : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                 : -1;
        if (digit < 0) return -1;
        value = 16 * value + digit;
    }
    return value;
}

/* Passes over what follows a backslash in a string. */
static bool pass_escape(scan *s)
{
    if (s->at == s->end) return false;
    const char c = *s->at++;
    if (c != 'u') return c && strchr("\"\\/bfnrt", c);
    const int first = hexadecimal(s);
    if (first < 0xD800 || first > 0xDFFF) return first >= 0;
    if (first > 0xDBFF || !pass(s, '\\') || !pass(s, 'u')) return false;
    const int second = hexadecimal(s);
    return second >= 0xDC00 && second <= 0xDFFF;
}

/* Passes a string. *plain: it has no escape, and *out is what it says; else *out is as it is written. */
static bool pass_string(scan *s, slc_span *out, bool *plain)
{
    bool ascii = true;
    *plain = true;
    if (!pass(s, '"')) return false;
    const char *begin = s->at;
    for (;;) {
        uint64_t eight;
        while (s->end - s->at >= (ptrdiff_t)sizeof eight) {
            memcpy(&eight, s->at, sizeof eight);
            if (has_mark(eight)) break;
            s->at += sizeof eight;
        }
        if (s->at == s->end) return false;
        const unsigned char c = (unsigned char)*s->at++;
        if (c == '"') break;
        if (c < 0x20) return false;
        ascii = ascii && c < 0x80;
        if (c == '\\') {
            *plain = false;
            if (!pass_escape(s)) return false;
        }
        while (c >= 0x80 && s->at < s->end && (unsigned char)*s->at >= 0x80) s->at++;
    }
    *out = (slc_span){begin, (size_t)(s->at - 1 - begin)};
    return ascii || slc_utf8_valid(begin, out->bytes) == out->bytes;
}

/* Passes a key and its colon. Returns false for a key with an escape, because it may be the name of a field. */
static bool pass_key(scan *s, slc_span *key)
{
    bool plain;
    return pass_string(s, key, &plain) && plain && pass_between(s, ':');
}

/* ---- Other values ---- */

static size_t pass_digits(scan *s)
{
    const char *begin = s->at;
    while (s->at < s->end && *s->at >= '0' && *s->at <= '9') s->at++;
    return (size_t)(s->at - begin);
}

/* Passes a number. *whole says that it has neither a fraction nor an exponent. Returns false for long numbers too,
 * which may be too large for the parser. */
static bool pass_number(scan *s, bool *whole)
{
    const char *begin = s->at;
    pass(s, '-');
    const bool zero = s->at < s->end && *s->at == '0';
    const size_t digits = pass_digits(s);
    *whole = true;
    if (!digits || (zero && digits > 1)) return false;
    if (pass(s, '.')) {
        *whole = false;
        if (!pass_digits(s)) return false;
    }
    if (pass(s, 'e') || pass(s, 'E')) {
        *whole = false;
        if (!pass(s, '+')) pass(s, '-');
        const size_t exponent = pass_digits(s);
        if (!exponent || exponent > EXPONENT_DIGITS_MOST) return false;
    }
    return s->at - begin <= DIGITS_MOST;
}

static bool pass_word(scan *s, const char *word)
{
    const size_t bytes = strlen(word);
    if ((size_t)(s->end - s->at) < bytes || memcmp(s->at, word, bytes) != 0) return false;
    s->at += bytes;
    return true;
}

static bool pass_value(scan *s, int depth);

static bool pass_members(scan *s, bool object, int depth)
{
    const char close = object ? '}' : ']';
    slc_span key;
    s->at++;
    pass_space(s);
    if (pass(s, close)) return true;
    do {
        if (object && !pass_key(s, &key)) return false;
        if (!pass_value(s, depth)) return false;
    } while (pass_between(s, ','));
    return pass(s, close);
}

static bool pass_value(scan *s, int depth)
{
    slc_span text;
    bool ignored;
    if (s->at == s->end || depth == DEEPEST) return false;
    switch (*s->at) {
    case '"': return pass_string(s, &text, &ignored);
    case '{': return pass_members(s, true, depth + 1);
    case '[': return pass_members(s, false, depth + 1);
    case 't': return pass_word(s, "true");
    case 'f': return pass_word(s, "false");
    case 'n': return pass_word(s, "null");
    default: return pass_number(s, &ignored);
    }
}

/* ---- Our fields ---- */

static bool pass_text(scan *s, bool *empty)
{
    slc_span text;
    bool plain;
    if (!pass_string(s, &text, &plain)) return false;
    *empty = *empty && !text.bytes;
    return true;
}

/* Passes a label. Returns false if its spelling may differ from the label's name: the parser reads such a label. */
static bool pass_label(scan *s, slc_span *label)
{
    bool plain = true;
    const char *begin = s->at;
    if (s->at == s->end) return false;
    if (*s->at == '"') return pass_string(s, label, &plain) && plain;
    if (*s->at == '-' || !(pass_word(s, "true") || pass_word(s, "false") || pass_number(s, &plain))) return false;
    *label = (slc_span){begin, (size_t)(s->at - begin)};
    return plain;
}

static bool pass_message(scan *s, slc_turns *turns)
{
    slc_span key, value, role = {0};
    bool plain = true, content = false;
    if (!pass(s, '{')) return false;
    pass_space(s);
    do {
        if (!pass_key(s, &key)) return false;
        if (slc_span_is(key, "role")) {
            if (role.text || !pass_string(s, &role, &plain) || !plain) return false;
        } else if (slc_span_is(key, "content")) {
            if (content || !pass_string(s, &value, &plain)) return false;
            content = true;
        } else if (!pass_value(s, 2)) {
            return false;
        }
    } while (pass_between(s, ','));
    if (!content || !role.text) return false;
    slc_turns_add(turns, role);
    return pass(s, '}');
}

static bool pass_messages(scan *s, slc_turns *turns)
{
    if (!pass(s, '[')) return false;
    pass_space(s);
    do {
        if (!pass_message(s, turns)) return false;
    } while (pass_between(s, ','));
    return pass(s, ']');
}

static bool pass_field(const slc_records *set, scan *s, slc_field field, slc_records_about *about)
{
    if (!set->have[field]) return pass_value(s, 1);
    switch (field) {
    case SLC_FIELD_TEXT:
    case SLC_FIELD_PAIR: return pass_text(s, &about->empty);
    case SLC_FIELD_LABEL: return pass_label(s, &about->label);
    default: return pass_messages(s, &about->turns);
    }
}

bool slc_json_line_scan(const slc_records *set, const char *line, size_t bytes, slc_records_about *about)
{
    scan s = {line, line + bytes};
    bool seen[SLC_FIELDS] = {false};
    slc_span key;
    *about = (slc_records_about){.empty = true};
    pass_space(&s);
    if (!pass(&s, '{')) return false;
    pass_space(&s);
    do {
        if (!pass_key(&s, &key)) return false;
        int field = 0;
        while (field < SLC_FIELDS && !slc_span_is(key, set->names.of[field])) field++;
        if (field < SLC_FIELDS && seen[field]) return false; /* the parser takes the last one */
        if (!(field < SLC_FIELDS ? pass_field(set, &s, (slc_field)field, about) : pass_value(&s, 1))) return false;
        if (field < SLC_FIELDS) seen[field] = true;
    } while (pass_between(&s, ','));
    if (!pass(&s, '}')) return false;
    pass_space(&s);
    for (int field = 0; field < SLC_FIELDS; field++)
        if (set->have[field] && !seen[field]) return false;
    return s.at == s.end;
}
