// SPDX-License-Identifier: Apache-2.0
// Chart data: an append-only series with a min/max pyramid, and its smoothed companion. Not thread-safe. append() takes
// amortised O(1), decimate() O(columns * log n).
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace mw::views {

struct Point {
  double x = 0, y = 0;  // NaN in y is a gap in the line
};

struct Range {
  double min = 0, max = 0;
  bool operator==(const Range&) const = default;
};

class Series {
 public:
  // x must be finite; an x below the last one is raised to it. A non-finite y is stored as a gap (NaN).
  void append(double x, double y);
  void truncate(size_t count);   // keeps the first `count` samples
  void truncate_from(double x);  // drops every sample at x or later

  size_t size() const { return x_.size(); }
  bool empty() const { return x_.empty(); }
  Point operator[](size_t i) const { return {x_[i], y_[i]}; }
  Point back() const { return {x_.back(), y_.back()}; }
  std::span<const double> x() const { return x_; }
  std::span<const double> y() const { return y_; }
  // Index of the sample nearest to x (for cursors); empty when there is none.
  std::optional<size_t> nearest(double x) const;

  // Smallest and largest finite y with x0 <= x <= x1; empty when there is none.
  std::optional<Range> y_range(double x0, double x1) const;

  // Returns the samples for a chart of `columns` pixels over [x0, x1]: per column the minimum and the maximum in order
  // of x (one gap for a column of gaps), plus the neighbours just outside the window, so that the line reaches its
  // edges. At most 2 * columns + 2 samples.
  std::vector<Point> decimate(double x0, double x1, int columns) const;
  std::vector<size_t> decimate_indices(double x0, double x1, int columns) const;
  // Index of the largest finite y in samples [begin, end), the first of equals; empty when all are gaps.
  std::optional<size_t> max_index(size_t begin, size_t end) const;
  // Samples with x0 <= x <= x1 as [begin, end).
  std::pair<size_t, size_t> window(double x0, double x1) const;

  bool operator==(const Series& other) const;  // gaps compare equal

 private:
  static constexpr std::uint32_t kNone = 0xffffffffu;
  struct Extremes {
    std::uint32_t lo = kNone, hi = kNone;  // sample indices
  };
  void widen(Extremes& e, Extremes other) const;
  Extremes extremes(size_t begin, size_t end) const;

  std::vector<double> x_, y_;
  std::vector<std::vector<Extremes>> levels_;  // levels_[k][i]: samples [i, i+1) * 4^(k+1), complete blocks only
};

// Exponential moving average with bias correction (as TensorBoard): s = (w*s' + (1-w)*y), drawn s / (1 - w^n).
// Averages every raw sample, so the result does not depend on the zoom. Gaps stay gaps and do not change the average.
class Smoothed {
 public:
  explicit Smoothed(double weight = 0.9) : weight_(weight) {}
  void follow(const Series& raw);                     // appends the new samples of `raw`; restarts if `raw` is shorter
  void set_weight(double weight, const Series& raw);  // 0 (raw) <= weight < 1
  double weight() const { return weight_; }
  const Series& series() const { return out_; }
  bool operator==(const Smoothed&) const = default;

 private:
  double weight_, average_ = 0, decay_ = 1;  // decay_ = weight^n
  Series out_;
};

enum class Better { lower, higher };

// For each point whether no other is at least as good in x and y and better in one of them. Points that are not finite
// are never on the front.
std::vector<bool> pareto_front(std::span<const Point> points, Better x = Better::lower, Better y = Better::lower);

}  // namespace mw::views
