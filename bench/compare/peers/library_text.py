"""A text that every machine with Python has: the sources of its library, one after the other by their names."""
import pathlib
import sysconfig


def read_library(megabytes):
    """Returns so many megabytes of it, or all that there are, up to the end of a line."""
    return read_files(sorted(pathlib.Path(sysconfig.get_path("stdlib")).glob("*.py")), megabytes)


def read_files(paths, megabytes):
    """Returns so many megabytes of these files, or all that there are, up to the end of a line."""
    size, text = int(megabytes * 1e6), ""
    for path in paths:
        text += path.read_text(encoding="utf-8", errors="ignore")
        if len(text) >= size:
            break
    return text[:text.rfind("\n", 0, size) + 1]
