// SPDX-License-Identifier: GPL-3.0-or-later
// Composition of the batches of one epoch, with and without packing: bars of tokens without padding (stronger with
// loss) and padding in percent, with seconds and dollars if they are known. GUI thread.
#pragma once
#include <QWidget>

#include "core/views/data_view.h"

namespace mw::ui {

class EconomyView : public QWidget {
  Q_OBJECT
 public:
  explicit EconomyView(QWidget* parent = nullptr);
  // `in_force`: the current packing of the document.
  void show_economy(std::optional<views::DataEconomy> economy, data::Packing in_force);
  void set_price(const views::TokenPrice& price, views::PadTo pad_to);  // of the target and its padding
  void set_empty_text(const QString& text);
  QString summary() const;    // text of everything that is drawn
  QString cost_text() const;  // empty: unknown

  QSize sizeHint() const override { return {380, 190}; }
  QSize minimumSizeHint() const override { return {300, 198}; }

 protected:
  void paintEvent(QPaintEvent* event) override;

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
  std::vector<std::pair<QString, QString>> costs() const;  // name and value
  void paint_bar(QPainter& painter, const QRectF& where, const views::PaddedShares& shares) const;

  std::optional<views::DataEconomy> economy_;
  data::Packing in_force_ = data::Packing::none;
  views::TokenPrice price_;
  views::PadTo priced_ = views::PadTo::longest;
  QString empty_;
};

}  // namespace mw::ui
