// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/ui/support.h"

#include <QAbstractButton>
#include <QAccessible>
#include <QLabel>
#include <QPushButton>
#include <QScrollBar>
#include <QTest>
#include <QWidget>
#include <algorithm>
#include <cmath>
#include <mutex>

#include "core/jobs/job.h"
#include "ui/session/dialog_parts.h"
#include "ui/theme/text.h"
#include "ui/theme/widgets.h"

namespace mw::test {
namespace fs = std::filesystem;
namespace {

std::mutex guard;
QStringList seen;
QtMessageHandler before = nullptr;

void record(QtMsgType type, const QMessageLogContext& context, const QString& text) {
  const bool harmless =  // notices of the offscreen plugin
      text.contains(QLatin1String("propagateSizeHints")) ||
      text.startsWith(QLatin1String("This plugin does not support"));
  if (type != QtDebugMsg && type != QtInfoMsg && !harmless) {
    const std::lock_guard lock(guard);
    seen << text;
  }
  if (before && !harmless) before(type, context, text);
}

}  // namespace

void WarningWatch::start() {
  if (const auto old = qInstallMessageHandler(record); old != record) before = old;
}

WarningWatch::~WarningWatch() {
  if (before) qInstallMessageHandler(before);
}

QStringList WarningWatch::take() {
  const std::lock_guard lock(guard);
  QStringList all;
  all.swap(seen);
  return all;
}

store::RunId add_run(const fs::path& runs_folder, const std::string& name, int steps, RunState state) {
  store::Store store(runs_folder);
  experiment::Experiment experiment;
  experiment.set_value("name", name);
  experiment.set_value("lora.rank", 8);
  experiment.set_value("train.steps", steps);
  const store::RunId run = store.create(experiment, name);
  const auto lock = store.lock(run);
  const auto add = [&](double t, auto body) { store.append(run, Event{t, std::move(body)}); };
  Ledger bytes;
  bytes[MemoryCategory::weights] = Bytes(40 << 20);
  bytes[MemoryCategory::adapters] = Bytes(2 << 20);
  add(0.1, event::StateChanged{RunState::running});
  add(0.2, event::Started{Json{{"name", name},
                               {"steps", steps},
                               {"device", {{"id", "cpu"}, {"threads", 2}}},
                               {"capacity_bytes", std::int64_t{1} << 30},
                               {"predicted", {{"weights", 40 << 20}, {"activations", 20 << 20}}}}});
  add(0.3, event::Log{"info", "60 rows: 54 to train on"});
  add(0.3, event::Memory{0, 0, "load", bytes, bytes.total()});
  for (int step = 1; step <= steps; ++step) {
    const double t = 0.3 + 0.05 * step;
    bytes[MemoryCategory::activations] = Bytes((15 << 20) + (step % 7) * (1 << 18));
    add(t, event::Metric{"train/loss", step, 3.0 * std::exp(-step / 40.0) + 0.5 + 0.2 * std::sin(step * 1.7)});
    add(t, event::Metric{"train/grad_norm", step, 1.0 + 0.3 * std::cos(step * 0.9)});
    add(t, event::Metric{"train/learning_rate", step, 1e-3 * (1 - static_cast<double>(step) / (steps + 1))});
    add(t, event::Metric{"train/tokens_per_second", step, 900.0 + step % 11});
    add(t, event::Progress{"training", step, steps});
    add(t, event::Memory{0, step, "step", bytes, bytes.total()});
    if (step % 20 == 0) {
      add(t, event::Metric{"eval/loss", step, 3.0 * std::exp(-step / 40.0) + 0.6});
      add(t, event::Sample{step, "What colour is the sky?\nSay one word.", step > 40 ? "blue" : "the the", "blue",
                           step > 40 ? "right" : "wrong"});
    }
  }
  event::Finished end;
  end.state = state;
  end.steps = steps;
  end.tokens = steps * 512;
  end.seconds = 0.3 + 0.05 * steps;
  end.peak = bytes.total();
  if (state == RunState::failed) end.error = "the loss is not a number any more";
  if (state != RunState::running) add(end.seconds, end);
  store.flush();
  return run;
}

namespace {

constexpr std::int64_t kMiB = 1 << 20;

event::StepTraffic mesh_traffic(int step, int devices) {
  const double one = 1.0 / devices;
  event::StepTraffic t{.step = step, .entries = {}, .devices = {}};
  t.entries = {
      {"all-gather", "fsdp", "forward", "FSDP gather", 0, 12, Bytes(kMiB * step / 2), 0.002, 0.00025},
      {"reduce-scatter", "fsdp", "backward", "gradients", 0, 12, Bytes(kMiB * step / 2), 0.002, 0.00025},
      {"all-reduce", "tp", "forward", "partial sums", 0, 8, Bytes(kMiB), 0.003, 0.00025},
      {"all-reduce", "tp", "backward", "partial sums", 0, 8, Bytes(kMiB), 0.003, 0.00025},
  };
  for (event::StepTraffic::Entry& e : t.entries) e.planned = e.bytes;
  if (step > 40) *t.entries[3].planned = Bytes(kMiB / 2);  // a sum too many
  for (int d = 0; d < devices; ++d)
    t.devices.push_back({Bytes(static_cast<std::int64_t>(static_cast<double>(kMiB * (step + 2)) * one)), 0.010, 0.001});
  return t;
}

}  // namespace

std::vector<Event> mesh_events(const std::string& name, int steps, int fsdp, int tp) {
  std::vector<Event> events;
  Json predicted{{"weights", 40 * kMiB}, {"activations", (10 + fsdp * tp - 1) * kMiB}};
  for (int d = 0; d < fsdp * tp; ++d)  // that of device 1 is too small
    predicted["devices"].push_back({{"weights", 40 * kMiB}, {"activations", (d == 1 ? 5 : 10 + d) * kMiB}});
  events.push_back({0.1, event::StateChanged{RunState::running}});
  events.push_back({0.2, event::Started{Json{{"name", name},
                                             {"steps", steps},
                                             {"device", {{"id", "cpu"}, {"threads", 1}}},
                                             {"devices", fsdp * tp},
                                             {"capacity_bytes", 80 * kMiB},
                                             {"predicted", std::move(predicted)}}}});
  const auto memory = [&](double t, int step, const char* phase, int activations) {
    for (int d = 0; d < fsdp * tp; ++d) {
      Ledger bytes;
      bytes[MemoryCategory::weights] = Bytes(40 * kMiB);
      bytes[MemoryCategory::activations] = Bytes(activations * (10 + d) * kMiB / 2);
      events.push_back({t, event::Memory{d, step, phase, bytes, bytes.total()}});
    }
  };
  memory(0.3, 0, "load", 0);
  for (int step = 1; step <= steps; ++step) {
    const double t = 0.3 + 0.05 * step;
    memory(t - 0.03, step, "forward", 1);
    memory(t - 0.01, step, "backward", 2);
    events.push_back({t, event::Metric{"train/loss", step, 3.0 * std::exp(-step / 40.0) + 0.5}});
    events.push_back({t, event::Metric{"train/grad_norm", step, 1.0 + 0.3 * std::cos(step * 0.9)}});
    events.push_back({t, event::Metric{"train/learning_rate", step, 1e-3}});
    events.push_back({t, event::Metric{"train/tokens_per_second", step, 900.0 + step % 11}});
    events.push_back({t, mesh_traffic(step, fsdp * tp)});
  }
  event::Finished end;
  end.steps = steps;
  end.seconds = 0.4 + 0.05 * steps;
  end.peak = Bytes((50 + fsdp * tp - 1) * kMiB);
  events.push_back({end.seconds, end});
  return events;
}

store::RunId add_mesh_run(const fs::path& runs_folder, const std::string& name, int steps, int fsdp, int tp) {
  store::Store store(runs_folder);
  experiment::Experiment experiment;
  experiment.set_value("name", name);
  experiment.set_value("train.steps", steps);
  experiment.set_value("mesh", Json{{"fsdp", fsdp}, {"tp", tp}});
  const store::RunId run = store.create(experiment, name);
  const auto lock = store.lock(run);
  for (const Event& event : mesh_events(name, steps, fsdp, tp)) store.append(run, event);
  store.flush();
  return run;
}

experiment::Experiment sizing(const Json& changes) {
  Json e = parse_json(R"({"schema": 1, "name": "sizes", "target": {"threads": 2},
    "size": {"batches": [1, 2, 4], "prompt_len": 12, "new_tokens": 4, "top_k": 8, "chunk": 16}})",
                      "sizing");
  e["model"]["path"] = MW_RESOURCES "/base-model";
  e.merge_patch(changes);
  return experiment::Experiment::from_json(e, fs::temp_directory_path());
}

store::RunId add_sizing(const fs::path& runs_folder, const Json& changes) {
  experiment::Experiment experiment = sizing(changes);
  experiment.set_value("kind", "size");
  store::RunId run;
  jobs::run_blocking({experiment, runs_folder, std::nullopt},
                     [&run](const Event& event) {
                       const auto* started = std::get_if<event::Started>(&event.body);
                       if (started) run = started->info.value("run", "");
                     },
                     {});
  return run;
}

QStringList unnamed(QWidget& root) {
  QStringList out;
  for (QWidget* w : root.findChildren<QWidget*>()) {
    if (w->focusPolicy() == Qt::NoFocus || !w->isVisibleTo(&root)) continue;
    if (qobject_cast<QScrollBar*>(w)) continue;
    QAccessibleInterface* face = QAccessible::queryAccessibleInterface(w);
    const QString name = face ? face->text(QAccessible::Name) : w->accessibleName();
    if (name.trimmed().isEmpty())
      out << QString::fromLatin1(w->metaObject()->className()) + QLatin1String(" '") + w->objectName() +
                 QLatin1String("' in ") +
                 QString::fromLatin1(w->parentWidget() ? w->parentWidget()->metaObject()->className() : "-");
  }
  return out;
}

QPushButton& button_of(QWidget& root, const QString& text) {
  for (QPushButton* button : root.findChildren<QPushButton*>())
    if (button->text() == text) return *button;
  qFatal("there is no button \"%s\"", qPrintable(text));
}

bool shows_text(QWidget& root, const QString& part) {
  const auto labels = root.findChildren<QLabel*>();
  return std::any_of(labels.begin(), labels.end(), [&](const QLabel* label) { return label->text().contains(part); });
}

QString result_text(QWidget& dialog) {
  return dialog.findChild<ui::ResultText*>()->text();
}

void save_picture(QWidget& of, const QString& name) {
  const QString given = qEnvironmentVariable("MW_PICTURES");
  const fs::path folder = given.isEmpty() ? fs::path(MW_PICTURES) : ui::fspath(given);
  fs::create_directories(folder);
  constexpr int kLeastCompression = 85;  // zlib's level 1 (QPngHandler)
  const QString file = ui::qpath(folder / ui::ss(name + QLatin1String(".png")));
  QVERIFY2(of.grab().save(file, "PNG", kLeastCompression), qPrintable(file));
}

QStringList clipped(QWidget& root) {
  QStringList out;
  for (QWidget* w : root.findChildren<QWidget*>()) {
    if (!w->isVisibleTo(&root) || qobject_cast<ui::ElidedLabel*>(w)) continue;  // it elides itself
    const auto* label = qobject_cast<QLabel*>(w);
    const auto* button = qobject_cast<QAbstractButton*>(w);
    const bool one_line = label && !label->wordWrap() && label->sizePolicy().horizontalPolicy() != QSizePolicy::Ignored;
    if (!one_line && !button) continue;
    if (w->width() >= w->sizeHint().width() && w->height() >= w->fontMetrics().height() - 4) continue;
    if (label && label->text().isEmpty()) continue;
    if (button && button->text().isEmpty()) continue;
    out << QStringLiteral("%1: %2 of %3")
               .arg(label ? label->text() : button->text())
               .arg(w->width())
               .arg(w->sizeHint().width());
  }
  return out;
}

}  // namespace mw::test
