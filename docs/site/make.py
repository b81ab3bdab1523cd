#!/usr/bin/env python3
"""Makes the site of the documents: `make.py [FOLDER]`, build/docs by default; FOLDER/html/index.html is its first page.

Doxygen reads the public headers (docs/api), Sphinx makes one site of them and of the pages. Whatever they warn about is an
error, with file and line: a link that leads nowhere, a heading that is not there, a page outside of the navigation,
a name without a comment. The pages' folder is laid out as the tree is, of links to it, so that links between pages and
to sources hold; api/ has a page for each header."""
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

sys.dont_write_bytecode = True
SITE = Path(__file__).resolve().parent
sys.path.insert(0, str(SITE))
import navigation  # noqa: E402

ROOT = navigation.ROOT


def headers():
    yield from sorted(path.relative_to(ROOT / "include") for path in (ROOT / "include").rglob("*.h"))


def read_headers(work):
    options = (ROOT / "docs" / "api" / "Doxyfile").read_text(encoding="utf-8")
    options += f"\nOUTPUT_DIRECTORY = {work}\nGENERATE_HTML = NO\nGENERATE_XML = YES\nXML_PROGRAMLISTING = NO\n"
    subprocess.run(["doxygen", "-"], cwd=ROOT, input=options, text=True, check=True, timeout=300)


def toctree(caption, names):
    return "\n".join(["```{toctree}", ":hidden:", f":caption: {json.dumps(caption)}", "", *names, "```", ""])


def lay_out(source):
    """Lays out the folder that Sphinx reads: the tree by links, the first page with the navigation, a page for each
    header."""
    if source.exists():
        shutil.rmtree(source)
    (source / "api").mkdir(parents=True)
    for entry in ROOT.iterdir():
        if entry.name not in ("build", "out") and not entry.name.startswith("."):
            (source / entry.name).symlink_to(entry)
    pages = []
    for header in headers():
        name = header.with_suffix("").as_posix().replace("/", "-")
        pages.append(f"api/{name}")
        (source / f"{pages[-1]}.md").write_text(
            f"({header.stem.replace('_', '__')}_8h)=\n# {header.as_posix()}\n\n```{{doxygenfile}} {header.name}\n:project: sluice\n```\n", encoding="utf-8")
    lists = navigation.doors((ROOT / "docs" / "README.md").read_text(encoding="utf-8"))
    parts = [toctree(heading, names) for heading, names in lists if names]
    listed = "\n".join(parts)
    others = [name for name in navigation.OUTSIDE if name not in listed]
    parts += [toctree("API reference", pages), toctree("The project", ["docs/README.md", *others])]
    # the README is the first page; a link in it is seen from the root, where it lies
    first = (ROOT / "README.md").read_text(encoding="utf-8")
    (source / "index.md").write_text(first + "\n" + "\n".join(parts), encoding="utf-8")


def run_sphinx(source, work):
    made = subprocess.run([sys.executable, "-m", "sphinx", "-q", "-n", "-W", "--keep-going", "-j", "auto", "-c", str(SITE),
                           "-d", str(work / "doctrees"), "-D", f"breathe_projects.sluice={work / 'xml'}", str(source),
                           str(work / "html")], text=True, timeout=600, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    said = made.stdout.replace(f"{source}/", "")
    said = re.sub(r"^index\.md:", "README.md:", said, flags=re.M)
    sys.stderr.write(said)
    return made.returncode or int("WARNING" in said)


def main():
    work = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build" / "docs").resolve()
    faults = list(navigation.faults())
    if faults:
        print("\n".join(faults), file=sys.stderr)
        return 1
    for made in ("html", "doctrees", "xml"):  # a page that is read anew is warned about anew
        shutil.rmtree(work / made, ignore_errors=True)
    work.mkdir(parents=True, exist_ok=True)
    read_headers(work)
    lay_out(work / "source")
    code = run_sphinx(work / "source", work)
    if not code:
        print(f"the documents and the API reference: {work / 'html' / 'index.html'}")
    return code


if __name__ == "__main__":
    sys.exit(main())
