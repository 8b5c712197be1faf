#include "sys/elf.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <cstring>

#include "sys/fd.h"

namespace caisson::sys {

namespace {

ByteSource from(const std::string& text) {
  return [text](std::uint64_t offset, std::span<char> room) {
    if (offset > text.size() || text.size() - offset < room.size()) return false;
    std::memcpy(room.data(), text.data() + offset, room.size());
    return true;
  };
}

}  // namespace

TEST(ProgramFiles, AProgramNamesItsLoaderAndLibraries) {
  const Fd fd(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  const auto needs = readProgram(fd.get());
  ASSERT_TRUE(needs);
  EXPECT_TRUE(needs->elf);
  const Fd shell(::open("/bin/sh", O_RDONLY | O_CLOEXEC));
  const auto dynamic = readProgram(shell.get());
  ASSERT_TRUE(dynamic);
  if (!dynamic->interpreter.empty()) {
    EXPECT_EQ(dynamic->interpreter.front(), '/');
    EXPECT_FALSE(dynamic->libraries.empty());
  }
}

TEST(ProgramFiles, AScriptNamesItsInterpreter) {
  EXPECT_EQ(readProgram(from("#!/bin/sh\necho"))->interpreter, "/bin/sh");
  EXPECT_EQ(readProgram(from("#! \t/usr/bin/env node\n"))->interpreter, "/usr/bin/env");
  EXPECT_EQ(readProgram(from("#!/bin/sh"))->interpreter, "/bin/sh");
  EXPECT_FALSE(readProgram(from("#!   \n")));
  EXPECT_FALSE(readProgram(from("#")));
  EXPECT_FALSE(readProgram(from("")));
}

TEST(ProgramFiles, CorruptHeadersAreHandled) {
  const Fd fd(::open("/bin/sh", O_RDONLY | O_CLOEXEC));
  std::string head(4096, '\0');
  ASSERT_GT(::pread(fd.get(), head.data(), head.size(), 0), 1000);
  for (std::size_t at = 16; at < 1024; ++at) {
    std::string broken = head;
    broken[at] = static_cast<char>(0xff);
    readProgram(from(broken));  // must not crash or loop forever; sanitizers check
    readProgram(from(broken.substr(0, at)));
  }
}

}  // namespace caisson::sys
