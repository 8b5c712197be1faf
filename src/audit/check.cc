#include "audit/check.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>

#include "audit/files.h"
#include "audit/reader.h"
#include "base/version.h"
#include "sys/file_lock.h"
#include "sys/state_home.h"

namespace caisson::audit {
namespace {

/// A consistent snapshot: no writer is active while it is collected.
struct Snapshot {
  std::optional<Head> head;
  std::string head_problem;
  bool head_empty = false;  ///< made, but never written
  std::vector<LogFile> files;
};

/// Whether no line was ever recorded: the first writer was killed before it wrote the head, which precedes any line.
bool isNewLog(const Snapshot& all) {
  return all.head_empty && std::ranges::all_of(all.files, [](const LogFile& log) { return log.file && log.size == 0; });
}

/// Nothing if it is unreadable; an error if another version of caisson wrote it.
Result<std::optional<Head>> readHead(int file, const std::string& path) {
  HeadBytes bytes{};
  if (::pread(file, bytes.data(), bytes.size(), 0) <= 0) return std::nullopt;
  const auto head = decode(bytes);
  if (const int format = head ? 0 : otherFormat(bytes); format != 0) {
    return fail(unknownFormat(path + "/" + kHeadName, {.found = format, .oldest = kHeadFormat, .newest = kHeadFormat},
                              "verify the log with the caisson that wrote it"));
  }
  return head;
}

/// Opens all files while the head is locked; writers wait meanwhile.
Result<Snapshot> collect(int directory, const std::string& path, std::chrono::milliseconds lock_timeout) {
  Snapshot all;
  auto head = openOwn(directory, path, kHeadName, O_RDWR);
  if (head) {
    auto locked = sys::lockFile(head->get(), sys::LockKind::exclusive, lock_timeout, path + "/" + kHeadName);
    if (!locked) return fail(locked.error());
    auto read = readHead(head->get(), path);
    if (!read) return fail(read.error());
    all.head = *read;
    struct stat status{};
    all.head_empty = ::fstat(head->get(), &status) == 0 && status.st_size == 0;
    if (!all.head) all.head_problem = "the head is unreadable: where the log ends can't be told";
  } else {
    all.head_problem = head.error().sys_errno == ENOENT ? "the head is missing: where the log ends can't be told"
                                                        : head.error().message();
  }
  for (const std::uint32_t number : logNumbers(directory)) {
    LogFile file{number, logName(number), {}, 0, {}};
    auto opened = openOwn(directory, path, file.name, O_RDONLY);
    struct stat status;
    if (!opened) {
      file.problem = opened.error().message();
    } else if (::fstat(opened->get(), &status) == 0) {
      file.file = std::move(*opened);
      file.size = static_cast<std::uint64_t>(status.st_size);
    }
    all.files.push_back(std::move(file));
  }
  return all;
}

struct ChainKey {
  std::string name;  ///< of its file; empty if there is none
  std::optional<Digest> key;
  std::string problem;  ///< why the file is of no use, or empty
};

/// The first key of the last chain that started at or before this file. A writer syncs the key before it writes the
/// first head, so no dead writer leaves an unfinished one to a log with a head.
ChainKey firstKey(int directory, const std::string& path, std::uint32_t file) {
  auto chains = keyNumbers(directory);
  for (auto chain = chains.rbegin(); chain != chains.rend(); ++chain) {
    if (*chain > file) continue;
    ChainKey found{.name = keyName(*chain), .key = {}, .problem = {}};
    const auto opened = openOwn(directory, path, found.name, O_RDONLY);
    if (!opened && opened.error().sys_errno == ENOENT) continue;
    if (!opened) {
      found.problem = opened.error().message();
      return found;
    }
    char text[kHashText + 2];  // with the line end; one byte more shows a longer file
    const ssize_t got = ::read(opened->get(), text, sizeof(text));
    Digest digest;
    if (got == static_cast<ssize_t>(kHashText) + 1 && text[kHashText] == '\n' &&
        readHex(std::string_view(text, kHashText), digest)) {
      found.key = digest;
    } else {
      found.problem = "not a key, which is 64 hexadecimal digits on one line: it was damaged or replaced";
    }
    return found;
  }
  return {};
}

/// Checks the lines in the first `end` bytes.
void checkFile(const LogFile& log, std::uint64_t end, ChainChecker& checker) {
  LineCutter cutter;
  std::string buffer(256 * 1024, '\0');
  std::uint64_t offset = 0;
  while (offset < end) {
    const std::size_t wanted = std::min<std::uint64_t>(buffer.size(), end - offset);
    const ssize_t got = ::pread(log.file.get(), buffer.data(), wanted, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      checker.report("it could not be read to its end", true);
      return;
    }
    offset += static_cast<std::uint64_t>(got);
    const std::uint64_t dropped = cutter.dropped();
    cutter.add(std::string_view(buffer).substr(0, static_cast<std::size_t>(got)),
               [&](std::string_view line) { checker.line(line); });
    if (cutter.dropped() != dropped) checker.report("a line is longer than caisson writes any");
  }
  if (!cutter.rest().empty()) checker.report("the file ends within a line");
}

/// Checks what lies beyond the head's end. A writer writes lines that follow from the head, then the head: if it dies,
/// it leaves some of these lines and at most one incomplete one, which the next writer adopts or truncates. Any other
/// complete line was added by something else.
void checkTail(const LogFile& log, const Head& head, ChainChecker& checker, CheckReport& report) {
  LineCutter cutter;
  std::string buffer(256 * 1024, '\0');
  Link link = head.link;
  bool foreign = false;
  for (std::uint64_t offset = head.end; offset < log.size && !foreign;) {
    const std::size_t wanted = std::min<std::uint64_t>(buffer.size(), log.size - offset);
    const ssize_t got = ::pread(log.file.get(), buffer.data(), wanted, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return checker.report("it could not be read to its end", true);
    offset += static_cast<std::uint64_t>(got);
    cutter.add(std::string_view(buffer).substr(0, static_cast<std::size_t>(got)),
               [&](std::string_view line) { foreign = foreign || !follows(line, link); });
    foreign = foreign || cutter.dropped() > 0;
  }
  if (foreign) {
    return checker.report(
        "after line " + std::to_string(link.seq) + " comes a line that is not its next: it was added or changed", true);
  }
  report.notes.push_back("a writer died: " + std::to_string(log.size - head.end) +
                         " bytes at the end are not part of the log yet");
}

void checkFiles(const Snapshot& all, int directory, const std::string& path, const CheckOptions& options,
                ChainChecker& checker, CheckReport& report) {
  std::set<std::string> bad_keys;
  std::uint32_t expected = all.head ? all.head->oldest : all.files.empty() ? 1 : all.files.front().number;
  for (const LogFile& log : all.files) {
    if (all.head && log.number < all.head->oldest) {
      report.notes.push_back(log.name + " is left from before the log was pruned, and not part of it any more");
      continue;
    }
    checker.beginFile(log.name, log.number, std::nullopt);
    // An attacker may plant a file with any number.
    for (; expected < log.number && report.findings.size() < kMaxFindings; ++expected)
      report.findings.push_back({logName(expected), 0, "the file is missing"});
    expected = log.number + 1;
    if (all.head && log.number > all.head->file && log.problem.empty() && log.size == 0) {
      report.notes.push_back("a writer died: " + log.name + " is empty and not part of the log yet");
      continue;
    }
    if (all.head && log.number > all.head->file) {
      checker.report("the head knows nothing of this file", true);
      continue;
    }
    if (!log.problem.empty()) {
      checker.report(log.problem, true);
      continue;
    }
    ++report.files;
    const ChainKey key = firstKey(directory, path, log.number);
    if (!key.problem.empty() && bad_keys.insert(key.name).second && report.findings.size() < kMaxFindings)
      report.findings.push_back({key.name, 0, key.problem});
    checker.beginFile(log.name, log.number, report.files == 1 && options.first_key ? options.first_key : key.key);
    const bool current = all.head && log.number == all.head->file;
    checkFile(log, current ? std::min(log.size, all.head->end) : log.size, checker);
    if (current && log.size > all.head->end) checkTail(log, *all.head, checker, report);
  }
  if (all.head && expected <= all.head->file && report.findings.size() < kMaxFindings)
    report.findings.push_back(
        {logName(all.head->file), 0, "the file is missing, and it is the one that is written to"});
}

/// Compares the last line with the head, which records the last write.
void checkEnd(const Head& head, const ChainChecker& checker, CheckReport& report) {
  const auto add = [&](std::string what) { report.findings.push_back({logName(head.file), 0, std::move(what)}); };
  const Link& link = checker.link();
  if (link.seq < head.link.seq) {
    add("the log ends with line " + std::to_string(link.seq) + ", but line " + std::to_string(head.link.seq) +
        " was written: its tail was cut off");
  } else if (link.seq > head.link.seq || link.hash != head.link.hash) {
    add("the head does not belong to this log: one of them was replaced");
  } else if (checker.keyKnown() && link.key != head.link.key) {
    add("the head's key is not the one that follows from the chain's first key: the head was replaced");
  }
}

}  // namespace

Result<CheckReport> checkLog(const std::string& path, const CheckOptions& options) {
  CheckReport report;
  std::uint64_t anchor_seq = 0;
  Digest anchor_hash{};
  if (!options.anchor.empty() && !parseAnchor(options.anchor, anchor_seq, anchor_hash)) {
    return fail(
        plainError(Stage::usage, "audit verify", options.anchor, "an anchor is SEQ:HASH, as `audit verify` prints it"));
  }
  auto directory = sys::openPrivateDirectory(path);
  if (!directory) return fail(directory.error());
  auto all = collect(directory->get(), path, options.lock_timeout);
  if (!all) return fail(all.error());
  if ((all->files.empty() && !all->head) || isNewLog(*all)) {
    if (anchor_seq != 0)
      report.findings.push_back({path, 0, "there is no log, but the anchor says that there was one"});
    report.notes.emplace_back("nothing is on record yet");
    return report;
  }
  ChainChecker checker(report);
  checker.watchFor(anchor_seq, anchor_hash);
  if (!all->head) report.findings.push_back({kHeadName, 0, all->head_problem});
  checkFiles(*all, directory->get(), path, options, checker, report);
  if (all->head) checkEnd(*all->head, checker, report);
  const std::uint32_t first =
      all->files.empty() ? 0 : std::max(all->files.front().number, all->head ? all->head->oldest : 0);
  // A writer that died before its first lines counted left a head without any.
  const bool begun = !all->head || all->head->link.seq != 0;
  if (begun && first != 0 && checker.oldestKept() < first && checker.chainStart() != first &&
      checker.oldestKept() != first) {
    const bool began_there = checker.chainStart() != 0 && checker.chainStart() <= first;
    if (!began_there)
      report.findings.push_back(
          {logName(first), 0, "older files are gone, and nothing on record says that they were pruned"});
  }
  if (anchor_seq != 0 && !checker.anchorSeen())
    report.findings.push_back(
        {path, 0,
         "the anchored line " + std::to_string(anchor_seq) + " is not in the log: it was " +
             (anchor_seq < report.first_seq ? "pruned, or the log was replaced" : "replaced or cut off")});
  report.macs_checked = checker.keyKnown();
  if (!report.macs_checked && report.lines > 0)
    report.notes.emplace_back("the MACs were not all checked: the chain's first key is not here");
  if (report.last_seq != 0) report.head = std::to_string(report.last_seq) + ":" + hex(checker.link().hash);
  return report;
}

}  // namespace caisson::audit
