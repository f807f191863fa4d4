// SPDX-License-Identifier: GPL-3.0-or-later
// The pages of the window, one of which is shown, and what they tell each other. GUI thread.
#pragma once
#include <QScrollArea>
#include <QStackedWidget>

#include "ui/session/workspace.h"

namespace mw::ui {

// The place of the pages in the window. A page that needs more height than a low screen has, scrolls.
class PageArea : public QScrollArea {
  Q_OBJECT
 public:
  explicit PageArea(QWidget* pages);  // takes it over
  QSize minimumSizeHint() const override;

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;

 private:
  void update_least_size();

  bool scrolls_ = false;  // the bar needs width beside the page
};

class ComparePage;
class DataPage;
class DesignPage;
class RunsPage;
class ServePage;
class SharedPlanContext;
class TrainPage;

class PageStack : public QStackedWidget {
  Q_OBJECT
 public:
  // `resources`: with the shipped results.
  PageStack(Document& document, Predictor& predictor, SharedPlanContext& context, RunController& runs,
            const std::filesystem::path& resources, QWidget* parent);
  void attach(Workspace& workspace);  // registers the actions that show a page, then those of the pages
  Page page() const { return static_cast<Page>(currentIndex()); }
  WindowPage& at(Page page) const { return *all_[static_cast<size_t>(page)]; }
  const std::vector<WindowPage*>& all() const { return all_; }  // in the order of Page
  void show_page(Page page);
  void save_state(Session& session) const;
  void restore_state(const Session& session);

  DesignPage& design;
  DataPage& data;
  TrainPage& train;
  ServePage& serve;
  ComparePage& compare;
  RunsPage& runs;

 private:
  void connect_pages();
  std::vector<WindowPage*> all_;
  bool compares_imported_ = false;  // what the Runs page imports is for the Compare page
};

}  // namespace mw::ui
