// The contenders of the launch table: how each is called, and what it does not isolate.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "options.h"
#include "process.h"
#include "scratch.h"

namespace bench {

enum class Contender {
  fork_exec,
  floor,
  floor_part,
  bubblewrap,
  bubblewrap_same,
  caisson,
  caisson_no_cgroup,
  caisson_audit,
  caisson_no_audit,
  caisson_image,
  peer
};

struct Row {
  Contender contender = Contender::peer;
  std::string name;
  Command command;      ///< runs `true`
  std::string open;     ///< what this configuration does not isolate
  std::string absent;   ///< why it cannot be measured; empty when it can
  Command after;        ///< stops the processes that it left running; empty: none
  double usual_ms = 0;  ///< approximate duration of a call
};

/// Every requested row, unavailable ones with the reason. Each available one has run once.
std::vector<Row> makeRows(const Options& options, const Scratch& scratch);

/// Stops processes that the rows left running.
void endRows(const std::vector<Row>& rows);

/// The variables that every measured program gets.
std::vector<std::string> cleanEnvironment(const Scratch& scratch);

/// `caisson run` with `arguments`, or nothing when there is no binary.
std::optional<Command> caissonRun(const Options& options, const Scratch& scratch, std::vector<std::string> arguments);

/// The bubblewrap command line up to the program.
std::optional<std::vector<std::string>> bubblewrapPrefix();

const Row* find(const std::vector<Row>& rows, Contender contender);

}  // namespace bench
