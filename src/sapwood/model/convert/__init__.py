"""Models of other libraries as boosters: one file per format.

Files are read without the library that wrote them, but for CatBoost's binary files
(.cbm), which need catboost.

In: bytes of a file, or a live model. Out: a `Booster` with the same raw scores;
ModelFormatError on anything else.
"""

from typing import Any

from sapwood.errors import ModelFormatError
from sapwood.model.booster import Booster
from sapwood.model.convert import catboost, lightgbm, sklearn, xgboost
from sapwood.model.convert.document import of_json, of_ubjson

# The package of a live model's class says which reader to use, so no other library is
# imported.
LIVE = {
    "xgboost": xgboost.of_object,
    "lightgbm": lightgbm.of_object,
    "catboost": catboost.of_object,
    "sklearn": sklearn.of_object,
}


def of_bytes(raw: bytes) -> Booster | None:
    """Read the content of a foreign model file; None if it begins like no known
    format.
    """
    head = raw[:4096].lstrip()
    try:
        if head.startswith((b"tree\n", b"tree\r\n")):
            return lightgbm.of_bytes(raw)
        if head.startswith(b"{") and head[1:].lstrip()[:1] in (b'"', b"}"):
            found = of_json(raw)
            return (
                catboost.of_document(found)
                if "features_info" in found
                else xgboost.of_document(found)
            )
        if head.startswith(b"{"):  # UBJSON, the binary form of the same documents
            return xgboost.of_document(of_ubjson(raw))
        return catboost.of_file(raw) if head.startswith(b"CBM1") else None
    except ModelFormatError:
        raise
    # Raised by values of types and sizes that no writer produces.
    except (
        ArithmeticError,
        LookupError,
        MemoryError,
        RecursionError,
        TypeError,
        ValueError,
    ) as cause:
        raise ModelFormatError(
            f"the parts of the model do not fit together: {str(cause)[:200]}."
        ) from cause


def of_object(model: Any) -> Booster:
    """Read a live model: a fitted estimator or booster of XGBoost, LightGBM, CatBoost
    or scikit-learn.
    """
    # an estimator of ours
    if isinstance(own := getattr(model, "booster_", None), Booster):
        return own
    why = None
    for parent in type(model).__mro__:
        read = LIVE.get(parent.__module__.partition(".")[0])
        if read is not None:
            try:
                return read(model)
            except AttributeError as cause:
                # an object of such a library that is not a model, such as its dataset
                why = cause
    raise ModelFormatError(
        f"Cannot load a {type(model).__name__}; give a path, bytes, a file opened with 'rb', or a fitted model of "
        f"{', '.join(LIVE)}."
    ) from why
