// SPDX-License-Identifier: Apache-2.0
// Schema of the run store.
#pragma once
#include "core/store/store_sqlite.h"

namespace mw::store {

// Creates the tables if the database is empty and writable. Throws STORE-NOT-A-DATABASE for another program's database
// and STORE-NEWER for a newer schema.
void prepare_schema(Database& db);

}  // namespace mw::store
