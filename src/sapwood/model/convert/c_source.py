"""A model as one C file that needs nothing but a compiler: tables of nodes, a walk, a
link.

In: a booster. Out: C99; raw scores have the bits of `Booster.predict(raw=True)`,
predictions go through libm.
"""

import math
import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from sapwood.errors import ParameterError
from sapwood.model.booster import Booster
from sapwood.model.combinations import sizes_of
from sapwood.model.linear import Linear
from sapwood.printable import printable

SOURCE = """\
/* Written by sapwood. {about}

   A row is {n_columns} doubles, NAN where a value is missing, in the order of {name}_features{coded}.
   Compile with -ffp-contract=off where the compiler would otherwise fuse multiplications and additions. */
#include <math.h>
#include <stdint.h>

enum {{ {NAME}_COLUMNS = {n_columns}, {NAME}_OUTPUTS = {n_outputs}, {NAME}_TREES = {n_trees} }};

const char* const {name}_features[{n_columns}] = {{{features}}};
{categories}
{tables}{sets}{crossed}{combined}{lines}
/* scores ({NAME}_OUTPUTS): before the link */
void {name}_raw(const double* row, double* s) {{
{whole}  for (int k = 0; k < {n_outputs}; k++) s[k] = {start};
  for (int t = 0; t < {n_trees}; t++) {{
    int32_t u = tree_root[t];
    while (node_column[u] >= 0) {{
      const double x = row[node_column[u]];
      int right;
      {test}
      u = tree_root[t] + node_left[u] + right;
    }}
    s[tree_output[t]] = s[tree_output[t]] + {leaf};
  }}
{mean}}}

/* predictions ({NAME}_OUTPUTS): values, probabilities */
void {name}_predict(const double* row, double* s) {{
  {name}_raw(row, s);
{link}}}
"""
CODED = """

   A column of categories is given by the place of its value in {name}_category_<column>, from 0; -1 or NAN where it is
   missing, -2 where it is not among them"""
GOES_RIGHT = """
static int goes_right(int32_t u, double x) {
  const int sides = node_missing_left[u]; /* bit 0: missing goes left; bit 1: unseen goes the other way */
  if (x == -2.0) return !((sides ^ sides >> 1) & 1);
  if (!(x >= 0.0 && x < (double)n_bins[node_column[u]])) return !(sides & 1);
  for (int32_t i = set_first[node_set[u]]; i < set_first[node_set[u] + 1]; i++)
    if (set_code[i] == (int32_t)x) return 0;
  return 1;
}
"""
CROSSED = """
/* columns that are made of two others: 0 difference, 1 product, 2 ratio, 3 a number less its mean in a category */
{tables}
static void cross(double* all) {{
  for (int i = 0; i < {n}; i++) {{
    const double a = all[cross_left[i]], b = all[cross_right[i]];
    const int kind = cross_kind[i], codes = cross_first[i + 1] - cross_first[i] - 2;
    const int code = b >= 0.0 && b < (double)codes ? (int)b : isnan(b) || b == -1.0 ? codes : codes + 1;
    const double other = kind == 3 ? cross_mean[cross_first[i] + code] : b;
    const float x = (float)(kind == 1 ? a * b : kind == 2 ? a / b : a - other);
    all[{n_columns} + i] = x - x == 0.0f ? (double)x : NAN;
  }}
}}
"""
COMBINED = """
/* columns that are made of others: the place of the states of their sources, read as one number, among those known */
{tables}
static int64_t state(double x, int32_t j) {{
  const int32_t last = source_states[j] - 1;
  if (isnan(x)) return last;
  if (n_bins[source_column[j]] == 0) return x > source_threshold[j];
  return x == -1.0 ? last : x >= 0.0 && x < (double)last ? (int64_t)x : -1;
}}

static void combine(double* all) {{
  for (int i = 0; i < {n_combined}; i++) {{
    int64_t key = 0;
    for (int32_t j = source_first[i]; j < source_first[i + 1]; j++) {{
      const int64_t own = state(all[source_column[j]], j);
      key = key < 0 || own < 0 ? -1 : key * source_states[j] + own;
    }}
    int32_t low = key_first[i], high = key_first[i + 1]; /* the first key that is not below it */
    while (low < high) {{
      const int32_t middle = low + (high - low) / 2;
      if (keys[middle] < key) low = middle + 1;
      else high = middle;
    }}
    all[{first} + i] = low < key_first[i + 1] && keys[low] == key ? (double)(low - key_first[i]) : -1.0;
  }}
}}
"""
LINES = """
/* leaves that are lines: a constant, then a coefficient for each column */
{tables}
static double leaf(int32_t u, const double* row) {{
  const int32_t first = line_first[u], last = line_first[u + 1];
  double sum = first < last ? line_coef[first] : node_number[u];
  for (int32_t i = first + 1; i < last; i++) {{
    double x = row[line_column[i]];
{bounded}    sum = sum + line_coef[i] * x;
  }}
  return sum - sum == 0.0 ? sum : node_number[u]; /* else a value is missing or infinite */
}}
"""
BOUNDED = """\
    const double* b = bounds + 3 * line_column[i]; /* lowest, highest, and what a missing value counts as */
    x = isnan(x) ? b[2] : x < b[0] ? b[0] : x > b[1] ? b[1] : x;
"""
WHOLE = """\
  double all[{n}];
  for (int c = 0; c < {n_columns}; c++) all[c] = row[c];
{calls}  row = all;
"""
BY_SET = """if (node_set[u] >= 0) right = goes_right(u, x);
      else """
# The rules of core/math/split.h: goes_right for values, category_goes_right for codes
# of categories.
NUMERIC = "right = isnan(x) ? !node_missing_left[u] : x > node_number[u];"
_EACH = "  for (int k = 0; k < {n}; k++) s[k] = "
_SOFTMAX = """\
  double top = s[0], sum = 0.0;
  for (int k = 1; k < {n}; k++) top = s[k] > top ? s[k] : top;
  for (int k = 0; k < {n}; k++) sum += s[k] = exp(s[k] - top);
  for (int k = 0; k < {n}; k++) s[k] /= sum;
"""
_ONE_VS_ALL = """\
  double sum = 0.0;
  for (int k = 0; k < {n}; k++) sum += s[k] = 1.0 / (1.0 + exp(-s[k]));
  for (int k = 0; k < {n}; k++) s[k] /= sum;
"""
_ASCENDING = """  for (int k = 1; k < {n}; k++) {{
    const double x = s[k];
    int at = k;
    for (; at > 0 && s[at - 1] > x; at--) s[at] = s[at - 1];
    s[at] = x;
  }}
"""
LINKS = {
    "identity": "",
    "ascending": _ASCENDING,
    "exp": _EACH + "exp(s[k]);\n",
    "expm1": _EACH + "expm1(s[k]);\n",
    "sigmoid": _EACH + "1.0 / (1.0 + exp(-s[k]));\n",
    "sigmoid2": _EACH + "1.0 / (1.0 + exp(-2.0 * s[k]));\n",
    "step": _EACH + "s[k] > 0.0;\n",
    "softmax": _SOFTMAX,
    "one_vs_all": _ONE_VS_ALL,
}


def write(booster: Booster, name: str = "model") -> str:
    """Write a model as C99; ``<name>_raw(row, scores)`` and ``<name>_predict(row,
    predictions)`` are to be called.
    """
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise ParameterError(
            f"name={name!r} is not a C identifier; choose letters, digits and _, such as 'model'."
        )
    if booster.link not in LINKS:
        raise ParameterError(
            f"the link of the model is {booster.link!r}, a Python function, which C cannot have."
        )
    trees = booster.trees
    n = booster.n_outputs
    number = np.where(trees.column < 0, trees.value, trees.threshold)
    tables = [
        _table("int32_t tree_root", trees.offset[:-1]),
        _table("int32_t tree_output", trees.output),
        _table("int32_t node_column", trees.column, "-1: a leaf"),
        _table("int32_t node_left", trees.left, "the right child follows"),
        _table("uint8_t node_missing_left", trees.missing_left),
        _table(
            "double node_number",
            map(_number, number),
            "a threshold, or the value of a leaf",
        ),
        _table("double base", map(_number, booster.base)),
    ]
    return SOURCE.format(
        name=name,
        NAME=name.upper(),
        about=_comment(
            f"{booster.objective}: {booster.n_rounds} rounds, {trees.n_trees} trees."
        ),
        coded=CODED.format(name=name) if booster.categories else "",
        categories="".join(
            _category(f"{name}_category_{j}", own.values)
            for j, own in booster.categories.items()
        ),
        tables="".join(tables),
        sets=_sets(booster) if booster.categories else "",
        crossed=_crossed(booster) if len(booster.crosses) else "",
        combined=_combined(booster) if len(booster.combinations) else "",
        lines=_lines(trees.linear) if trees.linear else "",
        leaf="leaf(u, row)" if trees.linear else "node_number[u]",
        whole=_whole(booster) if booster.n_internal > booster.n_columns else "",
        n_columns=booster.n_columns,
        n_outputs=n,
        n_trees=trees.n_trees,
        features=", ".join(map(_text, booster.feature_names)),
        start="0.0" if booster.averaged or booster.base_last else "base[k]",
        test=(BY_SET if booster.categories else "") + NUMERIC,
        mean=f"  for (int k = 0; k < {n}; k++) s[k] = base[k] + s[k] / {float(booster._divisor)!r};\n"
        if booster.averaged or booster.base_last
        else "",
        link=LINKS[booster.link].format(n=n),
    )


def _category(name: str, values: Sequence[Any]) -> str:
    texts = ", ".join(_text(str(value)) for value in values)
    return f"const char* const {name}[{len(values)}] = {{{texts}}};\n" if values else ""


def _sets(booster: Booster) -> str:
    trees = booster.trees
    n_bins = [
        booster.categories[j].n_bins if j in booster.categories else 0
        for j in range(booster.n_numbered)
    ]
    n_bins += booster.combinations.n_bins(booster.n_numbered).values()
    tables = [
        _table("int32_t node_set", trees.set, "-1: by the threshold"),
        _table("int32_t set_first", trees.set_offset),
        _table("int32_t set_code", trees.set_code, "these go left"),
        _table("int32_t n_bins", n_bins, "of columns of categories"),
    ]
    return "".join(tables) + GOES_RIGHT


def _crossed(booster: Booster) -> str:
    own = booster.crosses
    tables = [
        _table("uint8_t cross_kind", own.cross_kind),
        _table("int32_t cross_left", own.cross_left),
        _table("int32_t cross_right", own.cross_right),
        _table("int32_t cross_first", own.cross_offset),
        _table(
            "double cross_mean",
            map(_number, own.cross_mean),
            "by category; the last two: missing, unseen",
        ),
    ]
    return CROSSED.format(
        tables="".join(tables), n=len(own), n_columns=booster.n_columns
    )


def _lines(linear: Linear) -> str:
    offset, column, coef, bounds = linear.terms
    tables = [
        _table("int32_t line_first", offset, "by node; the next one's is the end"),
        _table("int32_t line_column", column, "-1: the constant"),
        _table("double line_coef", map(_number, coef)),
    ]
    if len(bounds):
        tables.append(_table("double bounds", map(_number, bounds), "by column"))
    return LINES.format(tables="".join(tables), bounded=BOUNDED if len(bounds) else "")


def _whole(booster: Booster) -> str:
    made = {"cross": len(booster.crosses), "combine": len(booster.combinations)}
    calls = "".join(f"  {name}(all);\n" for name, n in made.items() if n)
    return WHOLE.format(n=booster.n_internal, n_columns=booster.n_columns, calls=calls)


def _combined(booster: Booster) -> str:
    own = booster.combinations
    sizes = [
        size
        for sources in own.sources()
        for size in sizes_of(sources, booster.categories)
    ]
    tables = [
        _table("int32_t source_first", own.combination_offset),
        _table("int32_t source_column", own.combination_column),
        _table("int32_t source_states", sizes, "the last is that of missing values"),
        _table("double source_threshold", map(_number, own.combination_threshold)),
        _table("int32_t key_first", own.combination_key_offset),
        _table("int64_t keys", own.combination_key),
    ]
    return COMBINED.format(
        tables="".join(tables), first=booster.n_numbered, n_combined=len(own)
    )


def _table(name: str, values: Iterable[Any], about: str = "") -> str:
    """An array of constants, in lines of limited length; a zero if there are none,
    since C has no empty arrays.
    """
    found = [str(value) for value in values] or ["0"]
    lines = ",\n  ".join(
        ", ".join(found[at : at + 16]) for at in range(0, len(found), 16)
    )
    return f"static const {name}[{len(found)}] = {{{lines}}};{f' /* {about} */' if about else ''}\n"


def _comment(text: str) -> str:
    """Text for the inside of a comment, which cannot end it: it is one line, so no
    backslash joins `*` and `/`.
    """
    return printable(text).replace("*/", "* /")


def _number(x: float) -> str:
    """A double to the last bit."""
    return "INFINITY" if math.isinf(x) else float(x).hex()


def _text(text: str) -> str:
    """A C string; bytes other than plain letters become three octal digits, which a
    following digit cannot extend.
    """
    plain = "".join(
        chr(b) if 32 <= b < 127 and chr(b) not in '"\\?' else f"\\{b:03o}"
        for b in text.encode(errors="surrogatepass")
    )
    return f'"{plain}"'
