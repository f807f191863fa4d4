// SPDX-License-Identifier: Apache-2.0
// The tables of the run store.
#pragma once
#include "core/store/store_sqlite.h"

namespace mw::store {

// Creates the tables in an empty database that can be written; refuses another program's database and a newer schema
// (STORE-NEWER).
void prepare_schema(Database& db);

}  // namespace mw::store
