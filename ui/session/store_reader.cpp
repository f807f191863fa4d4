// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/session/store_reader.h"

#include "core/base/files.h"

namespace mw::ui {

StoreReader::~StoreReader() {
  pool_.clear();
  pool_.waitForDone();
}

bool StoreReader::exists() const {
  return path_exists(folder_);
}

void StoreReader::run(QObject& owner, Fail fail, std::function<Delivery(const store::Store&)> find) {
  ++waiting_;
  pool_.start([this, owner = QPointer(&owner), fail = std::move(fail), find = std::move(find)] {
    Delivery deliver;
    try {
      deliver = find(store::Store(folder_));
    } catch (const Error& error) {
      deliver = [fail, problem = error.problem()] {
        if (fail) fail(problem);
      };
    }
    QMetaObject::invokeMethod(
        this,
        [this, owner, deliver] {
          --waiting_;
          if (owner) deliver();
        },
        Qt::QueuedConnection);
  });
}

store::Store& KeptStore::get(const std::function<void()>& opened) {
  if (store_ && store_->gone()) store_.reset();
  if (!store_) {
    store_ = std::make_unique<store::Store>(folder_);
    store_->recover();  // marks runs whose process died as interrupted
    opened();
  }
  return *store_;
}

}  // namespace mw::ui

#include "moc_store_reader.cpp"
