#include "host/executables.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "support/temp_dir.h"

namespace caisson::host {
namespace {

#if defined(__x86_64__)
constexpr std::string_view kRustHost = "x86_64-unknown-linux-gnu";
#else
constexpr std::string_view kRustHost = "aarch64-unknown-linux-gnu";
#endif

class ExecutableFacts : public testing::Test {
 protected:
  /// Puts a program there. Its content does not matter, except that it is in the ELF format.
  std::string program(const std::string& path) {
    toolchain.write(path, "");
    std::filesystem::copy_file("/bin/true", toolchain / path, std::filesystem::copy_options::overwrite_existing);
    return toolchain / path;
  }
  static bool mapped(const std::string& entry, const std::string& path) {
    policy::Policy policy;
    policy.process.allowed_executables = {entry};
    const plan::ExecutableFacts facts = observeExecutables(policy, {});
    return std::ranges::find(facts.libraries, path) != facts.libraries.end();
  }

  const test::TempDir toolchain;
  const std::string linkers = "lib/rustlib/" + std::string(kRustHost) + "/bin/";
};

TEST_F(ExecutableFacts, OfRustcIncludeTheLinkersOfItsToolchain) {
  const std::string rustc = program("bin/rustc");
  const std::string cargo = program("bin/cargo");
  const std::string lld = program(linkers + "rust-lld");
  const std::string wrapper = program(linkers + "gcc-ld/ld.lld");
  const std::string other = program(linkers + "other");
  EXPECT_TRUE(mapped(rustc, lld));
  EXPECT_TRUE(mapped(rustc, wrapper));
  EXPECT_TRUE(mapped(toolchain / "bin", wrapper)) << "a list with the directory of rustc";
  EXPECT_FALSE(mapped(rustc, other));
  EXPECT_FALSE(mapped(cargo, lld)) << "a list without rustc";
}

TEST_F(ExecutableFacts, OfRustcIncludeNoLinkerOutsideItsToolchain) {
  const std::string rustc = program("bin/rustc");
  program(linkers + "rust-lld");
  const test::TempDir elsewhere;
  std::filesystem::copy_file("/bin/true", elsewhere / "shell");
  std::filesystem::remove(toolchain / (linkers + "rust-lld"));
  std::filesystem::create_symlink(elsewhere / "shell", toolchain / (linkers + "rust-lld"));
  EXPECT_FALSE(mapped(rustc, elsewhere / "shell"));
}

}  // namespace
}  // namespace caisson::host
