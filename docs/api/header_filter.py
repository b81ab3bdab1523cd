#!/usr/bin/env python3
"""Prints a public header as doxygen wants to read it: `header_filter.py HEADER`.

The headers are written for people who read them: a plain comment stands before a declaration, or after it on its line; a
comment before several declarations without a blank line between them holds for all of them; several fields may share a
line. Here every such comment becomes doxygen's, repeated for each declaration that it holds for. A struct that is announced
and has its declaration further down, or in another header, is left to that one."""
import re
import sys

COMMENT = re.compile(r"/\*.*?\*/", re.S)
SEVERAL_FIELDS = re.compile(r"^(\s+)((?:const )?\w+(?: \w+)* )(\*?[\w\[\]]+(?:, \*?[\w\[\]]+)+);$")
ANNOUNCED = re.compile(r"^typedef struct (\w+) \1;(?:[ ]+/\* (.*?) \*/)?\n", re.M)
SECTION = re.compile(r"/\* -{2,}")


def declarations(line):
    """Returns the fields that a line declares, each as a declaration of its own."""
    match = SEVERAL_FIELDS.match(line)
    return [f"{match[1]}{match[2]}{name};" for name in match[3].split(", ")] if match else [line]


def begins_declaration(line):
    return bool(re.match(r"SLUICE_API |typedef struct \w+ \w+;|#define |\s+\w.*;$", line))


def pieces(text):
    """Yields comments and lines of code in order, as (comment or None, code before it on its line or a whole line)."""
    place = 0
    for match in COMMENT.finditer(text):
        lines = text[place:match.start()].split("\n")
        for line in lines[:-1]:
            yield None, line
        yield match[0], lines[-1]
        place = match.end()
        if text[place : place + 1] == "\n":
            place += 1
    for line in text[place:].split("\n"):
        yield None, line


def declared_once(text):
    """Removes declarations that only announce a struct: its body follows, or the comment names the header that has
    it."""
    def keep(match):
        elsewhere = re.fullmatch(r"sluice/\w+\.h", match[2] or "")
        return "" if elsewhere or re.search(rf"^struct {match[1]} {{", text, re.M) else match[0]
    return ANNOUNCED.sub(keep, text)


def filtered(text):
    text = declared_once(text)
    out, current, fresh, first, whole = [], None, False, True, True
    for comment, code in pieces(text):
        if comment and not code.strip():
            if first:
                out.append("/** @file\n * " + comment[2:].lstrip())
            elif SECTION.match(comment):
                out.append(comment)
            else:
                out.append("/**" + comment[2:])
                current, fresh = comment, True
            first = False
        elif comment:
            for line in declarations(code.rstrip()):
                out.append(f"{line} /**<{comment[2:]}")
            fresh = False
        elif not code.strip():
            out.append(code)
            current = None
        else:
            for line in declarations(code):
                if current and not fresh and whole and begins_declaration(line):
                    out.append("/**" + current[2:])
                out.append(line)
                fresh = False
        whole = not code.strip() or code.rstrip()[-1] in ";{}"
    return "\n".join(out)


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as header:
        sys.stdout.write(filtered(header.read()))
