// A policy as JSON, and the JSON Schema of policy files. Both walk the field table.
#pragma once

#include <string>

#include "policy/model.h"

namespace caisson::policy {

/// Every field, in the form that decode() reads back as the same policy. Unset keys are null.
std::string toJson(const Policy& policy);

/// A JSON Schema (draft 2020-12) of policy files: every key described, nothing else allowed.
std::string schema();

}  // namespace caisson::policy
