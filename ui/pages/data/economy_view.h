// SPDX-License-Identifier: GPL-3.0-or-later
// What the batches of one epoch consist of, with and without packing: a bar each of real tokens (those with loss
// stronger) and padding, in percent; seconds and dollars where they are known. GUI thread.
#pragma once
#include <QWidget>

#include "core/views/data_view.h"

namespace mw::ui {

class EconomyView : public QWidget {
  Q_OBJECT
 public:
  explicit EconomyView(QWidget* parent = nullptr);
  // `in_force`: the packing of the document.
  void show_economy(std::optional<views::DataEconomy> economy, data::Packing in_force);
  void set_price(const views::TokenPrice& price, views::PadTo pad_to);  // of the target, and how it pads
  void set_empty_text(const QString& text);
  QString summary() const;    // all that is drawn, in words
  QString cost_text() const;  // empty where nothing is known

  QSize sizeHint() const override { return {380, 190}; }
  QSize minimumSizeHint() const override { return {300, 198}; }

 protected:
  void paintEvent(QPaintEvent* event) override;
  void changeEvent(QEvent* event) override;

 private:
  struct Bar {
    QString name;
    views::PaddedShares shares;
    bool in_force = false;
  };
  struct Group {
    QString title, factor;
    std::vector<Bar> bars;
  };
  std::vector<Group> groups() const;
  std::vector<std::pair<QString, QString>> costs() const;  // what, and how much
  void paint_bar(QPainter& painter, const QRectF& where, const views::PaddedShares& shares) const;

  std::optional<views::DataEconomy> economy_;
  data::Packing in_force_ = data::Packing::none;
  views::TokenPrice price_;
  views::PadTo priced_ = views::PadTo::longest;
  QString empty_;
};

}  // namespace mw::ui
