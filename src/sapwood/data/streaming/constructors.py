"""How a `Dataset` is made of files and batches that do not fit in memory, and opened
again.

In: files, or batches of rows. Out: a `Dataset` whose codes lie in a store, a folder on
disk.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from sapwood.data.bin_arguments import DERIVED, arguments, usual
from sapwood.data.ingest import sources
from sapwood.data.ingest.sources import Source
from sapwood.data.streaming import build, store
from sapwood.data.streaming.limits import limit_of, resident_below, thrift
from sapwood.data.streaming.reading import Request
from sapwood.data.streaming.store import Head
from sapwood.device.threads import threads
from sapwood.errors import DataError, ParameterError, SapwoodError
from sapwood.params.types import path
from sapwood.system import folders


class Streamed:
    """The ways to a `Dataset` over a store.

    Attributes
    ----------
    store : pathlib.Path or None
        The folder that the codes are read from; None where they are in memory.
    memory_limit : int or None
        Bytes of resident memory that the process may have while it trains on this data.
    """

    store: Path | None = None
    memory_limit: int | None = None
    _fingerprint: str | None = None
    derived_as: Mapping[str, Any] | None = None
    _own_folder: Any = None

    @classmethod
    def from_files(
        cls,
        paths: Any,
        label: str | Sequence[str] | None = None,
        *,
        weight: str | None = None,
        init_score: str | Sequence[str] | None = None,
        group: str | None = None,
        columns: Sequence[str] | None = None,
        store: str | os.PathLike[str] | None = None,
        memory_limit: int | str | None = None,
        reference: Any = None,
        n_jobs: int | None = None,
        **more: Any,
    ) -> Self:
        """Make a dataset of files that need not fit in memory.

        The rows are read twice, in batches: for cuts and categories, then for codes,
        which are written to a store. Models have the bytes that the same table in
        memory would give (docs/streaming.md).

        Parameters
        ----------
        paths : str, path-like, or a list of them
            Parquet, Feather (Arrow) and CSV files, folders of them, or patterns such as
            ``"part-*.parquet"``. Rows
            come in the order of the files, those of a folder or pattern by name.
        label, weight, init_score, group : str, or for label and init_score a list of str, optional
            Which columns have them.
        columns : sequence of str, optional
            The columns that are features; all that are left, if not given.
        store : str or path-like, optional
            The folder to make; a complete store of the same files and arguments is
            opened instead. Not given: a temporary one, which is deleted with the
            dataset.
        memory_limit : int or str, optional
            Resident memory that this process may have, in bytes or as ``"2GB"``, while
            it reads and while it trains.
        reference : Dataset, optional
            As for `Dataset`.
        n_jobs : int, optional
            Threads.
        **more
            ``feature_names``, ``max_bins``, ``min_samples_bin``, ``zero_as_missing``,
            ``categorical_features`` and
            what else `Dataset` takes.

        Returns
        -------
        Dataset
        """
        taken = _taken(
            {
                "label": label,
                "weight": weight,
                "init_score": init_score,
                "group": group,
            },
            "the files",
        )
        several = [one if isinstance(one, str) else list(one) for one in taken.values()]
        wanted = None
        if columns is not None:
            others = [
                name
                for one in several
                for name in ([one] if isinstance(one, str) else one)
            ]
            wanted = [*columns, *(name for name in others if name not in columns)]
        source = sources.files(paths, wanted, thrift(limit_of(memory_limit)))
        return cls._streamed(
            source, taken, store, memory_limit, reference, n_jobs, more
        )

    @classmethod
    def from_batches(
        cls,
        batches: Any,
        label: str | Sequence[str] | None = None,
        *,
        weight: str | None = None,
        init_score: str | Sequence[str] | None = None,
        group: str | None = None,
        store: str | os.PathLike[str] | None = None,
        memory_limit: int | str | None = None,
        reference: Any = None,
        n_jobs: int | None = None,
        **more: Any,
    ) -> Self:
        """Make a dataset of batches of rows that need not fit in memory together.

        Parameters
        ----------
        batches : iterable of tables or tuples, a function that returns one, an Arrow reader, lazy frame or query
            Consecutive rows: tables, or tuples (table, label) or (table, label,
            weight). A polars lazy frame, a duckdb relation and an Arrow data set are
            read in batches. What can be iterated only once (a generator, an Arrow
            reader) is copied to disk first.
        label, weight, init_score, group, store, memory_limit, reference, n_jobs, **more
            As for `from_files`.

        Returns
        -------
        Dataset
        """
        taken = _taken(
            {
                "label": label,
                "weight": weight,
                "init_score": init_score,
                "group": group,
            },
            "the batches",
        )
        return cls._streamed(
            sources.batches(batches),
            taken,
            store,
            memory_limit,
            reference,
            n_jobs,
            more,
        )

    @classmethod
    def open(
        cls,
        store: str | os.PathLike[str],
        *,
        memory_limit: int | str | None = None,
        verify: bool = True,
        n_jobs: int | None = None,
    ) -> Self:
        """Open a store that `from_files` or `from_batches` made; its source is not
        needed.

        Parameters
        ----------
        store : str or path-like
            The folder.
        memory_limit : int or str, optional
            As for `from_files`.
        verify : bool
            Compare all bytes with their checksums first, which reads the whole store
            once.
        n_jobs : int, optional
            Threads.

        Returns
        -------
        Dataset
            A damaged or foreign folder raises `DataError`.
        """
        return cls._opened(
            Path(store), None, limit_of(memory_limit), verify, threads(n_jobs)
        )

    @classmethod
    def _opened(
        cls,
        folder: Path,
        head: Head | None,
        limit: int | None,
        verify: bool,
        n_threads: int,
    ) -> Self:
        complete = head is None
        found = store.read_head(folder) if head is None else head
        if complete and found.fingerprint is None:
            raise DataError(f"{folder} is a store that is not complete; make it anew.")
        self = cls.__new__(cls)
        try:
            vars(self).update(store.attributes(folder, found, n_threads))
            if verify:
                with resident_below(limit):
                    store.verify(folder, found, self.binned, n_threads)  # type: ignore[attr-defined]
        except SapwoodError:
            raise
        # Raised by values of types and sizes that no store has.
        except (
            ArithmeticError,
            AttributeError,
            LookupError,
            RuntimeError,
            TypeError,
            ValueError,
        ) as cause:
            raise DataError(f"{folder} is not a valid store: {cause}.") from cause
        self.store = folder
        self.memory_limit = limit
        self._fingerprint = found.fingerprint
        return self

    @classmethod
    def _streamed(
        cls,
        source: Source,
        taken: Mapping[str, Any],
        given: str | os.PathLike[str] | None,
        memory_limit: int | str | None,
        reference: Any,
        n_jobs: int | None,
        more: dict[str, Any],
    ) -> Self:
        limit, n_threads = limit_of(memory_limit), threads(n_jobs)
        names = more.pop("feature_names", None)
        own = [more.pop(name, value) for name, value in usual().items()]
        names, bins, categorical = arguments(
            cls.from_files, own, names, reference, more
        )
        for name, wrong, instead in (
            ("tree_method", "exact", "use 'hist'"),
            ("linear_leaves", True, "leave it out"),
        ):
            if bins[name] == wrong:
                raise ParameterError(
                    f"{name}={wrong!r} keeps every value in memory, and rows are streamed; {instead}."
                )
        for name in ("text_features", "embedding_features"):
            if isinstance(bins[name], list) and bins[name]:
                raise ParameterError(
                    f"{name}={bins[name]!r} names columns of which only a Dataset in memory makes others; leave it "
                    "out, or set None."
                )
        if bins["device"] != "cpu":
            raise ParameterError(
                f"device={bins['device']!r} holds all rows itself, and rows are streamed; use 'cpu'."
            )
        request = Request(
            source, taken, names, bins, categorical, reference, n_threads, limit
        )
        own_folder = folders.temporary_folder() if given is None else None
        folder = (
            Path(own_folder.name) / "store"
            if own_folder is not None
            else Path(path.check(f"store={given!r}", given))
        )
        if folder.exists():
            return cls._opened(
                folder,
                _existing(folder, build.asked_for(request)),
                limit,
                True,
                n_threads,
            )

        def finish(unfinished: Path, head: Head) -> str:
            opened: Any = cls._opened(unfinished, head, limit, False, n_threads)
            with resident_below(limit):
                return str(opened.fingerprint())

        build.build(request, folder, finish)
        self = cls._opened(folder, None, limit, False, n_threads)
        self.derived_as = getattr(
            reference, "derived_as", {name: bins[name] for name in DERIVED}
        )
        self._own_folder = own_folder  # goes with the last dataset that reads it
        return self


def _taken(given: Mapping[str, Any], where: str) -> dict[str, str | list[str]]:
    """The columns that are label, weight, init_score and group, as far as they are
    given.
    """
    found: dict[str, str | list[str]] = {}
    for name, column in given.items():
        several = (
            name in ("label", "init_score")
            and isinstance(column, list | tuple)
            and len(column) > 0
        )
        if isinstance(column, str):
            found[name] = column
        elif several and all(isinstance(one, str) for one in column):
            found[name] = list(column)
        elif column is not None:
            tuples = (
                "; batches may be tuples (table, label, weight)"
                if where == "the batches"
                else ""
            )
            raise DataError(
                f"{name} is the name of a column of {where}, not a {type(column).__name__}{tuples}."
            )
    return found


def _existing(folder: Path, asked: Any) -> Head:
    """The head of a store that is already there, if it was made from the same source in
    the same way.
    """
    head = store.read_head(folder)
    if asked["source"] is None or not store.same(head.request, asked):
        raise DataError(
            f"{folder} is already there, and was made from other data or arguments; open it with Dataset.open, delete "
            "it, or give another path."
        )
    return head
