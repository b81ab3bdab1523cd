"""The order of the pages in the site's navigation: the lists of docs/README.md, under its headings."""
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OUTSIDE = ["README.md", "CONTRIBUTING.md", "LICENSE-NOTES.md"]  # pages of the site that do not lie in docs/


def doors(text):
    """(heading, pages) of each `##` of docs/README.md. A page is a link of a list whose text is the file's name; it stays
    where it is named first."""
    seen = set()
    for part in re.split(r"^## +", text, flags=re.M)[1:]:
        heading, _, body = part.partition("\n")
        pages = []
        for item in re.split(r"^- ", body, flags=re.M)[1:]:
            for label, target in re.findall(r"\[([^\]]*\.md)\]\(([^)#]*\.md)\)", item):
                page = target.removeprefix("../") if target.startswith("../") else "docs/" + target
                if target.endswith(label) and page not in seen:
                    seen.add(page)
                    pages.append(page)
        yield heading.strip(), pages


def faults(root=ROOT):
    """Pages that no list names."""
    root = Path(root)
    listed = {page for _, pages in doors((root / "docs" / "README.md").read_text(encoding="utf-8")) for page in pages}
    for path in sorted((root / "docs").glob("*.md")):
        page = f"docs/{path.name}"
        if path.name != "README.md" and page not in listed:
            yield f"docs/README.md: no list has [{path.name}]({path.name}), so the navigation lacks {page}"
