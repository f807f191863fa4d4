// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/serve/sweep_model.h"

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
    {"completed", QT_TR_NOOP("Completed requests"),
     [](const BenchPoint& p) { return static_cast<double>(p.completed); }},
    {"failed", QT_TR_NOOP("Failed requests, which are counted but not timed"),
     [](const BenchPoint& p) { return static_cast<double>(p.failed); }},
    {"output_throughput", QT_TR_NOOP("Generated tokens per second"),
     [](const BenchPoint& p) { return p.output_throughput; }},
    {"request_throughput", QT_TR_NOOP("Completed requests per second"),
     [](const BenchPoint& p) { return p.request_throughput; }},
    {"median_ttft_ms", QT_TR_NOOP("Time from sending to the first token, ms"),
     [](const BenchPoint& p) { return p.ttft.median; }},
    {"mean_ttft_ms", QT_TR_NOOP("Time from sending to the first token, ms"),
     [](const BenchPoint& p) { return p.ttft.mean; }},
    {"p99_ttft_ms", QT_TR_NOOP("Time from sending to the first token, ms"),
     [](const BenchPoint& p) { return p.ttft.percentile(99); }},
    {"median_tpot_ms", QT_TR_NOOP("Time per token after the first, ms"),
     [](const BenchPoint& p) { return p.tpot.median; }},
    {"mean_tpot_ms", QT_TR_NOOP("Time per token after the first, ms"), [](const BenchPoint& p) { return p.tpot.mean; }},
    {"p99_tpot_ms", QT_TR_NOOP("Time per token after the first, ms"),
     [](const BenchPoint& p) { return p.tpot.percentile(99); }},
    {"median_itl_ms", QT_TR_NOOP("Time between two tokens, ms"), [](const BenchPoint& p) { return p.itl.median; }},
    {"p99_itl_ms", QT_TR_NOOP("Time between two tokens, ms"), [](const BenchPoint& p) { return p.itl.percentile(99); }},
    {"median_e2el_ms", QT_TR_NOOP("Time from sending to the last token, ms"),
     [](const BenchPoint& p) { return p.e2el.median; }},
    {"p99_e2el_ms", QT_TR_NOOP("Time from sending to the last token, ms"),
     [](const BenchPoint& p) { return p.e2el.percentile(99); }},
    {"median_intended_ttft_ms",
     QT_TR_NOOP("Time from the intended sending to the first token, ms, including waiting in the client"),
     [](const BenchPoint& p) { return p.intended_ttft.median; }},
    {"request_goodput", QT_TR_NOOP("Requests per second that meet every SLO"),
     [](const BenchPoint& p) { return p.request_goodput; }},
    {"total_token_throughput", QT_TR_NOOP("Prompt and generated tokens per second"),
     [](const BenchPoint& p) { return p.total_token_throughput; }},
    {"max_output_tokens_per_s", QT_TR_NOOP("Output tokens in the best second"),
     [](const BenchPoint& p) { return p.max_output_tokens_per_s; }},
    {"max_concurrent_requests", QT_TR_NOOP("Largest number of requests in flight"),
     [](const BenchPoint& p) { return p.max_concurrent_requests; }},
    {"prefix_hits", QT_TR_NOOP("Share of the prompt tokens found in the prefix cache"),
     [](const BenchPoint& p) { return p.prefix_hits; }},
    {"output_len", QT_TR_NOOP("Requested output tokens"),
     [](const BenchPoint& p) { return static_cast<double>(p.output_len); }},
    {"duration", QT_TR_NOOP("Time from the first intended arrival to the last completion, s"),
     [](const BenchPoint& p) { return p.duration_s; }},
};

const Number& number(int column) {
  return kNumbers[static_cast<size_t>(column - SweepModel::first_number)];
}

bool same_point(const BenchPoint& a, const BenchPoint& b) {
  const auto same = [](double x, double y) { return x == y || (std::isnan(x) && std::isnan(y)); };
  return a.input_len == b.input_len && same(a.request_rate, b.request_rate) && same(a.duration_s, b.duration_s);
}

}  // namespace

SweepModel::SweepModel()
    : TableModel(table_columns(),
                 [this](const SweepRow& row, int column, int role) { return cell(row, column, role); }) {}

SweepModel::Columns SweepModel::table_columns() const {
  Columns columns{{.title = u"input_len"_s,
                   .tooltip = tr("Tokens per prompt"),
                   .alignment = Qt::AlignRight,
                   .text = [](const SweepRow& r) { return QString::number(r.point.input_len); },
                   .sort_key = [](const SweepRow& r) { return r.point.input_len; }},
                  {.title = u"request_rate"_s,
                   .tooltip = tr("Offered requests per second"),
                   .alignment = Qt::AlignRight,
                   .text =
                       [](const SweepRow& r) {
                         const double rate = r.point.request_rate;
                         return std::isfinite(rate) ? QString::number(rate, 'g', 6) : qs(views::load_text(r.point));
                       },
                   .sort_key = [](const SweepRow& r) { return r.point.request_rate; }},
                  {.title = tr("verdict"),
                   .tooltip = tr("Whether the server kept up: stable, backlogged, overloaded"),
                   .text = [](const SweepRow& r) { return qs(r.point.verdict); }},
                  {.title = tr("audit"),
                   .tooltip = tr("Audit rules that this point violates; details are in the tooltips"),
                   .text = [this](const SweepRow& r) {
                     QStringList rules;
                     for (const auto* finding : findings(r)) rules << qs(finding->rule);
                     rules.removeDuplicates();
                     return rules.join(u", "_s);
                   }}};
  for (const Number& number : kNumbers)
    columns.push_back({.title = QString::fromLatin1(number.name),
                       .tooltip = tr(number.help),
                       .alignment = Qt::AlignRight,
                       .text =
                           [&number](const SweepRow& r) {
                             const double v = number.of(r.point);
                             if (!std::isfinite(v)) return QString();
                             return value_text(v, v == std::floor(v) ? Quantity::count : Quantity::plain);
                           },
                       .sort_key = [&number](const SweepRow& r) { return number.of(r.point); }});
  return columns;
}

void SweepModel::show(SweepViewPtr view) {
  view_ = std::move(view);
  std::vector<SweepRow> now;
  if (view_)
    for (const BenchPoint& point : view_->set.points) now.push_back({point, now.size()});
  set_rows(std::move(now), [](const SweepRow& a, const SweepRow& b) { return same_point(a.point, b.point); });
}

bool SweepModel::is_column_used(int column) const {
  if (!view_ || column < first_number) return column != audit || (view_ && !view_->findings.empty());
  return std::any_of(view_->set.points.begin(), view_->set.points.end(),
                     [&](const BenchPoint& p) { return std::isfinite(number(column).of(p)); });
}

std::vector<const serve::Finding*> SweepModel::findings(const SweepRow& row) const {
  std::vector<const serve::Finding*> found;
  for (const auto& f : view_->findings)
    if (f.point == row.index && f.verdict != serve::Verdict::fine) found.push_back(&f);
  return found;
}

QVariant SweepModel::cell(const SweepRow& row, int column, int role) const {
  const auto* marked =
      column < first_number ? nullptr : views::worst_finding(view_->findings, row.index, number(column).name);
  switch (role) {
    case Qt::ToolTipRole: {
      if (marked) return finding_text(*marked);
      if (column != audit) return row.point.note.empty() ? QVariant() : qs(row.point.note);
      QStringList all;
      for (const auto* finding : findings(row)) all << finding_text(*finding);
      return all.join(u"<br>"_s);
    }
    case Qt::BackgroundRole:
      if (!marked) return {};
      return mix(theme().panel, marked->verdict == serve::Verdict::impossible ? theme().bad : theme().warn, 0.28);
    case Qt::ForegroundRole: {
      const std::string& v = row.point.verdict;
      if (column == verdict) return v == "stable" ? theme().good : v == "overloaded" ? theme().bad : theme().warn;
      if (column != audit) return {};
      const auto all = findings(row);
      const bool impossible =
          std::any_of(all.begin(), all.end(), [](const auto* f) { return f->verdict == serve::Verdict::impossible; });
      return impossible ? theme().bad : theme().warn;
    }
    default:
      return {};
  }
}

}  // namespace mw::ui
