// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/serve/sweep_model.h"

#include <iterator>
#include <utility>

#include "core/compare/comparison.h"
#include "ui/theme/theme.h"

namespace mw::ui {
namespace {

using formats::BenchPoint;

struct Number {
  const char *name, *title, *help;  // name: vLLM's
  double (*of)(const BenchPoint&);
};

// The most important first: only those that fit are shown.
constexpr Number kNumbers[] = {
    {"median_ttft_ms", QT_TRANSLATE_NOOP("mw::ui::SweepModel", "TTFT p50 (ms)"),
     QT_TRANSLATE_NOOP("mw::ui::SweepModel", "Time from sending to the first token"),
     [](const BenchPoint& p) { return p.ttft.median; }},
    {"median_tpot_ms", QT_TRANSLATE_NOOP("mw::ui::SweepModel", "TPOT p50 (ms)"),
     QT_TRANSLATE_NOOP("mw::ui::SweepModel", "Time per token after the first"),
     [](const BenchPoint& p) { return p.tpot.median; }},
    {"output_throughput", QT_TRANSLATE_NOOP("mw::ui::SweepModel", "Output (tokens/s)"),
     QT_TRANSLATE_NOOP("mw::ui::SweepModel", "Generated tokens per second"),
     [](const BenchPoint& p) { return p.output_throughput; }},
    {"p99_ttft_ms", QT_TRANSLATE_NOOP("mw::ui::SweepModel", "TTFT p99 (ms)"),
     QT_TRANSLATE_NOOP("mw::ui::SweepModel", "Time from sending to the first token"),
     [](const BenchPoint& p) { return p.ttft.percentile(99); }},
    {"p99_tpot_ms", QT_TRANSLATE_NOOP("mw::ui::SweepModel", "TPOT p99 (ms)"),
     QT_TRANSLATE_NOOP("mw::ui::SweepModel", "Time per token after the first"),
     [](const BenchPoint& p) { return p.tpot.percentile(99); }},
    {"median_e2el_ms", QT_TRANSLATE_NOOP("mw::ui::SweepModel", "E2E p50 (ms)"),
     QT_TRANSLATE_NOOP("mw::ui::SweepModel", "Time from sending to the last token"),
     [](const BenchPoint& p) { return p.e2el.median; }},
    {"p99_e2el_ms", QT_TRANSLATE_NOOP("mw::ui::SweepModel", "E2E p99 (ms)"),
     QT_TRANSLATE_NOOP("mw::ui::SweepModel", "Time from sending to the last token"),
     [](const BenchPoint& p) { return p.e2el.percentile(99); }},
    {"completed", QT_TRANSLATE_NOOP("mw::ui::SweepModel", "Completed"),
     QT_TRANSLATE_NOOP("mw::ui::SweepModel", "Completed requests"),
     [](const BenchPoint& p) { return static_cast<double>(p.completed); }},
    {"failed", QT_TRANSLATE_NOOP("mw::ui::SweepModel", "Failed"),
     QT_TRANSLATE_NOOP("mw::ui::SweepModel", "Failed requests, which are counted but not timed"),
     [](const BenchPoint& p) { return static_cast<double>(p.failed); }},
    {"request_goodput", QT_TRANSLATE_NOOP("mw::ui::SweepModel", "Goodput (requests/s)"),
     QT_TRANSLATE_NOOP("mw::ui::SweepModel", "Requests per second that meet every SLO"),
     [](const BenchPoint& p) { return p.request_goodput; }},
    {"request_throughput", QT_TRANSLATE_NOOP("mw::ui::SweepModel", "Completed (requests/s)"),
     QT_TRANSLATE_NOOP("mw::ui::SweepModel", "Completed requests per second"),
     [](const BenchPoint& p) { return p.request_throughput; }},
    {"median_itl_ms", QT_TRANSLATE_NOOP("mw::ui::SweepModel", "ITL p50 (ms)"),
     QT_TRANSLATE_NOOP("mw::ui::SweepModel", "Time between two tokens"),
     [](const BenchPoint& p) { return p.itl.median; }},
    {"p99_itl_ms", QT_TRANSLATE_NOOP("mw::ui::SweepModel", "ITL p99 (ms)"),
     QT_TRANSLATE_NOOP("mw::ui::SweepModel", "Time between two tokens"),
     [](const BenchPoint& p) { return p.itl.percentile(99); }},
    {"mean_ttft_ms", QT_TRANSLATE_NOOP("mw::ui::SweepModel", "TTFT mean (ms)"),
     QT_TRANSLATE_NOOP("mw::ui::SweepModel", "Time from sending to the first token"),
     [](const BenchPoint& p) { return p.ttft.mean; }},
    {"mean_tpot_ms", QT_TRANSLATE_NOOP("mw::ui::SweepModel", "TPOT mean (ms)"),
     QT_TRANSLATE_NOOP("mw::ui::SweepModel", "Time per token after the first"),
     [](const BenchPoint& p) { return p.tpot.mean; }},
    {"median_intended_ttft_ms", QT_TRANSLATE_NOOP("mw::ui::SweepModel", "Intended TTFT p50 (ms)"),
     QT_TRANSLATE_NOOP("mw::ui::SweepModel",
                       "Time from the intended sending to the first token, including waiting in the client"),
     [](const BenchPoint& p) { return p.intended_ttft.median; }},
    {"total_token_throughput", QT_TRANSLATE_NOOP("mw::ui::SweepModel", "Total (tokens/s)"),
     QT_TRANSLATE_NOOP("mw::ui::SweepModel", "Prompt and generated tokens per second"),
     [](const BenchPoint& p) { return p.total_token_throughput; }},
    {"max_output_tokens_per_s", QT_TRANSLATE_NOOP("mw::ui::SweepModel", "Peak output (tokens/s)"),
     QT_TRANSLATE_NOOP("mw::ui::SweepModel", "Output tokens in the best second"),
     [](const BenchPoint& p) { return p.max_output_tokens_per_s; }},
    {"max_concurrent_requests", QT_TRANSLATE_NOOP("mw::ui::SweepModel", "Peak in flight"),
     QT_TRANSLATE_NOOP("mw::ui::SweepModel", "Largest number of requests in flight"),
     [](const BenchPoint& p) { return p.max_concurrent_requests; }},
    {"prefix_hits", QT_TRANSLATE_NOOP("mw::ui::SweepModel", "Prefix hits (share)"),
     QT_TRANSLATE_NOOP("mw::ui::SweepModel", "Share of the prompt tokens found in the prefix cache"),
     [](const BenchPoint& p) { return p.prefix_hits; }},
    {"output_len", QT_TRANSLATE_NOOP("mw::ui::SweepModel", "Output length (tokens)"),
     QT_TRANSLATE_NOOP("mw::ui::SweepModel", "Requested output tokens"),
     [](const BenchPoint& p) { return static_cast<double>(p.output_len); }},
    {"duration", QT_TRANSLATE_NOOP("mw::ui::SweepModel", "Duration (s)"),
     QT_TRANSLATE_NOOP("mw::ui::SweepModel", "Time from the first intended arrival to the last completion"),
     [](const BenchPoint& p) { return p.duration_s; }},
};

const Number& number_at(int column) {
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
  Columns columns{{.title = tr("Prompt (tokens)"),
                   .tooltip = tr("Tokens per prompt"),
                   .alignment = Qt::AlignRight,
                   .text = [](const SweepRow& r) { return QString::number(r.point.input_len); },
                   .sort_key = [](const SweepRow& r) { return r.point.input_len; }},
                  {.title = tr("Rate (requests/s)"),
                   .tooltip = tr("Offered requests per second"),
                   .alignment = Qt::AlignRight,
                   .text =
                       [](const SweepRow& r) {
                         const double rate = r.point.request_rate;
                         return std::isfinite(rate) ? QString::number(rate, 'g', 6) : qs(views::load_text(r.point));
                       },
                   .sort_key = [](const SweepRow& r) { return r.point.request_rate; }},
                  {.title = tr("Verdict"),
                   .tooltip = tr("Whether the server kept up: stable, backlogged, overloaded; too short: the arrivals "
                                 "ended before it was full"),
                   .text = [](const SweepRow& r) { return qs(serve::verdict_text(r.point)); }},
                  {.title = tr("Prefix cache"),
                   .tooltip = tr("Share of the prompt tokens found in the prefix cache, which the server keeps between "
                                 "the rates; cold: the first rate"),
                   .alignment = Qt::AlignRight,
                   .text =
                       [](const SweepRow& r) {
                         const double hits = r.point.prefix_hits;
                         const QString share = std::isfinite(hits) ? tr("%1 %").arg(100 * hits, 0, 'g', 3) : QString();
                         return r.point.is_cold ? tr("%1 cold").arg(share).trimmed() : share;
                       },
                   .sort_key = [](const SweepRow& r) { return r.point.prefix_hits; }},
                  {.title = tr("Audit"),
                   .tooltip = tr("Audit rules that this point violates; details are in the tooltips"),
                   .text = [this](const SweepRow& r) {
                     QStringList rules;
                     for (const auto* finding : findings(r)) rules << qs(finding->rule);
                     rules.removeDuplicates();
                     return rules.join(u", "_s);
                   }}};
  for (const Number& number : kNumbers)
    columns.push_back({.title = tr(number.title),
                       .tooltip = tr("%1 (%2)").arg(tr(number.help), QLatin1String(number.name)),
                       .alignment = Qt::AlignRight,
                       .text =
                           [&number](const SweepRow& r) {
                             const double v = number.of(r.point);
                             if (!std::isfinite(v)) return QString();
                             return value_text(v, v == std::floor(v) ? AxisQuantity::count : AxisQuantity::plain);
                           },
                       .sort_key = [&number](const SweepRow& r) { return number.of(r.point); }});
  return columns;
}

QString SweepModel::csv() const {
  QStringList names{u"input_len"_s, u"request_rate"_s, u"verdict"_s, u"cache"_s, u"audit"_s};
  for (const Number& each : kNumbers) names << QString::fromLatin1(each.name);
  const QString titled = TableModel::csv();
  return names.join(u',') + titled.mid(titled.indexOf(u"\r\n"_s));
}

void SweepModel::show(SweepViewPtr view) {
  view_ = std::move(view);
  std::vector<SweepRow> now;
  if (view_)
    for (const BenchPoint& point : view_->set.points) now.push_back({point, now.size()});
  set_rows(std::move(now), [](const SweepRow& a, const SweepRow& b) { return same_point(a.point, b.point); });
}

bool SweepModel::is_column_used(int column) const {
  if (column == cache) return view_ && view_->set.condition("prompts") == "replayed";
  if (!view_ || column < first_number) return column != audit || (view_ && !view_->findings.empty());
  return std::any_of(view_->set.points.begin(), view_->set.points.end(),
                     [&](const BenchPoint& p) { return std::isfinite(number_at(column).of(p)); });
}

std::vector<const audit::AuditFinding*> SweepModel::findings(const SweepRow& row) const {
  std::vector<const audit::AuditFinding*> found;
  for (const auto& f : view_->findings)
    if (f.point == row.index && f.verdict != audit::Verdict::fine) found.push_back(&f);
  return found;
}

QVariant SweepModel::cell(const SweepRow& row, int column, int role) const {
  const auto* marked =
      column < first_number ? nullptr : views::worst_finding(view_->findings, row.index, number_at(column).name);
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
      return mix(theme().panel, marked->verdict == audit::Verdict::impossible ? theme().bad : theme().warn, 0.28);
    case Qt::ForegroundRole: {
      const std::string v = serve::verdict_text(row.point);
      if (column == verdict) return v == "stable" ? theme().good : v == "overloaded" ? theme().bad : theme().warn;
      if (column != audit) return {};
      const auto all = findings(row);
      const bool impossible =
          std::any_of(all.begin(), all.end(), [](const auto* f) { return f->verdict == audit::Verdict::impossible; });
      return impossible ? theme().bad : theme().warn;
    }
    default:
      return {};
  }
}

SweepReader::SweepReader(plan::LoadContext context)
    : load_context_(std::move(context)),
      worker_([this](std::uint64_t request, const std::stop_token&, const auto&) { work(request); }) {}

void SweepReader::show(RunPtr run) {
  run_ = std::move(run);
  sent_ = 0;
  first_ = requested_ + 1;
  completed_ = requested_;
  if (!run_) return;
  settings_sent_ = !run_->view.info().empty();
  const auto& points = run_->view.points();
  sent_ = points.size();
  send({.from_start = true, .info = run_->view.info(), .points = points, .discarded = {}});
}

void SweepReader::grow() {
  if (!run_) return;
  if (!settings_sent_ && !run_->view.info().empty()) return show(run_);
  const auto& points = run_->view.points();
  if (points.size() < sent_) return show(run_);
  if (points.size() == sent_) return;
  const auto since = points.begin() + static_cast<std::ptrdiff_t>(sent_);
  sent_ = points.size();
  send({.from_start = false, .info = {}, .points = {since, points.end()}, .discarded = {}});
}

void SweepReader::send(Input input) {
  {
    const std::lock_guard lock(mutex_);
    if (input.from_start) {
      input.discarded = std::move(input_.discarded);
      input_ = std::move(input);
    } else {
      std::move(input.points.begin(), input.points.end(), std::back_inserter(input_.points));
    }
  }
  worker_.submit(++requested_);
}

void SweepReader::discard(SweepViewPtr view) {
  if (!view) return;
  {
    const std::lock_guard lock(mutex_);
    input_.discarded.push_back(std::move(view));
  }
  worker_.submit(requested_);
}

// On the worker thread. Includes physical limits if the catalogue has model and target.
void SweepReader::work(std::uint64_t request) {
  Input input;
  {
    const std::lock_guard lock(mutex_);
    input = std::exchange(input_, {});
  }
  if (input.from_start) {
    sweep_.emplace(input.info);
  }
  if (!sweep_ || (!input.from_start && input.points.empty())) return;
  for (const event::ResultPoint& point : input.points) sweep_->add(point);
  views::SweepView view = sweep_->view();
  if (load_context_) try {
      view.findings = compare::audit_known(view.set, *load_context_());
    } catch (const Error&) {  // reported elsewhere
    }
  results_.push({request, std::make_shared<views::SweepView>(std::move(view))}, Delivery::state);
}

SweepViewPtr SweepReader::drain() {
  SweepViewPtr newest;
  for (Result& result : results_.drain().items) {
    if (result.request >= first_) {
      completed_ = std::max(completed_, result.request);
      std::swap(newest, result.view);
    }
    discard(std::move(result.view));
  }
  return newest;
}

}  // namespace mw::ui
