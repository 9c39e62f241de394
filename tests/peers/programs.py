"""Programs of the peers' own documentation, moved to Sapwood by someone who had not
written Sapwood; the edits are counted.

The texts are the examples, demos and tutorials of LightGBM, XGBoost, CatBoost,
scikit-learn and Optuna, shortened, with other data. Each was first run with its imports
changed and nothing else; the other edits are what an error asked for. `PROGRAMS` has
the text and the edits of each: replacements, of which the first is that of the import.
"""

# ruff: noqa: E501
PROGRAMS: dict[str, tuple[str, list[tuple[str, str]]]] = {
    "LightGBM, simple_example.py": (
        """
import lightgbm as lgb
from sklearn.metrics import mean_squared_error
lgb_train = lgb.Dataset(X_train, y_train)
lgb_eval = lgb.Dataset(X_test, y_test, reference=lgb_train)
params = {
    "boosting_type": "gbdt", "objective": "regression", "metric": {"l2", "l1"}, "num_leaves": 31,
    "learning_rate": 0.05, "feature_fraction": 0.9, "bagging_fraction": 0.8, "bagging_freq": 5, "verbose": 0,
}
gbm = lgb.train(params, lgb_train, num_boost_round=20, valid_sets=lgb_eval,
                callbacks=[lgb.early_stopping(stopping_rounds=5)])
gbm.save_model(path + ".txt")
y_pred = gbm.predict(X_test, num_iteration=gbm.best_iteration)
rmse_test = mean_squared_error(y_test, y_pred) ** 0.5
proba = y_pred
""",
        [
            ("import lightgbm as lgb", "import sapwood as lgb"),
        ],
    ),
    "LightGBM, advanced_example.py": (
        """
import copy
import json
import pickle
import lightgbm as lgb
import numpy as np
from sklearn.metrics import roc_auc_score
num_train, num_feature = X_train.shape
W_train = np.ones(num_train)
feature_name = [f"feature_{col}" for col in range(num_feature)]
lgb_train = lgb.Dataset(X_train.to_numpy(), y_train, weight=W_train, feature_name=feature_name, categorical_feature=[21], free_raw_data=False)
lgb_eval = lgb.Dataset(X_test.to_numpy(), y_test, reference=lgb_train, weight=np.ones(len(X_test)), free_raw_data=False)
params = {"boosting_type": "gbdt", "objective": "binary", "metric": "binary_logloss", "num_leaves": 31,
          "learning_rate": 0.05, "feature_fraction": 0.9, "bagging_fraction": 0.8, "bagging_freq": 5, "verbose": 0}
gbm = lgb.train(params, lgb_train, num_boost_round=10, valid_sets=lgb_train)
print("7th feature name is:", lgb_train.get_feature_name()[6])
gbm.save_model(path + ".txt")
model_json = gbm.dump_model()
with open(path + ".json", "w+") as f:
    json.dump(model_json, f, indent=4)
print("Feature names:", gbm.feature_name(), "Feature importances:", list(gbm.feature_importance()))
bst = lgb.Booster(model_file=path + ".txt")
y_pred = bst.predict(X_test.to_numpy())
with open(path + ".pkl", "wb") as fout:
    pickle.dump(gbm, fout)
with open(path + ".pkl", "rb") as fin:
    pkl_bst = pickle.load(fin)
y_pred = pkl_bst.predict(X_test.to_numpy(), num_iteration=7)
gbm = lgb.train(params, lgb_train, num_boost_round=10, init_model=path + ".txt", valid_sets=lgb_eval)
gbm = lgb.train(params, lgb_train, num_boost_round=10, init_model=gbm, valid_sets=lgb_eval,
                callbacks=[lgb.reset_parameter(learning_rate=lambda iter: 0.05 * (0.99**iter))])
gbm = lgb.train(params, lgb_train, num_boost_round=10, init_model=gbm, valid_sets=lgb_eval,
                callbacks=[lgb.reset_parameter(bagging_fraction=[0.7] * 5 + [0.6] * 5)])
def loglikelihood(preds, train_data):
    labels = train_data.get_label()
    preds = 1.0 / (1.0 + np.exp(-preds))
    return preds - labels, preds * (1.0 - preds)
def binary_error(preds, train_data):
    labels = train_data.get_label()
    preds = 1.0 / (1.0 + np.exp(-preds))
    return "error", np.mean(labels != (preds > 0.5)), False
def accuracy(preds, train_data):
    labels = train_data.get_label()
    preds = 1.0 / (1.0 + np.exp(-preds))
    return "accuracy", np.mean(labels == (preds > 0.5)), True
params_custom_obj = copy.deepcopy(params)
params_custom_obj["objective"] = loglikelihood
gbm = lgb.train(params_custom_obj, lgb_train, num_boost_round=10, init_model=gbm, feval=[binary_error, accuracy],
                valid_sets=lgb_eval)
proba = 1.0 / (1.0 + np.exp(-gbm.predict(X_test.to_numpy())))
""",
        [
            ("import lightgbm as lgb", "import sapwood as lgb"),
            ("gbm.dump_model()", "gbm.to_text()"),
            (
                '["objective"] = loglikelihood',
                '.update(objective=loglikelihood, metric="None")',
            ),
            (
                "lgb_train, num_boost_round=10, init_model=gbm, feval",
                "lgb_train, num_boost_round=10, feval",
            ),
            (
                "reset_parameter(bagging_fraction=[0.7] * 5 + [0.6] * 5)",
                "reset_parameter(learning_rate=lambda iter: 0.04)",
            ),
        ],
    ),
    "LightGBM, sklearn_example.py": (
        """
import lightgbm as lgb
import numpy as np
from sklearn.model_selection import GridSearchCV
gbm = lgb.LGBMRegressor(num_leaves=31, learning_rate=0.05, n_estimators=20)
gbm.fit(X_train, y_train, eval_set=[(X_test, y_test)], eval_metric="l1", callbacks=[lgb.early_stopping(5)])
y_pred = gbm.predict(X_test, num_iteration=gbm.best_iteration_)
print(f"Feature importances: {list(gbm.feature_importances_)}")
def rmsle(y_true, y_pred):
    return "RMSLE", np.sqrt(np.mean(np.power(np.log1p(y_pred) - np.log1p(y_true), 2))), False
gbm.fit(X_train, y_train, eval_set=[(X_test, y_test)], eval_metric=rmsle, callbacks=[lgb.early_stopping(5)])
def rae(y_true, y_pred):
    return "RAE", np.sum(np.abs(y_pred - y_true)) / np.sum(np.abs(np.mean(y_true) - y_true)), False
gbm.fit(X_train, y_train, eval_set=[(X_test, y_test)], eval_metric=[rmsle, rae], callbacks=[lgb.early_stopping(5)])
y_pred = gbm.predict(X_test, num_iteration=gbm.best_iteration_)
estimator = lgb.LGBMRegressor(num_leaves=31)
param_grid = {"learning_rate": [0.1, 1], "n_estimators": [5, 10]}
gbm = GridSearchCV(estimator, param_grid, cv=3)
gbm.fit(X_train, y_train)
print(f"Best parameters found by grid search are: {gbm.best_params_}")
proba = gbm.predict(X_test)
""",
        [
            ("import lightgbm as lgb", "import sapwood as lgb"),
        ],
    ),
    "LightGBM, plot_example.py": (
        """
import matplotlib
matplotlib.use("Agg")
import matplotlib.pyplot as plt
import lightgbm as lgb
lgb_train = lgb.Dataset(X_train, y_train, feature_name=list(X_train.columns), categorical_feature=[21])
lgb_test = lgb.Dataset(X_test, y_test, reference=lgb_train)
params = {"num_leaves": 5, "metric": ("l1", "l2"), "verbose": 0}
evals_result = {}
gbm = lgb.train(params, lgb_train, num_boost_round=100, valid_sets=[lgb_train, lgb_test],
                callbacks=[lgb.log_evaluation(10), lgb.record_evaluation(evals_result)])
ax = lgb.plot_metric(evals_result, metric="l1")
ax = lgb.plot_importance(gbm, max_num_features=10)
ax = lgb.plot_split_value_histogram(gbm, feature="mean_radius", bins="auto")
ax = lgb.plot_tree(gbm, tree_index=53, figsize=(15, 15), show_info=["split_gain"])
plt.close("all")
proba = gbm.predict(X_test)
""",
        [
            ("import lightgbm as lgb", "import sapwood as lgb"),
            (
                'ax = lgb.plot_split_value_histogram(gbm, feature="mean_radius", bins="auto")\n',
                "",
            ),
        ],
    ),
    "LightGBM, logistic_regression.py": (
        """
import lightgbm as lgb
import numpy as np
from scipy.special import expit
def log_loss(preds, labels):
    log_likelihood = np.sum(labels * np.log(preds)) / len(preds)
    return -log_likelihood
def experiment(objective, label_type, data):
    nrounds = 5
    lgb_data = data[f"lgb_with_{label_type}_labels"]
    params = {"objective": objective, "feature_fraction": 1, "bagging_fraction": 1, "verbose": -1, "seed": 123}
    gbm = lgb.train(params, lgb_data, num_boost_round=nrounds)
    y_fitted = gbm.predict(data["X"])
    return {"y": y_fitted}
shares = expit((X_train["mean_radius"] - 14) / 2).to_numpy()
DATA = {"X": X_train, "lgb_with_binary_labels": lgb.Dataset(X_train, y_train),
        "lgb_with_probability_labels": lgb.Dataset(X_train, shares)}
experiment("xentropy", label_type="binary", data=DATA)
experiment("binary", label_type="binary", data=DATA)
experiment("xentropy", label_type="probability", data=DATA)
A = [experiment("binary", label_type="binary", data=DATA)["y"] for k in range(2)]
assert (A[0] == A[1]).all()
proba = lgb.train({"objective": "binary", "verbose": -1}, DATA["lgb_with_binary_labels"]).predict(X_test)
""",
        [
            ("import lightgbm as lgb", "import sapwood as lgb"),
        ],
    ),
    "XGBoost, basic_walkthrough.py": (
        """
import os
import pickle
import numpy as np
import xgboost as xgb
dtrain = xgb.DMatrix(X_train, label=y_train)
dtest = xgb.DMatrix(X_test, label=y_test)
param = {"max_depth": 2, "eta": 1, "objective": "binary:logistic"}
watchlist = [(dtest, "eval"), (dtrain, "train")]
num_round = 8
bst = xgb.train(param, dtrain, num_boost_round=num_round, evals=watchlist)
preds = bst.predict(dtest)
labels = dtest.get_label()
print("error=%f" % (sum(1 for i in range(len(preds)) if int(preds[i] > 0.5) != labels[i]) / float(len(preds))))
bst.save_model(path + ".json")
bst.dump_model(path + ".raw.txt")
bst2 = xgb.Booster(model_file=path + ".json")
preds2 = bst2.predict(dtest)
assert np.sum(np.abs(preds2 - preds)) == 0
pks = pickle.dumps(bst2)
bst3 = pickle.loads(pks)
proba = bst3.predict(dtest)
""",
        [
            ("import xgboost as xgb", "import sapwood as xgb"),
            (
                'bst.dump_model(path + ".raw.txt")',
                'open(path + ".raw.txt", "w").write(bst.to_text())',
            ),
        ],
    ),
    "XGBoost, boost_from_prediction.py": (
        """
import xgboost as xgb
dtrain = xgb.DMatrix(X_train, y_train)
dtest = xgb.DMatrix(X_test, y_test)
watchlist = [(dtest, "eval"), (dtrain, "train")]
param = {"max_depth": 2, "eta": 1, "objective": "binary:logistic"}
bst = xgb.train(param, dtrain, num_boost_round=3, evals=watchlist)
ptrain = bst.predict(dtrain, output_margin=True)
ptest = bst.predict(dtest, output_margin=True)
dtrain.set_base_margin(ptrain)
dtest.set_base_margin(ptest)
bst = xgb.train(param, dtrain, num_boost_round=3, evals=watchlist)
proba = bst.predict(dtest)
""",
        [
            ("import xgboost as xgb", "import sapwood as xgb"),
        ],
    ),
    "XGBoost, cross_validation.py": (
        """
import numpy as np
import xgboost as xgb
dtrain = xgb.DMatrix(X_train, y_train)
param = {"max_depth": 2, "eta": 1, "objective": "binary:logistic"}
num_round = 5
xgb.cv(param, dtrain, num_round, nfold=5, metrics={"error"}, seed=0, callbacks=[xgb.callback.EvaluationMonitor(show_stdv=True)])
res = xgb.cv(param, dtrain, num_boost_round=10, nfold=5, metrics={"error"}, seed=0,
             callbacks=[xgb.callback.EvaluationMonitor(show_stdv=False), xgb.callback.EarlyStopping(3)])
print(res)
def fpreproc(dtrain, dtest, param):
    label = dtrain.get_label()
    ratio = float(np.sum(label == 0)) / np.sum(label == 1)
    param["scale_pos_weight"] = ratio
    return (dtrain, dtest, param)
xgb.cv(param, dtrain, num_round, nfold=5, metrics={"auc"}, seed=0, fpreproc=fpreproc)
def logregobj(preds, dtrain):
    labels = dtrain.get_label()
    preds = 1.0 / (1.0 + np.exp(-preds))
    grad = preds - labels
    hess = preds * (1.0 - preds)
    return grad, hess
def evalerror(preds, dtrain):
    labels = dtrain.get_label()
    preds = 1.0 / (1.0 + np.exp(-preds))
    return "error", float(sum(labels != (preds > 0.0))) / len(labels)
param = {"max_depth": 2, "eta": 1}
xgb.cv(param, dtrain, num_round, nfold=5, seed=0, obj=logregobj, custom_metric=evalerror)
proba = xgb.train({"max_depth": 2, "objective": "binary:logistic"}, dtrain, 20).predict(xgb.DMatrix(X_test))
""",
        [
            ("import xgboost as xgb", "import sapwood as xgb"),
            ("fpreproc=fpreproc", 'class_weight="balanced"'),
        ],
    ),
    "XGBoost, continuation.py": (
        """
import pickle
import xgboost
clf = xgboost.XGBClassifier(n_estimators=16, eval_metric="logloss")
clf.fit(X_train, y_train, eval_set=[(X_train, y_train)], verbose=False)
clf.save_model(path + ".json")
loaded = xgboost.XGBClassifier()
loaded.load_model(path + ".json")
clf = xgboost.XGBClassifier(n_estimators=16 - 8, eval_metric="logloss")
clf.fit(X_train, y_train, eval_set=[(X_train, y_train)], xgb_model=loaded, verbose=False)
assert clf.get_booster().num_boosted_rounds() == 16 + 8
proba = clf.predict_proba(X_test)[:, 1]
""",
        [
            ("import xgboost\n", "import sapwood as xgboost\n"),
        ],
    ),
    "XGBoost, sklearn_examples.py": (
        """
import pickle
import numpy as np
import xgboost as xgb
from sklearn.datasets import load_iris, load_digits
from sklearn.metrics import confusion_matrix, mean_squared_error
from sklearn.model_selection import GridSearchCV, KFold, train_test_split
rng = np.random.RandomState(31337)
y = load_iris()["target"]
X = load_iris()["data"]
kf = KFold(n_splits=2, shuffle=True, random_state=rng)
for train_index, test_index in kf.split(X):
    xgb_model = xgb.XGBClassifier(n_jobs=1).fit(X[train_index], y[train_index])
    predictions = xgb_model.predict(X[test_index])
    actuals = y[test_index]
    print(confusion_matrix(actuals, predictions))
xgb_model = xgb.XGBRegressor(n_jobs=1)
clf = GridSearchCV(xgb_model, {"max_depth": [2, 4], "n_estimators": [5, 10]}, verbose=1, n_jobs=1, cv=3)
clf.fit(X_train, y_train)
print(clf.best_score_, clf.best_params_)
pickle.dump(clf, open(path + ".pkl", "wb"))
clf2 = pickle.load(open(path + ".pkl", "rb"))
assert np.allclose(clf.predict(X_train), clf2.predict(X_train))
clf = xgb.XGBClassifier(n_jobs=1, early_stopping_rounds=10, eval_metric="auc")
clf.fit(X_train, y_train, eval_set=[(X_test, y_test)])
proba = clf.predict_proba(X_test)[:, 1]
""",
        [
            ("import xgboost as xgb", "import sapwood as xgb"),
        ],
    ),
    "XGBoost, multioutput_regression.py": (
        """
import numpy as np
import xgboost as xgb
def gen_circle():
    rng = np.random.RandomState(1994)
    X = np.sort(200 * rng.rand(100, 1) - 100, axis=0)
    y = np.array([np.pi * np.sin(X).ravel(), np.pi * np.cos(X).ravel()]).T
    y[::5, :] += 0.5 - rng.rand(20, 2)
    y = y - y.min()
    y = y / y.max()
    return X, y
def rmse_model(strategy):
    X, y = gen_circle()
    reg = xgb.XGBRegressor(tree_method="hist", n_estimators=32, n_jobs=1, max_depth=8, multi_strategy=strategy, subsample=0.6)
    reg.fit(X, y, eval_set=[(X, y)])
    return reg.predict(X), y
def gradient(predt, dtrain):
    y = dtrain.get_label().reshape(predt.shape)
    return predt - y
def hessian(predt, dtrain):
    return np.ones(predt.shape)
def squared_log(predt, dtrain):
    return gradient(predt, dtrain), hessian(predt, dtrain)
def rmse(predt, dtrain):
    y = dtrain.get_label().reshape(predt.shape)
    return "PyRMSE", np.sqrt(np.sum((y - predt) ** 2) / y.size)
for strategy in ("multi_output_tree", "one_output_per_tree"):
    found, y = rmse_model(strategy)
    assert found.shape == y.shape
X, y = gen_circle()
Xy = xgb.DMatrix(X, y)
results = {}
booster = xgb.train({"tree_method": "hist", "num_target": y.shape[1], "multi_strategy": "multi_output_tree"}, dtrain=Xy,
                    num_boost_round=16, obj=squared_log, evals=[(Xy, "Train")], evals_result=results, custom_metric=rmse)
assert booster.inplace_predict(X).shape == y.shape
assert len(results["Train"]["PyRMSE"]) == 16
proba = y_test
""",
        [
            ("import xgboost as xgb", "import sapwood as xgb"),
        ],
    ),
    "XGBoost, quantile_regression.py": (
        """
import numpy as np
import xgboost as xgb
from sklearn.model_selection import train_test_split
def f(x):
    return x * np.sin(x)
rng = np.random.RandomState(1994)
X = np.atleast_2d(rng.uniform(0, 10.0, size=1000)).T
expected_y = f(X).ravel()
sigma = 0.5 + X.ravel() / 10.0
y = expected_y + rng.lognormal(sigma=sigma) - np.exp(sigma**2.0 / 2.0)
a_train, a_test, b_train, b_test = train_test_split(X, y, random_state=rng)
alpha = np.array([0.05, 0.5, 0.95])
Xy = xgb.QuantileDMatrix(a_train, b_train)
Xy_test = xgb.QuantileDMatrix(a_test, b_test, ref=Xy)
evals_result = {}
booster = xgb.train({"objective": "reg:quantileerror", "tree_method": "hist", "quantile_alpha": alpha,
                     "learning_rate": 0.04, "max_depth": 5}, Xy, num_boost_round=32, early_stopping_rounds=2,
                    evals=[(Xy, "Train"), (Xy_test, "Test")], evals_result=evals_result)
xx = np.atleast_2d(np.linspace(0, 10, 100)).T
scores = booster.inplace_predict(xx)
assert scores.shape[0] == xx.shape[0] and scores.shape[1] == alpha.shape[0]
y_lower, y_med, y_upper = scores[:, 0], scores[:, 1], scores[:, 2]
proba = y_test
""",
        [
            ("import xgboost as xgb", "import sapwood as xgb"),
        ],
    ),
    "XGBoost, categorical.py": (
        """
import numpy as np
import pandas as pd
import xgboost as xgb
frame = C_train.assign(size=C_train["size"].astype("category"))
test = C_test.assign(size=C_test["size"].astype("category"))
params = {"tree_method": "hist", "device": "cpu", "n_estimators": 32, "colsample_bylevel": 0.7}
reg = xgb.XGBRegressor(**params, enable_categorical=True)
reg.fit(frame, y_train, eval_set=[(frame, y_train)])
Xy = xgb.DMatrix(frame, y_train, enable_categorical=True)
booster = reg.get_booster()
predt_native = booster.predict(Xy)
predt_sklearn = reg.predict(frame)
np.testing.assert_allclose(predt_sklearn, predt_native)
SHAP = booster.predict(Xy, pred_interactions=True)
margin = booster.predict(Xy, output_margin=True)
np.testing.assert_allclose(np.sum(SHAP, axis=len(SHAP.shape) - 1).sum(axis=1), margin, rtol=1e-3, atol=1e-5)
proba = reg.predict(test)
""",
        [
            ("import xgboost as xgb", "import sapwood as xgb"),
        ],
    ),
    "XGBoost, predict_leaf_indices.py and predict_first_ntree.py": (
        """
import numpy as np
import xgboost as xgb
dtrain = xgb.DMatrix(X_train, y_train)
dtest = xgb.DMatrix(X_test, y_test)
param = {"max_depth": 2, "eta": 1, "objective": "binary:logistic"}
watchlist = [(dtest, "eval"), (dtrain, "train")]
bst = xgb.train(param, dtrain, num_boost_round=3, evals=watchlist)
leafindex = bst.predict(dtest, iteration_range=(0, 2), pred_leaf=True, strict_shape=True)
leafindex = bst.predict(dtest, pred_leaf=True)
assert leafindex.shape == (len(X_test), 3)
ypred1 = bst.predict(dtest, iteration_range=(0, 1))
ypred2 = bst.predict(dtest)
err1 = np.sum((ypred1 > 0.5) != dtest.get_label()) / float(len(dtest.get_label()))
model = xgb.XGBClassifier(n_estimators=3, max_depth=2, eta=1.0)
model.fit(X_train, y_train)
assert model.apply(X_test).shape == (len(X_test), 3)
proba = model.predict_proba(X_test, iteration_range=(0, 3))[:, 1]
""",
        [
            ("import xgboost as xgb", "import sapwood as xgb"),
        ],
    ),
    "CatBoost, tutorial of classification": (
        """
import numpy as np
from catboost import CatBoostClassifier, Pool
categorical_features_indices = np.where(C_train.dtypes == object)[0] if (C_train.dtypes == object).any() else [30]
train_pool = Pool(data=C_train, label=y_train, cat_features=categorical_features_indices)
validate_pool = Pool(data=C_test, label=y_test, cat_features=categorical_features_indices)
model = CatBoostClassifier(iterations=50, custom_loss=["Accuracy"], random_seed=42, logging_level="Silent",
                           allow_writing_files=False)
model.fit(train_pool, eval_set=validate_pool, plot=False)
print(model.tree_count_, model.get_params())
feature_importances = model.get_feature_importance(train_pool)
feature_names = C_train.columns
for score, name in sorted(zip(feature_importances, feature_names), reverse=True)[:3]:
    print("{}: {}".format(name, score))
shap_values = model.get_feature_importance(validate_pool, type="ShapValues")
assert shap_values.shape == (len(C_test), C_test.shape[1] + 1)
eval_metrics = model.eval_metrics(validate_pool, ["AUC"])
assert len(eval_metrics["AUC"]) == model.tree_count_
model.save_model(path + ".cbm")
model = CatBoostClassifier()
model.load_model(path + ".cbm")
proba = model.predict_proba(C_test)[:, 1]
assert model.predict(C_test)[:3].shape == (3,)
""",
        [
            ("from catboost import", "from sapwood import"),
            (
                'eval_metrics = model.eval_metrics(validate_pool, ["AUC"])',
                'eval_metrics = {"AUC": list(model.staged_predict_proba(C_test))}',
            ),
        ],
    ),
    "CatBoost, cross-validation and early stopping": (
        """
from catboost import CatBoostClassifier, Pool, cv
params = {"iterations": 30, "learning_rate": 0.2, "depth": 4, "loss_function": "Logloss", "custom_loss": "AUC",
          "random_seed": 63, "verbose": False, "allow_writing_files": False}
cv_data = cv(params=params, pool=Pool(C_train, label=y_train, cat_features=["size"]), fold_count=3, shuffle=True,
             partition_random_seed=0, stratified=True, verbose=False)
best_value = cv_data["test-Logloss-mean"].min()
best_iter = cv_data["test-Logloss-mean"].values.argmin()
print("Best validation Logloss score: {:.4f} at {}".format(best_value, best_iter))
model = CatBoostClassifier(**params, od_type="Iter", od_wait=10)
model.fit(C_train, y_train, cat_features=["size"], eval_set=(C_test, y_test), early_stopping_rounds=10)
print(model.get_best_iteration(), model.get_best_score(), model.best_score_["validation"]["Logloss"])
proba = model.predict_proba(C_test)[:, 1]
""",
        [
            ("from catboost import", "from sapwood import"),
        ],
    ),
    "CatBoost, own loss and metric": (
        """
import math
from catboost import CatBoostClassifier, Pool
class LoglossObjective(object):
    def calc_ders_range(self, approxes, targets, weights):
        assert len(approxes) == len(targets)
        if weights is not None:
            assert len(weights) == len(approxes)
        result = []
        for index in range(len(targets)):
            e = math.exp(approxes[index])
            p = e / (1 + e)
            der1 = targets[index] - p
            der2 = -p * (1 - p)
            if weights is not None:
                der1 *= weights[index]
                der2 *= weights[index]
            result.append((der1, der2))
        return result
class AccuracyMetric(object):
    def get_final_error(self, error, weight):
        return error / (weight + 1e-38)
    def is_max_optimal(self):
        return True
    def evaluate(self, approxes, target, weight):
        assert len(approxes) == 1
        assert len(target) == len(approxes[0])
        preds = approxes[0]
        accuracy_sum, weight_sum = 0, 0
        for i in range(len(preds)):
            w = 1.0 if weight is None else weight[i]
            weight_sum += w
            accuracy_sum += w * ((preds[i] > 0) == target[i])
        return accuracy_sum, weight_sum
model = CatBoostClassifier(iterations=20, learning_rate=0.3, depth=3, random_seed=0, loss_function=LoglossObjective(),
                           eval_metric=AccuracyMetric(), verbose=False, allow_writing_files=False)
model.fit(X_train, y_train, eval_set=(X_test, y_test))
preds_raw = model.predict(X_test, prediction_type="RawFormulaVal")
proba = 1 / (1 + np.exp(-preds_raw))
""",
        [
            ("from catboost import", "from sapwood import"),
        ],
    ),
    "scikit-learn, plot_hgbt_regression.py": (
        """
import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.model_selection import TimeSeriesSplit, cross_validate
common_params = {"max_iter": 30, "learning_rate": 0.3, "validation_fraction": 0.2, "random_state": 42,
                 "categorical_features": None, "scoring": "neg_root_mean_squared_error"}
hgbt = HistGradientBoostingRegressor(early_stopping=True, **common_params)
hgbt.fit(X_train, y_train)
assert len(hgbt.validation_score_) == hgbt.n_iter_ + 1
average_week_demand = hgbt.predict(X_test)
for quantile in (0.05, 0.95):
    hgbt_quantile = HistGradientBoostingRegressor(loss="quantile", quantile=quantile, max_iter=30).fit(X_train, y_train)
cst = [0] * X_train.shape[1]
cst[0] = -1
hgbt_cst = HistGradientBoostingRegressor(monotonic_cst=cst, categorical_features=None, random_state=42, max_iter=30).fit(X_train, y_train)
ts_cv = TimeSeriesSplit(n_splits=3)
cv_results = cross_validate(hgbt_cst, X_train, y_train, cv=ts_cv, scoring="neg_root_mean_squared_error")
proba = average_week_demand
""",
        [
            ("from sklearn.ensemble import", "from sapwood import"),
            (
                "assert len(hgbt.validation_score_) == hgbt.n_iter_ + 1",
                'assert len(hgbt.evals_result_["holdout"]["rmse"]) >= hgbt.n_iter_',
            ),
        ],
    ),
    "scikit-learn, plot_gradient_boosting_regression.py": (
        """
import matplotlib
matplotlib.use("Agg")
import numpy as np
from sklearn import ensemble
from sklearn.inspection import permutation_importance
from sklearn.metrics import mean_squared_error
params = {"n_estimators": 100, "max_depth": 4, "min_samples_split": 5, "learning_rate": 0.05, "loss": "squared_error"}
reg = ensemble.GradientBoostingRegressor(**params)
reg.fit(X_train, y_train)
mse = mean_squared_error(y_test, reg.predict(X_test))
test_score = np.zeros((params["n_estimators"],), dtype=np.float64)
for i, y_pred in enumerate(reg.staged_predict(X_test)):
    test_score[i] = mean_squared_error(y_test, y_pred)
train_score = reg.train_score_
feature_importance = reg.feature_importances_
sorted_idx = np.argsort(feature_importance)
result = permutation_importance(reg, X_test, y_test, n_repeats=2, random_state=42, n_jobs=1)
proba = reg.predict(X_test)
""",
        [
            ("from sklearn import ensemble", "import sapwood as ensemble"),
            ('"min_samples_split": 5, ', ""),
            (
                "reg.fit(X_train, y_train)",
                "reg.fit(X_train, y_train, eval_set=[(X_train, y_train)])",
            ),
            ("reg.train_score_", 'reg.evals_result_["valid"]["rmse"]'),
        ],
    ),
    "scikit-learn, plot_gradient_boosting_quantile.py": (
        """
from sklearn.ensemble import GradientBoostingRegressor, HistGradientBoostingRegressor
from sklearn.experimental import enable_halving_search_cv  # noqa
from sklearn.metrics import make_scorer, mean_pinball_loss
from sklearn.model_selection import HalvingRandomSearchCV
all_models = {}
common_params = dict(learning_rate=0.05, n_estimators=50, max_depth=2, min_samples_leaf=9, min_samples_split=9)
for alpha in [0.05, 0.5, 0.95]:
    gbr = GradientBoostingRegressor(loss="quantile", alpha=alpha, **common_params)
    all_models["q %1.2f" % alpha] = gbr.fit(X_train, X_train["mean_area"])
gbr_ls = GradientBoostingRegressor(loss="squared_error", **common_params)
all_models["mse"] = gbr_ls.fit(X_train, X_train["mean_area"])
inside = (all_models["q 0.05"].predict(X_test) <= X_test["mean_area"]) & (X_test["mean_area"] <= all_models["q 0.95"].predict(X_test))
assert inside.mean() > 0.6
param_grid = dict(learning_rate=[0.05, 0.1, 0.2], max_depth=[2, 5, 10], min_samples_leaf=[1, 5, 10, 20],
                  min_samples_split=[5, 10, 20, 30, 50])
neg_mean_pinball_loss_05p_scorer = make_scorer(mean_pinball_loss, alpha=0.05, greater_is_better=False)
gbr = GradientBoostingRegressor(loss="quantile", alpha=0.05, n_estimators=10, random_state=0)
search_05p = HalvingRandomSearchCV(gbr, param_grid, resource="n_estimators", max_resources=20, min_resources=10,
                                   scoring=neg_mean_pinball_loss_05p_scorer, n_jobs=1, random_state=0, cv=2, n_candidates=3).fit(X_train, X_train["mean_area"])
proba = y_test
""",
        [
            ("from sklearn.ensemble import", "from sapwood import"),
            (",\n                  min_samples_split=[5, 10, 20, 30, 50]", ""),
        ],
    ),
    "Optuna, lightgbm_integration.py": (
        """
import lightgbm as lgb
import numpy as np
import optuna
import sklearn.metrics
def objective(trial):
    dtrain = lgb.Dataset(X_train, label=y_train)
    dvalid = lgb.Dataset(X_test, label=y_test)
    param = {
        "objective": "binary", "metric": "auc", "verbosity": -1, "boosting_type": "gbdt",
        "bagging_fraction": trial.suggest_float("bagging_fraction", 0.4, 1.0),
        "bagging_freq": trial.suggest_int("bagging_freq", 1, 7),
        "min_child_samples": trial.suggest_int("min_child_samples", 5, 100),
        "lambda_l1": trial.suggest_float("lambda_l1", 1e-8, 10.0, log=True),
        "max_bin": trial.suggest_int("max_bin", 31, 255),
    }
    gbm = lgb.train(param, dtrain, num_boost_round=10, valid_sets=[dvalid])
    preds = gbm.predict(X_test)
    trial.set_user_attr("p", preds.tolist())
    pred_labels = np.rint(preds)
    return sklearn.metrics.accuracy_score(y_test, pred_labels)
optuna.logging.set_verbosity(optuna.logging.ERROR)
study = optuna.create_study(direction="maximize")
study.optimize(objective, n_trials=4)
proba = np.array(study.best_trial.user_attrs["p"])
""",
        [
            ("import lightgbm as lgb", "import sapwood as lgb"),
        ],
    ),
}
