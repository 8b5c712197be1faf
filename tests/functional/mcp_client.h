// A test client of `caisson mcp` over stdio that implements 2026-07-28.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace caisson::test {

class McpClient {
 public:
  using Json = nlohmann::json;

  /// Starts `caisson mcp ARGUMENTS...` with the environment of the test, changed by `environment`. `wrapper`: a program
  /// and arguments that execute it.
  explicit McpClient(std::vector<std::string> arguments, const std::map<std::string, std::string>& environment,
                     Json capabilities = Json::object(), const std::vector<std::string>& wrapper = {});
  ~McpClient();
  McpClient(const McpClient&) = delete;
  McpClient& operator=(const McpClient&) = delete;

  /// From now on data that does not fit into the pipe is dropped.
  void neverWait() const;
  /// One line, as it is.
  void sendLine(const std::string& line) const;
  /// A request with the `_meta` of 2026-07-28; returns its id.
  int send(const std::string& method, Json params);
  void notify(const std::string& method, const Json& params) const;
  /// The response with this id; null if none arrived in time. Keeps other responses.
  Json answer(int id, std::chrono::seconds timeout = std::chrono::seconds(60));
  /// The next message of any kind.
  Json next(std::chrono::milliseconds timeout = std::chrono::seconds(20));

  Json request(const std::string& method, Json params) { return answer(send(method, std::move(params))); }
  /// A tool's result.
  Json call(const std::string& tool, Json arguments);
  /// The structuredContent of a tool's result.
  Json tool(const std::string& tool, Json arguments);

  void closeInput();
  void signal(int number) const;
  /// The exit status, or -1 if it did not exit in time.
  int wait(std::chrono::seconds timeout = std::chrono::seconds(20));
  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  Json readMessage(std::chrono::milliseconds timeout);

  Json capabilities_;
  pid_t pid_ = -1;
  int input_ = -1, output_ = -1;
  std::string buffer_;
  std::vector<Json> kept_;
  int last_id_ = 0;
};

}  // namespace caisson::test
