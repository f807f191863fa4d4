// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/theme/theme.h"

#include <QApplication>
#include <QFontDatabase>
#include <QPainter>
#include <QRegularExpression>
#include <QStyle>
#include <QStyleFactory>
#include <QTextLayout>
#include <QTranslator>
#include <algorithm>
#include <array>
#include <cmath>

#include "ui/theme/text.h"

// Registers the resources of a static library. Must be outside of any namespace.
static void load_resources() {
  Q_INIT_RESOURCE(theme);
}

namespace mw::ui {
namespace {

// Based on the palette of Okabe and Ito, with yellow and black replaced; the dark variant has the same contrast. All
// pairs stay apart for eyes without red or green cones, which tests/ui/charts_test.cpp simulates.
constexpr std::array<QRgb, 8> kSeriesLight{0xff04619e, 0xffbe4c00, 0xff30714a, 0xff934e83,
                                           0xffc67e0f, 0xff4083b3, 0xff5866cf, 0xff43535f};
constexpr std::array<QRgb, 8> kSeriesDark{0xff61b7e5, 0xffeb8a40, 0xff24ca8d, 0xfffa92c4,
                                          0xfff8cf63, 0xffadd7f2, 0xffb794f9, 0xff919ca5};
// Based on Paul Tol's muted scheme, in the order of MemoryCategory; neighbours in a stack also differ in lightness.
constexpr std::array<QRgb, kMemoryCategories> kMemoryLight{0xff44639f, 0xff88ccee, 0xff44aa99, 0xff117733, 0xffddcc77,
                                                           0xffcc6677, 0xff882255, 0xff9b2a8f, 0xff999933, 0xffb4b8bf};
constexpr std::array<QRgb, kMemoryCategories> kMemoryDark{0xff6d8fd1, 0xff8fd0f0, 0xff4fb9a8, 0xff3f9c5c, 0xffd9c873,
                                                          0xffd67888, 0xff9f4463, 0xffbf62ae, 0xffa9a94a, 0xff637489};

// The plural forms of the English texts in the source: tr("%n run(s)", nullptr, n) shows "1 run" and "2 runs".
class EnglishPlurals : public QTranslator {
 public:
  using QTranslator::QTranslator;
  bool isEmpty() const override { return false; }
  // Null, as for a text without a translation, if the text does not depend on a number.
  QString translate(const char*, const char* text, const char*, int n) const override {
    QString form = n < 0 ? QString() : QString::fromUtf8(text);
    if (!form.contains(u"(s)"_s)) return {};
    return form.replace(u"(s)"_s, n == 1 ? QString() : u"s"_s);
  }
};

// Once for an application; translations that are installed later come first.
void install_english_plurals() {
  QCoreApplication* application = QCoreApplication::instance();
  const QString name = u"english_plurals"_s;
  if (application->findChild<QTranslator*>(name)) return;
  auto* plurals = new EnglishPlurals(application);
  plurals->setObjectName(name);
  QCoreApplication::installTranslator(plurals);
}

Theme& current() {
  static Theme value = make_theme(Shade::light);
  return value;
}

}  // namespace

Theme make_theme(Shade shade) {
  Theme t;
  t.shade = shade;
  if (shade == Shade::light) {
    t.window = QColor(0xf3f4f6);
    t.panel = QColor(0xffffff);
    t.field = QColor(0xffffff);
    t.text = QColor(0x1d232b);
    t.muted = QColor(0x5b6572);
    t.faint = QColor(0x69727e);
    t.line = QColor(0xd8dce2);
    t.accent = QColor(0x1f6fb8);
    t.accent_text = QColor(0xffffff);
    t.hover = QColor(0xe6ebf1);
    t.good = QColor(0x1a7f4b);
    t.warn = QColor(0x9a6300);
    t.bad = QColor(0xc0392b);
  } else {
    t.window = QColor(0x1e2126);
    t.panel = QColor(0x25292f);
    t.field = QColor(0x17191d);
    t.text = QColor(0xe3e6ea);
    t.muted = QColor(0xa3abb6);
    t.faint = QColor(0x8d96a3);
    t.line = QColor(0x3a4048);
    t.accent = QColor(0x4f9fe0);
    t.accent_text = QColor(0x0e1216);
    t.hover = QColor(0x313740);
    t.good = QColor(0x52c98b);
    t.warn = QColor(0xe3ae4c);
    t.bad = QColor(0xf07a6c);
  }
  return t;
}

QPalette Theme::palette() const {
  QPalette p;
  const auto set = [&](QPalette::ColorRole role, const QColor& normal, const QColor& disabled) {
    p.setColor(QPalette::Active, role, normal);
    p.setColor(QPalette::Inactive, role, normal);
    p.setColor(QPalette::Disabled, role, disabled);
  };
  const QColor off = mix(window, muted, 0.6);
  set(QPalette::Window, window, window);
  set(QPalette::WindowText, text, off);
  set(QPalette::Base, field, window);
  set(QPalette::AlternateBase, mix(field, text, 0.035), window);
  set(QPalette::Text, text, off);
  set(QPalette::Button, shade == Shade::dark ? QColor(0x2d3239) : QColor(0xfafbfc), window);
  set(QPalette::ButtonText, text, off);
  set(QPalette::BrightText, bad, bad);
  set(QPalette::ToolTipBase, panel, panel);
  set(QPalette::ToolTipText, text, text);
  set(QPalette::Highlight, accent, line);
  set(QPalette::HighlightedText, accent_text, muted);
  set(QPalette::Link, accent, off);
  set(QPalette::LinkVisited, series(6), off);
  set(QPalette::PlaceholderText, faint, off);
  set(QPalette::Light, mix(window, QColor(Qt::white), shade == Shade::dark ? 0.12 : 0.8), window);
  set(QPalette::Midlight, mix(window, text, 0.06), window);
  set(QPalette::Mid, mix(window, text, 0.22), window);
  set(QPalette::Dark, mix(window, text, shade == Shade::dark ? 0.05 : 0.35), window);
  set(QPalette::Shadow, QColor(0, 0, 0, 120), QColor(0, 0, 0, 60));
  return p;
}

QColor Theme::series(int index) const {
  const auto& set = shade == Shade::dark ? kSeriesDark : kSeriesLight;
  return QColor::fromRgb(set[static_cast<size_t>(index) % set.size()]);
}

QColor Theme::memory(MemoryCategory c) const {
  return QColor::fromRgb((shade == Shade::dark ? kMemoryDark : kMemoryLight)[static_cast<size_t>(c)]);
}

QColor Theme::state(RunState s) const {
  const QColor colors[] = {muted, accent, warn, good, bad, warn};
  return colors[static_cast<size_t>(s)];
}

QColor Theme::severity(Severity s) const {
  return s == Severity::error ? bad : s == Severity::warning ? warn : muted;
}

Shade system_shade() {
  const QPalette p = QGuiApplication::palette();
  const bool dark = p.color(QPalette::Window).lightness() < p.color(QPalette::WindowText).lightness();
  return dark ? Shade::dark : Shade::light;
}

void apply_palette(const Theme& theme, QApplication& application) {
  install_english_plurals();
  load_resources();
  current() = theme;
  application.setStyleSheet({});
  if (QApplication::style()->name().compare("fusion"_L1, Qt::CaseInsensitive) != 0)
    QApplication::setStyle(QStyleFactory::create(u"Fusion"_s));
  QApplication::setPalette(theme.palette());
}

// Qt 6.4 replaces one style sheet by another by polishing every widget once for each of its ancestors
// (QStyleSheetStyle::repolish). Where there was none it polishes each once: five times as fast.
void apply(const Theme& theme, QApplication& application) {
  apply_palette(theme, application);
  application.setStyleSheet(theme.style_sheet());
}

const Theme& theme() {
  return current();
}

ThemeOverride::ThemeOverride(const Theme& theme) : before_(current()) {
  current() = theme;
}

ThemeOverride::~ThemeOverride() {
  current() = before_;
}

QFont mono_font(double scale) {
  QFont font = QFontDatabase::systemFont(QFontDatabase::FixedFont);
  font.setPointSizeF(QApplication::font().pointSizeF() * scale);
  font.setStyleHint(QFont::Monospace);
  return font;
}

QFont small_font() {
  QFont font = QApplication::font();
  font.setPointSizeF(font.pointSizeF() * 0.88);
  return font;
}

QFont demi_bold(QFont font) {
  font.setWeight(QFont::DemiBold);
  return font;
}

QColor mix(const QColor& under, const QColor& over, double share) {
  const auto part = [&](int a, int b) { return qRound(a + (b - a) * share); };
  return QColor(part(under.red(), over.red()), part(under.green(), over.green()), part(under.blue(), over.blue()));
}

namespace {

// Relative luminance of WCAG 2.
double luminance(const QColor& color) {
  const auto linear = [](double v) { return v <= 0.04045 ? v / 12.92 : std::pow((v + 0.055) / 1.055, 2.4); };
  return 0.2126 * linear(color.redF()) + 0.7152 * linear(color.greenF()) + 0.0722 * linear(color.blueF());
}

double contrast(const QColor& a, const QColor& b) {
  const double x = luminance(a) + 0.05, y = luminance(b) + 0.05;
  return std::max(x, y) / std::min(x, y);
}

}  // namespace

QColor axis_color(const QString& axis) {
  static const QStringList kKnown{u"tp"_s, u"fsdp"_s, u"data"_s, u"ep"_s};
  if (const auto at = kKnown.indexOf(axis); at >= 0) return theme().series(static_cast<int>(at));
  unsigned sum = 0;
  for (const QChar c : axis) sum = 31 * sum + c.unicode();
  return theme().series(4 + static_cast<int>(sum % 3));
}

QColor axis_text_color(const QString& axis) {
  constexpr double kReadable = 4.8;  // above the 4.5 of WCAG, because alternate rows are a little darker
  QColor color = axis_color(axis);
  for (int i = 0; i < 10 && contrast(color, theme().panel) < kReadable; ++i) color = mix(color, theme().text, 0.12);
  return color;
}

void AxisTextDelegate::paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const {
  QStyleOptionViewItem cell = option;
  initStyleOption(&cell, index);
  const QWidget* view = option.widget;
  QStyle& style = view ? *view->style() : *QApplication::style();
  const QRect room = style.subElementRect(QStyle::SE_ItemViewItemText, &cell, view).adjusted(3, 0, -3, 0);
  QTextLayout layout(cell.fontMetrics.elidedText(cell.text, Qt::ElideRight, room.width()), cell.font);
  cell.text.clear();
  style.drawControl(QStyle::CE_ItemViewItem, &cell, painter, view);
  static const QRegularExpression kName(u"[A-Za-z_]\\w*"_s);
  QList<QTextLayout::FormatRange> ranges;
  const bool plain = !(cell.state & QStyle::State_Enabled) || index.data(Qt::ForegroundRole).isValid();
  for (auto names = kName.globalMatch(layout.text()); !plain && names.hasNext();) {
    const QRegularExpressionMatch name = names.next();
    QTextCharFormat format;
    format.setForeground(axis_text_color(name.captured()));
    ranges.push_back({static_cast<int>(name.capturedStart()), static_cast<int>(name.capturedLength()), format});
  }
  layout.setFormats(ranges);
  layout.beginLayout();
  QTextLine line = layout.createLine();
  line.setLineWidth(1e6);
  layout.endLayout();
  const QVariant color = index.data(Qt::ForegroundRole);
  painter->setPen(color.isValid() ? color.value<QColor>()
                  : plain         ? cell.palette.color(QPalette::Disabled, QPalette::Text)
                                  : theme().text);
  layout.draw(painter, QPointF(room.left(), room.top() + (room.height() - line.height()) / 2));
}

}  // namespace mw::ui
