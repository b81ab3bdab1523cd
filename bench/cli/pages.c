/* Each command prints its own part, in a process of its own, since a parser ends the process after help.
 * tests/command/help_test.sh covers this file. */
#include "bench/cli/pages.h"

#include "bench/cli/help/told_once.h"
#include "bench/cli/exit_codes.h"

#include <ctype.h>
#include <sluice/version.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Has the command print its part to the descriptor. Returns whether it did. */
static bool print_part(const slc_tool *program, const sluice_command *command, const char *form, int out)
{
    char name[64], option[32];
    char *argv[] = {name, option, NULL};
    int status;
    snprintf(name, sizeof name, "%s %s", program->name, command->name);
    snprintf(option, sizeof option, "--help=%s", form);
    fflush(stdout);
    pid_t child = fork();
    if (!child) exit(dup2(out, STDOUT_FILENO) < 0 ? EXIT_FAILED : command->run(2, argv));
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && !WEXITSTATUS(status);
}

static int no_part(const slc_tool *program, const sluice_command *command)
{
    fprintf(stderr, "%s: the page of %s cannot be printed\n", program->name, command->name);
    return EXIT_FAILED;
}

static int print_parts(const slc_tool *program, const char *form)
{
    for (int i = 0; program->commands[i]; i++)
        if (!print_part(program, program->commands[i], form, STDOUT_FILENO))
            return no_part(program, program->commands[i]);
    return 0;
}

/* ---- The manual ---- */

static void print_man(const slc_tool *program)
{
    printf(".TH \"");
    for (const char *c = program->name; *c; c++) putchar(toupper((unsigned char)*c));
    const char *does = strchr(program->summary, ' ') + 1; /* after "Sluice" */
    printf("\" 1 \"\" \"Sluice %s\" \"Sluice\"\n.SH NAME\n%s \\- ", sluice_version(), program->name);
    for (const char *c = does; *c && *c != '.'; c++) printf(*c == '-' ? "\\-" : "%c", *c);
    printf("\n.SH SYNOPSIS\n.B %s\n.I COMMAND\n[\\fIOPTION\\fR]...\n.SH DESCRIPTION\n", program->name);
    printf("Each command has a page of its own, which `%s help COMMAND` shows in short.\n", program->name);
    for (int i = 0; program->commands[i]; i++) {
        printf(".TP\n.BR %s\\-%s (1)\n", program->name, program->commands[i]->name);
        for (const char *c = program->commands[i]->summary; *c; c++) printf(*c == '-' ? "\\-" : "%c", *c);
        putchar('\n');
    }
    printf(".SH OPTIONS\n.TP\n\\fB\\-h\\fR, \\fB\\-\\-help\\fR\nList the commands.\n"
           ".TP\n\\fB\\-V\\fR, \\fB\\-\\-version\\fR\nPrint the version.\n"
           ".SH EXIT STATUS\nThe table of all codes is in docs/errors.md.\n");
}

/* ---- The page in docs/ ---- */

/* Returns what the command prints, which is the caller's; NULL: nothing came. */
static char *section_of(const slc_tool *program, const sluice_command *command)
{
    char *text = NULL;
    FILE *file = tmpfile();
    if (file && print_part(program, command, "markdown", fileno(file)) && !fseek(file, 0, SEEK_END)) {
        const long size = ftell(file);
        rewind(file);
        if (size > 0) text = calloc(1, (size_t)size + 1);
        if (text && fread(text, 1, (size_t)size, file) != (size_t)size) {
            free(text);
            text = NULL;
        }
    }
    if (file) fclose(file);
    return text;
}

/* Prints the sections of all commands. The first command, which has the most options, describes all of its own; the
 * others only name those that they share with it. */
static int print_sections(const slc_tool *program)
{
    char first_name[64], *first = section_of(program, program->commands[0]), *section = first;
    int i = 0;
    snprintf(first_name, sizeof first_name, "%s %s", program->name, program->commands[0]->name);
    if (first) fputs(first, stdout);
    while (section && program->commands[++i]) {
        if ((section = section_of(program, program->commands[i])) != NULL)
            slc_help_tell_once(section, first, first_name, stdout);
        free(section);
    }
    const int code = section ? 0 : no_part(program, program->commands[i]);
    free(first);
    return code;
}

static int print_markdown(const slc_tool *program)
{
    printf("<!-- Made by `./dev format` from the tables that the parsers read. -->\n# The command `%s`\n\nEvery "
           "command with all of its options; `%s COMMAND --help` prints a command's part. The exit\ncodes are in "
           "[errors.md](errors.md#exit-codes). After `cmake --install` there are manual pages\n(`man %s-train`), "
           "and bash completes commands, options and values; `source <(%s --help=bash)` makes it\ndo so without "
           "installing.\n",
           program->name, program->name, program->name, program->name);
    return print_sections(program);
}

/* ---- Completion ---- */

static void print_names(const slc_tool *program)
{
    for (int i = 0; program->commands[i]; i++) printf("%s ", program->commands[i]->name);
}

static const char completion_head[] =
    "    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}\n"
    "    local options='' words='' kind='' before='' i\n"
    "    COMPREPLY=()\n"
    "    # The shell takes = for a word of its own.\n"
    "    if [ \"$current\" = = ]; then\n"
    "        current=''\n"
    "    elif [ \"$previous\" = = ]; then\n"
    "        previous=${COMP_WORDS[COMP_CWORD - 2]}\n"
    "    fi\n"
    "    # The words after -- are another command.\n"
    "    for ((i = 2; i < COMP_CWORD; i++)); do\n"
    "        [ \"${COMP_WORDS[i]}\" = -- ] || continue\n"
    "        if declare -F _command_offset >/dev/null; then\n"
    "            _command_offset $((i + 1))\n"
    "        else\n"
    "            mapfile -t COMPREPLY < <(compgen -c -f -- \"$current\")\n"
    "        fi\n"
    "        return\n"
    "    done\n";

static const char completion_tail[] =
    "    esac\n"
    "    if [ -n \"$words\" ]; then\n"
    "        case $current in *,*) before=${current%,*}, ;; esac\n"
    "        mapfile -t COMPREPLY < <(compgen -P \"$before\" -W \"$words\" -- \"${current##*,}\")\n"
    "    elif [ \"$kind\" = unknown ]; then\n"
    "        return\n"
    "    elif [ -z \"$kind\" ] && [ \"${current:0:1}\" = - ]; then\n"
    "        mapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$current\")\n"
    "    else\n"
    "        compopt -o filenames 2>/dev/null\n"
    "        if [ \"$kind\" = folders ]; then kind=-d; else kind=-f; fi\n"
    "        mapfile -t COMPREPLY < <(compgen $kind -- \"$current\")\n"
    "    fi\n"
    "}\n";

static int print_bash(const slc_tool *program)
{
    printf("# Completion of `%s` for bash, made by `%s --help=bash`.\n_%s() {\n", program->name, program->name,
           program->name);
    fputs(completion_head, stdout);
    printf("    case $((COMP_CWORD == 1))${COMP_WORDS[1]} in\n    1* | 0help)\n        words='");
    print_names(program);
    printf("help'\n        [ \"$COMP_CWORD\" = 1 ] && words+=' --help --version'\n        ;;\n");
    int code = print_parts(program, "bash");
    fputs(completion_tail, stdout);
    printf("complete -F _%s %s\n", program->name, program->name);
    return code;
}

int slc_pages_print(const slc_tool *program, const char *form)
{
    if (!strcmp(form, "markdown")) return print_markdown(program);
    if (!strcmp(form, "bash")) return print_bash(program);
    if (strcmp(form, "man")) {
        fprintf(stderr, "%s: --help=%s: use man, markdown or bash\n", program->name, form);
        return EXIT_USAGE;
    }
    print_man(program);
    return 0;
}
