// SPDX-License-Identifier: Apache-2.0
#include "core/formats/safetensors/file_error.h"

#include "core/base/error.h"
#include "core/base/json.h"

namespace mw::formats {

void fail_file(const char* id, const std::filesystem::path& file, const std::string& place, const FileFault& fault) {
  throw Error({.id = id,
               .message = fault.message,
               .file = file.string(),
               .place = valid_utf8(place),
               .found = valid_utf8(fault.found),
               .expected = fault.expected,
               .fix = fault.fix});
}

}  // namespace mw::formats
