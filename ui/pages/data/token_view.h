// SPDX-License-Identifier: GPL-3.0-or-later
// The tokens of one row as wrapping chips: shaded if they carry loss, or coloured by their loss under a model; framed
// if they are special. A line above marks the tokens that the pointed one attends to, a bar at the left the first one
// that a server would encode differently. Navigated by mouse and keys; pointed() reports the token. GUI thread.
#pragma once
#include <QAbstractScrollArea>
#include <QColor>
#include <unordered_map>

#include "core/views/data_view.h"
#include "ui/pages/data/token_context.h"

namespace mw::ui {

// A readable piece: with control characters spelled out.
QString piece_text(const std::string& piece);
// "token 17 of 412 · id 108 · \n · no loss · 2.31 nats, base 4.02 · sees tokens 1 to 17"
QString token_text(const views::DataDetail& detail, const RowContext& context, int token);
// The loss of a token under the tuned model, else under the base model; empty if it was not computed.
std::optional<double> shown_loss(const RowContext& context, int token);
inline constexpr double kFullLoss = 8;  // nats that have the full colour
QColor loss_color(double nats);

class TokenView : public QAbstractScrollArea {
  Q_OBJECT
 public:
  explicit TokenView(QWidget* parent = nullptr);
  void show_tokens(views::DataDetail detail);
  void clear(const QString& why);  // shown instead of tokens
  void show_context(const RowContext& context);
  const RowContext& context() const { return context_; }
  const views::DataDetail& detail() const { return detail_; }
  int current() const { return current_; }  // -1: none
  int pointed_at() const { return hovered_ >= 0 ? hovered_ : current_; }
  void set_current(int token);
  QRect chip(int token);  // in viewport coordinates; may be outside the viewport
  int at(const QPoint& viewport_point);
  QString tokens_as_table() const;  // tab-separated: position, id, piece, loss

 signals:
  void pointed(int token);  // hovered token, otherwise the current one; -1: none

 protected:
  void paintEvent(QPaintEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void changeEvent(QEvent* event) override;
  bool viewportEvent(QEvent* event) override;

 private:
  struct Line {
    int begin = 0, end = 0;  // tokens; none: the note about truncation
  };
  int size() const { return static_cast<int>(detail_.tokens.size()); }
  int used() const { return detail_.row.used; }
  bool cut_off(int token) const { return token >= used(); }
  int width_of(const std::string& piece);
  void lay_out();
  int line_of(int token) const;
  int beside(int token, int lines) const;  // the token `lines` below, or above if negative
  void hover(int token);
  void paint_tokens(QPainter& painter, const QRect& dirty) const;
  void paint_chip(QPainter& painter, int token, const QRect& where) const;
  QString note() const;

  views::DataDetail detail_;
  RowContext context_;
  QString why_empty_;
  std::vector<int> left_;  // of each chip
  std::vector<int> wide_;
  std::vector<Line> lines_;
  std::unordered_map<std::string, int> widths_;  // of pieces, in this font
  int line_height_ = 24, chip_height_ = 20;
  int current_ = -1, hovered_ = -1;
};

}  // namespace mw::ui
