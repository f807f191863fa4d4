// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/theme/accessible_role.h"

#include <QAccessibleWidget>
#include <QVariant>

namespace mw::ui {
namespace {

constexpr const char* kRoleProperty = "accessible_role";

QAccessibleInterface* make_accessible(const QString&, QObject* object) {
  const QVariant role = object->property(kRoleProperty);
  auto* widget = role.isValid() ? qobject_cast<QWidget*>(object) : nullptr;
  return widget ? new QAccessibleWidget(widget, static_cast<QAccessible::Role>(role.toInt())) : nullptr;
}

}  // namespace

void set_accessible_role(QWidget& widget, QAccessible::Role role) {
  static const bool installed = [] {
    QAccessible::installFactory(make_accessible);
    return true;
  }();
  widget.setProperty(kRoleProperty, installed ? static_cast<int>(role) : 0);
}

}  // namespace mw::ui
