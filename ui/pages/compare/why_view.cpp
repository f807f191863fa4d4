// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/compare/why_view.h"

#include <QComboBox>
#include <QHBoxLayout>
#include <QPainter>
#include <algorithm>
#include <cmath>

#include "core/compare/recording.h"
#include "ui/charts/chart_strokes.h"
#include "ui/theme/text.h"
#include "ui/theme/theme.h"
#include "ui/theme/widgets.h"

namespace mw::ui {
namespace {

constexpr compare::WaterfallMetric kMetrics[] = {
    compare::WaterfallMetric::median_ttft_ms, compare::WaterfallMetric::median_tpot_ms,
    compare::WaterfallMetric::median_e2el_ms, compare::WaterfallMetric::output_throughput};

std::optional<double> known(double v) {
  return std::isfinite(v) ? std::optional(v) : std::nullopt;
}

}  // namespace

class WaterfallBars : public QWidget {
 public:
  explicit WaterfallBars(QWidget* parent) : QWidget(parent) {
    setAccessibleName(WhyView::tr("Waterfall chart of the gap"));
  }
  void show(const std::optional<compare::Waterfall>& waterfall, const QString& from, const QString& to,
            const QString& text) {
    waterfall_ = waterfall, from_ = from, to_ = to, text_ = text;
    update();
  }
  QString message() const { return text_; }

 protected:
  void paintEvent(QPaintEvent*) override {
    QPainter painter(this);
    const Theme& t = theme();
    painter.fillRect(rect(), t.panel);
    painter.setFont(small_font());
    if (!waterfall_) {
      painter.setPen(t.faint);
      painter.drawText(rect().adjusted(20, 0, -20, 0), Qt::AlignCenter | Qt::TextWordWrap, text_);
      return;
    }
    const auto& w = *waterfall_;
    most_ = std::max(w.from, w.to);
    for (const auto& part : w.parts) most_ = std::max({most_, part.before, part.after});
    const int rows = static_cast<int>(w.parts.size()) + 2;
    height_ = std::clamp((height() - 16.0) / rows, 18.0, 44.0);
    paint_bar(painter, 0, from_, {}, 0, w.from, t.series(0), std::nullopt);
    for (size_t i = 0; i < w.parts.size(); ++i) {
      const auto& part = w.parts[i];
      const bool worse = (part.delta() > 0) == (w.metric != compare::WaterfallMetric::output_throughput);
      paint_bar(painter, static_cast<int>(i) + 1, qs(part.name), qs(part.text), part.before, part.after,
                worse ? t.warn : t.good, part);
    }
    paint_bar(painter, rows - 1, to_, {}, 0, w.to, t.series(1), std::nullopt);
  }
  bool event(QEvent* event) override {
    const auto part_at = [this](QPoint at) {
      const int row = static_cast<int>((at.y() - 8) / height_) - 1;
      if (!waterfall_ || row < 0 || row >= static_cast<int>(waterfall_->parts.size())) return QString();
      const auto& part = waterfall_->parts[static_cast<size_t>(row)];
      return WhyView::tr("%1: %2\n%3 to %4, %5")
          .arg(qs(part.name), qs(part.text))
          .arg(part.before, 0, 'g', 4)
          .arg(part.after, 0, 'g', 4)
          .arg(qs(formats::to_string(part.source)));
    };
    return show_tooltip(event, *this, part_at) || QWidget::event(event);
  }

 private:
  // Simulated parts are hatched; both ends are solid.
  void paint_bar(QPainter& painter, int row, const QString& name, const QString& text, double before, double after,
                 const QColor& color, const std::optional<compare::WaterfallPart>& part) const {
    const Theme& t = theme();
    const double names = std::clamp(width() * 0.42, 120.0, 330.0), left = names + 10, right = width() - 76.0;
    const double y = 8 + row * height_, bar = std::min(20.0, height_ - 6);
    const auto x = [&](double v) { return left + (most_ > 0 ? v / most_ : 0) * std::max(10.0, right - left); };
    const QFont bold = demi_bold(small_font());
    const QFontMetricsF strong(bold), metrics(small_font());
    painter.setFont(bold);
    painter.setPen(t.text);
    // Name above the change if the height allows, otherwise side by side.
    const bool two_lines = !text.isEmpty() && height_ >= strong.height() + metrics.height();
    const double share = text.isEmpty() || two_lines ? 1 : 0.5, half = two_lines ? height_ / 2 : height_;
    const QString shown = strong.elidedText(name, Qt::ElideMiddle, names * share);
    painter.drawText(QRectF(10, y, names, half), two_lines ? Qt::AlignBottom : Qt::AlignVCenter, shown);
    const double taken = two_lines ? 0 : strong.horizontalAdvance(shown) + 8;
    painter.setFont(small_font());
    painter.setPen(t.muted);
    painter.drawText(QRectF(10 + taken, two_lines ? y + half : y, names - taken, half),
                     two_lines ? Qt::AlignTop : Qt::AlignVCenter,
                     metrics.elidedText(text, Qt::ElideRight, names - taken));
    const QRectF at =
        QRectF(QPointF(x(std::min(before, after)), y + (height_ - bar) / 2),
               QPointF(std::max(x(std::min(before, after)) + 2, x(std::max(before, after))), y + (height_ + bar) / 2));
    const bool predicted = part && part->source == formats::Provenance::predicted;
    painter.fillRect(at, mix(t.panel, color, predicted ? 0.3 : 0.85));
    if (predicted) painter.fillRect(at, QBrush(color, Qt::BDiagPattern));
    painter.setPen(t.text);
    const double delta = after - before;
    const QString number =
        part ? (delta >= 0 ? u"+"_s : u"\u2212"_s) + QString::number(std::abs(delta), 'f', most_ < 100 ? 1 : 0)
             : QString::number(after, 'f', most_ < 100 ? 1 : 0);
    painter.drawText(QRectF(at.right() + 5, y, 80, height_), Qt::AlignVCenter, number);
  }

  std::optional<compare::Waterfall> waterfall_;
  QString from_, to_, text_;
  mutable double most_ = 1, height_ = 24;
};

WhyView::WhyView(const std::vector<compare::ComparedRun>& runs, hardware::LoadCatalogue catalogue, QWidget* parent)
    : QWidget(parent),
      runs_(runs),
      catalogue_(std::move(catalogue)),
      other_(new QComboBox(this)),
      metric_(new QComboBox(this)),
      bars_(new WaterfallBars(this)) {
  auto* column = flush_layout<QVBoxLayout>(this, 3);
  auto* row = make_layout<QHBoxLayout>(nullptr, {2, 0, 2, 0});
  add_labelled(*row, tr("Compared run"), other_);
  add_labelled(*row, tr("Metric"), metric_);
  other_->setMaximumWidth(240);
  metric_->addItems({tr("Median TTFT (ms)"), tr("Median TPOT (ms)"), tr("Median E2E (ms)"), tr("Output tokens/s")});
  row->addStretch(1);
  column->addLayout(row);
  column->addWidget(bars_, 1);
  for (QComboBox* box : {other_, metric_}) connect(box, &QComboBox::currentIndexChanged, this, &WhyView::compute);
  connect(&task_, &BackgroundWork::ended, this, &WhyView::show_result);
}

void WhyView::show_message(const QString& text) {
  shown_.reset();
  bars_->show({}, {}, {}, text);
}

QString WhyView::message() const {
  return bars_->message();
}

void WhyView::show_cell(const QStringList& names, int input_len, const std::string& load) {
  if (names != names_) {
    names_ = names;
    const QSignalBlocker quiet(other_);
    other_->clear();
    other_->addItems(names.mid(1));
    computed_key_.clear();
  }
  input_len_ = input_len;
  load_ = load;
  compute();
}

void WhyView::compute() {
  const auto at = static_cast<size_t>(other_->currentIndex() + 1);
  if (runs_.size() < 2 || at >= runs_.size() || at == 0)
    return show_message(tr("Compare two serving results to see an explanation of the gap between them"));
  const auto metric = kMetrics[static_cast<size_t>(std::max(0, metric_->currentIndex()))];
  const auto* from = compare::point_at(runs_.front(), input_len_, load_);
  const auto* to = compare::point_at(runs_[at], input_len_, load_);
  const auto* either = from ? from : to;
  if (!either || std::isnan(either->request_rate))
    return show_message(tr("Choose a cell with a request rate; others cannot be simulated"));
  const std::string key = runs_.front().id + runs_.front().name + "|" + runs_[at].id + runs_[at].name + "|" + load_ +
                          "|" + std::to_string(input_len_) + "|" + std::to_string(metric_->currentIndex());
  if (key == computed_key_) return;
  computed_key_ = key;
  compare::WaterfallEnds ends;
  if (from && runs_.front().provenance != formats::Provenance::predicted)
    ends.from = known(compare::value_of(*from, metric));
  if (to && runs_[at].provenance != formats::Provenance::predicted) ends.to = known(compare::value_of(*to, metric));
  show_message(tr("Simulating one factor after another\u2026"));
  task_.start([baseline = compare::server_of(runs_.front()), other = compare::server_of(runs_[at]),
               point = compare::LoadPoint{either->request_rate, input_len_}, metric, ends,
               load = catalogue_](const ReportProgress&, const std::stop_token& stop) {
    return compare::waterfall({baseline, other, point, metric, ends}, load(), stop);
  });
}

void WhyView::show_result() {
  if (task_.problem()) return show_message(qs(to_text(*task_.problem())));
  if (!task_.result()) return;
  shown_ = *task_.result();
  const auto at = static_cast<size_t>(other_->currentIndex() + 1);
  bars_->show(shown_, names_.value(0), names_.value(static_cast<qsizetype>(at)), {});
}

}  // namespace mw::ui
