/* Prints a page in the form that is asked for.
 * help_text_test.c covers this file. */
#include "bench/cli/help/help.h"

#include "bench/cli/help/forms.h"

int slc_help_print(const struct argp *parser, const char *program, slc_help_format format, FILE *out)
{
    slc_help_page page;
    if (slc_help_page_init(&page, parser, program)) return -1;
    switch (format) {
    case SLC_HELP_SHORT:
    case SLC_HELP_ALL: slc_help_text(&page, format == SLC_HELP_ALL, out); break;
    case SLC_HELP_USAGE: slc_help_usage(&page, out); break;
    case SLC_HELP_MAN: slc_help_man(&page, out); break;
    case SLC_HELP_MARKDOWN: slc_help_markdown(&page, out); break;
    case SLC_HELP_BASH: slc_help_bash(&page, out); break;
    }
    slc_help_page_fini(&page);
    return 0;
}
