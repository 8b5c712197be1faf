// Features for tests of the server.
#pragma once

#include <string>
#include <utility>

#include "mcp/server/features.h"

namespace caisson::mcp {

/// Without tools, prompts and resources; every call is answered with an empty result.
class EmptyFeatures : public Features {
 public:
  [[nodiscard]] Json serverInfo() const override { return Json::object(); }
  [[nodiscard]] Json capabilities(ProtocolRevision /*revision*/) const override { return Json::object(); }
  [[nodiscard]] Json tools() override { return Json::array(); }
  [[nodiscard]] Json prompts() override { return Json::array(); }
  [[nodiscard]] Json resources() override { return Json::array(); }
  [[nodiscard]] Json resourceTemplates() override { return Json::array(); }
  Outcome callTool(Call& /*call*/) override { return Json::object(); }
  Outcome getPrompt(Call& /*call*/) override { return Json::object(); }
  Outcome readResource(Call& /*call*/) override { return Json::object(); }
  Outcome complete(Call& /*call*/) override { return Json::object(); }
};

/// Every tool returns a text of this size.
class LargeFeatures final : public EmptyFeatures {
 public:
  explicit LargeFeatures(std::size_t bytes) : bytes_(bytes) {}
  Outcome callTool(Call& /*call*/) override { return Json{{"large", std::string(bytes_, 'x')}}; }

 private:
  std::size_t bytes_;
};

}  // namespace caisson::mcp
