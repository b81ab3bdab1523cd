#!/usr/bin/env python3
"""The documents against the tree and the command: `docs_check.py SLUICE`. Every relative link leads to a file, and to a
heading if it names one; the pages of settings and of the command are what the command prints, that of results what
the files in bench/results say; the README's tables name the subcommands, each once and no other; every option that a
page gives to `sluice` or `sluice-lab` is one; every message of docs/troubleshooting.md is in a source; what is
preloaded has a path; a record's lists are those of its header, and the keys of `sluice nccl` those that it prints; every
page is in the site's navigation; docs/errors.md has a row for each status of sluice/status.h and each exit code;
docs/planning.md has the figures of its example; sentences are short. `--self-test` checks that a tree with planted faults
is refused."""
import os
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
sys.path.insert(0, os.path.join(ROOT, "docs", "site"))
import navigation  # noqa: E402
import tree  # noqa: E402

LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]*)(?:#([^)\s]*))?\)")
FENCE = re.compile(r"^```.*?^```", re.M | re.S)


def read(path):
    with open(path, encoding="utf-8") as page:
        return page.read()


def pages(root):
    return [os.path.join(root, path) for path in tree.files(root) if path.endswith(".md")]


def anchors(path):
    """The names that GitHub gives to a page's headings: lower case, no punctuation, a number if one comes again."""
    seen = {}
    for heading in re.findall(r"^#+ +(.+?) *$", FENCE.sub("", read(path)), re.M):
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        name = re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
        seen[name] = seen.get(name, -1) + 1
        yield name if not seen[name] else f"{name}-{seen[name]}"


def check_links(root):
    links = 0
    for path in pages(root):
        name = os.path.relpath(path, root)
        for target, anchor in LINK.findall(FENCE.sub("", read(path))):
            if "://" in target or target.startswith("mailto:"):
                continue
            links += 1
            place = os.path.join(os.path.dirname(path), target) if target else path
            if not os.path.exists(place):
                yield f"{name}: the link to {target} leads nowhere"
            elif anchor and (not place.endswith(".md") or anchor not in anchors(place)):
                yield f"{name}: the link to {target}#{anchor} names no heading there"
    if not links:
        yield "no page has a relative link: the documents are not where they should be"


def output(sluice, *options):
    return subprocess.run([sluice, *options], check=True, capture_output=True, text=True, timeout=60).stdout


def check_settings(sluice):
    printed = output(sluice, "info", "--settings")
    if len(re.findall(r"^\| `SLUICE_\w+` \|", printed, re.M)) < 10:
        yield "sluice info --settings prints no table of settings"
    elif not read(os.path.join(ROOT, "docs", "settings.md")).endswith("\n" + printed):
        yield "docs/settings.md: not what `sluice info --settings` prints; `./dev format` writes it anew"


def check_command_page(sluice):
    """The page is that of a build with a solver, whose schedule is the default."""
    printed = output(sluice, "--help=markdown")
    if len(re.findall(r"^## sluice \w+", printed, re.M)) < 10:
        yield "sluice --help=markdown prints no page of commands"
    elif "solver: none" in output(sluice, "info"):
        print("SKIP: docs/command.md: this build has no solver, so its default schedule is another one")
    elif read(os.path.join(ROOT, "docs", "command.md")) != printed:
        yield "docs/command.md: not what `sluice --help=markdown` prints; `./dev format` writes it anew"


def check_example(sluice):
    """The steps and bounds of docs/planning.md's example are those that `sluice plan` says: they are of no machine."""
    if "solver: none" in output(sluice, "info"):
        print("SKIP: the example of docs/planning.md: this build has no solver, so its plans have no bound")
        return
    page = read(os.path.join(ROOT, "docs", "planning.md"))
    rows = re.findall(r"^\| (\d+) MB \|[^|]*\| ([\d.]+) ms \| ([\d.]+) ms \|", page, re.M)
    for budget, step, bound in rows:
        said = output(sluice, "plan", "--profile", os.path.join(ROOT, "docs", "examples", "three_layers.json"), "--budget",
                      budget + "MB")
        found = re.findall(r"^step +([\d.]+) ms|^bound +lower bound ([\d.]+) ms", said, re.M)
        if [a or b for a, b in found] != [step, bound]:
            yield f"docs/planning.md: {budget} MB: step and bound are {step} and {bound} ms, `sluice plan` says {found}"
    if len(rows) < 4:
        yield f"docs/planning.md: {len(rows)} rows of its example were found"


def code_lines(text):
    """Yields the lines of blocks of code, with continued lines joined, and the texts between single backticks."""
    for block in FENCE.findall(text):
        yield from re.sub(r"\\\n\s*", " ", block).split("\n")
    for inline in re.findall(r"`([^`]+)`", FENCE.sub("", text)):
        yield re.sub(r"\s+", " ", inline)


def used_options(text):
    """(program, command, option) of each use; what follows a pipe, a comment or `--` is no part of it."""
    for line in code_lines(text):
        for use in re.split(r"&&|\|\s|;|#| -- ", line):
            found = re.search(r"(?:^|[\s/(])(sluice(?:-lab)?) ([a-z]\w*)\b(.*)", use)
            for option in re.findall(r"(?:^|[\s\[(])--([a-z][\w-]*)", found[3]) if found else []:
                yield found[1], found[2], option


def known_options(path):
    """The options of each command, from the help of all of them."""
    known = {}
    for name in re.findall(r"^  (\w+) ", output(path, "--help"), re.M):
        known[name] = set(re.findall(r"--([\w-]+)", output(path, name, "--usage"))) | {"help", "help-all", "usage"}
    return known


def check_options(sluice, root):
    lab = os.path.join(os.path.dirname(sluice), "sluice-lab")
    known = {"sluice": known_options(sluice), "sluice-lab": known_options(lab)}
    uses = 0
    for path in pages(root):
        for program, command, option in used_options(read(path)):
            uses += 1
            if command in known[program] and option not in known[program][command]:
                yield f"{os.path.relpath(path, root)}: `{program} {command}` has no option --{option}"
    if uses < 50:
        yield f"the documents give {uses} options to sluice: they are not where they should be"


STRINGS = re.compile(r'"(?:[^"\\\n]|\\.)*"(?:\s*(?:PRI\w+|"(?:[^"\\\n]|\\.)*"))*')
CONVERSION = re.compile(r"%[-+ #0]*[\d*]*(?:\.[\d*]+)?(?:hh|h|ll|l|z|j|t)?[diuxXcsfgep]|PRI\w+")


def source_strings(root):
    """Every string of the sources, joined as the compiler joins them; what printf puts there is a line feed."""
    for path in tree.files(root):
        if path.split("/")[0] in ("tests", "docs") or not path.endswith((".c", ".h", ".cc")) or "_test." in path:
            continue
        for string in STRINGS.findall(read(os.path.join(root, path))):
            joined = re.sub(r'"\s*"', "", re.sub(r'"?\s*PRI\w+\s*"?', "d", string)).strip('"')
            yield CONVERSION.sub("\n", joined).replace("%%", "%").replace('\\"', '"')


def check_messages(root):
    """A message of the page is the first column of a table; its fixed words are between `...`."""
    page = os.path.join(root, "docs", "troubleshooting.md")
    messages = re.findall(r"^\| `([^`]+)` \|", read(page), re.M)
    known = "\n".join(source_strings(root))
    for message in messages:
        fixed = [part.strip(" .,:;()\"'") for part in message.split("...")]
        for part in fixed:
            if part not in known:
                yield f'docs/troubleshooting.md: no source says "{part}", of the message `{message}`'
        if sum(map(len, fixed)) < 12:
            yield f"docs/troubleshooting.md: the message `{message}` has too few fixed words"
    if len(messages) < 40:
        yield f"docs/troubleshooting.md has {len(messages)} messages: its tables are not where they should be"


def bare_preloads(text):
    """Yields the names in LD_PRELOAD that ld.so would look for in its own folders alone, where a shim that was just
    built is not."""
    for list_ in re.findall(r"LD_PRELOAD=([^\s`\"]*)", text):
        yield from (name for name in list_.split(":") if name and "/" not in name and not name.startswith("$"))


def check_preloads(root):
    for path in pages(root):
        yield from (f"{os.path.relpath(path, root)}: ld.so finds {name} in few places; give LD_PRELOAD a path"
                    for name in bare_preloads(read(path)))


def record_lists(header):
    """Yields what docs/formats.md must say of a record's operations and reasons, by the tables of record.h."""
    operations, reasons = (re.findall(r'X\(\w+, "([^"]+)"\)', re.search(rf"#define SLC_RECORD_{name}\(X\)(.*?)\n\n",
                                                                       header, re.S)[1])
                           for name in ("OPERATIONS", "REASONS"))
    yield "Operations", ", ".join(f"{number} {name}" for number, name in enumerate(operations, 1))
    yield "by the reason", ", ".join(reasons)


def check_record_lists(root):
    header = read(os.path.join(root, "plugins", "nccl", "record", "record.h"))
    page = re.sub(r" \(count: the colour\)|\s+", " ", read(os.path.join(root, "docs", "formats.md"))).replace(" ,", ",")
    for title, words in record_lists(header):
        if f"{title}: {words}" not in page:
            yield f"docs/formats.md: \"{title}\" is not followed by \"{words}\", as record.h has it"


def check_statuses(root):
    """Each status of the header has one row in docs/errors.md, with its number, and no other has one."""
    known = re.findall(r"^    (SLUICE_\w+) = (-?\d+)", read(os.path.join(root, "include", "sluice", "status.h")), re.M)
    rows = re.findall(r"^\| `(SLUICE_\w+)` \| (-?\d+) \|", read(os.path.join(root, "docs", "errors.md")), re.M)
    for name, number in sorted(set(known) ^ set(rows)):
        yield f"docs/errors.md: {name} {number} is " + ("in the header alone" if (name, number) in known else "no status")
    if not known or len(rows) != len(set(rows)):
        yield f"docs/errors.md has {len(rows)} rows of statuses, sluice/status.h {len(known)}"


def check_exit_codes(root):
    """Each code that a command may end with by itself has a row in docs/errors.md."""
    known = re.findall(r"EXIT_\w+ = (\d+)", read(os.path.join(root, "bench", "cli", "exit_codes.h")))
    rows = re.findall(r"^\| (\d+) \|", read(os.path.join(root, "docs", "errors.md")), re.M)
    yield from (f"docs/errors.md: no row for the exit code {code} of bench/cli/exit_codes.h" for code in known
                if rows.count(code) != 1)
    if not known:
        yield "bench/cli/exit_codes.h: its exit codes are not where they should be"


WORDS_MOST, WORDS_MANY, MANY_SHARE = 60, 40, 0.02  # of a sentence; more than so many in so large a share of all


def prose(text):
    """Paragraphs, items of lists and cells of tables, without headings and code."""
    block = []
    for line in re.sub(r"<!--.*?-->", "", FENCE.sub("\n", text), flags=re.S).split("\n") + [""]:
        if not line.strip() or re.match(r"\s*([-*]|\d+\.) |#|\|", line):
            yield " ".join(block)
            block = []
        if line.startswith("|"):
            yield from re.split(r"(?<!\\)\|", line)
        elif line.strip() and not line.startswith("#") and (block or not line.startswith("    ")):
            block.append(line.strip())


def sentences(text):
    """(words, sentence) of each that has five words or more; code in backticks is one word."""
    for block in prose(text):
        block = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", re.sub(r"`[^`]*`", "Code", block))
        for sentence in re.split(r"(?<=[.!?])[)\"*]*\s+(?=[\"(*\[]*[A-Z0-9])", block):
            words = len(re.findall(r"[^\W_][\w'’.,%/-]*", sentence))
            if words >= 5:
                yield words, sentence.strip()


def check_sentences(root):
    count = many = 0
    for path in pages(os.path.join(root, "docs")):
        for words, sentence in sentences(read(path)):
            count, many = count + 1, many + (words > WORDS_MANY)
            if words > WORDS_MOST:
                yield (f"{os.path.relpath(path, root)}: a sentence of {words} words, of at most {WORDS_MOST}: "
                       f"{sentence[:60]}...")
    if many > MANY_SHARE * count or not count:
        yield f"docs: {many} of {count} sentences have more than {WORDS_MANY} words, of at most {MANY_SHARE:.0%}"


def columns_fault(printed, page):
    """Says why the page has not the keys of `sluice nccl --json` that the command prints; None if it has them."""
    found = re.search(r"<!-- columns of `sluice nccl`[^\n]*-->\n(.*?)<!-- end of columns -->", page, re.S)
    if len(re.findall(r"^\| `\w+` \| (?!type)", printed, re.M)) < 20:
        return "sluice nccl --columns prints no table of columns"
    if not found or found[1] != printed:
        return "docs/formats.md: not the columns that `sluice nccl --columns` prints; `./dev format` writes them anew"
    return None


def check_columns(sluice, root):
    fault = columns_fault(output(sluice, "nccl", "--columns"), read(os.path.join(root, "docs", "formats.md")))
    if fault:
        yield fault


def check_results():
    maker = os.path.join(ROOT, "bench", "results_page.py")
    for what in ("--check", "--self-test"):
        check = subprocess.run([sys.executable, maker, what], capture_output=True, text=True, timeout=60)
        if check.returncode:
            yield check.stderr.strip()


def check_commands(path, program, page, with_models, has_models):
    known = set(re.findall(r"^  (\w+) ", output(path, "--help"), re.M))
    if not known:
        yield f"{program} --help names no subcommand"
    if not has_models:
        known |= with_models  # the page is about a build with oneDNN
    rows = re.findall(rf"^\| `{program} (\w+)", read(os.path.join(ROOT, page)), re.M)
    for name in sorted(known - set(rows)):
        yield f"{page}: its table lacks `{program} {name}`"
    for name in sorted(set(rows) - known):
        yield f"{page}: its table has `{program} {name}`, which the command does not know"
    for name in sorted({row for row in rows if rows.count(row) > 1}):
        yield f"{page}: its table has `{program} {name}` more than once"


def check_programs(sluice):
    """The command, and the laboratory next to it."""
    lab = os.path.join(os.path.dirname(sluice), "sluice-lab")
    has_models = output(sluice, "info", "--json").find('"models": false') < 0
    yield from check_commands(sluice, "sluice", "README.md", {"train", "eval", "bench"}, has_models)
    yield from check_commands(lab, "sluice-lab", "CONTRIBUTING.md", {"gemm"}, has_models)


def self_test_messages():
    source = 'f("the rank %d \\"%s\\" has gone "\n  "away after %" PRIu64 " steps, 5 %% of them");'
    good = 'rank ... "..." has gone away after ... steps, 5 % of them'
    bad = "rank ... has gone astray after ... steps"
    with tempfile.TemporaryDirectory() as root:
        for name, text in {"docs/troubleshooting.md": f"| `{good}` | x |\n| `{bad}` | x |\n", "lib/a.c": source}.items():
            os.makedirs(os.path.dirname(os.path.join(root, name)))
            with open(os.path.join(root, name), "w", encoding="utf-8") as out:
                out.write(text)
        found = [fault for fault in check_messages(root) if "no source says" in fault]
    if len(found) != 1 or "astray" not in found[0]:
        yield f"docs_check self-test: faults of messages are {found}"


def self_test_pages():
    """A status without a row, a row with another number, a page outside of the navigation."""
    texts = {"include/sluice/status.h": "    SLUICE_OK = 0,\n    SLUICE_ERR_A = -1, /* a */\n    SLUICE_ERR_B = -2\n",
             "bench/cli/exit_codes.h": "enum { EXIT_A = 1, EXIT_B = 75 };\n",
             "docs/errors.md": "| 1 | x |\n| `SLUICE_OK` | 0 | x |\n| `SLUICE_ERR_B` | -3 | x |\n",
             "docs/README.md": "## Door\n\n- [errors.md](errors.md): x; see [how](other.md)\n", "docs/other.md": "# O\n"}
    with tempfile.TemporaryDirectory() as root:
        for name, text in texts.items():
            os.makedirs(os.path.dirname(os.path.join(root, name)), exist_ok=True)
            with open(os.path.join(root, name), "w", encoding="utf-8") as out:
                out.write(text)
        statuses, pages, codes = (list(check(root)) for check in (check_statuses, navigation.faults, check_exit_codes))
    if sorted(re.findall(r"SLUICE_\w+ -?\d", "".join(statuses))) != ["SLUICE_ERR_A -1", "SLUICE_ERR_B -2", "SLUICE_ERR_B -3"]:
        yield f"docs_check self-test: faults of statuses are {statuses}"
    if len(codes) != 1 or "code 75" not in codes[0]:
        yield f"docs_check self-test: exit codes without a row are {codes}"
    if len(pages) != 1 or "docs/other.md" not in pages[0]:
        yield f"docs_check self-test: pages outside of the navigation are {pages}"


def self_test_sentences():
    def words(count, end="."):
        return "Word " + "word " * (count - 2) + "word" + end

    page = (f"# {words(70)}\n\n{words(40)} {words(6)}\n\n- {words(5)}\n- {words(4)}\n\n"
            f"| {words(41, '')} | {words(7)} |\n|---|---|\n\n```\n- {words(70)}\n```\n\n    {words(70)}\n\n"
            f"<!-- {words(70)} -->\nA `{words(70)}` is one word (so. Is it) [a b]({words(9)}).\n")
    if [count for count, _ in sentences(page)] != [40, 6, 5, 41, 7, 6]:
        yield f"docs_check self-test: the words of sentences are {[count for count, _ in sentences(page)]}"
    for longest, most, wanted in ((60, 50, 0), (61, 100, 1), (41, 30, 1), (61, 30, 2)):
        with tempfile.TemporaryDirectory() as root:
            os.mkdir(os.path.join(root, "docs"))
            with open(os.path.join(root, "docs", "a.md"), "w", encoding="utf-8") as out:
                out.write(" ".join([words(longest)] + [words(10)] * most))
            faults = list(check_sentences(root))
            if len(faults) != wanted:
                yield f"docs_check self-test: one sentence of {longest} words among {most} others: {faults}"


def self_test():
    page = "# One\n\n## Two words: `x`, y\n\n[a](b.md) [b](b.md#b-1) [c](#two-words-x-y) [d](https://x.y/z#a)\n"
    other = "# B\n\n## B\n\n```\n# no heading\n[no](link.md)\n```\n"
    wanted = {"b.md#c", "nowhere.md", "b.md#no-heading", "#two"}
    with tempfile.TemporaryDirectory() as root:
        for name, text in {"a.md": page, "b.md": other}.items():
            with open(os.path.join(root, name), "w", encoding="utf-8") as out:
                out.write(text)
        wrong = list(check_links(root))
        with open(os.path.join(root, "bad.md"), "w", encoding="utf-8") as out:
            out.write(" ".join(f"[x]({link})" for link in sorted(wanted)))
        found = {re.search(r"link to (\S*)", fault)[1] for fault in check_links(root)}
    used = set(used_options("`sluice plan --a` and `sluice run -n 2 --b -- sluice train --c=1 | x --d`\n```\nsluice "
                            "sim \\\n  --e # --f\n```\n"))
    if used != {("sluice", "plan", "a"), ("sluice", "run", "b"), ("sluice", "train", "c"), ("sluice", "sim", "e")}:
        wrong.append(f"docs_check self-test: options were found as {sorted(used)}")
    if list(bare_preloads("`LD_PRELOAD=a.so` LD_PRELOAD=/x/b.so:c.so d LD_PRELOAD=$e/f.so LD_PRELOAD=$g")) != ["a.so", "c.so"]:
        wrong.append("docs_check self-test: libraries without a path were not told from others")
    lists = list(record_lists('#define SLC_RECORD_REASONS(X) \\\n    X(A, "one, two") \\\n    X(B, "c") /* d */\n\n'
                              '#define SLC_RECORD_OPERATIONS(X) \\\n    X(D, "e")\n\n'))
    if lists != [("Operations", "1 e"), ("by the reason", "one, two, c")]:
        wrong.append(f"docs_check self-test: the lists of a record are {lists}")
    columns = "| `t` | type | meaning |\n" + "".join(f"| `k{i}` | text | x |\n" for i in range(20))
    marked = "<!-- columns of `sluice nccl`: -->\n%s<!-- end of columns -->\n"
    faults = [columns_fault(columns, marked % columns), columns_fault(columns, marked % columns.replace("x", "y", 1)),
              columns_fault(columns, columns), columns_fault("| `t` | type |\n", marked % "| `t` | type |\n")]
    if [bool(fault) for fault in faults] != [False, True, True, True]:
        wrong.append(f"docs_check self-test: faults of columns are {faults}")
    wrong += [*self_test_messages(), *self_test_sentences(), *self_test_pages()]
    for fault in wrong:
        print(fault)
    for link in sorted(wanted ^ found):
        print(f"docs_check self-test: {link}: " + ("not refused" if link in wanted else "refused"))
    return not wrong and wanted == found


def main():
    if sys.argv[1:] == ["--self-test"]:
        return 0 if self_test() else 1
    sluice = os.path.abspath(sys.argv[1])
    faults = [*check_links(ROOT), *check_settings(sluice), *check_command_page(sluice), *check_example(sluice),
              *check_options(sluice, ROOT), *check_messages(ROOT), *check_preloads(ROOT), *check_record_lists(ROOT),
              *check_columns(sluice, ROOT), *check_statuses(ROOT), *check_exit_codes(ROOT), *navigation.faults(ROOT),
              *check_sentences(ROOT), *check_results(),
              *check_programs(sluice)]
    print("\n".join(faults) if faults else "docs: links, settings, commands and options agree with the tree")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
