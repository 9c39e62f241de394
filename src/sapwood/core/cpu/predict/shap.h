// Explainer: exact Shapley values of a frozen model. Enters: flat trees, then tables. Leaves: what
// each column adds to a score.
#pragma once
#include <vector>

#include "cpu/predict/shap_paths.h"

namespace sapwood {

class Explainer {
 public:
  // weight (n_nodes): training weight of each node; throws std::invalid_argument
  Explainer(int n_columns, int n_outputs, const ForestArrays& a, const double* weight);
  int n_columns() const { return n_columns_; }
  int n_outputs() const { return n_outputs_; }
  int64_t n_trees() const { return (int64_t)trees_.size(); }
  int max_factors() const { return max_factors_; }  // largest number of columns on a path
  double expected(int64_t tree) const { return trees_[tree].expected; }
  const std::vector<Paths>& trees() const { return trees_; }
  // Gauss quadrature with n points, one after the other for n = 1, 2, ..: their places on 0..1, and
  // their weights.
  std::vector<double> points() const { return joined(points_); }
  std::vector<double> point_weights() const { return joined(point_weights_); }
  // Sums over the trees first .. last - 1: path-dependent values, or interventional ones if a
  // background is given.
  // out (n_rows, n_outputs, n_columns) OUT; with pairs (n_rows, n_outputs, n_columns, n_columns):
  // half of every interaction above the diagonal, 0 elsewhere.
  void explain(const Chunk& table, const Chunk* background, bool pairs, int64_t first, int64_t last,
               double* out, int n_threads) const;

 private:
  struct CodedRows;    // the codes of rows
  struct PatternRows;  // the pattern of each row in one group of leaves
  struct Entries;
  class Filler;  // computes the entries of one group of leaves
  static std::vector<double> joined(const std::vector<std::vector<double>>& rows) {
    std::vector<double> out;
    for (const std::vector<double>& row : rows) {
      out.insert(out.end(), row.begin(), row.end());
    }
    return out;
  }
  CodedRows encode(const Chunk& table, int64_t first, int64_t n, int n_threads) const;
  std::vector<PatternRows> match(const Paths& paths, const CodedRows& rows) const;

  int n_columns_, n_outputs_, max_factors_ = 0;
  ModelColumns columns_;
  std::vector<Paths> trees_;
  // Gauss quadrature on 0..1, by number of points
  std::vector<std::vector<double>> points_, point_weights_;
};

}  // namespace sapwood
