"""The order of the pages in the site's navigation: that of docs/README.md, under its headings."""
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Pages of the site that do not lie in docs/, besides README.md, which is its first.
OUTSIDE = ["CONTRIBUTING.md", "LICENSE-NOTES.md", "tests/nccl/bed/README.md"]


def doors(text):
    """(heading, pages) of what stands before the first `##` of docs/README.md, and of each of them. A page is a link whose
    text is the file's name; it stays where it is named first."""
    seen = set()
    for number, part in enumerate(re.split(r"^## +", text, flags=re.M)):
        heading, _, body = part.partition("\n")
        pages = []
        for label, target in re.findall(r"\[([^\]]*\.md)\]\(([^)#]*\.md)\)", body):
            page = target.removeprefix("../") if target.startswith("../") else "docs/" + target
            if target.endswith(label) and page not in seen:
                seen.add(page)
                pages.append(page)
        yield heading.strip() if number else "Begin here", pages


def faults(root=ROOT):
    """Returns the faults of docs/README.md: the pages that it does not name."""
    root = Path(root)
    listed = {page for _, pages in doors((root / "docs" / "README.md").read_text(encoding="utf-8")) for page in pages}
    for path in sorted((root / "docs").glob("*.md")):
        page = f"docs/{path.name}"
        if path.name != "README.md" and page not in listed:
            yield f"docs/README.md: no link [{path.name}]({path.name}), so the navigation lacks {page}"
