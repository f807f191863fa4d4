// SPDX-License-Identifier: Apache-2.0
// OCDBT databases of tensorstore (kvstore/ocdbt/index.rst), the usual storage of Orbax checkpoints.
#pragma once
#include <filesystem>
#include <memory>

#include "core/formats/orbax/kv_store.h"

namespace mw::formats {

// Opens the newest version of the database whose manifest.ocdbt is in `folder`. Throws ORBAX for an unfinished save
// (process folders without a manifest), wrong checksums, missing data files, and references outside the folder.
std::unique_ptr<KvStore> open_ocdbt(const std::filesystem::path& folder);

}  // namespace mw::formats
