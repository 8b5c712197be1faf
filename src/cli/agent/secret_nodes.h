// Secrets in the structure of a document: by the name of a value, and in lists and tables that describe a command.
#pragma once

#include <string_view>

#include "policy/document/document.h"

namespace caisson::cli {

/// Neither a list nor a table.
bool isScalar(const policy::Node& node);

/// Whether the value of `name` may not be copied, by the name. A rule of permissions (allow, deny, ask) may.
bool isSecretValue(std::string_view name, const policy::Node& node);

/// The variables or the headers of something that is started or called: without them it does not work, and they are
/// keys as a rule.
bool isEnvironmentOrHeaders(std::string_view name, const policy::Node& node);

/// The same by the name alone.
bool namesEnvironmentOrHeaders(std::string_view name);

/// {"name": "X_API_KEY", "value": "..."}
bool namesSecretInside(const policy::Node& table);

/// Whether a list is one command line, or a part of one: by its flags or its name.
bool isCommandLine(std::string_view name, const policy::Node& list);

/// Whether no text of a list has a blank: all of them may be one command.
bool isListOfWords(const policy::Node& list);

/// Whether the texts of a list, read as one command line, hold a secret.
bool hasSecretInLine(std::string_view name, const policy::Node& list);

/// The same for the command and the arguments of a table.
bool hasSecretInCommand(const policy::Node& table);

}  // namespace caisson::cli
