"""Lists the files of a tree that people write; the checks of this folder look through them. size_check.py --self-test
covers this file."""
import os

BUILT = ("build", "out")  # folders of the root that builds and runs write


def files(root):
    """Returns the paths of all files from the root, sorted, without those in hidden folders and in BUILT."""
    found = []
    for folder, inside, names in os.walk(root):
        at_root = folder == root
        inside[:] = [name for name in inside if not name.startswith(".") and not (at_root and name in BUILT)]
        found += [os.path.relpath(os.path.join(folder, name), root) for name in names]
    return sorted(found)
