"""Which part of the house may know which.

In: the sources under src/sapwood. Out: one line for every import, include or word that
breaks a rule; exit status 1.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "sapwood"
CORE = PACKAGE / "core"

# A room may import itself and the rooms of the lines above its own, never those below
# it or beside it.
ORDER = [
    ["printable"],
    ["errors", "version"],
    ["system"],
    ["params"],
    ["device"],
    ["math", "reduce"],
    ["holders"],
    ["data", "metric", "objective"],
    ["model"],
    ["boost"],
    ["interfaces"],
    ["dask"],
    ["plot", "report"],
    ["cli"],
    ["__main__"],
]
LEVEL = {room: level for level, rooms in enumerate(ORDER) for room in rooms}

TABLES = {"narwhals", "pandas", "polars", "pyarrow"}
# `Booster.to_frame` hands a table out, so text.py may import a table library, but only
# inside a function.
# The command line reads and writes files through Arrow.
TABLE_FILES = {
    "data/ingest": "anywhere",
    "model/text.py": "in a function",
    "cli/": "in a function",
}
# A method that hands the model on to a later room imports it when it is called.
HANDS_ON = {"model/booster.py": ("report",)}
# Only system/ writes, replaces and deletes files and starts processes, so that its
# promises hold for all of them.
WRITES = re.compile(
    r"(shutil\.(rmtree|move|copy\w*)|os\.(replace|rename|renames|remove|removedirs|unlink|rmdir|mkdir|makedirs|link"
    r"|symlink|truncate|system|popen|exec\w*|spawn\w*|posix_spawn\w*|fork)|tempfile\.\w+|subprocess\.\w+|np\.save\w*)"
)
WRITING_METHODS = {
    "unlink",
    "rmdir",
    "mkdir",
    "touch",
    "write_text",
    "write_bytes",
    "rename",
    "symlink_to",
    "hardlink_to",
    "tofile",
    "chmod",
    "savefig",
    "to_csv",
    "to_parquet",
    "to_pickle",
    "dump",
}
# of this package; their functions have such names too
OWN_MODULES = ("host.", "ingest.")
OPENERS = ("open", "os.open", "io.open", "FileIO", "io.FileIO")
WRITING_MODES = re.compile("[wax+]")
# The checkpoint adds to a file of its own, which it has checked and locked.
WRITERS = {"boost/checkpoint.py": ("FileIO",)}
# modules of device/: the others get one by its name, so that any can take its place
DEVICES = ("cpu", "cuda")

# Rooms of the core: a file may include its own room and those before it. `cpu/` stands
# for `cuda/` too, whose rooms have the same names; neither includes the other.
CORE_ORDER = (
    "math",
    "objective",
    "sampler",
    "grower",
    "records",
    "host",
    "cpu/kernels",
    "cpu/data",
    "cpu/group",
    "cpu/rows",
    "cpu/grow",
    "cpu/leaf",
    "cpu",
    "cpu/predict",
    "bind",
)
NOT_FOR = {  # rooms that stand before another one, which it still does without
    # prediction knows nothing of training
    "cpu/predict": ("cpu/rows", "cpu/grow", "cpu/leaf", "cpu"),
    "records": ("host",),
}
DEVICE_ROOM = r"^(cpu|cuda)(?=/|$)"
# Words of a room's code that belong elsewhere.
ROOM_WORDS = {
    "cpu/kernels": (
        r"<(vector|string|map|set|unordered_map|unordered_set|memory|functional|thread|mutex)>|\b(malloc|new)\b",
        "kernels work on memory that others own",
    ),
    "records": (r"<(thread|mutex|atomic|future)>", "records are plain values"),
    "bind": (
        r"\bstd::(stable_sort|sort|nth_element|unordered_map|unordered_set|map|set)\b",
        "bind/ checks and passes on; what computes stands in cpu/",
    ),
}

# The folders that every compiler, NVRTC too, must give the same bits: <stdint.h> and
# each other, nothing else.
PURE = ["math", "objective", "sampler", "grower"]
PYTHON = r"Python\.h|bind/"  # nanobind too; for core/bind alone
WORDS = {
    r"#\s*pragma\s+omp": "OpenMP deadlocks after fork; use the pool",
    r"fast-math|-Ofast|-funsafe-math": "reassociation breaks the law",
    r"\bstd::(exp|log|pow|tgamma|lgamma|erf|sin|cos|tan|tanh|sinh|cosh|cbrt|hypot|fma)\w*\s*\(": "libm differs "
    "between machines; use core/math/real.h",
    r"\bstd::(accumulate|reduce|inner_product)\b": "write the sum out, over integers",
    r"\bmt19937|\bstd::\w*_distribution\b|\brand\s*\(\s*\)": "randomness comes from core/math/hash.h",
}


def room(path: Path) -> str:
    """The room a source file stands in: its folder, or its own name at the top."""
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def imports(tree: ast.AST, inside: bool = False) -> Iterator[tuple[int, str, bool]]:
    """Every imported module or name of a tree: line, dotted name, whether inside a
    function.
    """
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name, inside) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = f"{node.module or ''}." if not node.level else "relative."
            yield from (
                (node.lineno, module + alias.name, inside) for alias in node.names
            )
        else:
            yield from imports(
                node, inside or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            )


def check_python(path: Path) -> Iterator[tuple[int, str]]:
    """Broken rules of one Python file: line and complaint."""
    here = room(path)
    name = path.relative_to(PACKAGE).as_posix()
    if name == "__init__.py":  # the front door shows every room
        return
    if here not in LEVEL:
        yield (
            1,
            f"{here} is not in the order of rooms; give it a place in tools/rooms.py",
        )
        return
    tree = ast.parse(path.read_text(), name)
    if here != "system":
        yield from check_writes(tree, name)
    for line, target, inside in imports(tree):
        top, _, rest = target.partition(".")
        if top == "relative":
            yield line, f"relative import; write sapwood.{here}..."
        elif top in TABLES:
            allowed = next(
                (how for where, how in TABLE_FILES.items() if name.startswith(where)),
                None,
            )
            if allowed is None:
                yield (
                    line,
                    f"imports {top}; only {' and '.join(TABLE_FILES)} touch table libraries",
                )
            elif allowed == "in a function" and not inside:
                yield (
                    line,
                    f"imports {top} with the module; do it inside the function that needs it",
                )
        elif top == "sapwood" and rest != "__version__":
            other = rest.partition(".")[0]
            if other == "_core":
                if here != "device":
                    yield line, "imports _core; only device/ does"
            elif here != "device" and target.startswith(
                tuple(f"sapwood.device.{one}" for one in DEVICES)
            ):
                yield (
                    line,
                    f"imports {target}; take the device that the data or the model has, or device.get(name)",
                )
            elif other not in LEVEL:
                yield (
                    line,
                    f"imports {target}, which is no room; import from the file that defines it",
                )
            elif (
                other != here
                and LEVEL[other] >= LEVEL[here]
                and not (inside and other in HANDS_ON.get(name, ()))
            ):
                yield (
                    line,
                    f"{here} imports {other}, which comes after it or stands beside it",
                )


def check_writes(tree: ast.AST, name: str) -> Iterator[tuple[int, str]]:
    """Calls of one Python file that write, replace or delete a file, or start a
    process: line and complaint.
    """
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        called = ast.unparse(node.func)
        method = called.rpartition(".")[2]
        is_method = method in WRITING_METHODS and isinstance(node.func, ast.Attribute)
        is_open = called in OPENERS and any(map(is_writing_mode, arguments(node)))
        forbidden = (
            WRITES.fullmatch(called)
            or (is_method and not called.startswith(OWN_MODULES))
            or is_open
        )
        if forbidden and called not in WRITERS.get(name, ()):
            yield (
                node.lineno,
                f"calls {called}; only system/ writes and deletes files and starts processes",
            )


def arguments(call: ast.Call) -> list[ast.expr]:
    """All arguments of a call but the first one, which is the path."""
    return [*call.args[1:], *(keyword.value for keyword in call.keywords)]


def is_writing_mode(argument: ast.expr) -> bool:
    """Whether an argument opens a file for writing: a mode such as "wb", or a flag such
    as os.O_RDWR.
    """
    if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
        return len(argument.value) <= 3 and bool(WRITING_MODES.search(argument.value))
    return bool(re.search(r"O_(WRONLY|RDWR|CREAT|TRUNC|APPEND)", ast.unparse(argument)))


def check_native(path: Path) -> Iterator[tuple[int, str]]:
    """Broken rules of one C++ file: line and complaint."""
    folder = path.relative_to(CORE).parts[0]
    for line, text in enumerate(path.read_text().splitlines(), 1):
        code = text.split("//")[0]
        for pattern, why in [
            *WORDS.items(),
            *words_of(core_room(path.relative_to(CORE).as_posix())),
        ]:
            if found := re.search(pattern, code):
                yield line, f"{found[0].strip()}: {why}"
        include = re.match(r'\s*#\s*include\s*([<"])([^>"]+)', code)
        if include and include[1] == '"' and not include[2].endswith(".inc"):
            yield from ((line, why) for why in check_include(path, include[2]))
        if include and folder != "bind" and re.search(PYTHON, include[2]):
            yield line, f"includes {include[2]}; only core/bind knows Python"
        elif include and folder in PURE:
            system = include[1] == "<"
            target = include[2]
            reached = [(base / target).resolve() for base in (CORE, path.parent)]
            inside = any(
                file.is_relative_to(CORE / other) for file in reached for other in PURE
            )
            if target != "stdint.h" if system else not inside:
                yield (
                    line,
                    f"includes {target}; {' and '.join(PURE)} include only <stdint.h> and each other",
                )


def core_room(path: str) -> str:
    """The room of a core file, by its path below core/."""
    return path.rpartition("/")[0]


def words_of(room: str) -> list[tuple[str, str]]:
    """The words that a room of the core does without, and why; of a device's room those
    of the CPU's.
    """
    name = re.sub(DEVICE_ROOM, "cpu", room)
    return [ROOM_WORDS[name]] if name in ROOM_WORDS else []


def check_include(path: Path, target: str) -> Iterator[str]:
    """Complaint about one include of a core file that points to a later room, or to
    another device.
    """
    here, there = core_room(path.relative_to(CORE).as_posix()), core_room(target)
    devices = [re.match(DEVICE_ROOM, one) for one in (here, there)]
    if all(devices) and len({one[0] for one in devices if one}) == 2:
        yield f"{here} includes {target}; the devices do not know each other"
    here, there = (re.sub(DEVICE_ROOM, "cpu", one) for one in (here, there))
    if here not in CORE_ORDER or here == there or target == "registry.h":
        return
    if there not in CORE_ORDER:
        yield f"includes {target}, which is not in a room; write the path from core/ on"
    elif CORE_ORDER.index(there) > CORE_ORDER.index(here) or there in NOT_FOR.get(
        here, ()
    ):
        yield f"{here} includes {target}, which is a later room's"


def complaints() -> list[str]:
    """One line for every broken rule of the house."""
    found = []
    for pattern, check in (
        ("**/*.py", check_python),
        *((f"core/**/*.{suffix}", check_native) for suffix in ("h", "cpp", "cu")),
    ):
        for path in sorted(PACKAGE.glob(pattern)):
            found += [
                f"{path.relative_to(PACKAGE.parent.parent)}:{line}: {why}"
                for line, why in check(path)
            ]
    build = (PACKAGE.parent.parent / "CMakeLists.txt").read_text()
    found += [
        f"CMakeLists.txt: {word[0]}"
        for word in [re.search(r"fast-math|-Ofast|OpenMP|fopenmp", build)]
        if word
    ]
    return found


def main() -> int:
    """Print the broken rules."""
    found = complaints()
    print("\n".join(found) or "rooms: every import and include points the right way")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
