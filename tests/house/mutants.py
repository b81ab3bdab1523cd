"""Single-line mutants of C sources: one line of code, changed so that it still looks like code.

`mutants_of(text)` names the ways in which each line can be changed: a comparison is turned, a bound is one off, a wait
or a check is dropped, a status is ignored, && and || take each other's place, a condition is negated. Comments,
strings, preprocessor lines, assertions and the arguments of messages stay as they are; so do the sizes of allocations,
whose faults only the address sanitizer sees."""
import hashlib
import re

LITERAL = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
PREPROCESSOR = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.M)
KEPT = re.compile(r"\b(?:assert|static_assert|_Static_assert|slc_error\w*|slc_\w+_error|slc_log\w*|\w*printf"
                  r"|[mc]alloc|realloc)\(")
COMPARISON = re.compile(r" (<=|>=|==|!=|<|>)(?= |$)")
TURNED = {"<": ["<=", ">"], "<=": ["<", ">="], ">": [">=", "<"], ">=": [">", "<="], "==": ["!="], "!=": ["=="]}
ONE_OFF = re.compile(r" ([+-]) (1u?)\b(?![.\w])")
JUNCTION = re.compile(r" (&&|\|\|)(?= |$)")
CONDITION = re.compile(r"\b(?:if|while) \(")
CALL = re.compile(r"^\s+(?P<name>[\w.>-]+)\(.*\);$")
GUARDED_CALL = re.compile(r"^\s+if \(.*\) (?:status = )?(?P<name>\w+)\(.*\);$")
LEAVES = re.compile(r"^\s+if \(.*\) (?:return\b.*|goto \w+|continue|break);$")
WAITS_OR_CHECKS = re.compile(r"wait|lock|check|settle|drain|barrier|synchronize|notify|require|post|signal|broadcast"
                             r"|wake|meet|join|flush|validate|verify")
ASSIGNED = re.compile(r"\b\w*status = (?=\w+\()")
DECLARED = re.compile(r"^(\s+sluice_status status = )(\w+\(.*\);)$")


def blanked(text, begin, end):
    return text[:begin] + re.sub(r"[^\n]", " ", text[begin:end]) + text[end:]


def closing(text, opening):
    """Returns the place at which the bracket closes that opens at `opening`, or -1."""
    depth = 0
    for at in range(opening, len(text)):
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        if not depth:
            return at
    return -1


def code_of(text):
    """The text with all that is not to be changed blanked out; every character keeps its place."""
    for pattern in (LITERAL, PREPROCESSOR):
        text = pattern.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)
    for found in KEPT.finditer(text):
        end = closing(text, found.end() - 1)
        if end > 0:
            text = blanked(text, found.end(), end)
    return text


def changes(line, code):
    """(operator, new line) for each way to change a line, whose code alone is `code`."""
    def put(begin, end, new):
        return line[:begin] + new + line[end:]

    indent = re.match(r"\s*", line)[0]
    for found in COMPARISON.finditer(code):
        for new in TURNED[found[1]]:
            yield "comparison", put(*found.span(1), new)
    for found in ONE_OFF.finditer(code):
        yield "bound", put(*found.span(), "")
        yield "bound", put(*found.span(1), "-" if found[1] == "+" else "+")
    for found in JUNCTION.finditer(code):
        yield "junction", put(*found.span(1), "||" if found[1] == "&&" else "&&")
    for found in CONDITION.finditer(code):
        end = closing(code, found.end() - 1)
        if end > 0:
            yield "negation", put(found.end(), end, f"!({line[found.end():end]})")
    called = CALL.match(code) or GUARDED_CALL.match(code)
    if LEAVES.match(code) or (called and WAITS_OR_CHECKS.search(called["name"])):
        yield "dropped", indent + ";"
    if DECLARED.match(code):
        call = DECLARED.match(code).start(2)
        yield "status", f"{line[:call]}SLUICE_OK; {line[call:]}"
    else:
        for found in ASSIGNED.finditer(code):
            if not re.search(r"sluice_status $", code[: found.start()]):
                yield "status", put(*found.span(), "")


def mutants_of(text):
    """(number of the line, line, [(operator, new line)]) for each line that can be changed."""
    for number, (line, code) in enumerate(zip(text.split("\n"), code_of(text).split("\n")), 1):
        found = list(changes(line, code))
        if found:
            yield number, line, found


def rank(*facts):
    """A place in an order that is drawn, and that a change elsewhere in the sources does not disturb."""
    return hashlib.sha256("\0".join(map(str, facts)).encode()).hexdigest()


def draw(texts, seed):
    """All mutants of {file: text}, one for each line, in the order in which they are drawn. Lines have equal chances;
    so have the operators that a line allows."""
    drawn = []
    for file, text in texts.items():
        seen = {}
        for number, line, found in mutants_of(text):
            nth = seen[line] = seen.get(line, 0) + 1
            place = (seed, file, line.strip(), nth)
            operator = min({operator for operator, _ in found}, key=lambda name: rank(*place, name))
            after = min((new for name, new in found if name == operator), key=lambda new: rank(*place, new))
            drawn.append((rank(*place), {"file": file, "line": number, "operator": operator, "before": line.strip(),
                                         "after": after.strip(), "nth": nth}))
    return [mutant for _, mutant in sorted(drawn, key=lambda pair: pair[0])]


def applied(text, mutant):
    """The text with the mutant's line changed."""
    lines = text.split("\n")
    old = lines[mutant["line"] - 1]
    assert old.strip() == mutant["before"], mutant
    lines[mutant["line"] - 1] = old[: len(old) - len(old.lstrip())] + mutant["after"]
    return "\n".join(lines)


# ---- Self-test ----

ONE_LINE = [
    ("    if (a < b) return c;", {"comparison: if (a <= b) return c;", "comparison: if (a > b) return c;",
                                  "negation: if (!(a < b)) return c;", "dropped: ;"}),
    ("    x = y + 1;", {"bound: x = y;", "bound: x = y - 1;"}),
    ("    x = y + 1.0f + 10;", set()),
    ("    return a && b->c;", {"junction: return a || b->c;"}),
    ("    x = a << 2 | b >> 1;", set()),
    ("    slc_gate_wait(gate, 1, left);", {"dropped: ;"}),
    ("    slc_pass_begin(rt, pass);", set()),
    ("    pthread_mutex_unlock(&arena->lock);", {"dropped: ;"}),
    ("    if (!status) status = slc_check_call(rt, name);",
     {"negation: if (!(!status)) status = slc_check_call(rt, name);", "dropped: ;",
      "status: if (!status) slc_check_call(rt, name);"}),
    ("    sluice_status status = open_item(rt, pass);",
     {"status: sluice_status status = SLUICE_OK; open_item(rt, pass);"}),
    ("    status = open_item(rt,", {"status: open_item(rt,"}),
    ('    if (text[0] == \'<\') slc_error(status, "a < b", a < b);',
     {'comparison: if (text[0] != \'<\') slc_error(status, "a < b", a < b);',
      'negation: if (!(text[0] == \'<\')) slc_error(status, "a < b", a < b);'}),
    ("    assert(a < b);", set()),
    ("    x = malloc((count + 1) * sizeof *x);", set()),
    ("    x = y; /* a < b && c */ // d == e", set()),
    ("#if A < B && C", set()),
]


def self_test():
    wrong = []
    for line, expected in ONE_LINE:
        got = {f"{operator}: {new.strip()}" for _, _, found in mutants_of(line) for operator, new in found}
        if got != expected:
            wrong.append((line, sorted(got)))
    source = "/* a < b\n * c && d */\nint f(void)\n{\n    return a < b;\n    return a < b;\n}\n"
    source += "#define M \\\n    (a < b)\n"
    drawn = draw({"f.c": source}, 7)
    if sorted(mutant["line"] for mutant in drawn) != [5, 6] or drawn != draw({"f.c": source}, 7):
        wrong.append(("draw", drawn))
    # Code that is added elsewhere leaves the draw of a file as it was.
    longer = draw({"e.c": "int g(void)\n{\n    return a == b;\n}\n", "f.c": "\n\n" + source}, 7)
    if [m["nth"] for m in longer if m["file"] == "f.c"] != [m["nth"] for m in drawn]:
        wrong.append(("draw after a change", longer))
    for mutant in drawn:
        changed = [(a, b) for a, b in zip(source.split("\n"), applied(source, mutant).split("\n")) if a != b]
        if [(a.strip(), b.strip()) for a, b in changed] != [(mutant["before"], mutant["after"])]:
            wrong.append(("applied", mutant))
    for what, got in wrong:
        print(f"{what}: {got}")
    return not wrong
