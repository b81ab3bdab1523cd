/* The forms in which a page is printed. Private to bench/cli. */
#pragma once

#include "bench/cli/help/page.h"

#include <stdio.h>

void slc_help_text(const slc_help_page *page, bool all, FILE *out);
void slc_help_usage(const slc_help_page *page, FILE *out);
void slc_help_man(const slc_help_page *page, FILE *out);
void slc_help_markdown(const slc_help_page *page, FILE *out);
void slc_help_bash(const slc_help_page *page, FILE *out);
