// A private directory for the benchmark: every workspace, state directory and copied tool is in it.
#pragma once

#include <expected>
#include <string>

namespace bench {

class Scratch {
 public:
  /// Below $TMPDIR or /tmp; removed with everything in it by the destructor.
  static std::expected<Scratch, std::string> make();
  Scratch(Scratch&& other) noexcept;
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch();

  [[nodiscard]] std::string path(const std::string& relative) const { return root_ + "/" + relative; }
  /// The workspace of the launch rows: two small files.
  [[nodiscard]] std::string workspace() const { return path("workspace"); }

 private:
  explicit Scratch(std::string root) : root_(std::move(root)) {}
  std::string root_;
};

bool writeFile(const std::string& path, const std::string& text);

}  // namespace bench
