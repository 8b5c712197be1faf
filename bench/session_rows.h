// Shared by the session rows: their directories, and the rows about file work.
#pragma once

#include <string>
#include <vector>

#include "caisson/session_pool.h"
#include "scratch.h"

namespace bench {

[[noreturn]] void fatal(const std::string& why);

struct Setting {
  std::string caisson = "build/caisson", floor = "build/bench/floor";
  unsigned files = 200'000;
  std::string home, workspace;

  /// Creates the directories, and sets CAISSON_HOME for the library.
  void prepare(const Scratch& scratch);
  /// A session over the workspace, without limits that would affect the measurement.
  [[nodiscard]] caisson::Session create() const { return create(workspace); }
  [[nodiscard]] caisson::Session create(const std::string& directory) const;
  [[nodiscard]] caisson::SessionPool pool(std::size_t size) const;
};

/// Writes this many small files, in directories of a hundred.
void fill(caisson::Session& session, unsigned files);

/// Processor time that a session's pid 1 and supervisor have used so far, in milliseconds.
double supervisionCpuMs(const Setting& setting, const caisson::Session& session);

/// Private memory of a session's pid 1, supervisor and launcher, with their page tables.
double privateKib(const Setting& setting, const caisson::Session& session);

struct FileWork {
  std::string name;
  double native = 0, inside = 0;  ///< medians, in milliseconds
  double limit = 0;               ///< the target: at most so many times native
};
std::vector<FileWork> measureFileWork(const Setting& setting);

}  // namespace bench
