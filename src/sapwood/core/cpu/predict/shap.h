// Explainer: exact Shapley values of a frozen model. Enters: flat trees, then tables. Leaves: what each column adds to a score.
#pragma once
#include <vector>

#include "cpu/predict/shap_paths.h"

namespace sapwood {

class Explainer {
 public:
  // weight (n_nodes): how much of the data each node has seen; throws std::invalid_argument
  Explainer(int n_columns, int n_outputs, const ForestArrays& a, const double* weight);
  int n_columns() const { return n_columns_; }
  int n_outputs() const { return n_outputs_; }
  int64_t n_trees() const { return (int64_t)trees_.size(); }
  int most_factors() const { return most_factors_; }  // columns on the path of a leaf
  double expected(int64_t tree) const { return trees_[tree].expected; }
  // Sums over the trees first .. last - 1, by the weights of nodes or, with a background, against its rows.
  // out (n_rows, n_outputs, n_columns) OUT; of pairs (n_rows, n_outputs, n_columns, n_columns): half of every interaction above the
  // diagonal, 0 elsewhere.
  void explain(const Chunk& table, const Chunk* background, bool pairs, int64_t first, int64_t last, double* out,
               int n_threads) const;

 private:
  struct CodedRows;    // rows as codes
  struct PatternRows;  // rows as patterns of a tree's groups
  struct Entries;
  CodedRows encode(const Chunk& table, int64_t first, int64_t n, int n_threads) const;
  std::vector<PatternRows> meet(const Paths& paths, const CodedRows& rows) const;
  Entries fill(const LeafGroup& g, PatternRows&& rows, const PatternRows* background, bool pairs) const;

  int n_columns_, n_outputs_, most_factors_ = 0;
  ModelColumns asked_;
  std::vector<Paths> trees_;
  std::vector<std::vector<double>> at_, mass_;  // Gauss's rules on 0..1, by number of points
};

}  // namespace sapwood
