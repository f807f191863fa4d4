// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/compare/comparison_export.h"

#include <QBuffer>
#include <QImage>
#include <QObject>
#include <QPainter>
#include <QPdfWriter>
#include <QSvgGenerator>
#include <QTextDocument>
#include <cmath>

#include "core/base/files.h"
#include "core/report/report.h"
#include "core/store/store_summary.h"
#include "ui/pages/compare/compare_charts.h"
#include "ui/pages/compare/comparison_model.h"
#include "ui/theme/text.h"
#include "ui/theme/theme.h"

namespace mw::ui {
namespace {

constexpr int kWidth = 1200, kMargin = 28, kChartHeight = 260, kGap = 12;
constexpr int kDpi = 96;

QString html_table(const ComparisonModel& model) {
  const Theme& t = theme();
  QString html = u"<table width='100%' cellspacing='0' cellpadding='4'><tr>"_s;
  for (int c = 0; c < model.columnCount(); ++c)
    html += u"<td style='border-bottom:1px solid %1' align='%2'><b>%3</b></td>"_s.arg(
        t.muted.name(), c == 0 ? u"left"_s : u"right"_s,
        model.headerData(c, Qt::Horizontal, Qt::DisplayRole).toString().toHtmlEscaped());
  html += u"</tr>"_s;
  for (int r = 0; r < model.rowCount(); ++r) {
    html += u"<tr>"_s;
    for (int c = 0; c < model.columnCount(); ++c) {
      const QModelIndex at = model.index(r, c);
      const auto fill = at.data(Qt::BackgroundRole), ink = at.data(Qt::ForegroundRole);
      QString style = u"border-bottom:1px solid %1;"_s.arg(t.line.name());
      if (fill.isValid()) style += u"background:%1;"_s.arg(fill.value<QColor>().name());
      if (ink.isValid()) style += u"color:%1;"_s.arg(ink.value<QColor>().name());
      html += u"<td style='%1' align='%2'>%3%4</td>"_s.arg(
          style, c == 0 ? u"left"_s : u"right"_s, at.data().toString().toHtmlEscaped(),
          at.data(ComparisonModel::marked_role).toBool() ? u" <b>!</b>"_s : QString());
    }
    html += u"</tr>"_s;
  }
  return html + u"</table>"_s;
}

QString html_of(const compare::Comparison& comparison, const ComparisonModel& model,
                const std::vector<compare::ComparedRun>& runs) {
  QString html = u"<h2>%1</h2>"_s.arg(QObject::tr("Comparison"));
  html += u"<p><b>%1</b></p><ul>"_s.arg(qs(verdict_text(comparison.verdict)));
  for (const auto& c : comparison.confounders) html += u"<li>%1</li>"_s.arg(qs(c.text).toHtmlEscaped());
  html += u"</ul>"_s + html_table(model);
  QStringList notes;
  for (const auto& row : comparison.rows)
    for (size_t c = 0; c < row.marks.size(); ++c)
      if (!row.marks[c].empty())
        notes << u"<li><b>%1, %2:</b> %3</li>"_s.arg(qs(comparison.names[c]).toHtmlEscaped(),
                                                     qs(row.label).toHtmlEscaped(), qs(row.marks[c]).toHtmlEscaped());
  if (!notes.isEmpty()) html += u"<p><b>%1</b></p><ul>%2</ul>"_s.arg(QObject::tr("Audit"), notes.join(QString()));
  QStringList sources;
  for (const auto& run : runs)
    sources << u"%1: %2 %3"_s
                   .arg(qs(run.name), qs(formats::to_string(run.provenance)),
                        qs(run.id.empty() && run.sweep ? run.sweep->set.source : run.id))
                   .toHtmlEscaped();
  return html + u"<p><small>%1</small></p>"_s.arg(sources.join(u"<br>"_s));
}

// Content of the painted export: the laid out text and charts with data.
class Report {
 public:
  Report(const compare::Comparison& comparison, const std::vector<compare::ComparedRun>& runs, const options::Slo& slo)
      : charts_(runs, {}) {
    model_.set_slo(slo);
    model_.show({std::shared_ptr<void>(), &comparison});
    charts_.set_slo(slo);
    text_.setDefaultFont(small_font());
    text_.setDocumentMargin(0);
    text_.setTextWidth(kWidth - 2 * kMargin);
    text_.setHtml(html_of(comparison, model_, runs));
    for (const QString& view : charts_.views()) {
      if (view == u"why"_s) continue;  // would have to be simulated
      charts_.show_view(view);
      for (Chart* chart : charts_.view_of(view).charts())
        if (!chart->empty()) shown_.push_back(chart);
    }
    for (Chart* chart : shown_) chart->resize((kWidth - 2 * kMargin - kGap) / 2, kChartHeight);
  }
  int height() const {
    const int rows = static_cast<int>((shown_.size() + 1) / 2);
    return 2 * kMargin + static_cast<int>(std::ceil(text_.size().height())) + rows * (kChartHeight + kGap) + kGap;
  }
  void paint(QPainter& painter) {
    painter.fillRect(QRect(0, 0, kWidth, height()), theme().panel);
    painter.translate(kMargin, kMargin);
    text_.drawContents(&painter);
    double y = std::ceil(text_.size().height()) + kGap;
    for (size_t i = 0; i < shown_.size(); ++i) {
      painter.save();
      painter.translate(i % 2 == 0 ? 0 : (kWidth - 2 * kMargin + kGap) / 2.0, y);
      shown_[i]->paint_whole(painter);
      painter.restore();
      if (i % 2 == 1) y += kChartHeight + kGap;
    }
  }

 private:
  ComparisonModel model_;
  CompareCharts charts_;
  QTextDocument text_;
  std::vector<Chart*> shown_;
};

QByteArray painted(Report& report, const QString& extension) {
  QBuffer buffer;
  buffer.open(QIODevice::WriteOnly);
  const QSize size(kWidth, report.height());
  if (extension == u"png"_s) {
    QImage image(size * 2, QImage::Format_RGB32);
    image.setDevicePixelRatio(2);
    {
      QPainter painter(&image);
      report.paint(painter);
    }
    image.save(&buffer, "PNG");
  } else if (extension == u"svg"_s) {
    QSvgGenerator svg;
    svg.setOutputDevice(&buffer);
    svg.setResolution(kDpi);
    svg.setSize(size);
    svg.setViewBox(QRect(QPoint(), size));
    svg.setTitle(QObject::tr("Comparison"));
    QPainter painter(&svg);
    report.paint(painter);
  } else {
    QPdfWriter pdf(&buffer);
    pdf.setResolution(kDpi);
    pdf.setPageSize(QPageSize(QSizeF(size) * 72.0 / kDpi, QPageSize::Point, QString(), QPageSize::ExactMatch));
    pdf.setPageMargins(QMarginsF());
    pdf.setTitle(QObject::tr("Comparison"));
    QPainter painter(&pdf);
    report.paint(painter);
  }
  return buffer.data();
}

}  // namespace

QString export_filter() {
  return QObject::tr(
      "PDF (*.pdf);;HTML report (*.html);;PNG image (*.png);;SVG image (*.svg);;CSV (*.csv);;Markdown (*.md);;LaTeX "
      "(*.tex)");
}

void export_comparison(const compare::Comparison& comparison, const std::vector<compare::ComparedRun>& runs,
                       const options::Slo& slo, const std::filesystem::path& file) {
  const std::string extension = file.extension().string();
  std::string content;
  if (extension == ".csv") {
    content = to_csv(comparison);
  } else if (extension == ".md") {
    content = to_markdown(comparison);
  } else if (extension == ".tex") {
    content = compare::to_latex(comparison);
  } else if (extension == ".html") {
    std::vector<report::ReportItem> items;
    for (const compare::ComparedRun& run : runs) items.push_back({.run = run});
    content = report::html_report(items, store::now_utc());
  } else if (extension == ".png" || extension == ".svg" || extension == ".pdf") {
    const ThemeOverride light(make_theme(Shade::light));
    Report report(comparison, runs, slo);
    content = painted(report, qs(extension.substr(1))).toStdString();
  } else {
    throw Error({.id = "EXPORT",
                 .message = "a comparison is not written in this format",
                 .file = file.string(),
                 .found = extension,
                 .expected = ".csv, .md, .tex, .html, .png, .svg or .pdf"});
  }
  write_file_atomically(file, content);
}

}  // namespace mw::ui
