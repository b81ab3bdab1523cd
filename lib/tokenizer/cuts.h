/* Finds places where a text may be cut so that the tokens of its parts are those of the whole: before a space or the
 * end of a line, after a character that no token joins to it. Private to lib/tokenizer. */
#pragma once

struct slc_tokenizer;
/* Fills tokenizer->cuts; all else of the tokenizer has been read. */
void slc_cuts_learn(struct slc_tokenizer *tokenizer);
