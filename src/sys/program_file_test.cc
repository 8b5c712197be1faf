#include "sys/program_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace caisson::sys {
namespace {

class ProgramFile : public testing::Test {
 protected:
  ProgramFile() {
    char name[] = "/tmp/caisson-program-XXXXXX";
    directory_ = ::mkdtemp(name);
  }
  ~ProgramFile() override { std::filesystem::remove_all(directory_); }

  [[nodiscard]] std::string write(const std::string& name, const std::string& text, mode_t mode = 0755) const {
    const std::string file = directory_ + "/" + name;
    std::ofstream(file) << text;
    ::chmod(file.c_str(), mode);
    return file;
  }

  std::string directory_;
};

TEST_F(ProgramFile, IsFoundAsAShellWouldFindIt) {
  const std::string tool = write("tool", "x");
  std::filesystem::create_symlink(tool, directory_ + "/link");
  const std::string plain = write("plain", "x", 0644);
  EXPECT_EQ(locateProgram("link", "/nowhere:" + directory_), tool);
  EXPECT_EQ(locateProgram(directory_ + "/link", ""), tool);
  EXPECT_EQ(locateProgram("plain", directory_), "") << "not executable";
  EXPECT_EQ(locateProgram("tool", "/nowhere"), "");
  EXPECT_EQ(locateProgram("", directory_), "");
  EXPECT_EQ(locateProgram(directory_, ""), "") << "a directory";
}

TEST_F(ProgramFile, IsTheSameByLinkAndByContent) {
  const std::string big(200'000, 'b');
  const std::string tool = write("tool", big);
  const std::string copy = write("copy", big);
  std::string changed = big;
  changed.back() = 'c';
  const std::string other = write("other", changed);
  std::filesystem::create_hard_link(tool, directory_ + "/hard");
  EXPECT_TRUE(sameProgram(tool, directory_ + "/hard"));
  EXPECT_TRUE(sameProgram(tool, copy));
  EXPECT_FALSE(sameProgram(tool, other));
  EXPECT_FALSE(sameProgram(tool, directory_ + "/missing"));
  ASSERT_EQ(::mkfifo((directory_ + "/fifo").c_str(), 0600), 0);
  EXPECT_FALSE(sameProgram(tool, directory_ + "/fifo"));
}

TEST_F(ProgramFile, NamesItsInterpreter) {
  EXPECT_EQ(scriptInterpreter(write("a", "#!/bin/sh\necho\n")), "/bin/sh");
  EXPECT_EQ(scriptInterpreter(write("b", "#! /bin/bash -eu\n")), "/bin/bash");
  EXPECT_EQ(scriptInterpreter(write("c", "#!/usr/bin/env -S A=1 dash -x\n")), "dash");
  EXPECT_EQ(scriptInterpreter(write("d", "#!/usr/bin/env python3")), "python3");
  EXPECT_EQ(scriptInterpreter(write("e", "echo\n")), "");
  EXPECT_EQ(scriptInterpreter(write("f", "#!")), "");
  EXPECT_EQ(scriptInterpreter(write("g", "#!\n/bin/sh")), "");
  EXPECT_EQ(scriptInterpreter(directory_ + "/missing"), "");
}

TEST_F(ProgramFile, IsBusyboxUnderWhateverName) {
  const auto kind = [&](const std::string& text) {
    const std::string file = write("ls", text);
    const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
    const std::string_view found = multiCallProgram(fd);
    ::close(fd);
    return found;
  };
  EXPECT_EQ(kind("ELF" + std::string(70'000, 'x') + "BusyBox v1.35.0"), "busybox");
  EXPECT_EQ(kind(std::string(65'530, 'x') + "BusyBox v1.35.0"), "busybox") << "across two pieces";
  EXPECT_EQ(kind("Toybox %s (see https://landley.net/toybox)"), "toybox");
  EXPECT_EQ(kind("BusyBox"), "");
  EXPECT_EQ(kind(""), "");
  EXPECT_EQ(kind(std::string(4 << 20, 'x') + "BusyBox v1"), "") << "larger than either of them is";
  EXPECT_EQ(multiCallProgram(-1), "");
}

}  // namespace
}  // namespace caisson::sys
