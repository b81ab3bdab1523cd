/* Records of every form are the same records; each mistake names its file and line; an index that is kept gives what
 * looking anew gives, and is not believed when the file is another. */
#include "tests/support/base/folder.h"

#include "lib/base/numbers/random.h"
#include "lib/data/records/classes.h"
#include "lib/data/records/records_parts.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static slc_records_how how_of(const char *fields)
{
    slc_records_how how = {0};
    slc_field_names_init(&how.names);
    if (fields) works(slc_field_names_read(fields, &how.names));
    return how;
}

static void put(const char *name, const char *text)
{
    write_file(name, text, strlen(text));
}

static slc_records *open_text(const char *name, const char *text, const char *fields)
{
    const char *path = write_file(name, text, strlen(text));
    const slc_records_how how = how_of(fields);
    slc_records *records = NULL;
    works(slc_records_open(&path, 1, &how, &records));
    return records;
}

static void refused(const char *name, const char *text, const char *fields, sluice_status expected, const char *why)
{
    const char *path = write_file(name, text, strlen(text));
    const slc_records_how how = how_of(fields);
    slc_records *records = NULL;
    fails(slc_records_open(&path, 1, &how, &records), expected, why);
    assert_null(records);
}

static void is(slc_span span, const char *text)
{
    if (span.bytes != strlen(text) || memcmp(span.text, text, span.bytes) != 0)
        fail_msg("\"%.*s\" is not \"%s\"", (int)span.bytes, span.text, text);
}

static void record_is(const slc_records *records, uint64_t index, const char *text, const char *label)
{
    slc_records_item item = {0};
    works(slc_records_read(records, index, &item));
    is(item.text, text);
    if (label) is(item.label, label);
    slc_records_item_free(&item);
}

/* ---- Forms ---- */

static void forms_are_the_same_records(void **state)
{
    (void)state;
    static const struct {
        const char *name, *text;
    } files[] = {
        {"json", "{\"text\": \"one, \\\"two\\\"\", \"label\": 1}\n\n{\"label\": \"b\", \"text\": \"x\\ty\"}\r\n  \n"
                 "{\"text\": \"\xc3\xa9\", \"label\": 2.0, \"more\": [1, 12345678901234567890123]}"},
        {"csv", "\xef\xbb\xbftext,label\r\n\"one, \"\"two\"\"\",1\r\n\nx\ty,b\n\xc3\xa9,\"2\"\n"},
        {"csv of many columns", "id,label,text\n1,1,\"one, \"\"two\"\"\"\n2,b,x\ty\n3,2,\xc3\xa9"},
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        slc_records *records = open_text(files[i].name, files[i].text, NULL);
        assert_int_equal(slc_records_count(records), 3);
        assert_true(slc_records_have(records, SLC_FIELD_LABEL));
        assert_false(slc_records_have(records, SLC_FIELD_PAIR));
        record_is(records, 2, "\xc3\xa9", "2");
        record_is(records, 0, "one, \"two\"", "1");
        record_is(records, 1, "x\ty", "b");
        slc_records_close(records);
    }
    slc_records *records = open_text("tsv", "label\ttext\n1\t\"quotes\" stay\n0\t\"\n", NULL);
    assert_int_equal(slc_records_count(records), 2);
    record_is(records, 0, "\"quotes\" stay", "1");
    record_is(records, 1, "\"", "0");
    slc_records_close(records);
}

static void a_field_in_quotes_has_lines(void **state)
{
    (void)state;
    slc_records *records = open_text("lines.csv", "text,label\n\"one\ntwo\n\",1\n\"\",2\nlast,3\n", NULL);
    assert_int_equal(slc_records_count(records), 3);
    record_is(records, 0, "one\ntwo\n", "1");
    record_is(records, 1, "", "2");
    record_is(records, 2, "last", "3");
    char place[SLC_RECORDS_PLACE_ROOM];
    slc_records_place(records, 2, place);
    assert_non_null(strstr(place, "lines.csv, line 6"));
    slc_records_close(records);
}

static void fields_have_the_names_that_they_are_given(void **state)
{
    (void)state;
    slc_records *records =
        open_text("named", "{\"body\": \"a\", \"stars\": 5, \"text\": 7}\n", "text=body,label=stars");
    record_is(records, 0, "a", "5");
    assert_string_equal(slc_records_name(records, SLC_FIELD_TEXT), "body");
    slc_records_close(records);
    slc_field_names names;
    slc_field_names_init(&names);
    fails(slc_field_names_read("body=text", &names), SLUICE_ERR_ARGUMENT, "text, text_pair, label and messages");
    fails(slc_field_names_read("text", &names), SLUICE_ERR_ARGUMENT, "text=NAME");
    refused("lacks", "{\"text\": \"a\"}\n", "label=stars", SLUICE_ERR_ARGUMENT, "no field \"stars\"");
}

static void conversations_are_lists(void **state)
{
    (void)state;
    static const char right[] = "{\"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}, {\"role\": "
                                "\"assistant\", \"content\": \"Ho\"}]}\n";
    static const struct {
        const char *line, *why;
    } wrong[] = {{"[{\"role\": \"user\"}]", "line 2: message 1"},
                 {"[]", "an empty list"},
                 {"\"x\"", "a text; it must be a list"}};
    slc_records_item item = {0};
    slc_records *records = open_text("chat", right, NULL);
    assert_true(slc_records_have(records, SLC_FIELD_MESSAGES));
    assert_false(slc_records_have(records, SLC_FIELD_TEXT));
    works(slc_records_read(records, 0, &item));
    assert_int_equal(item.message_count, 2);
    is(item.messages[1].role, "assistant");
    is(item.messages[1].content, "Ho");
    slc_records_item_free(&item);
    slc_records_close(records);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char text[512];
        snprintf(text, sizeof text, "%s{\"messages\": %s}\n", right, wrong[i].line);
        refused("chats", text, NULL, SLUICE_ERR_FORMAT, wrong[i].why);
    }
}

static void what_some_models_mind_is_found(void **state)
{
    (void)state;
    slc_records *records = open_text("odd", "{\"text\": \"\\u0061\"}\n{\"text\": \"a\"}\n{\"text\": \"\"}\n", NULL);
    assert_true(slc_records_first(records, SLC_RECORDS_EMPTY) == 2);
    assert_true(slc_records_first(records, SLC_RECORDS_MUTE) == UINT64_MAX);
    slc_records_close(records);
    records = open_text("odd.csv", "text,text_pair\n,a\n,\n", NULL);
    assert_true(slc_records_first(records, SLC_RECORDS_EMPTY) == 1);
    slc_records_close(records);

#define SAYS(role) "{\"role\": \"" role "\", \"content\": \"\"}"
#define ESCAPED(role) "{\"role\": \"" role "\", \"content\": \"\", \"role\": \"" role "\"}" /* for the parser */
    static const struct {
        const char *messages;
        bool mute, uneven;
    } talks[] = {{SAYS("user") "," SAYS("assistant"), false, false},
                 {SAYS("system") "," SAYS("user") "," SAYS("assistant") "," SAYS("user"), false, false},
                 {SAYS("user") "," SAYS("user") "," SAYS("assistant"), false, true},
                 {ESCAPED("user") "," ESCAPED("user") "," SAYS("assistant"), false, true},
                 {SAYS("user"), true, false},
                 {ESCAPED("user"), true, false},
                 {SAYS("user") "," SAYS("assistant") "," SAYS("tool"), true, true},
                 {SAYS("user") "," SAYS("system") "," SAYS("assistant"), false, true}};
    for (size_t i = 0; i < sizeof talks / sizeof *talks; i++) {
        char text[1024];
        snprintf(text, sizeof text, "{\"messages\": [%s]}\n{\"messages\": [%s]}\n", talks[0].messages,
                 talks[i].messages);
        records = open_text("talks", text, NULL);
        assert_int_equal(slc_records_first(records, SLC_RECORDS_MUTE) == 1, talks[i].mute);
        assert_int_equal(slc_records_first(records, SLC_RECORDS_UNEVEN) == 1, talks[i].uneven);
        assert_true(slc_records_first(records, SLC_RECORDS_EMPTY) == UINT64_MAX);
        slc_records_close(records);
    }
}

/* ---- Mistakes ---- */

static void a_wrong_record_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *line, *why;
    } wrong[] = {
        {"{\"text\": 5, \"label\": 1}", "\"text\" is a number; it must be a text"},
        {"{\"label\": 1}", "has no field \"text\""},
        {"{\"text\": \"a\", \"label\": 0.5}", "a number with a fraction"},
        {"{\"text\": \"a\", \"label\": null}", "null; a class is"},
        {"{\"text\": \"a\" \"label\": 1}", "is no JSON"},
        {"[\"text\"]", "is a list; each line must be an object"},
        {"{\"text\": \"\xe9\", \"label\": 1}", "no UTF-8"},
        {"{\"text\": \"a\", \"label\": \"b\\u0000\"}", "\"label\" has a NUL in it"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char text[512], place[512];
        snprintf(text, sizeof text, "{\"text\": \"a\", \"label\": 1}\n\n%s\n", wrong[i].line);
        refused("wrong.jsonl", text, NULL, SLUICE_ERR_FORMAT, wrong[i].why);
        snprintf(place, sizeof place, "wrong.jsonl, line 3: ");
        assert_non_null(strstr(sluice_last_error(), place));
        assert_non_null(strstr(sluice_last_error(), "; mend this record or remove it"));
    }
    refused("wrong.csv", "text,label\na,1\nb\n", NULL, SLUICE_ERR_FORMAT,
            "line 3: has 1 fields; the first line names 2");
    refused("wrong.csv", "text,label\na,1\nb,2\n\xe9,2\n", NULL, SLUICE_ERR_FORMAT, "line 4: is no UTF-8");
}

/* Lines that one byte was changed in: the scan is sure of none that the parser refuses, and finds what the parser
 * finds. Sure ones and others are both among them. */
static void a_scan_is_never_wrongly_sure(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "{\"text\": \"a \\\"quoted\\\" \\u00e9 \\ud83d\\ude00 text of some length\", \"label\": \"good\", \"more\": "
        "[1, -2.5e3, {}]}",
        "{\"label\": 12, \"text\": \"\xc3\xa9t\xc3\xa9 \xf0\x9f\x98\x80\", \"x\": {\"y\": [true, false, null, \"\"]}}",
        "{\"text\":\"\",\"label\":true , \"id\" : 123456789012345678}",
    };
    static const char alphabet[] = "\"\\{}[]:,.-+eE09utf \t\x01\x7f\x80\xc3\xff\"";
    uint32_t sure = 0, right = 0, all = 0;
    for (size_t k = 0; k < sizeof lines / sizeof *lines; k++)
        for (uint64_t n = 0; n < 700; n++) {
            char text[1024] = "{\"text\": \"a\", \"label\": 1}\n";
            const size_t first = strlen(text), bytes = strlen(lines[k]);
            strcpy(text + first, lines[k]);
            if (n)
                text[first + slc_random_below(7, k, 2 * n, bytes)] =
                    alphabet[slc_random_below(7, k, 2 * n + 1, sizeof alphabet - 1)];
            if (strchr(text + first, '\n')) continue;
            const char *path = write_file("scanned", text, first + bytes);
            const slc_records_how how = how_of(NULL);
            slc_records *records = NULL;
            const sluice_status status = slc_records_open(&path, 1, &how, &records);
            all++;
            if (status) assert_int_equal(status, SLUICE_ERR_FORMAT);
            if (status) continue;
            right++;
            slc_records_about about;
            slc_records_item item = {0};
            works(slc_records_read(records, 1, &item));
            if (slc_json_line_scan(records, text + first, bytes, &about)) {
                sure++;
                assert_int_equal(about.label.bytes, item.label.bytes);
                assert_memory_equal(about.label.text, item.label.text, item.label.bytes);
                assert_int_equal(about.empty, !item.text.bytes);
            }
            slc_records_item_free(&item);
            slc_records_close(records);
        }
    print_message("%u lines: %u right, %u of them surely\n", all, right, sure);
    assert_true(sure > right / 2 && right > all / 10 && right < all);
}

static void what_is_no_set_of_records_is_refused(void **state)
{
    (void)state;
    refused("list", "[\n {\"text\": \"a\"},\n {\"text\": \"b\"}]\n", NULL, SLUICE_ERR_FORMAT, "jq -c '.[]'");
    refused("several", "{\n  \"text\": \"a\"\n}\n", NULL, SLUICE_ERR_FORMAT, "JSON over several lines");
    refused("fields", "{\"body\": \"a\", \"stars\": 1}\n", NULL, SLUICE_ERR_FORMAT, "\"body\", \"stars\"");
    refused("columns", "body,stars\na,1\nb,2\nc,3\n", NULL, SLUICE_ERR_FORMAT, "columns \"body\", \"stars\"");
    refused("prose", "Once upon a time, there was\nno dataset, and\nno end\n", NULL, SLUICE_ERR_ARGUMENT,
            "neither JSON lines nor a table");
    refused("header", "text,label\n", "label=label", SLUICE_ERR_ARGUMENT, "holds");
    refused("empty", "", NULL, SLUICE_ERR_ARGUMENT, "is empty");
}

static void prose_is_no_dataset(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "Hello, world\nThis is text, as it is\nwith commas, in it\n",
        "{ these braces hold words }\n",
        "[1] a footnote\n",
        "name\n",
        "text, label\tand all\n\n",
        "one\ttwo\nthree\n",
        "2024,5\n2025,6\n",
        "",
    };
    slc_field_names names;
    slc_field_names_init(&names);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        slc_records_form form;
        slc_file file;
        works(slc_file_open(write_file("prose", texts[i], strlen(texts[i])), &file));
        works(slc_records_form_of(&file, &names, &form));
        if (form != SLC_RECORDS_NONE) fail_msg("%s: is taken for %s", texts[i], slc_records_form_name(form));
        slc_file_close(&file);
    }
}

/* ---- Files and their index ---- */

static void files_follow_each_other(void **state)
{
    (void)state;
    mkdir(path_of("set"), 0777);
    put("set/b", "{\"text\": \"3\"}\n{\"text\": \"4\"}\n");
    put("set/a", "{\"text\": \"1\"}\n{\"text\": \"2\"}");
    write_file("set/.hidden", "no", 2);
    char folder[PATH_MAX];
    snprintf(folder, sizeof folder, "%s/set", test_folder());
    const char *paths[] = {folder};
    const slc_records_how how = how_of(NULL);
    slc_records *records;
    works(slc_records_open(paths, 1, &how, &records));
    assert_int_equal(slc_records_count(records), 4);
    assert_int_equal(slc_records_files(records), 2);
    for (uint64_t i = 0; i < 4; i++) record_is(records, i, (char[]){(char)('1' + i), 0}, NULL);
    const uint64_t before = slc_records_fingerprint(records);
    uint64_t content, other;
    works(slc_records_content(records, &content));
    slc_records_close(records);

    put("set/b", "{\"text\": \"3\"}\n{\"text\": \"5\"}\n");
    works(slc_records_open(paths, 1, &how, &records));
    works(slc_records_content(records, &other));
    assert_true(slc_records_fingerprint(records) != before && other != content);
    slc_records_close(records);
}

/* Records of drawn lengths with empty lines between them; returns how many. */
static uint64_t write_drawn(const char *name, uint64_t seed, char **paths)
{
    enum { RECORDS = 3000 };
    static char text[RECORDS * 400], room[PATH_MAX];
    char *at = text;
    for (uint64_t i = 0; i < RECORDS; i++) {
        const int letters = (int)slc_random_below(seed, 1, i, 300);
        at += sprintf(at, "{\"text\": \"%" PRIu64 " ", i);
        memset(at, 'a' + (int)(i % 26), (size_t)letters);
        at += letters;
        at += sprintf(at, "\"}\n%s", i % 7 ? "" : "\n \r\n");
    }
    snprintf(room, sizeof room, "%s", write_file(name, text, (size_t)(at - text)));
    *paths = room;
    return RECORDS;
}

static uint64_t read_all(const slc_records *records)
{
    uint64_t hash = 0;
    slc_records_item item = {0};
    for (uint64_t i = 0; i < slc_records_count(records); i++) {
        char begin[32];
        works(slc_records_read(records, i, &item));
        snprintf(begin, sizeof begin, "%" PRIu64 " ", i);
        assert_memory_equal(item.text.text, begin, strlen(begin));
        hash = hash * 31 + item.text.bytes;
    }
    slc_records_item_free(&item);
    return hash;
}

typedef struct {
    uint64_t calls, done, bytes;
} progress_seen;

static sluice_status note_progress(uint64_t done, uint64_t bytes, void *context)
{
    progress_seen *seen = context;
    seen->calls++;
    seen->done = done;
    seen->bytes = bytes;
    return SLUICE_OK;
}

static void a_kept_index_is_that_of_looking_anew(void **state)
{
    (void)state;
    char *path, index[PATH_MAX];
    const uint64_t count = write_drawn("drawn.jsonl", 1, &path);
    progress_seen seen = {0};
    slc_records_how how = how_of(NULL);
    slc_records *records;
    how.progress = note_progress;
    how.context = &seen;
    works(slc_records_open((const char *const *)&path, 1, &how, &records));
    assert_int_equal(slc_records_count(records), count);
    const uint64_t all = read_all(records);
    slc_records_close(records);
    assert_true(seen.calls > 0 && seen.done == seen.bytes);
    snprintf(index, sizeof index, "%s/.drawn.jsonl.sluice-index", test_folder());
    assert_int_not_equal(access(index, F_OK), 0); /* a small file has none */

    how.index_from = 1;
    for (int run = 0; run < 2; run++) {
        seen = (progress_seen){0};
        works(slc_records_open((const char *const *)&path, 1, &how, &records));
        assert_int_equal(slc_records_count(records), count);
        assert_true(read_all(records) == all);
        assert_null(slc_records_note(records));
        slc_records_close(records);
        assert_int_equal(access(index, F_OK), 0);
        assert_true(run ? seen.calls == 0 : seen.calls > 0); /* the second takes what the first kept */
    }

    /* Another file of the same size, another index that is damaged. */
    const uint64_t again = write_drawn("drawn.jsonl", 2, &path);
    works(slc_records_open((const char *const *)&path, 1, &how, &records));
    assert_int_equal(slc_records_count(records), again);
    read_all(records);
    slc_records_close(records);
    assert_int_equal(truncate(index, 1000), 0);
    works(slc_records_open((const char *const *)&path, 1, &how, &records));
    assert_int_equal(slc_records_count(records), again);
    slc_records_close(records);
}

static void a_kept_index_has_what_was_found_of_records(void **state)
{
    (void)state;
    const char *path = write_file("kept.jsonl", "", 0);
    put("kept.jsonl",
        "{\"text\": \"a\", \"label\": \"x\", \"stars\": 2}\n{\"text\": \"\", \"label\": \"y\", \"stars\": 1}\n"
        "{\"text\": \"\", \"label\": \"x\", \"stars\": 2.5}\n");
    slc_records_how how = how_of(NULL);
    progress_seen seen;
    slc_records *records = NULL;
    how.index_from = 1;
    how.progress = note_progress;
    how.context = &seen;
    for (int run = 0; run < 2; run++) {
        slc_classes classes;
        seen = (progress_seen){0};
        works(slc_records_open(&path, 1, &how, &records));
        works(slc_classes_find(records, &classes));
        assert_true(run ? seen.calls == 0 : seen.calls > 0);
        assert_int_equal(classes.count, 2);
        assert_string_equal(classes.names[1], "y");
        assert_true(slc_records_first(records, SLC_RECORDS_EMPTY) == 1);
        slc_classes_free(&classes);
        slc_records_close(records);
    }
    records = NULL; /* other fields were not checked */
    works(slc_field_names_read("label=stars", &how.names));
    fails(slc_records_open(&path, 1, &how, &records), SLUICE_ERR_FORMAT,
          "line 3: \"stars\" is a number with a fraction");
    assert_null(records);
}

static void an_index_has_a_folder_of_the_users(void **state)
{
    (void)state;
    char *path, folder[PATH_MAX];
    write_drawn("other.jsonl", 3, &path);
    snprintf(folder, sizeof folder, "%s", path_of("indexes"));
    mkdir(folder, 0777);
    slc_records_how how = how_of(NULL);
    slc_records *records;
    how.index_from = 1;
    how.index_folder = folder;
    works(slc_records_open((const char *const *)&path, 1, &how, &records));
    read_all(records);
    slc_records_close(records);
    char command[3 * PATH_MAX];
    snprintf(command, sizeof command, "test \"$(ls %s | wc -l)\" = 1 && ls %s/other.jsonl-*.sluice-index >/dev/null",
             folder, folder);
    assert_int_equal(system(command), 0);

    /* A folder that is not there: the run goes on without one that is kept, and says so. */
    how.index_folder = "/nowhere";
    works(slc_records_open((const char *const *)&path, 1, &how, &records));
    read_all(records);
    assert_non_null(strstr(slc_records_note(records), "--data-index"));
    slc_records_close(records);
}

/* ---- Classes ---- */

static void classes_are(const char *text, bool numbers, const char *const *names, uint32_t count)
{
    slc_records *records = open_text("classes", text, NULL);
    slc_classes classes;
    works(slc_classes_find(records, &classes));
    assert_int_equal(classes.count, count);
    assert_int_equal(classes.numbers, numbers);
    for (uint32_t i = 0; i < count; i++) {
        assert_string_equal(classes.names[i], names[i]);
        assert_int_equal(slc_classes_number(&classes, (slc_span){names[i], strlen(names[i])}), i);
    }
    assert_int_equal(slc_classes_number(&classes, (slc_span){"other", 5}), -1);
    slc_classes_free(&classes);
    slc_records_close(records);
}

static void labels_are_classes(void **state)
{
    (void)state;
    classes_are("text,label\na,pos\nb,neg\nc,pos\nd,ne\n", false, (const char *const[]){"ne", "neg", "pos"}, 3);
    classes_are("text,label\na,2\nb,0\nc,10\nd,1\n", false, (const char *const[]){"0", "1", "2", "10"}, 4);
    classes_are("text,label\na,1\nb,0\n", true, (const char *const[]){"0", "1"}, 2);
    classes_are("{\"text\": \"a\", \"label\": true}\n{\"text\": \"a\", \"label\": false}\n", false,
                (const char *const[]){"false", "true"}, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forms_are_the_same_records),
        cmocka_unit_test(a_field_in_quotes_has_lines),
        cmocka_unit_test(fields_have_the_names_that_they_are_given),
        cmocka_unit_test(conversations_are_lists),
        cmocka_unit_test(what_some_models_mind_is_found),
        cmocka_unit_test(a_wrong_record_is_named),
        cmocka_unit_test(a_scan_is_never_wrongly_sure),
        cmocka_unit_test(what_is_no_set_of_records_is_refused),
        cmocka_unit_test(prose_is_no_dataset),
        cmocka_unit_test(files_follow_each_other),
        cmocka_unit_test(a_kept_index_is_that_of_looking_anew),
        cmocka_unit_test(a_kept_index_has_what_was_found_of_records),
        cmocka_unit_test(an_index_has_a_folder_of_the_users),
        cmocka_unit_test(labels_are_classes),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
