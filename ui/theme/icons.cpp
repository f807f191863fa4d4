// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/theme/icons.h"

#include <QIconEngine>
#include <QPainter>
#include <QPixmapCache>
#include <QSvgRenderer>

#include "ui/theme/text.h"
#include "ui/theme/theme.h"

namespace mw::ui {
namespace {

// Bodies on a 16x16 grid; C is the colour, strokes are 1.5 wide unless stated otherwise.
const char* body(Glyph glyph) {
  static constexpr const char* kBodies[] = {
      "",                                                                                                // none
      "<path d='M4.5 2.8v10.4L13 8z' fill='C'/>",                                                        // run
      "<path d='M4 3h2.8v10H4zM9.2 3H12v10H9.2z' fill='C' stroke='none'/>",                              // pause
      "<rect x='3.5' y='3.5' width='9' height='9' rx='1.2' fill='C' stroke='none'/>",                    // stop
      "<path d='M1.8 12.8V3.6h4l1.6 1.8h6v1.8M1.8 12.8l2-5.6h10.6l-2 5.6z'/>",                           // open
      "<path d='M2.5 2.5h8.6l2.4 2.4v8.6h-11zM5 2.8v3.4h5V2.8M5 13.2V9h6v4.2'/>",                        // save
      "<path d='M5.6 2.8 2.6 5.8l3 3M2.8 5.8h6.4a3.6 3.6 0 0 1 0 7.2H6'/>",                              // undo
      "<path d='m10.4 2.8 3 3-3 3M13.2 5.8H6.8a3.6 3.6 0 0 0 0 7.2H10'/>",                               // redo
      "<circle cx='8' cy='8' r='5.4'/><path d='M8 2.6a5.4 5.4 0 0 1 0 10.8z' fill='C' stroke='none'/>",  // theme
      "<path d='m3 5 3 3-3 3M8 11.2h5'/>",                                                               // command
      "<path d='M3.2 3v3.4h3.4M3.4 6.2A5 5 0 1 1 3 9.4'/>",                                              // reset
      "<path d='M2 8h3.2M9 8h5'/><circle cx='7.1' cy='8' r='1.9'/>",                                     // slider
      ("<circle cx='3.4' cy='8' r='1.2' fill='C' stroke='none'/><circle cx='8' cy='8' r='1.2' fill='C' "
       "stroke='none'/><circle cx='12.6' cy='8' r='1.2' fill='C' stroke='none'/>"),                     // more
      "<circle cx='6.8' cy='6.8' r='4'/><path d='m9.8 9.8 3.7 3.7'/>",                                  // search
      "<rect x='5.6' y='5.6' width='7.8' height='7.8' rx='1.2'/><path d='M3.4 10.4h-.8V2.6h7.8v.8'/>",  // clone
      "<path d='M2.8 4.2h10.4M6 4V2.6h4V4M4.2 4.4l.6 9h6.4l.6-9'/>",                                    // trash
      "<path d='M8 13.4V6.2M4.8 9.2 8 6l3.2 3.2M3 2.8h10'/>",                                           // restore
      "<path d='M12.8 3v3.4H9.4M12.6 6.2A5 5 0 1 0 13 9.4'/>",                                          // refresh
      "<path d='m4 4 8 8M12 4l-8 8'/>",                                                                 // close
      "<rect x='5.6' y='5.2' width='7.4' height='8.4' rx='1'/><path d='M3 10.6V2.4h7'/>",               // copy
      "<path d='M1.8 12.8V3.6h4l1.6 1.8h6.8v7.4z'/>",                                                   // browse
      "<circle cx='8' cy='8' r='5.6'/><path d='M8 7.4v3.4M8 5.1v.1'/>",                                 // info
      "<rect x='2' y='2.8' width='12' height='10.4' rx='1.2'/><path d='M2.2 9.4h11.6'/>",               // panels
      "<circle cx='8' cy='8' r='5' fill='C'/>",                                                         // error
      "<path d='M8 3.2 13.6 12.8H2.4z' fill='C'/>",                                                     // warning
      "<path d='m8 4-4 4 4 4M13 4 9 8l4 4'/>",                                                          // fold
      "<path d='m3 4 4 4-4 4M8 4l4 4-4 4'/>",                                                           // unfold
      "<path d='M2.5 4H7M2.5 8H7M2.5 12H7M9.5 4h4M9.5 8h4M9.5 12h4'/>",                                 // form
      "<path d='M6 3C4 3 5 7 3 8c2 1 1 5 3 5M10 3c2 0 1 4 3 5-2 1-1 5-3 5'/>",                          // json
      "<path d='M5.6 6a2.5 2.5 0 1 1 3.6 2.2C8.3 8.7 8 9.2 8 10M8 12.6v.2'/>",                          // help
  };
  return kBodies[static_cast<size_t>(glyph)];
}

QByteArray document(Glyph glyph, const QColor& color) {
  QByteArray svg =
      "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'><g fill='none' stroke='C' "
      "stroke-width='1.5' stroke-linecap='round' stroke-linejoin='round'>";
  svg += body(glyph);
  svg += "</g></svg>";
  return svg.replace("'C'", QByteArray("'" + color.name().toLatin1() + "'"));
}

class GlyphEngine : public QIconEngine {
 public:
  GlyphEngine(Glyph glyph, IconColor color) : glyph_(glyph), color_(color) {}
  void paint(QPainter* painter, const QRect& rect, QIcon::Mode mode, QIcon::State) override {
    QSvgRenderer(document(glyph_, color_in(mode))).render(painter, rect);
  }
  QPixmap pixmap(const QSize& size, QIcon::Mode mode, QIcon::State state) override {
    if (size.isEmpty()) return {};  // of a button without a size yet
    // Buttons ask at every paint, and reading an SVG takes a tenth of a millisecond.
    const QString key = u"glyph %1 %2 %3x%4"_s.arg(static_cast<int>(glyph_))
                            .arg(color_in(mode).name())
                            .arg(size.width())
                            .arg(size.height());
    QPixmap out;
    if (QPixmapCache::find(key, &out)) return out;
    out = QPixmap(size);
    out.fill(Qt::transparent);
    QPainter painter(&out);
    paint(&painter, QRect(QPoint(0, 0), size), mode, state);
    painter.end();
    QPixmapCache::insert(key, out);
    return out;
  }
  QIconEngine* clone() const override { return new GlyphEngine(glyph_, color_); }

 private:
  QColor color_in(QIcon::Mode mode) const {
    const Theme& t = theme();
    return mode == QIcon::Disabled          ? mix(t.panel, t.muted, 0.5)
           : color_ == IconColor::on_accent ? t.accent_text
           : color_ == IconColor::bad       ? t.bad
           : color_ == IconColor::warn      ? t.warn
                                            : t.muted;
  }

  Glyph glyph_;
  IconColor color_;
};

}  // namespace

QIcon icon(Glyph glyph, IconColor color) {
  return glyph == Glyph::none ? QIcon() : QIcon(new GlyphEngine(glyph, color));
}

}  // namespace mw::ui
