"""Complexity has a price in lines.

In: the sources. Out: the lines of every room beside its budget, and every file, function and class above a limit; exit
status 1 where there is one.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

HOUSE = Path(__file__).resolve().parent.parent
SUFFIXES = {".py", ".pyi", ".h", ".cpp", ".cu"}
# Lines of src/ in all. 48,500 with the command line, plots, the report, Dask, ranking and survival; room for streaming,
# distributions, raw text and the rest of the GPU; 61,200 for what is left of issues 17 to 22 (of the GPU: Shapley
# values, metrics; files of survival, holders that own columns); 61,500: trees side by side on the GPU; 61,900: a factor
# for labels without noise, turns of held-out rows, sums of holders in native code; 62,100: statistics of categories
# become codes in native code; 63,100: copies of a round side by side, and lines of leaves, on the GPU; 63,800: files of
# large models without what repeats, prediction that answers splits once and adds groups of trees;
# 65,500: one writer of files, isolated children, kinds of outputs, names that are shown safely (issue 36).
MAX_SOURCES = 65_500
MAX_FILE, MAX_FUNCTION, MAX_MEMBERS = 600, 80, 25

WIDE_CLASSES = {
    "Job",  # the arguments of all CUDA kernels, as one record in device memory
    "Dataset",  # all that training reads of a table
}

# Raising a budget is a decision: do it in the commit that needs it and say why there.
BUDGET: dict[str, int] = {
    "src/sapwood": 830,  # the peers' names of what is here, warnings that others show; what the core has
    "src/sapwood/system": 600,  # the one writer, marked folders, kinds of outputs, isolated children
    "src/sapwood/params": 2160,  # what to write instead of the peers' names; defaults of other tasks
    "src/sapwood/device": 290,  # and arrays in the memory of a GPU
    "src/sapwood/device/cuda": 2850,  # training, prediction, Shapley values, metrics, tables there; copies, lines
    "src/sapwood/holders": 515,  # blocks with owners; sums that native code packs and adds
    "src/sapwood/data": 3870,  # tables binned again, or read where they lie; the rest is parts of dataset.py with heads
    "src/sapwood/data/streaming": 1500,  # stores on disk, made in two passes
    "src/sapwood/data/ingest": 1510,  # frames at once, files, under a limit of memory, and tables of a GPU
    "src/sapwood/objective": 1150,
    "src/sapwood/objective/distributions": 1350,  # sixteen families
    "src/sapwood/metric": 1480,
    "src/sapwood/model": 2590,  # what must hold of a model, apart; the peers' names; parts joined at once; small files
    "src/sapwood/model/convert": 2240,
    "src/sapwood/model/explain": 1345,
    "src/sapwood/boost": 2390,  # and memory under a limit, and what a GPU has not, and takes
    "src/sapwood/boost/auto": 1680,  # with the fit of distributions; races, members by worth, turns, doubtful rows
    "src/sapwood/boost/loops": 380,  # scores of a round that a device adds up
    "src/sapwood/boost/round": 1340,  # the peers' names of callbacks; evaluation rows on a device, what it is told
    "src/sapwood/boost/leaves": 480,
    "src/sapwood/boost/categories": 620,  # statistics become codes; trees are read when combinations change
    "src/sapwood/interfaces": 2935,  # files of survival, and of other estimators; shap's explainer
    "src/sapwood/report": 1330,
    "src/sapwood/cli": 2180,  # ten commands; mistakes in flags, files and paths are said in words
    "src/sapwood/plot": 1550,  # sixteen plots; where they draw, in one place
    "src/sapwood/dask": 1575,  # and arguments of fit, scores, errors and warnings shown at the client
    "src/sapwood/core": 85,
    "src/sapwood/core/math": 900,  # ranks of splits, metrics by row, lines of leaves, for the CPU and the GPU
    "src/sapwood/core/objective": 505,  # about 24 lines a loss
    "src/sapwood/core/sampler": 110,
    "src/sapwood/core/grower": 55,
    "src/sapwood/core/records": 565,  # heads of messages
    "src/sapwood/core/host": 680,  # threads, memory, memory under a limit, three operating systems
    "src/sapwood/core/cpu": 640,
    "src/sapwood/core/cpu/kernels": 2640,  # ranked lists; the sketch of gradients; lines and splits that trees share
    "src/sapwood/core/cpu/data": 2470,  # and cuts of a table that streams by; codes of statistics
    "src/sapwood/core/cpu/rows": 1360,
    "src/sapwood/core/cpu/group": 760,  # losses and metrics of whole groups
    "src/sapwood/core/cpu/grow": 4080,  # children made ahead of time; rows in place with other holders
    "src/sapwood/core/cpu/leaf": 1500,
    "src/sapwood/core/cpu/predict": 1890,  # bounds of explanations; splits answered once, groups of trees
    "src/sapwood/core/cuda": 4250,  # categories, samplers, vector leaves, ranks of splits, metrics, lines of leaves
    "src/sapwood/core/cuda/nvrtc": 20,
    "src/sapwood/core/bind": 2000,  # and messages, tables that stream by, paths of trees for a device
    "tools": 1440,  # wheels
    "benchmarks": 3030,  # one script a claim; unseen tables; seconds of survival by round; threads; forests on a GPU
    "examples": 114,
}
FILE_BUDGET = {"src/sapwood/boost/loops/plain.py": 60}  # the loop rots first


def lines(path: Path) -> int:
    """How many lines a file has."""
    return len(path.read_text().splitlines())


def sources() -> list[Path]:
    """Every source of the package, the tools, the benchmarks and the examples."""
    found = (path for top in ("src", "tools", "benchmarks", "examples") for path in (HOUSE / top).rglob("*.*"))
    return sorted(path for path in found if path.suffix in SUFFIXES)


def measure() -> dict[str, tuple[int, int]]:
    """Lines and budget of every folder with sources, and of the files that have a budget."""
    found: dict[str, tuple[int, int]] = {}
    for path in sources():
        name = path.parent.relative_to(HOUSE).as_posix()
        found[name] = (found.get(name, (0, 0))[0] + lines(path), BUDGET.get(name, 0))
    found["src"] = (sum(used for name, (used, _) in found.items() if name.startswith("src/")), MAX_SOURCES)
    return found | {name: (lines(HOUSE / name), limit) for name, limit in FILE_BUDGET.items()}


# ---- Python ---------------------------------------------------------------------------------------------------------


def python_functions(tree: ast.AST) -> Iterator[tuple[int, str, int]]:
    """Line, name and length of every function, its docstring with it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.lineno, node.name, (node.end_lineno or node.lineno) - node.lineno + 1


def python_members(tree: ast.AST) -> Iterator[tuple[int, str, int]]:
    """Line, name and number of data members of every class: fields, and what methods assign to `self`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            names = {
                one.target.id
                for one in node.body
                if isinstance(one, ast.AnnAssign)
                and isinstance(one.target, ast.Name)
                and "ClassVar" not in ast.unparse(one.annotation)
            }
            names |= {
                one.attr
                for one in ast.walk(node)
                if isinstance(one, ast.Attribute)
                and isinstance(one.ctx, ast.Store)
                and isinstance(one.value, ast.Name)
                and one.value.id == "self"
            }
            yield node.lineno, node.name, len(names)


# ---- C++, written as clang-format writes it -------------------------------------------------------------------------


def plain(text: str) -> str:
    """C++ without comments, literals and directives, line for line."""
    pattern = r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'|^[ \t]*#(?:\\\n|[^\n])*'
    return re.sub(pattern, lambda m: "\n" * m[0].count("\n"), text, flags=re.DOTALL | re.MULTILINE)


def kind(head: str, parent: str) -> str:
    """What a brace opens, from the text before it and what it stands in."""
    head = re.sub(r"^\s*(template\s*<[^{}]*?>\s*(?=\w))+", "", head).strip()
    if not head or head[-1] in "=(,?:" or head.endswith("return"):
        return "value" if head else "block"
    if re.match(r"(inline\s+)?namespace\b|extern\s*$", head):
        return "namespace"
    if re.match(r"enum\b", head):
        return "value"
    if re.match(r"(struct|class|union)\b", head) and parent in ("namespace", "class"):
        return "class"
    return "function" if "(" in head and parent in ("namespace", "class") else "block"


def blocks(text: str) -> Iterator[tuple[str, int, int, str, str]]:
    """Every pair of braces: its kind, first and last line, the text before it, its own text without inner braces."""
    opened: list[tuple[str, int, str, list[str]]] = []  # kind, line, head, own text
    head, line, start = "", 1, 1
    before = " "
    for letter in plain(text):
        own = opened[-1][3] if opened else []
        if letter == "{":
            parent = opened[-1][0] if opened else "namespace"
            what = "value" if before.isalnum() or before in "_>)]" else kind(head, parent)  # int x{0}, f(){}
            opened.append((what, start if head.strip() else line, head, []))
            if what != "value":
                head = ""
        elif letter == "}" and opened:
            what, first, title, inner = opened.pop()
            yield what, first, line, " ".join(title.split()), "".join(inner)
            if what != "value":
                head = ""
                if opened:
                    opened[-1][3].append("};" if what == "function" else "}")
        elif letter == ";":
            own.append(letter)
            head = ""
        else:
            own.append(letter)
            if not head.strip() and not letter.isspace():
                start = line
            head += letter
        line += letter == "\n"
        before = letter


def native_functions(text: str) -> Iterator[tuple[int, str, int]]:
    """Line, name and length of every function."""
    for what, first, last, head, _ in blocks(text):
        if what == "function":
            found = re.search(r"([\w:~]+)\s*\(", head)
            yield first, found[1] if found else head, last - first + 1


def native_members(text: str) -> Iterator[tuple[int, str, int]]:
    """Line, name and number of data members of every class and struct, those of its bases left out."""
    for what, first, _, head, own in blocks(text):
        if what != "class":
            continue
        count = 0
        for statement in re.sub(r"\b(public|private|protected)\s*:", "", own).split(";"):
            bare = statement.strip()
            while (shorter := re.sub(r"<[^<>]*>", "", bare)) != bare:
                bare = shorter
            bare = re.sub(r"=[^,]*", "", bare)
            if (
                not bare
                or "}" in bare
                or "(" in bare
                or re.match(r"(using|typedef|friend|static|template|enum)\b", bare)
            ):
                continue
            if re.match(r"(struct|class|union)\s+\w+$", bare):
                continue
            count += 1 + bare.count(",")
        found = re.search(r"\b(?:struct|class|union)\s+(\w+)", head)
        yield first, found[1] if found else head, count


# ---- Limits ---------------------------------------------------------------------------------------------------------


def excesses(path: Path) -> Iterator[str]:
    """A line for whatever of one source is above a limit."""
    name, text = path.relative_to(HOUSE).as_posix(), path.read_text()
    if lines(path) > MAX_FILE:
        yield f"{name}: {lines(path)} lines, a file has at most {MAX_FILE}"
    if path.suffix == ".pyi":
        return
    tree = ast.parse(text) if path.suffix == ".py" else None
    for line, what, n in python_functions(tree) if tree else native_functions(text):
        if n > MAX_FUNCTION:
            yield f"{name}:{line}: {what} has {n} lines, a function has at most {MAX_FUNCTION}"
    for line, what, n in python_members(tree) if tree else native_members(text):
        if n > MAX_MEMBERS and what not in WIDE_CLASSES:
            yield f"{name}:{line}: {what} has {n} data members, a class has at most {MAX_MEMBERS}"


def main() -> int:
    """Print the table, and what is above a limit."""
    found = measure()
    for name, (used, limit) in found.items():
        print(f"{name:40}{used:6} of {limit:5}{'  over budget' if used > limit else ''}")
    above = [complaint for path in sources() if path.is_relative_to(HOUSE / "src") for complaint in excesses(path)]
    print("\n".join(above))
    return bool(above) or any(used > limit for used, limit in found.values())


if __name__ == "__main__":
    sys.exit(main())
