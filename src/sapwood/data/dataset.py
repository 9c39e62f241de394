"""The public `Dataset`: a table binned once, with its labels, weights and first scores.

In: any table, whole or in chunks of rows, or a saved dataset. Out: cuts, codes and
checked vectors that training reads.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from sapwood.data import (
    categories,
    chunked,
    container,
    dataset_file,
    dealt,
    derived,
    html,
    identity,
    ingest,
    kept_table,
    variants,
)
from sapwood.data import crosses as crossing
from sapwood.data.bin_arguments import DERIVED, arguments
from sapwood.data.categories import Dictionary
from sapwood.data.crosses import Crosses
from sapwood.data.dataset_file import ADDED_LATER, BIN_PARAMS, LISTED, ROW_VECTORS
from sapwood.data.derived import Plan
from sapwood.data.kept_table import KeptTable
from sapwood.data.notices import warn_of_columns
from sapwood.data.streaming.constructors import Streamed
from sapwood.device import get, host
from sapwood.device.threads import threads
from sapwood.errors import DataError
from sapwood.params.functions import LabelView
from sapwood.params.types import DEVICES
from sapwood.reduce import Reduce
from sapwood.system import kinds, writing

Vector = TypeVar("Vector", bound=NDArray[Any] | None)


class Dataset(LabelView, Streamed):
    """A table turned into bins, ready for training.

    The table is read here. It is kept until the first training, which reads it again
    where it wants other bins: those of its own ``params``, or, for validation rows
    without a reference, those of the training data. `save` and `load`, pickle and
    joblib keep the bins.

    Parameters
    ----------
    data : array, list of rows, sparse matrix (scipy), data frame (pandas, polars, pyarrow, ...) or Arrow stream
        Shape (n_rows, n_columns), or a structured array, whose fields are columns; of
        numbers, booleans or categories. NaN and nulls are missing values.
    label : array-like of shape (n_rows,) or (n_rows, n_outputs), optional
        Finite numbers: targets, 0 and 1, or class indices; a column for each target
        where there are several.
    weight : array-like of shape (n_rows,), optional
        Not negative; a row of weight 2 counts as that row twice.
    init_score : array-like of shape (n_rows,) or (n_rows, n_outputs), optional
        Raw scores to start training from.
    group : array-like of shape (n_rows,) or (n_groups,), optional
        The group of every row, by any name, or the sizes of groups of consecutive rows.
    feature_names : sequence of str, optional
        Names for a table that has none.
    max_bins : int, optional
        Value bins a column may have, 2 to 65,535; missing values have one more. 255, or
        what a ``recipe`` has.
    min_samples_bin : int, optional
        Rows that a bin holds on average at least, where a column has more than
        `max_bins` different values. 32, or what a ``recipe`` has.
    tree_method : {'hist', 'exact'}
        What trees will be grown on it: 'exact' keeps every value, however many, and
        takes 4 bytes for each, and 24
        more while training.
    linear_leaves : bool
        Whether trees will have linear leaves: the values of the table are kept then, 4
        bytes each where float32 holds them (by their types), else 8.
    zero_as_missing : bool
        Zeros are missing values, whether a sparse table stores them or not. A category
        0 is a name and stays one.
    categorical_features : "auto", None, or sequence of str, int or bool
        Columns of categories: "auto" is those of text and of categorical types; else
        those named, counted or marked, which may also hold integers. Values are
        matched, never codes: see docs/categories.md.
    reference : Dataset, optional
        Take cuts, categories, crosses, names, tree_method, linear_leaves,
        zero_as_missing, device and the numbers of bins from this one; columns are
        matched by name where both have names.
    n_jobs : int, optional
        Threads; None means every available CPU. It changes no result.
    **more
        The peers' names of these arguments: ``max_bin``, ``cat_features``,
        ``feature_name``; ``recipe``, a method of `train` whose bins are meant;
        ``device``, where the rows are and training runs; and LightGBM's ``params``, a
        dict of which a dataset takes all of these. ``date_features``, what columns of
        dates and times become. ``free_raw_data=False`` keeps the table after the first
        training, too.

    Attributes
    ----------
    n_rows, n_columns : int
    feature_names : tuple of str
        ``f0``, ``f1``, ... where there are no names.
    named : bool
        Whether the names are the user's.
    label : ndarray of shape (n_rows,), or (n_rows, n_outputs) for several outputs, float64, read-only, or None
    weight : ndarray of shape (n_rows,), float64, read-only, or None
    init_score : ndarray of shape (n_rows, n_outputs), float64, read-only, or None
    group : ndarray of shape (n_rows,), int32, read-only, or None
        Groups are numbered from 0 in the order of their first rows.
    max_bins, min_samples_bin : int
    tree_method : str
    linear_leaves, zero_as_missing : bool
    values : ndarray of shape (n_rows, n_columns), float32 or float64, read-only, or None
        The table itself, where leaves are linear.
    cuts : list of ndarray, float64
        Of each column, ascending; a value's code is the number of cuts below it, a
        missing value's the number of bins. None for categories.
    categories : dict of int to Dictionary
        By position, the values of every column of categories, the most frequent first;
        ranks are codes.
    times : tuple of TimeColumn
        The columns of dates and times, and which parts of the calendar they have got;
        these follow the table's columns.
    n_given : int
        Columns of the table as it was given.
    crosses : Crosses
        What makes the last columns of the others, in the order of the columns; see
        `with_crosses`.
    unseen : dict of int to (n) int64
        By position of a column of categories, rows whose value the reference has not
        met; in bins it is missing.
    n_bins : list of int
        Of each column, missing values apart.
    device : sapwood.device.Device
    binned : sapwood.device.Binned
    reduce : sapwood.reduce.Reduce or None
        Over the holders of rows, where rows are dealt to several; None: all rows are
        here.
    n_total : int
        Rows of all holders.
    positions : tuple of int
        Of each chunk's first row among the rows of all holders; empty where all rows
        are here.
    """

    label: NDArray[np.float64] | None
    weight: NDArray[np.float64] | None
    init_score: NDArray[np.float64] | None
    group: NDArray[np.int32] | None
    values: NDArray[Any] | None
    times: Plan = ()
    # the arguments that `times` came of; None: a file has not said them
    derived_as: Mapping[str, Any] | None = None
    kept: KeptTable | None = None  # what it was made of, until the first training
    _called: ClassVar[tuple[str, str]] = ("label", "weight")  # in errors
    _keeps: ClassVar[bool] = True

    def __init__(
        self,
        data: Any,
        label: Any = None,
        weight: Any = None,
        init_score: Any = None,
        *,
        group: Any = None,
        feature_names: Sequence[str] | None = None,
        max_bins: int | None = None,
        min_samples_bin: int | None = None,
        tree_method: str = "hist",
        linear_leaves: bool = False,
        zero_as_missing: bool = False,
        categorical_features: Any = "auto",
        reference: Dataset | None = None,
        n_jobs: int | None = None,
        **more: Any,
    ) -> None:
        if self._keeps:
            self.kept = kept_table.of(
                {
                    "data": data,
                    "label": label,
                    "weight": weight,
                    "init_score": init_score,
                    "group": group,
                    "feature_names": feature_names,
                    "max_bins": max_bins,
                    "min_samples_bin": min_samples_bin,
                    "tree_method": tree_method,
                    "linear_leaves": linear_leaves,
                    "zero_as_missing": zero_as_missing,
                    "categorical_features": categorical_features,
                    "reference": reference,
                    "n_jobs": n_jobs,
                    **more,
                }
            )
        own = (
            max_bins,
            min_samples_bin,
            tree_method,
            linear_leaves,
            zero_as_missing,
            categorical_features,
        )
        feature_names, bins, categorical = arguments(
            Dataset, own, feature_names, reference, more
        )
        how = {"names": feature_names, "zero_as_missing": bins["zero_as_missing"]}
        chunks = chunked.read([data], ["data"], categorical, min_rows=1, **how)
        vectors = {
            "label": label,
            "weight": weight,
            "init_score": init_score,
            "group": group,
        }
        self._bin(chunks, feature_names, bins, reference, n_jobs, vectors)

    @classmethod
    def from_chunks(
        cls,
        chunks: Iterable[Any],
        *,
        init_score: Any = None,
        group: Any = None,
        feature_names: Sequence[str] | None = None,
        max_bins: int | None = None,
        min_samples_bin: int | None = None,
        tree_method: str = "hist",
        linear_leaves: bool = False,
        zero_as_missing: bool = False,
        categorical_features: Any = "auto",
        reference: Dataset | None = None,
        n_jobs: int | None = None,
        **more: Any,
    ) -> Dataset:
        """Make the dataset that the chunks give when put one below the other.

        Parameters
        ----------
        chunks : iterable of tables, or of tuples (table, label) or (table, label, weight)
            Consecutive rows. Each may be another kind of table; columns are matched by
            name where there are names.
        init_score, group, feature_names, max_bins, min_samples_bin, tree_method,
        linear_leaves, zero_as_missing
            As for `Dataset`, over all rows.
        categorical_features, reference, n_jobs, **more
            As for `Dataset`; positions are those of the first chunk.

        Returns
        -------
        Dataset
        """
        holders: tuple[Reduce, Sequence[int]] | None = more.pop("_holders", None)
        own = (
            max_bins,
            min_samples_bin,
            tree_method,
            linear_leaves,
            zero_as_missing,
            categorical_features,
        )
        feature_names, bins, categorical = arguments(
            cls.from_chunks, own, feature_names, reference, more
        )
        parts = [chunked.part(chunk) for chunk in chunks]
        if not parts:
            raise DataError("from_chunks got no chunk; give at least one.")
        tables = [part[0] for part in parts]
        what = [f"chunk {i}" for i in range(len(parts))]
        how = {"names": feature_names, "zero_as_missing": bins["zero_as_missing"]}
        columns = chunked.read(tables, what, categorical, min_rows=0, **how)
        rows = [chunk.n_rows for chunk in columns]
        ingest.check_shape((sum(rows), columns[0].n_columns), min_rows=0)
        vectors = {
            "label": chunked.join([part[1] for part in parts], rows, "label"),
            "weight": chunked.join([part[2] for part in parts], rows, "weight"),
            "init_score": init_score,
            "group": group,
        }
        self = cls.__new__(cls)
        self._bin(columns, feature_names, bins, reference, n_jobs, vectors, holders)
        return self

    @classmethod
    def dealt(
        cls,
        chunks: Iterable[Any],
        reduce: Reduce,
        positions: Sequence[int],
        **arguments: Any,
    ) -> Dataset:
        """Make one holder's part of a dataset whose rows are dealt to several holders.
        All holders call this together.

        Cuts, categories and fingerprint are those of all rows. Internal: interfaces to
        clusters are built on it.

        Parameters
        ----------
        chunks : iterable of tables, or of tuples (table, label) or (table, label, weight)
            This holder's rows: at least one chunk, which may have no rows.
        reduce : sapwood.reduce.Reduce
            Over the holders.
        positions : sequence of int
            Of each chunk's first row among the rows of all holders.
        **arguments
            As for `from_chunks`, the same at every holder, but for init_score: that of
            this holder's rows.

        Returns
        -------
        Dataset
        """
        return cls.from_chunks(chunks, **arguments, _holders=(reduce, positions))

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], *, n_jobs: int | None = None
    ) -> Dataset:
        """Read a dataset that `save` wrote.

        Parameters
        ----------
        path : str or path-like
            The file.
        n_jobs : int, optional
            Threads.

        Returns
        -------
        Dataset
            Equal to the saved one in every bit; a damaged or foreign file raises
            `DataError`.
        """
        return cls._unpack(Path(path).read_bytes(), n_jobs)

    @classmethod
    def _unpack(
        cls, raw: bytes, n_jobs: int | None = None, device: str = DEVICES[0]
    ) -> Dataset:
        """The dataset that `_pack` made bytes of."""
        arrays, fields = container.unpack(
            raw, dataset_file.KIND, dataset_file.VERSION, DataError
        )
        # older files have none
        fields = {"tree_method": "hist", **dict.fromkeys(ADDED_LATER, False), **fields}
        plan = dataset_file.read_times(fields)
        table, cuts, known, unseen, crosses = dataset_file.read(arrays, fields)
        self = cls.__new__(cls)
        self._fill(
            [table],
            (cuts, known),
            tuple(fields["feature_names"]),
            fields["named"],
            {name: fields[name] for name in BIN_PARAMS} | {"device": device},
            n_jobs,
            arrays,
            unseen,
            crosses=crosses,
        )
        self.times = plan
        return self

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """Write the dataset to a file, whole or not at all; a dataset that is there
        already is replaced.

        Parameters
        ----------
        path : str or path-like
            The file.
        force : bool
            Replace a file that is no dataset, and take a name that ends as other kinds
            of files do.
        """
        kinds.check(path, kinds.DATASET, force=force)
        writing.write(path, self._pack())

    def __reduce__(self) -> tuple[Any, ...]:
        return Dataset._unpack, (self._pack(), None, self.device.name)

    def _pack(self) -> bytes:
        """The dataset as a file holds it."""
        if self.reduce is not None:
            raise DataError(
                "a dataset whose rows are dealt to several holders cannot be saved; save that of all rows."
            )
        arrays = {
            "cuts": np.concatenate(self.cuts),
            "offset": np.cumsum([0, *map(len, self.cuts)], dtype=np.int64),
            **dict(self._codes(self._listed())),
            **({} if self.values is None else {"values": self.values}),
            **self._vectors(),
            **categories.pack(self.categories),
            **{f"unseen.{j}": rows for j, rows in self.unseen.items()},
            **crossing.encode(self.crosses),
        }
        fields = {
            "n_rows": self.n_rows,
            "feature_names": self.feature_names,
            "named": self.named,
            **{
                name: getattr(self, name)
                for name in BIN_PARAMS
                if name not in ADDED_LATER or getattr(self, name)
            },
            **({"times": derived.encode(self.times)} if self.times else {}),
        }
        version = (
            2
            if self.categories
            or "listed.column" in arrays
            or set(ADDED_LATER) & set(fields)
            else 1
        )
        version = derived.file_version(self.times) or (
            4 if len(self.crosses) else 3 if self.unseen else version
        )
        return container.pack(dataset_file.KIND, version, arrays, fields)

    # Methods that are functions of other modules, documented there.
    with_columns = variants.with_columns
    with_crosses = variants.with_crosses
    with_weight = variants.with_weight
    without_values = variants.without_values
    take_codes = variants.take_codes
    unseen_rows = cached_property(variants.unseen_rows)

    @property
    def n_given(self) -> int:
        """Columns of the table as it was given."""
        return self.n_columns - len(self.crosses) - derived.n_parts(self.times)

    def num_data(self) -> int:
        """The number of rows."""
        return self.n_rows

    num_row = num_data

    def num_feature(self) -> int:
        """LightGBM's: the number of columns of the table."""
        return self.n_given

    def get_feature_name(self) -> list[str]:
        """LightGBM's: the names of the columns of the table."""
        return list(self.feature_names[: self.n_given])

    def construct(self) -> Dataset:
        """LightGBM's: the dataset itself, which is binned already."""
        return self

    @property
    def global_rows(self) -> NDArray[np.int64]:
        """(n_rows) the position of every row among the rows of all holders: what draws
        by row are made from.
        """
        if self.reduce is None:
            return np.arange(self.n_rows)
        sizes = self.binned.chunk_sizes
        return np.concatenate(
            [np.arange(at, at + n) for at, n in zip(self.positions, sizes, strict=True)]
        )

    def of_all_holders(self, mine: Vector) -> Vector:
        """A vector over the rows of all holders, given its values for the rows of this
        one; None stays None.
        """
        if mine is None or self.reduce is None:
            return mine
        return cast(
            Vector,
            dealt.Order.of(self.reduce, self.positions, self.binned.chunk_sizes).whole(
                mine
            ),
        )

    def of_this_holder(self, whole: NDArray[Any]) -> NDArray[Any]:
        """The values for the rows of this holder, of a vector over the rows of all
        holders.
        """
        return whole if self.reduce is None else whole[self.global_rows]

    def fingerprint(self) -> str:
        """Digest of what training sees.

        Returns
        -------
        str
            SHA-256, 64 hexadecimal digits, of the digests of codes, values where they
            are kept, cuts, categories, label, weight, init_score and group, and of all
            names. The container, the number types and the chunks that the values came
            in do not matter.
        """
        return (
            self._fingerprint
            if self._fingerprint is not None
            else identity.fingerprint_of(self)
        )

    def __dir__(self) -> list[str]:
        return [
            name
            for name in super().__dir__()
            if not name.startswith("_") or name.endswith("__")
        ]

    def _repr_html_(self) -> str:
        kinds = f"{self.n_columns - len(self.categories):,} of numbers, {len(self.categories):,} of categories"
        rows = [
            ("rows", f"{self.n_rows:,}"),
            ("columns", kinds),
            ("has", ", ".join(self._vectors()) or "no label"),
        ]
        return html.card(
            "sapwood.Dataset", [*rows, ("names", ", ".join(self.feature_names[:12]))]
        )

    def __repr__(self) -> str:
        bins = (
            "every value"
            if self.tree_method == "exact"
            else f"at most {self.max_bins:,} bins"
        )
        size = f"{self.n_rows:,} rows and {self.n_columns:,} columns of {bins}"
        size += f" ({len(self.categories):,} of categories)" if self.categories else ""
        size += f" ({len(self.crosses):,} crosses)" if len(self.crosses) else ""
        return f"<sapwood.Dataset of {size}, with {', '.join(self._vectors()) or 'no label'}>"

    def _bin(
        self,
        chunks: list[ingest.Columns],
        feature_names: Sequence[str] | None,
        bins: Mapping[str, Any],
        reference: Dataset | None,
        n_jobs: int | None,
        vectors: Mapping[str, Any],
        holders: tuple[Reduce, Sequence[int]] | None = None,
    ) -> None:
        """Bring the chunks in line with each other, or with the reference, and bin
        them.
        """
        if feature_names is not None:
            chunks = [ingest.rename(chunk, feature_names) for chunk in chunks]
        if reference is None:
            names, n_columns = dealt.gather(
                holders and holders[0], (chunks[0].names, chunks[0].n_columns)
            )[0]
            names = names and tuple(names)
            known = None
            crosses = crossing.NONE
            ingest.check_names(names)
        else:
            crosses = reference.crosses
            n_columns = reference.n_given
            names = reference.feature_names[:n_columns] if reference.named else None
            known = reference.cuts, reference.categories
        chunks = [ingest.align(chunk, names, n_columns) for chunk in chunks]
        all_names = names or tuple(f"f{j}" for j in range(n_columns))
        if reference is None:
            self.times, own = derived.learn_from(
                chunks, bins, all_names, vectors, self._called, holders and holders[0]
            )
            self.derived_as = {name: bins[name] for name in DERIVED}
        else:
            self.times = reference.times
            own = None
            self.derived_as = reference.derived_as
            if wrong := derived.kinds_differ(
                chunks, self.times, reference.categories, all_names
            ):
                raise categories.ColumnTypeError(wrong[0])
        chunks = derived.expand_all(chunks, self.times, own)
        all_names += derived.names_of(self.times, all_names)
        all_names += crosses.names(all_names)
        self._fill(
            chunks,
            known,
            all_names,
            names is not None,
            bins,
            n_jobs,
            vectors,
            None,
            holders,
            crosses,
        )
        if reference is None and names is not None:
            warn_of_columns(
                names,
                derived.n_bins(self.times, self.n_bins[:n_columns]),
                self.categories,
                self.n_total,
            )

    def _fill(
        self,
        chunks: list[ingest.Columns],
        known: tuple[list[NDArray[np.float64]], Mapping[int, Dictionary]] | None,
        feature_names: tuple[str, ...],
        named: bool,
        bins: Mapping[str, Any],
        n_jobs: int | None,
        vectors: Mapping[str, Any],
        unseen: dict[int, NDArray[np.int64]] | None = None,
        holders: tuple[Reduce, Sequence[int]] | None = None,
        crosses: Crosses = crossing.NONE,
    ) -> None:
        """Set every attribute; what is not known is found. ``feature_names`` has
        crosses too, which chunks may lack.
        """
        self.n_rows, self.n_columns = (
            sum(chunk.n_rows for chunk in chunks),
            len(feature_names),
        )
        self.reduce = reduce = holders[0] if holders else None
        self.n_total = dealt.total(reduce, self.n_rows)
        if self.n_total == 0:
            raise DataError("there are no rows.")
        kept = [k for k, chunk in enumerate(chunks) if chunk.n_rows] or [0]
        chunks = [chunks[k] for k in kept]
        self.positions = tuple(int(holders[1][k]) for k in kept) if holders else ()
        if reduce is not None:
            dealt.agree(reduce, dealt.facts(bins, vectors, self.n_columns))
        self.feature_names = feature_names
        self.named = named
        self.max_bins = bins["max_bins"]
        self.min_samples_bin = bins["min_samples_bin"]
        self.tree_method = bins["tree_method"]
        self.linear_leaves = bins["linear_leaves"]
        self.zero_as_missing = bins["zero_as_missing"]
        label = vectors.get("label")
        self.label = (
            None
            if label is None
            else ingest.label(label, self.n_rows, self._called[0], reduce)
        )
        self.weight = ingest.weight(
            vectors.get("weight"), self.n_rows, self._called[1], reduce
        )
        self.init_score = ingest.init_score(vectors.get("init_score"), self.n_rows)
        self.group = ingest.group(vectors.get("group"), self.n_rows)
        self.device = get(bins["device"])
        n_threads = self._n_threads = threads(n_jobs)
        self.categories = (
            chunked.learn(chunks, feature_names, self.weight, reduce)
            if known is None
            else dict(known[1])
        )
        self.crosses = crosses
        tables = chunked.tables(
            chunks, self.categories, crosses, self.n_columns, n_threads
        )
        self.unseen = (
            chunked.unseen(tables, self.categories, reduce)
            if unseen is None
            else unseen
        )
        exact = self.tree_method == "exact"
        dealt_to: dict[str, Any] = (
            {} if reduce is None else {"reduce": reduce, "positions": self.positions}
        )
        chunked.check_kept(tables, bins, [feature_names[j] for j in self.categories])
        if known is None:
            most = host.EVERY_VALUE if exact else self.max_bins
            self.cuts = chunked.cuts(
                self.device,
                tables,
                self.weight,
                (most, self.min_samples_bin),
                n_threads,
                self.categories,
                dealt_to,
            )
        else:
            self.cuts = known[0]
        n_categories = [
            self.categories[j].n_bins if j in self.categories else 0
            for j in range(self.n_columns)
        ]
        self.n_bins = [
            n or len(own) + 1 for n, own in zip(n_categories, self.cuts, strict=True)
        ]
        self.binned = self.device.Binned(
            tables, self.cuts, n_threads, exact, n_categories, **dealt_to
        )
        self.values = vectors.get("values")
        if self.linear_leaves and self.values is None:
            self.values = chunked.values(
                tables,
                self.n_rows,
                self.n_columns,
                self.categories,
                reduce,
                self._keeps,
            )
        for array in (
            *self.cuts,
            *self._vectors().values(),
            *([] if self.values is None else [self.values]),
        ):
            array.flags.writeable = False

    def _vectors(self) -> dict[str, NDArray[Any]]:
        """Label, weight, init_score and group, those that there are."""
        return {
            name: values
            for name in ROW_VECTORS
            if (values := getattr(self, name)) is not None
        }

    def _listed(self) -> dict[str, NDArray[Any]]:
        """The columns that the core lists, together, by name in a file; nothing where
        there are none.
        """
        listed: tuple[NDArray[Any], ...] = self.binned.listed(self._n_threads)
        return (
            {
                f"listed.{name}": array
                for name, array in zip(LISTED, listed, strict=True)
            }
            if len(listed[0])
            else {}
        )

    def _codes(
        self, listed: Mapping[str, NDArray[Any]]
    ) -> Iterator[tuple[str, NDArray[Any]]]:
        """All codes by name: column by column, each in the narrowest type that holds
        it, and those that are listed.
        """
        for j in self._alone(listed):
            yield f"codes.{j}", self._column(j)
        yield from listed.items()

    def _alone(self, listed: Mapping[str, NDArray[Any]]) -> list[int]:
        """The columns that are not listed."""
        together = set(listed["listed.column"].tolist()) if listed else set()
        return [j for j in range(self.n_columns) if j not in together]

    def _column(self, j: int) -> NDArray[Any]:
        """The codes of a column in the narrowest type that holds them."""
        return self.binned.codes(j).astype(
            dataset_file.code_type(self.n_bins[j]), copy=False
        )
