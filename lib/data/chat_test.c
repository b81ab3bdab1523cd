/* Conversations are laid out as transformers' apply_chat_template lays them out; what the assistant says, and nothing
 * else, is marked; a model's own template is known by its text, or refused. */
#include "tests/support/base/folder.h"

#include "lib/data/chat.h"

#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#define SPAN(text) ((slc_span){text, sizeof text - 1})
static const slc_records_message talk[] = {
    {SPAN("system"), SPAN("Be brief.")}, {SPAN("user"), SPAN("Hi")},    {SPAN("assistant"), SPAN("Hello!")},
    {SPAN("user"), SPAN("Bye?")},        {SPAN("assistant"), SPAN("")},
};
enum { TALK = sizeof talk / sizeof *talk };

/* `marked`: the assistant's parts, each between bars. */
static void laid_out(const char *name, const char *text, const char *marked)
{
    slc_chat_template template;
    slc_chat_text out = {0};
    const char *why;
    char parts[256] = "|";
    works(slc_chat_template_named(name, "<s>", "</s>", &template));
    for (int again = 0; again < 2; again++) {
        works(slc_chat_lay_out(&template, talk, TALK, &out, &why));
        assert_null(why);
        if (out.bytes != strlen(text) || memcmp(out.text, text, out.bytes) != 0)
            fail_msg("%s: \"%.*s\" is not \"%s\"", name, (int)out.bytes, out.text, text);
    }
    for (size_t i = 0; i < out.part_count; i++) {
        strncat(parts, out.text + out.parts[i].begin, out.parts[i].end - out.parts[i].begin);
        strcat(parts, "|");
    }
    assert_string_equal(parts, marked);
    slc_chat_text_free(&out);
}

static void templates_are_as_transformers_has_them(void **state)
{
    (void)state;
    laid_out("chatml",
             "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
             "Hello!<|im_end|>\n<|im_start|>user\nBye?<|im_end|>\n<|im_start|>assistant\n<|im_end|>\n",
             "|Hello!<|im_end|>|<|im_end|>|");
    laid_out("zephyr",
             "<|system|>\nBe brief.</s>\n<|user|>\nHi</s>\n<|assistant|>\nHello!</s>\n<|user|>\nBye?</s>\n"
             "<|assistant|>\n</s>\n",
             "|Hello!</s>|</s>|");
    laid_out("llama-2", "<s>[INST] <<SYS>>\nBe brief.\n<</SYS>>\n\nHi [/INST] Hello! </s><s>[INST] Bye? [/INST]  </s>",
             "|Hello! </s>| </s>|");
    laid_out("plain", "Be brief.</s>Hi</s>Hello!</s>Bye?</s></s>", "|Hello!</s>|</s>|");
}

static void refuses(const char *name, const slc_records_message *messages, size_t count, const char *reason)
{
    slc_chat_template template;
    slc_chat_text out = {0};
    const char *why;
    works(slc_chat_template_named(name, "<s>", "</s>", &template));
    works(slc_chat_lay_out(&template, messages, count, &out, &why));
    assert_non_null(why);
    assert_non_null(strstr(why, reason));
    slc_chat_text_free(&out);
}

static void what_cannot_be_laid_out_is_said(void **state)
{
    (void)state;
    static const slc_records_message tool[] = {{SPAN("tool"), SPAN("x")}, {SPAN("assistant"), SPAN("y")}};
    slc_chat_template template;
    refuses("chatml", tool, 2, "none of system, user and assistant");
    refuses("chatml", talk, 2, "the assistant says nothing");
    refuses("llama-2", talk + 2, 1, "turns of user and assistant");
    fails(slc_chat_template_named("jinja", "", "", &template), SLUICE_ERR_ARGUMENT, "chatml, zephyr, llama-2, plain");
    fails(slc_chat_template_named("zephyr", "", "", &template), SLUICE_ERR_ARGUMENT, "end token");
    works(slc_chat_template_named("chatml", "", "", &template));
    for (size_t i = 0; slc_chat_template_name(i); i++)
        works(slc_chat_template_named(slc_chat_template_name(i), "<s>", "</s>", &template));
}

static void a_models_own_is_known_by_its_text(void **state)
{
    (void)state;
    char folder[PATH_MAX];
    const char *name = "none";
    snprintf(folder, sizeof folder, "%s", path_of("tok"));
    mkdir(folder, 0777);
    works(slc_chat_template_find(folder, &name));
    assert_null(name);

    static const char plain[] =
        "{\"chat_template\": \"{% for message in messages %}{{ message.content }}{{ eos_token }}"
        "{% endfor %}\"}";
    write_file("tok/tokenizer_config.json", plain, sizeof plain - 1);
    works(slc_chat_template_find(folder, &name));
    assert_string_equal(name, "plain");

    static const char chatml[] = "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + "
                                 "message['content'] + '<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}"
                                 "{{ '<|im_start|>assistant\n' }}{% endif %}";
    write_file("tok/chat_template.jinja", chatml, sizeof chatml - 1);
    works(slc_chat_template_find(folder, &name));
    assert_string_equal(name, "chatml");

    static const char escaped[] =
        "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n' + "
        "message['content'] + '<|im_end|>' + '\\n'}}{% endfor %}{% if add_generation_prompt %}"
        "{{ '<|im_start|>assistant\\n' }}{% endif %}\n";
    write_file("tok/chat_template.jinja", escaped, sizeof escaped - 1);
    works(slc_chat_template_find(folder, &name));
    assert_string_equal(name, "chatml");

    write_file("tok/chat_template.jinja", "{{ bos_token }}", 15);
    fails(slc_chat_template_find(folder, &name), SLUICE_ERR_UNSUPPORTED, "--chat-template");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(templates_are_as_transformers_has_them),
        cmocka_unit_test(what_cannot_be_laid_out_is_said),
        cmocka_unit_test(a_models_own_is_known_by_its_text),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
