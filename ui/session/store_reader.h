// SPDX-License-Identifier: GPL-3.0-or-later
// The run store for widgets, which open none themselves. GUI thread.
#pragma once
#include <QPointer>
#include <utility>

#include "core/store/store.h"
#include "ui/session/background_task.h"

namespace mw::ui {

// Reads on a thread of its own and delivers in the order of the requests.
class StoreReader : public QObject {
  Q_OBJECT
 public:
  using Fail = std::function<void(const Problem&)>;
  explicit StoreReader(std::filesystem::path folder) : folder_(std::move(folder)) { pool_.setMaxThreadCount(1); }
  ~StoreReader() override;  // waits for the request in progress and drops the others
  const std::filesystem::path& folder() const { return folder_; }
  bool exists() const;  // a request to a store that does not exist creates it
  bool is_busy() const { return waiting_ > 0; }

  // Calls `find` with the store on the thread of the reader, then `take` with what it returned, or `fail` with the
  // Problem of an Error, unless `owner` is gone by then.
  template <class Find, class Take>
  void read(QObject& owner, Find find, Take take, Fail fail = {}) {
    run(owner, std::move(fail), [find = std::move(find), take = std::move(take)](const store::Store& store) {
      using Found = std::invoke_result_t<Find, const store::Store&>;
      const auto found = std::make_shared<Found>(find(store));
      return [take, found] { take(std::move(*found)); };
    });
  }

 private:
  using Delivery = std::function<void()>;
  void run(QObject& owner, Fail fail, std::function<Delivery(const store::Store&)> find);
  std::filesystem::path folder_;
  int waiting_ = 0;  // requests
  QThreadPool pool_;
};

// The work of a BackgroundTask with the store in `folder`, which is opened on the thread of the task.
template <class Work>
auto with_store(std::filesystem::path folder, Work work) {
  return
      [folder = std::move(folder), work = std::move(work)](const ReportProgress& report, const std::stop_token& stop) {
        store::Store store(folder);
        return work(store, report, stop);
      };
}

// One store that stays open; opened again after its folder was removed. Interrupted runs are recovered at each opening.
class KeptStore {
 public:
  explicit KeptStore(std::filesystem::path folder) : folder_(std::move(folder)) {}
  const std::filesystem::path& folder() const { return folder_; }
  // Throws Error. `opened` is called after the store was opened.
  store::Store& get(const std::function<void()>& opened);

 private:
  std::filesystem::path folder_;
  std::unique_ptr<store::Store> store_;
};

}  // namespace mw::ui
