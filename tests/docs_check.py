#!/usr/bin/env python3
"""The documents against the tree and the command: `docs_check.py SLUICE`. Every relative link leads somewhere, the page
of settings is what the command prints, and the README's table names every subcommand."""
import os
import re
import subprocess
import sys

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(#[^)]*)?\)")


def pages():
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [f for f in folders if not f.startswith(".") and f not in ("build", "out")]
        yield from (os.path.join(folder, n) for n in names if n.endswith(".md"))


def read(path):
    with open(path, encoding="utf-8") as page:
        return page.read()


def check_links():
    for path in sorted(pages()):
        for target, _ in LINK.findall(read(path)):
            if "://" in target or os.path.exists(os.path.join(os.path.dirname(path), target)):
                continue
            yield f"{os.path.relpath(path, ROOT)}: the link to {target} leads nowhere"


def output(sluice, *options):
    return subprocess.run([sluice, *options], check=True, capture_output=True, text=True, timeout=60).stdout


def check_settings(sluice):
    if output(sluice, "info", "--settings") not in read(os.path.join(ROOT, "docs", "settings.md")):
        yield "docs/settings.md: not what `sluice info --settings` prints; `./dev format` writes it anew"


def check_commands(sluice):
    readme = read(os.path.join(ROOT, "README.md"))
    for name in re.findall(r"^  (\w+) ", output(sluice, "--help"), re.M):
        if f"`sluice {name}" not in readme:
            yield f"README.md: its table lacks `sluice {name}`"


def main():
    sluice = os.path.abspath(sys.argv[1])
    faults = [*check_links(), *check_settings(sluice), *check_commands(sluice)]
    print("\n".join(faults) if faults else "docs: links, settings and commands agree with the tree")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
