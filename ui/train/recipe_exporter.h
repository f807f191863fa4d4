// SPDX-License-Identifier: GPL-3.0-or-later
// Makes an experiment's recipe on a thread of its own: first what it would be, then its folder. GUI thread.
#pragma once
#include <QObject>
#include <memory>
#include <thread>

#include "core/base/error.h"
#include "core/base/mailbox.h"
#include "core/recipes/recipe.h"
#include "core/experiment/experiment.h"
#include "core/jobs/sweep_run.h"

namespace mw::ui {

class RecipeExporter : public QObject {
  Q_OBJECT
 public:
  RecipeExporter(std::filesystem::path templates, hardware::LoadCatalogue catalogue)
      : templates_(std::move(templates)), catalogue_(std::move(catalogue)) {}

  struct Look {
    recipes::RecipeInput subject;
    std::vector<std::string> files;
  };
  void look(recipes::Kind kind, const runs::Experiment& experiment);  // an older one still going is given up
  void write(const std::filesystem::path& folder, recipes::Overwrite overwrite);  // what was looked at
  void drain();
  bool busy() const { return thread_.joinable(); }
  const std::shared_ptr<const Look>& looked() const { return look_; }  // null: nothing yet, or it failed

 signals:
  void changed();  // began, ended
  void written(const QString& folder, int files);
  void failed(const mw::Problem& problem);

 private:
  struct Said {
    int job = 0;
    std::shared_ptr<const Look> look{};
    std::filesystem::path folder{};
    int files = 0;
    std::optional<Problem> problem{};
  };
  template <class Work>
  void begin(Work work);

  std::filesystem::path templates_;
  hardware::LoadCatalogue catalogue_;
  std::shared_ptr<const Look> look_;
  int job_ = 0;
  Mailbox<Said> said_;
  std::jthread thread_;  // last: it uses the others
};

}  // namespace mw::ui
