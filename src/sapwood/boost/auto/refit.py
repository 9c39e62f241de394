"""The second training of a candidate: on all rows, for as many more rounds as there are
more rows.

In: a contender whose best round is known. Out: models of all rows.
"""

import math
import time
from itertools import chain

from sapwood.boost.auto import cost
from sapwood.boost.auto.contender import Contender
from sapwood.boost.class_weight import with_class_weight
from sapwood.boost.loops import plain
from sapwood.boost.loops.replay import replay
from sapwood.boost.round.tree_store import TreeStore
from sapwood.boost.session import Session, make_booster
from sapwood.data.progress import tell
from sapwood.model.booster import Booster


def on_all_rows(
    contender: Contender,
    fraction: float,
    fingerprint: str,
    most: int | None = None,
    deadline: float = math.inf,
) -> list[Booster]:
    """Train a contender's models on all rows, for `most` rounds at most; `fraction` of
    the rows was held out.

    Where trees split the table's own columns, the splits stay and leaves get new
    values; only the additional rounds are grown. There is a model for each fold, since
    their splits differ. Trees that split statistics of categories are grown anew, since
    the statistics of more rows are others. Then there is one model. After the deadline
    there are no additional rounds; there is no model at all where it comes before the
    others are done.
    """
    spec = contender.spec
    n_rounds = contender.best_round
    end = math.ceil(n_rounds / (1 - fraction))
    end = end if most is None else min(end, most)
    models: list[Booster] = []
    for trees in contender.trees():
        session = Session(spec, with_class_weight(contender.data, spec.factor))
        training = session.training()
        replays = session.encoded is None
        first = replay(training, trees) if replays else ()
        nodes_a_round = 2 * cost.n_leaves(spec.params) * spec.n_outputs
        # of the model, for each round
        step_seconds = cost.NODE_SECONDS * nodes_a_round * len(contender.sessions)
        begin = time.monotonic()
        store = TreeStore(spec.n_outputs, not replays)
        for step in chain(
            first, plain.boost(training, range(n_rounds if replays else 0, end))
        ):
            store.add(step)
            tell(f"{contender.candidate.name}, on all rows", store.n_rounds, end, {})
            now = time.monotonic()
            if now + (now - begin) + step_seconds * store.n_rounds >= deadline:
                break
            begin = now
        if store.n_rounds < n_rounds:
            return []
        models.append(
            make_booster(session, store.trees(store.n_rounds), None, fingerprint, {})
        )
        if not replays:
            break
    return models
