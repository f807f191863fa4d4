// SPDX-License-Identifier: Apache-2.0
// The chat template of training as checkpoints and run records keep it, so that serving and merging can tell whether
// conversations are rendered as they were trained.
#pragma once
#include <filesystem>
#include <string>

#include "core/data/tokenizer/chat.h"

namespace mw::train {

// {name, sha256, rendered}: the built-in template or the model that has published a folder's; the hash of a folder's
// text; that of a short conversation rendered with it.
Json template_record(const data::ChatTemplate& chat);
// A sentence if `folder` is a checkpoint of Meshwright whose conversations were rendered in another way than `used`
// does; empty if they were not, or if it does not say.
std::string template_warning(const std::filesystem::path& folder, const data::ChatTemplate& used);

}  // namespace mw::train
