"""What an automatic fit has tried and decided, for people.

In: facts of the fit. Out: a few plain sentences, and the same figures as values.
"""

from dataclasses import dataclass

from sapwood.printable import printable


@dataclass(frozen=True)
class Tried:
    """A candidate that was trained."""

    name: str
    rounds: int  # up to the best one
    loss: float  # of the held-out rows, after the best round
    seconds: float
    part: float  # of the blend; 0: not in the model
    stopped: bool = False  # in a race, after its first rounds

    def say(self, metric: str) -> None:
        """Print how the candidate has done."""
        print(
            f"{self.name}: {metric} {self.loss:.6g} after {self.rounds} rounds, {self.seconds:.1f} s",
            flush=True,
        )


@dataclass(frozen=True)
class Chosen:
    """What an automatic fit has tried and decided; `str` says it in words."""

    quality: str
    metric: str
    n_rows: int
    n_held: int
    n_folds: int  # trainings of each candidate, which held out other rows each
    refitted: bool
    tried: tuple[Tried, ...]
    seconds: float
    # how many of the models of all folds have not seen a row; 0: the model is not their
    # mean
    held_by: int = 0
    factor: float = 1.0  # on the raw scores of classes
    notes: tuple[str, ...] = ()  # why less was tried than usual, in sentences

    def __str__(self) -> str:
        held = f"{self.n_held:,} of {self.n_rows:,} rows were held out"
        if self.held_by:
            held = f"each of {self.n_rows:,} rows was held out from {self.held_by} of {self.n_folds} models"
        elif self.n_folds > 1:
            held = f"each of {self.n_rows:,} rows was held out in one of {self.n_folds} folds"
        lines = [
            f"quality={self.quality!r}: {held} to compare candidates.",
            *self.notes,
        ]
        for one in self.tried:
            use = (
                f"{one.part:.0%} of the model"
                if one.part
                else "stopped in a race"
                if one.stopped
                else "not used"
            )
            lines.append(
                f"  {one.name}: {self.metric} {one.loss:.6g} after {one.rounds} rounds, {one.seconds:.2f} s; {use}."
            )
        if self.refitted:
            lines.append(
                "What was chosen was then trained on all rows, for as many more rounds as there are more rows."
            )
        elif self.held_by:
            rest = self.n_folds - self.held_by
            lines.append(
                f"The model is the mean of these {self.n_folds} models, so each row is in {rest} of them."
            )
        elif self.n_held:
            lines.append(
                "What was chosen was not trained again, so the rows that were held out are not in the model."
            )
        if self.factor != 1:
            lines.append(
                f"Its scores are times {self.factor:.3g}: by the held-out rows, labels have so little noise."
            )
        lines.append(f"All took {self.seconds:.2f} s.")
        return "\n".join(map(printable, lines))

    __repr__ = __str__
