// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/serve/sweep_model.h"

#include <algorithm>
#include <cmath>

#include "ui/theme/text.h"
#include "ui/theme/theme.h"

namespace mw::ui {
namespace {

using formats::BenchPoint;

struct Number {
  const char* name;  // vLLM's name
  const char* help;
  double (*of)(const BenchPoint&);
};

constexpr Number kNumbers[] = {
    {"completed", "Requests that were answered", [](const BenchPoint& p) { return static_cast<double>(p.completed); }},
    {"failed", "Requests that were not; they are counted and never timed",
     [](const BenchPoint& p) { return static_cast<double>(p.failed); }},
    {"output_throughput", "Generated tokens a second", [](const BenchPoint& p) { return p.output_throughput; }},
    {"request_throughput", "Answered requests a second", [](const BenchPoint& p) { return p.request_throughput; }},
    {"median_ttft_ms", "Sending to the first token, ms", [](const BenchPoint& p) { return p.ttft.median; }},
    {"mean_ttft_ms", "Sending to the first token, ms", [](const BenchPoint& p) { return p.ttft.mean; }},
    {"p99_ttft_ms", "Sending to the first token, ms", [](const BenchPoint& p) { return p.ttft.percentile(99); }},
    {"median_tpot_ms", "Time per token after the first, ms", [](const BenchPoint& p) { return p.tpot.median; }},
    {"mean_tpot_ms", "Time per token after the first, ms", [](const BenchPoint& p) { return p.tpot.mean; }},
    {"p99_tpot_ms", "Time per token after the first, ms", [](const BenchPoint& p) { return p.tpot.percentile(99); }},
    {"median_itl_ms", "Between two tokens, ms", [](const BenchPoint& p) { return p.itl.median; }},
    {"p99_itl_ms", "Between two tokens, ms", [](const BenchPoint& p) { return p.itl.percentile(99); }},
    {"median_e2el_ms", "Sending to the last token, ms", [](const BenchPoint& p) { return p.e2el.median; }},
    {"p99_e2el_ms", "Sending to the last token, ms", [](const BenchPoint& p) { return p.e2el.percentile(99); }},
    {"median_intended_ttft_ms", "From when it should have been sent to the first token, ms: waiting in the client too",
     [](const BenchPoint& p) { return p.intended_ttft.median; }},
    {"request_goodput", "Requests a second that meet every SLO", [](const BenchPoint& p) { return p.request_goodput; }},
    {"total_token_throughput", "Prompt and generated tokens a second",
     [](const BenchPoint& p) { return p.total_token_throughput; }},
    {"max_output_tokens_per_s", "Of the best second", [](const BenchPoint& p) { return p.max_output_tokens_per_s; }},
    {"max_concurrent_requests", "Most requests in flight",
     [](const BenchPoint& p) { return p.max_concurrent_requests; }},
    {"prefix_hits", "Share of the prompt tokens that the prefix cache had",
     [](const BenchPoint& p) { return p.prefix_hits; }},
    {"output_len", "Tokens asked for", [](const BenchPoint& p) { return static_cast<double>(p.output_len); }},
    {"duration", "First intended arrival to the last end, s", [](const BenchPoint& p) { return p.duration_s; }},
};

const Number& number(int column) {
  return kNumbers[static_cast<size_t>(column - SweepModel::first_number)];
}

bool same_point(const BenchPoint& a, const BenchPoint& b) {
  const auto same = [](double x, double y) { return x == y || (std::isnan(x) && std::isnan(y)); };
  return a.input_len == b.input_len && same(a.request_rate, b.request_rate) && same(a.duration_s, b.duration_s);
}

}  // namespace

void SweepModel::show(SweepViewPtr view) {
  const SweepViewPtr before = std::move(view_);
  const size_t had = before ? before->set.points.size() : 0, has = view ? view->set.points.size() : 0;
  // During a run points are only appended, without a reset, so that the scroll position stays.
  const bool grows =
      had > 0 && has >= had &&
      std::equal(before->set.points.begin(), before->set.points.end(), view->set.points.begin(), same_point);
  if (!grows) {
    view_ = before;
    beginResetModel();
    view_ = std::move(view);
    endResetModel();
    return;
  }
  view_ = before;
  if (has > had) beginInsertRows({}, static_cast<int>(had), static_cast<int>(has) - 1);
  view_ = std::move(view);
  if (has > had) endInsertRows();
  emit dataChanged(index(0, 0), index(static_cast<int>(had) - 1, columnCount() - 1));
}

bool SweepModel::column_used(int column) const {
  if (!view_ || column < first_number) return column != audit || (view_ && !view_->findings.empty());
  return std::any_of(view_->set.points.begin(), view_->set.points.end(),
                     [&](const BenchPoint& p) { return std::isfinite(number(column).of(p)); });
}

int SweepModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() || !view_ ? 0 : static_cast<int>(view_->set.points.size());
}

int SweepModel::columnCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : first_number + static_cast<int>(std::size(kNumbers));
}

const serve::Finding* SweepModel::finding(int row, int column) const {
  if (column < first_number || !view_) return nullptr;
  return views::worst_finding(view_->findings, static_cast<size_t>(row), number(column).name);
}

QString SweepModel::notes(int row) const {
  QStringList all;
  for (const auto& f : view_->findings)
    if (f.point == static_cast<size_t>(row) && f.verdict != serve::Verdict::fine) all << finding_text(f);
  return all.join(u"<br>"_s);
}

serve::Verdict SweepModel::worst(int row) const {
  auto worst = serve::Verdict::fine;
  for (const auto& f : view_->findings)
    if (f.point == static_cast<size_t>(row)) worst = std::max(worst, f.verdict);
  return worst;
}

QString SweepModel::text(int row, int column) const {
  const BenchPoint& p = point(row);
  switch (column) {
    case input_len:
      return QString::number(p.input_len);
    case request_rate:
      return std::isfinite(p.request_rate) ? QString::number(p.request_rate, 'g', 6) : qs(views::load_text(p));
    case verdict:
      return qs(p.verdict);
    case audit: {
      QStringList rules;
      for (const auto& f : view_->findings)
        if (f.point == static_cast<size_t>(row) && f.verdict != serve::Verdict::fine) rules << qs(f.rule);
      rules.removeDuplicates();
      return rules.join(u", "_s);
    }
    default:
      const double v = number(column).of(p);
      return std::isfinite(v) ? value_text(v, v == std::floor(v) ? Quantity::count : Quantity::plain) : QString();
  }
}

QVariant SweepModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  const int row = index.row(), c = index.column();
  const auto* marked = finding(row, c);
  switch (role) {
    case Qt::DisplayRole:
      return text(row, c);
    case Qt::ToolTipRole:
      if (c == audit) return notes(row);
      if (marked) return finding_text(*marked);
      return point(row).note.empty() ? text(row, c) : qs(point(row).note);
    case Qt::BackgroundRole:
      if (marked)
        return mix(theme().panel, marked->verdict == serve::Verdict::impossible ? theme().bad : theme().warn, 0.28);
      return {};
    case Qt::ForegroundRole:
      if (c == verdict) {
        const std::string& v = point(row).verdict;
        return v == "stable" ? theme().good : v == "overloaded" ? theme().bad : theme().warn;
      }
      if (c == audit) return worst(row) == serve::Verdict::impossible ? theme().bad : theme().warn;
      return {};
    case Qt::TextAlignmentRole:
      return static_cast<int>((c == verdict || c == audit ? Qt::AlignLeft : Qt::AlignRight) | Qt::AlignVCenter);
    case value_role:
      if (c == input_len) return point(row).input_len;
      if (c == request_rate) return point(row).request_rate;
      return c < first_number ? QVariant() : QVariant(number(c).of(point(row)));
  }
  return {};
}

QVariant SweepModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal) return {};
  if (role == Qt::TextAlignmentRole)
    return static_cast<int>((section == verdict || section == audit ? Qt::AlignLeft : Qt::AlignRight) |
                            Qt::AlignVCenter);
  if (role != Qt::DisplayRole && role != Qt::ToolTipRole) return {};
  const bool tip = role == Qt::ToolTipRole;
  switch (section) {
    case input_len:
      return tip ? tr("Tokens of every prompt") : u"input_len"_s;
    case request_rate:
      return tip ? tr("Requests a second that were offered") : u"request_rate"_s;
    case verdict:
      return tip ? tr("Whether the server kept up: stable, backlogged, overloaded") : tr("verdict");
    case audit:
      return tip ? tr("Rules of the audit that this point breaks; point at it for the numbers") : tr("audit");
    default:
      return tip ? tr(number(section).help) : QString::fromLatin1(number(section).name);
  }
}

QString SweepModel::csv() const {
  QStringList names;
  for (int c = 0; c < columnCount(); ++c) names << headerData(c, Qt::Horizontal, Qt::DisplayRole).toString();
  QString out = names.join(u',') + u"\r\n"_s;
  for (int row = 0; row < rowCount(); ++row) {
    QStringList cells;
    for (int c = 0; c < columnCount(); ++c) {
      const QVariant v = index(row, c).data(value_role);
      const bool finite = v.isValid() && std::isfinite(v.toDouble());
      cells << (finite ? QString::number(v.toDouble(), 'g', 17) : csv_cell(text(row, c)));
    }
    out += cells.join(u',') + u"\r\n"_s;
  }
  return out;
}

}  // namespace mw::ui
