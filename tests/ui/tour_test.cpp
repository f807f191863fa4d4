// SPDX-License-Identifier: GPL-3.0-or-later
// The tour makes its own application, so this is a plain program: every picture is there, of the size in its name,
// and none is blank.
#include <QImage>
#include <QSet>
#include <cstdio>

#include "core/base/error.h"
#include "tests/ui/support.h"
#include "tests/ui/sweep_fixture.h"
#include "ui/shell/app.h"
#include "ui/theme/text.h"

namespace {

bool good(const std::filesystem::path& file) {
  const QImage image(mw::ui::qpath(file));
  if (image.isNull()) return false;
  const QString size = QString::fromLatin1("%1x%2").arg(image.width()).arg(image.height());
  if (!mw::ui::qpath(file).contains(size)) return false;
  QSet<QRgb> colours;
  for (int y = 0; y < image.height(); y += 7)
    for (int x = 0; x < image.width(); x += 7) colours.insert(image.pixel(x, y));
  return colours.size() > 40;
}

}  // namespace

int main(int argc, char** argv) {
  const mw::test::Scratch scratch;
  const std::filesystem::path out = qEnvironmentVariableIsSet("MW_PICTURES") ? qgetenv("MW_PICTURES").toStdString()
                                                                             : std::string(MW_PICTURES) + "/tour";
  int refused = 0;
  mw::test::add_run(scratch.path(), "Stopped early", 40, mw::RunState::cancelled);
  mw::test::add_run(scratch.path(), "tiny-lora", 400, mw::RunState::done);
  mw::test::add_mesh_run(scratch.path(), "mesh", 60, 2, 4);
  mw::test::add_run(scratch.path(), "Learning rate too high", 90, mw::RunState::failed);
  mw::test::add_sizing(scratch.path(),
                       mw::Json{{"size", {{"batches", {1, 2, 4, 8, 1000}}}}, {"target", {{"memory_gib", 0.0625}}}});
  mw::test::add_sweep(scratch.path(), "This machine",
                      {.provenance = mw::formats::ResultProvenance::measured, .target = "cpu"});
  mw::test::add_sweep(scratch.path(), "v6e-8, simulated", {});
  std::vector<std::filesystem::path> files;
  try {
    files = mw::ui::take_tour(argc, argv, {out, scratch.path(), MW_RESOURCES});
  } catch (const mw::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  for (const auto& file : files)
    if (!good(file)) {
      std::fprintf(stderr, "not a good picture: %s\n", file.c_str());
      ++refused;
    }
  std::printf("%zu pictures in %s\n", files.size(), out.c_str());
  return refused == 0 && files.size() >= 52 ? 0 : 1;
}
