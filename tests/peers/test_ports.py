"""Programs written for the peers, moved to Sapwood by the smallest edits that a user
would try; the edits are counted.

Every program is text as its library's users write it. The edits are replacements in it;
the result is run.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

X, Y = load_breast_cancer(return_X_y=True, as_frame=True)
X = X.rename(columns=lambda name: name.replace(" ", "_"))
X["size"] = np.where(X["mean_radius"] > 14, "large", "small")
PARTS = train_test_split(X, Y, random_state=0)
NUMBERS = [
    part.drop(columns="size") if isinstance(part, pd.DataFrame) else part
    for part in PARTS
]

PROGRAMS: dict[str, tuple[str, list[tuple[str, str]]]] = {
    "LightGBM, train with callbacks": (
        """
import lightgbm as lgb
train_data = lgb.Dataset(X_train, label=y_train)
valid_data = lgb.Dataset(X_test, label=y_test, reference=train_data)
params = {"objective": "binary", "metric": ["auc", "binary_logloss"], "num_leaves": 15, "learning_rate": 0.1,
          "feature_fraction": 0.9, "bagging_fraction": 0.8, "bagging_freq": 5, "bagging_seed": 3, "verbosity": -1}
evals = {}
bst = lgb.train(params, train_data, num_boost_round=60, valid_sets=[train_data, valid_data],
                valid_names=["train", "valid"],
                callbacks=[lgb.early_stopping(stopping_rounds=5, first_metric_only=True), lgb.log_evaluation(10),
                           lgb.record_evaluation(evals)])
proba = bst.predict(X_test, num_iteration=bst.best_iteration)
assert len(evals["valid"]["auc"]) > bst.best_iteration and len(bst.feature_importance("gain")) == X_train.shape[1]
assert len(evals["train"]["binary_logloss"]) == len(evals["valid"]["auc"])
""",
        [
            ("import lightgbm as lgb", "import lightgbm as lgb, sapwood as sw"),
            ("lgb.Dataset", "sw.Dataset"),
            ("lgb.train", "sw.train"),
        ],
    ),
    "LightGBM, estimator": (
        """
from lightgbm import LGBMClassifier, early_stopping, log_evaluation
model = LGBMClassifier(num_leaves=15, n_estimators=60, learning_rate=0.1, min_child_samples=5, subsample=0.8,
                       subsample_freq=1, colsample_bytree=0.8, reg_alpha=0.1, random_state=42, n_jobs=1, verbose=-1)
model.fit(X_train, y_train, eval_set=[(X_test, y_test)], eval_metric="auc",
          callbacks=[early_stopping(5, verbose=False), log_evaluation(0)])
proba = model.predict_proba(X_test, num_iteration=model.best_iteration_)[:, 1]
assert model.best_score_["valid_0"]["auc"] == max(model.evals_result_["valid_0"]["auc"])
assert len(model.feature_name_) == len(model.feature_importances_) == model.n_features_
""",
        [
            (
                "from lightgbm import LGBMClassifier, early_stopping, log_evaluation",
                "from lightgbm import early_stopping, log_evaluation\\n"
                "from sapwood import SapwoodClassifier as LGBMClassifier",
            )
        ],
    ),
    "XGBoost, estimator": (
        """
from xgboost import XGBClassifier
model = XGBClassifier(n_estimators=60, max_depth=4, eta=0.1, subsample=0.8, colsample_bytree=0.8, gamma=0,
                      reg_lambda=1, objective="binary:logistic", eval_metric="logloss", tree_method="hist", n_jobs=1,
                      early_stopping_rounds=5, use_label_encoder=False, random_state=0)
model.fit(X_train, y_train, eval_set=[(X_train, y_train), (X_test, y_test)], verbose=False)
results = model.evals_result()
proba = model.predict_proba(X_test, iteration_range=(0, model.best_iteration + 1))[:, 1]
assert results["validation_1"]["logloss"][model.best_iteration] == model.best_score
assert set(model.get_booster().get_score(importance_type="gain")) <= set(X_train.columns)
""",
        [
            (
                "from xgboost import XGBClassifier",
                "from sapwood import SapwoodClassifier as XGBClassifier",
            )
        ],
    ),
    "XGBoost, train": (
        """
import xgboost as xgb
dtrain = xgb.DMatrix(X_train, label=y_train)
dtest = xgb.DMatrix(X_test, label=y_test)
params = {"objective": "binary:logistic", "eta": 0.1, "max_depth": 4, "alpha": 0.1, "eval_metric": "auc", "seed": 1,
          "nthread": 1, "max_bin": 64, "verbosity": 0}
history = {}
bst = xgb.train(params, dtrain, num_boost_round=60, evals=[(dtrain, "train"), (dtest, "eval")],
                early_stopping_rounds=5, evals_result=history, verbose_eval=False)
proba = bst.predict(dtest, iteration_range=(0, bst.best_iteration + 1))
assert len(history["eval"]["auc"]) == len(history["train"]["auc"])
assert bst.predict(dtest, pred_contribs=True).shape == (len(proba), X_train.shape[1] + 1)
""",
        [("import xgboost as xgb", "import sapwood as xgb")],
    ),
    "XGBoost, own objective and metric": (
        """
import numpy as np
import xgboost as xgb
def logregobj(preds, dtrain):
    p = 1.0 / (1.0 + np.exp(-preds))
    return p - dtrain.get_label(), p * (1.0 - p)
def evalerror(preds, dtrain):
    return "my-error", float(((preds > 0.0) != dtrain.get_label()).mean())
dtrain, dtest = xgb.DMatrix(X_train, y_train), xgb.DMatrix(X_test, y_test)
bst = xgb.train({"max_depth": 3, "eta": 0.2}, dtrain, 20, evals=[(dtest, "eval")], obj=logregobj,
                custom_metric=evalerror)
proba = 1.0 / (1.0 + np.exp(-bst.predict(dtest, output_margin=True)))
""",
        [("import xgboost as xgb", "import sapwood as xgb")],
    ),
    "CatBoost, Pool": (
        """
from catboost import CatBoostClassifier, Pool
train_pool = Pool(C_train, y_train, cat_features=["size"])
test_pool = Pool(C_test, y_test, cat_features=["size"])
model = CatBoostClassifier(iterations=60, learning_rate=0.1, depth=4, l2_leaf_reg=3, loss_function="Logloss",
                           eval_metric="AUC", random_seed=1, od_type="Iter", od_wait=5, verbose=False,
                           allow_writing_files=False)
model.fit(train_pool, eval_set=test_pool, use_best_model=True, plot=False)
proba = model.predict_proba(test_pool)[:, 1]
assert model.tree_count_ <= 60 and max(model.get_evals_result()["validation"]["AUC"]) > 0.9
assert model.predict(test_pool, prediction_type="RawFormulaVal").shape == proba.shape
""",
        [
            (
                "from catboost import CatBoostClassifier, Pool",
                "from sapwood import Pool, SapwoodClassifier as CatBoostClassifier",
            )
        ],
    ),
    "scikit-learn, histogram gradient boosting": (
        """
from sklearn.ensemble import HistGradientBoostingClassifier
model = HistGradientBoostingClassifier(max_iter=60, max_leaf_nodes=15, l2_regularization=0.1, min_samples_leaf=10,
                                       early_stopping=True, n_iter_no_change=5, validation_fraction=0.2, tol=1e-7,
                                       scoring="loss", categorical_features="from_dtype", random_state=0)
proba = model.fit(C_train, y_train).predict_proba(C_test)[:, 1]
assert model.n_iter_ <= 60 and len(list(model.staged_predict(C_test))) == model.n_iter_
""",
        [
            (
                "from sklearn.ensemble import HistGradientBoostingClassifier",
                "from sapwood import SapwoodClassifier as HistGradientBoostingClassifier",
            )
        ],
    ),
    "scikit-learn, a search over LightGBM's names": (
        """
from lightgbm import LGBMClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
grid = {"model__num_leaves": [7, 15], "model__min_child_samples": [5, 20]}
pipe = Pipeline([("scale", StandardScaler()), ("model", LGBMClassifier(n_estimators=10, verbose=-1))])
search = GridSearchCV(pipe, grid, cv=2, scoring="roc_auc").fit(X_train, y_train)
proba = search.predict_proba(X_test)[:, 1]
assert set(search.best_params_) == set(grid)
""",
        [
            (
                "from lightgbm import LGBMClassifier",
                "from sapwood import SapwoodClassifier as LGBMClassifier",
            )
        ],
    ),
    "LightGBM, cross-validation": (
        """
import lightgbm as lgb
params = {"objective": "binary", "metric": "auc", "num_leaves": 15, "verbosity": -1, "num_threads": 1}
res = lgb.cv(params, lgb.Dataset(X_train, label=y_train), num_boost_round=30, nfold=3, stratified=True, seed=1,
             callbacks=[lgb.early_stopping(5)])
best = len(res["valid auc-mean"])
proba = lgb.train(params, lgb.Dataset(X_train, label=y_train), num_boost_round=best).predict(X_test)
assert max(res["valid auc-mean"]) == res["valid auc-mean"][-1]
""",
        [("import lightgbm as lgb", "import sapwood as lgb")],
    ),
    "Optuna, with pruning": (
        """
import lightgbm as lgb
import optuna
class PruningCallback:  # as optuna_integration has it
    def __init__(self, trial, metric, valid_name="valid_0"):
        self._trial, self._metric, self._valid_name = trial, metric, valid_name
    def __call__(self, env):
        for name, metric, value, higher in env.evaluation_result_list:
            if (name, metric) == (self._valid_name, self._metric):
                self._trial.report(value, step=env.iteration)
                if self._trial.should_prune():
                    raise optuna.TrialPruned(f"Trial was pruned at iteration {env.iteration}.")
def objective(trial):
    param = {"objective": "binary", "metric": "auc", "verbosity": -1, "boosting_type": "gbdt",
             "lambda_l1": trial.suggest_float("lambda_l1", 1e-8, 10.0, log=True),
             "num_leaves": trial.suggest_int("num_leaves", 2, 31)}
    dtrain = lgb.Dataset(X_train, label=y_train)
    dvalid = lgb.Dataset(X_test, label=y_test, reference=dtrain)
    gbm = lgb.train(param, dtrain, num_boost_round=15, valid_sets=[dvalid], callbacks=[PruningCallback(trial, "auc")])
    trial.set_user_attr("model", gbm.predict(X_test).tolist())
    return ((gbm.predict(X_test) > 0.5) == y_test).mean()
optuna.logging.set_verbosity(optuna.logging.ERROR)
study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=0),
                            pruner=optuna.pruners.MedianPruner(n_startup_trials=2, n_warmup_steps=2))
study.optimize(objective, n_trials=6)
proba = np.array(study.best_trial.user_attrs["model"])
""",
        [
            ("import lightgbm as lgb", "import sapwood as lgb"),
        ],
    ),
    "LightGBM, own metric, saved and loaded": (
        """
import lightgbm as lgb
def error_rate(preds, data):
    return "error", float(np.mean((preds > 0.5) != data.get_label())), False
data = lgb.Dataset(X_train, y_train)
bst = lgb.train({"objective": "binary", "num_leaves": 7, "verbose": -1, "metric": "None"}, data, num_boost_round=30,
                valid_sets=[lgb.Dataset(X_test, y_test)], feval=error_rate)
bst.save_model(path)
bst = lgb.Booster(model_file=path)
proba = bst.predict(X_test)
assert bst.num_trees() == 30 and bst.feature_name()[0] == X_train.columns[0]
""",
        [
            ("import lightgbm as lgb", "import sapwood as lgb"),
            (
                "lgb.Dataset(X_test, y_test)",
                "lgb.Dataset(X_test, y_test, reference=data)",
            ),
            ("lgb.Booster(model_file=path)", "lgb.load(path)"),
        ],
    ),
    "LightGBM, quantiles": (
        """
from lightgbm import LGBMRegressor
low, high = (LGBMRegressor(objective="quantile", alpha=alpha, n_estimators=50, num_leaves=7, verbose=-1)
             .fit(X_train, X_train["mean_area"]).predict(X_test) for alpha in (0.05, 0.95))
inside = ((low <= X_test["mean_area"]) & (X_test["mean_area"] <= high)).mean()
assert 0.7 < inside <= 1.0
proba = y_test
""",
        [
            (
                "from lightgbm import LGBMRegressor",
                "from sapwood import SapwoodRegressor as LGBMRegressor",
            )
        ],
    ),
    "LightGBM, categories in a Dataset": (
        """
import lightgbm as lgb
for part in (C_train, C_test):
    part["size"] = part["size"].astype("category")
data = lgb.Dataset(C_train, label=y_train, categorical_feature=["size"], free_raw_data=False)
bst = lgb.train({"objective": "binary", "num_leaves": 15, "min_data_in_leaf": 5, "verbosity": -1}, data, 50)
proba = bst.predict(C_test)
names = dict(zip(bst.feature_name(), bst.feature_importance(importance_type="split")))
assert "size" in names
""",
        [("import lightgbm as lgb", "import sapwood as lgb")],
    ),
    "XGBoost, cross-validation": (
        """
import xgboost as xgb
data = xgb.DMatrix(X_train, label=y_train)
params = {"objective": "binary:logistic", "max_depth": 3, "eta": 0.2, "eval_metric": "logloss"}
found = xgb.cv(params, data, num_boost_round=60, nfold=4, stratified=True, early_stopping_rounds=5, seed=7)
best = len(found["test-logloss-mean"])
proba = xgb.train(params, data, num_boost_round=best).predict(xgb.DMatrix(X_test))
""",
        [("import xgboost as xgb", "import sapwood as xgb")],
    ),
    "XGBoost, weights, missing values and a saved model": (
        """
from xgboost import XGBClassifier
weight = np.where(y_train == 1, 1.0, 2.0)
holes = X_train.mask(np.random.default_rng(0).random(X_train.shape) < 0.1)
model = XGBClassifier(n_estimators=50, max_depth=3, learning_rate=0.2, scale_pos_weight=1, monotone_constraints=None)
model.fit(holes, y_train, sample_weight=weight)
model.save_model(path)
again = XGBClassifier()
again.load_model(path)
proba = again.predict_proba(X_test)[:, 1]
assert (proba == model.predict_proba(X_test)[:, 1]).all()
""",
        [
            (
                "from xgboost import XGBClassifier",
                "from sapwood import SapwoodClassifier as XGBClassifier",
            )
        ],
    ),
    "CatBoost, estimator": (
        """
from catboost import CatBoostClassifier
model = CatBoostClassifier(iterations=60, depth=4, learning_rate=0.1, l2_leaf_reg=3, random_seed=1,
                           cat_features=["size"], od_type="Iter", od_wait=10, verbose=False,
                           allow_writing_files=False)
model.fit(C_train, y_train, eval_set=(C_test, y_test), use_best_model=True)
proba = model.predict_proba(C_test)[:, 1]
assert len(model.get_feature_importance()) == C_train.shape[1] and model.tree_count_ <= 60
""",
        [
            (
                "from catboost import CatBoostClassifier",
                "from sapwood import SapwoodClassifier as CatBoostClassifier",
            )
        ],
    ),
    "scikit-learn, gradient boosting by stages": (
        """
from sklearn.ensemble import GradientBoostingClassifier
model = GradientBoostingClassifier(n_estimators=60, learning_rate=0.1, max_depth=3, subsample=0.8, random_state=0)
model.fit(X_train, y_train)
errors = [np.mean(stage != y_test) for stage in model.staged_predict(X_test)]
best = int(np.argmin(errors)) + 1
proba = list(model.staged_predict_proba(X_test))[best - 1][:, 1]
assert len(errors) == model.n_estimators
""",
        [
            (
                "from sklearn.ensemble import GradientBoostingClassifier",
                "from sapwood import SapwoodClassifier as GradientBoostingClassifier",
            )
        ],
    ),
    "scikit-learn, a pipeline and a stack": (
        """
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, StackingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder, StandardScaler
first = make_column_transformer((OrdinalEncoder(), ["size"]), remainder="passthrough")
trees = make_pipeline(first, HistGradientBoostingClassifier(max_iter=40, categorical_features=[0], random_state=0))
rest = make_column_transformer((StandardScaler(), list(X_train.columns)))
model = StackingClassifier([("trees", trees), ("line", make_pipeline(rest, LogisticRegression()))], cv=3)
proba = model.fit(C_train, y_train).predict_proba(C_test)[:, 1]
""",
        [
            (
                "from sklearn.ensemble import HistGradientBoostingClassifier, StackingClassifier",
                "from sapwood import SapwoodClassifier as HistGradientBoostingClassifier\\n"
                "from sklearn.ensemble import StackingClassifier",
            )
        ],
    ),
    "scikit-learn, calibration and inspection": (
        """
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.inspection import partial_dependence, permutation_importance
model = HistGradientBoostingClassifier(max_iter=30, max_leaf_nodes=7, l2_regularization=1.0, early_stopping=False)
model.fit(X_train, y_train)
rise = permutation_importance(model, X_test, y_test, n_repeats=2, random_state=0).importances_mean
line = partial_dependence(model, X_train, [int(rise.argmax())], grid_resolution=5)["average"]
assert line.shape == (1, 5)
proba = CalibratedClassifierCV(model, cv=3).fit(X_train, y_train).predict_proba(X_test)[:, 1]
""",
        [
            (
                "from sklearn.ensemble import HistGradientBoostingClassifier",
                "from sapwood import SapwoodClassifier as HistGradientBoostingClassifier",
            )
        ],
    ),
    "XGBoost, ranking": (
        """
from xgboost import XGBRanker
qid = np.sort(np.arange(len(X_train)) % 20)
model = XGBRanker(objective="rank:ndcg", n_estimators=30, max_depth=3, learning_rate=0.2, tree_method="hist")
model.fit(X_train, y_train, qid=qid)
score = model.predict(X_test)
proba = score > np.quantile(score, 1 - y_test.mean())
""",
        [
            (
                "from xgboost import XGBRanker",
                "from sapwood import SapwoodRanker as XGBRanker",
            )
        ],
    ),
    "LightGBM, ranking": (
        """
import lightgbm as lgb
sizes = [20] * 21 + [len(X_train) - 420]
model = lgb.LGBMRanker(objective="lambdarank", metric="ndcg", n_estimators=30, num_leaves=7, importance_type="gain",
                       label_gain=[0, 1], verbose=-1)
model.fit(X_train, y_train, group=sizes, eval_set=[(X_test, y_test)], eval_group=[[len(X_test)]], eval_at=[5, 10])
score = model.predict(X_test)
proba = score > np.quantile(score, 1 - y_test.mean())
""",
        [
            ("import lightgbm as lgb", "import sapwood as lgb"),
            ("lgb.LGBMRanker", "lgb.SapwoodRanker"),
        ],
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_moves(name: str, tmp_path: Path) -> None:
    text, edits = PROGRAMS[name]
    if "optuna" in text:
        pytest.importorskip("optuna")
    for old, new in edits:
        assert old in text
        text = text.replace(old, new.replace("\\n", "\n"))
    train, test, y_train, y_test = NUMBERS
    names: dict[str, Any] = {
        "np": np,
        "X_train": train,
        "X_test": test,
        "y_train": y_train,
        "y_test": y_test,
        "C_train": PARTS[0].copy(),
        "C_test": PARTS[1].copy(),
        "path": str(tmp_path / "model"),
    }
    exec(compile(text, name, "exec"), names)
    assert ((names["proba"] > 0.5) == y_test).mean() > 0.9


def test_edits_are_few() -> None:
    counts = {name: len(edits) for name, (_, edits) in PROGRAMS.items()}
    assert len(counts) == 21
    assert sum(counts.values()) / len(counts) <= 1.5 and max(counts.values()) <= 3
