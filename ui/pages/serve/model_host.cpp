// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/serve/model_host.h"

#include <utility>
#include "core/experiment/bound_experiment.h"
#include "ui/theme/text.h"

namespace mw::ui {
namespace {

// The part of the document that determines the loaded model: name and sampling settings do not.
Json model_part(const experiment::Experiment& experiment) {
  Json json = experiment.json();
  for (const char* key : {"name", "note", "sample", "sweep", "size"}) json.erase(key);
  return json;
}

}  // namespace

ModelHost::ModelHost(Document& document) : document_(document) {
  connect(&document_, &Document::changed, this, &ModelHost::changed);
  connect(&task_, &BackgroundWork::changed, this, &ModelHost::changed);
  connect(&task_, &BackgroundWork::ended, this, &ModelHost::take);
}

QString ModelHost::refusal() const {
  const std::string target = document_.experiment().valid_values().target.id;
  if (target == "cpu") return {};
  return tr("Only target cpu, this machine, can serve; the target is %1. A latency sweep simulates it.")
      .arg(qs(target));
}

bool ModelHost::is_outdated() const {
  const experiment::Experiment& now = document_.experiment();
  return model_ && (model_part(now) != model_part(loaded_) || now.folder() != loaded_.folder());
}

// A model that is loaded anew replaces the present one, whose memory the worker releases first.
void ModelHost::run(Step step, std::function<void()> then) {
  if (is_busy()) return;
  std::shared_ptr<jobs::ModelServer> kept = model_;
  if (!is_listening() && is_outdated()) {
    emit unloading();
    kept.reset();
  }
  const auto old = std::make_shared<std::shared_ptr<jobs::ModelServer>>(std::exchange(model_, nullptr));
  if (!kept) loaded_ = document_.experiment();
  problem_.reset();
  then_ = std::move(then);
  task_.start(
      [kept, old, step = std::move(step), wanted = loaded_](const ReportProgress& report, const std::stop_token& stop) {
        old->reset();
        Outcome out{.model = kept, .problem = {}, .address = {}};
        if (!kept)
          out.model = std::make_shared<jobs::ModelServer>(
              wanted,
              [&](long done, long total) {
                report({"Loading the model", done, total});
              },
              stop);
        try {
          if (step) step(*out.model);
        } catch (const Error& error) {  // the model stays loaded
          out.problem = error.problem();
        }
        if (out.model->http()) out.address = qs(out.model->http()->address());
        return out;
      });
}

void ModelHost::take() {
  problem_ = task_.problem();
  address_.clear();
  if (auto& result = task_.result()) {
    model_ = std::move(result->model);
    problem_ = result->problem;
    address_ = result->address;
    result.reset();
  }
  const auto then = std::exchange(then_, nullptr);
  emit changed();
  if (model_ && !problem_ && then) then();
}

void ModelHost::listen(serve::HttpOptions options) {
  run([options = std::move(options)](jobs::ModelServer& model) { model.listen(options); }, {});
}

void ModelHost::stop_listening() {
  run([](jobs::ModelServer& model) { model.stop_listening(serve::StopMode::cancel); }, {});
}

void ModelHost::with_model(std::function<void(std::shared_ptr<jobs::ModelServer>)> use) {
  if (model_ && !is_busy() && (is_listening() || !is_outdated())) return use(model_);
  run({}, [this, use = std::move(use)] { use(model_); });
}

}  // namespace mw::ui

#include "moc_model_host.cpp"
