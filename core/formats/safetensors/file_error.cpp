// SPDX-License-Identifier: Apache-2.0
#include "core/formats/safetensors/file_error.h"

#include "core/base/error.h"
#include "core/base/json.h"

namespace mw::formats {

void FileErrors::operator()(const std::filesystem::path& file, const std::string& place, const std::string& message,
                            const std::string& found, const std::string& expected, const std::string& fix) const {
  throw Error({.id = id,
               .message = message,
               .file = file.string(),
               .place = valid_utf8(place),
               .found = valid_utf8(found),
               .expected = expected,
               .fix = fix});
}

}  // namespace mw::formats
