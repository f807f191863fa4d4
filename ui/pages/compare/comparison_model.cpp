// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/compare/comparison_model.h"

#include <QBuffer>
#include <QFontMetrics>
#include <QGuiApplication>
#include <QPainter>
#include <QPdfWriter>
#include <QSvgGenerator>
#include <QTextDocument>

#include "core/base/files.h"
#include "core/report/report.h"
#include "core/store/store.h"
#include "ui/pages/compare/compare_charts.h"
#include "ui/theme/theme.h"

namespace mw::ui {
namespace {

// Too few requests are reported as text above the table and in the tooltip; colours are for errors.
bool is_mark(const std::string& mark) {
  for (const std::string kind : {"impossible", "suspicious"})
    if (mark.starts_with(kind) || mark.find("; " + kind) != std::string::npos) return true;
  return false;
}

}  // namespace

QString delta_text(double delta) {
  if (!std::isfinite(delta)) return {};
  if (std::abs(delta) < 0.0005) return delta == 0 ? u"="_s : u"\u2248"_s;
  const QString glyph = delta < 0 ? u"\u25BC "_s : u"\u25B2 "_s;
  if (delta >= 2) return glyph + QString::number(delta + 1, 'f', delta >= 9 ? 0 : 1) + u" x"_s;
  const double percent = std::abs(delta) * 100;
  return glyph + QString::number(percent, 'f', percent < 9.95 ? 1 : 0) + u" %"_s;
}

double slo_of_key(const options::Slo& slo, std::string_view key) {
  const auto about = [&](std::string_view name) { return key.find(name) != std::string_view::npos; };
  return about("ttft") ? slo.ttft_ms : about("tpot") ? slo.tpot_ms : about("e2el") ? slo.e2e_ms : 0;
}

ComparisonModel::ComparisonModel()
    : TableModel({},
                 [this](const compare::ComparisonRow& row, int column, int role) { return cell(row, column, role); }) {}

void ComparisonModel::refill() {
  Columns columns;
  if (comparison_)
    columns.push_back({.title = tr("Property"), .text = [](const compare::ComparisonRow& r) {
                         return r.unit.empty() ? qs(r.label) : tr("%1, %2").arg(qs(r.label), qs(r.unit));
                       }});
  for (size_t c = 0; comparison_ && c < comparison_->names.size(); ++c) {
    const QString name = qs(comparison_->names[c]);
    columns.push_back({.title = name,
                       .tooltip = c == 0 ? tr("%1: the baseline for the changes of the others").arg(name) : name,
                       .text = [this, c](const compare::ComparisonRow& r) { return value_text(r, c); }});
  }
  std::vector<compare::ComparisonRow> rows;
  if (comparison_) {
    const auto& all = comparison_->rows;
    const auto compares = [](const auto& r) {
      return r.kind != compare::ComparisonRow::Kind::result || r.recorded() > 1;
    };
    // Runs without a common result keep what each of them has.
    const bool common = std::any_of(all.begin(), all.end(), [&](const auto& r) {
      return r.kind == compare::ComparisonRow::Kind::result && compares(r);
    });
    for (const auto& r : all)
      if (r.recorded() > 0 && (shown_ == RowsShown::all || !common || compares(r))) rows.push_back(r);
  }
  set_table(std::move(columns), std::move(rows));
}

void ComparisonModel::show(Ptr comparison) {
  comparison_ = std::move(comparison);
  refill();
}

void ComparisonModel::set_shown(RowsShown shown) {
  shown_ = shown;
  refill();
}

// A header with a style sheet cuts long titles instead of eliding them.
QVariant ComparisonModel::headerData(int section, Qt::Orientation orientation, int role) const {
  QVariant whole = TableModel::headerData(section, orientation, role);
  if (role != Qt::DisplayRole || section == 0 || title_width_ == 0) return whole;
  return QFontMetrics(QGuiApplication::font()).elidedText(whole.toString(), Qt::ElideMiddle, title_width_);
}

void ComparisonModel::set_slo(const options::Slo& slo) {
  slo_ = slo;
  announce_all();
}

void ComparisonModel::set_emphasis(int column) {
  if (column == emphasis_) return;
  emphasis_ = column;
  announce_all();
}

bool ComparisonModel::over_slo(const compare::ComparisonRow& row, size_t column) const {
  const double limit = row.kind == compare::ComparisonRow::Kind::result ? slo_of_key(slo_, row.key) : 0;
  return limit > 0 && column < row.values.size() && row.values[column] && *row.values[column] > limit;
}

int ComparisonModel::marked_cells() const {
  int marked = 0;
  for (const auto& row : rows_)
    for (const auto& mark : row.marks) marked += is_mark(mark);
  return marked;
}

QString ComparisonModel::value_text(const compare::ComparisonRow& row, size_t column) const {
  QString text = column < row.texts.size() ? qs(row.texts[column]) : QString();
  if (text.isEmpty()) return u"\u2013"_s;
  if (column > 0 && column < row.deltas.size() && row.deltas[column])
    text += u"   "_s + delta_text(*row.deltas[column]);
  if (const std::string share = compare::share_text(row.effects, column); !share.empty()) text += u"   "_s + qs(share);
  if (over_slo(row, column)) text = tr("%1  > SLO").arg(text);
  return text;
}

QString ComparisonModel::tooltip(const compare::ComparisonRow& row, size_t column) const {
  QStringList lines{
      u"<b>%1</b>, %2"_s.arg(qs(row.label).toHtmlEscaped(), qs(comparison_->names[column]).toHtmlEscaped())};
  lines << value_text(row, column).toHtmlEscaped() + u' ' + qs(row.unit).toHtmlEscaped();
  if (const std::string effects = effects_text(*comparison_, row.effects); !effects.empty())
    lines << tr("<b>Effect:</b> %1").arg(qs(effects).toHtmlEscaped());
  if (over_slo(row, column)) lines << tr("above the SLO of %1 ms").arg(slo_of_key(slo_, row.key));
  if (column < row.marks.size() && !row.marks[column].empty())
    lines << tr("<b>Audit:</b> %1").arg(qs(row.marks[column]).toHtmlEscaped().replace(u'\n', u"<br>"_s));
  return lines.join(u"<br>"_s);
}

QVariant ComparisonModel::cell(const compare::ComparisonRow& r, int table_column, int role) const {
  const bool setting = r.kind == compare::ComparisonRow::Kind::setting;
  if (table_column == 0) {
    if (role == Qt::ToolTipRole) return qs(r.key);
    return role == Qt::ForegroundRole ? QVariant(setting ? theme().muted : theme().text) : QVariant();
  }
  const auto column = static_cast<size_t>(table_column - 1);
  const bool marked = column < r.marks.size() && is_mark(r.marks[column]);
  const bool impossible = marked && r.marks[column].starts_with("impossible");
  switch (role) {
    case Qt::ToolTipRole:
      return tooltip(r, column);
    case Qt::TextAlignmentRole:
      return static_cast<int>((setting ? Qt::AlignLeft : Qt::AlignRight) | Qt::AlignVCenter);
    case Qt::BackgroundRole:
      if (marked) return mix(theme().panel, impossible ? theme().bad : theme().warn, 0.30);
      if (emphasis_ == static_cast<int>(column)) return mix(theme().panel, theme().series(emphasis_), 0.16);
      return {};
    case Qt::ForegroundRole: {
      if (over_slo(r, column)) return theme().bad;
      if (marked || column == 0 || column >= r.deltas.size() || !r.deltas[column]) return {};
      const double delta = *r.deltas[column];
      if (r.better == compare::ComparisonRow::Better::neither || std::abs(delta) < 0.0005) return {};
      return (delta < 0) == (r.better == compare::ComparisonRow::Better::lower) ? theme().good : theme().warn;
    }
    case Qt::FontRole:
      if (marked) {
        QFont bold;
        bold.setWeight(QFont::DemiBold);
        return bold;
      }
      return {};
    case marked_role:
      return marked;
    case impossible_role:
      return impossible;
    case over_slo_role:
      return over_slo(r, column);
  }
  return {};
}

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
    throw Error("EXPORT", "a comparison is not written in this format",
                {.file = file.string(), .found = extension, .expected = ".csv, .md, .tex, .html, .png, .svg or .pdf"});
  }
  write_file_atomically(file, content);
}

}  // namespace mw::ui
