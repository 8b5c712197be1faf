// The reader of the audit log: anything may be in its files. Whatever comes in, the pieces it arrives in make no
// difference, a line that is taken for one of the log reads back, and no chain is called whole that was not written by
// the writer.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "audit/chain.h"
#include "audit/check.h"
#include "audit/head.h"
#include "audit/reader.h"

using namespace caisson;  // NOLINT

namespace {

std::vector<std::string> cut(std::string_view text, std::size_t piece) {
  audit::LineCutter cutter;
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size(); at += piece)
    cutter.add(text.substr(at, piece), [&](std::string_view line) { lines.emplace_back(line); });
  return lines;
}

void checkSame(std::string_view text) {
  const auto whole = cut(text, text.size() + 1);
  if (cut(text, 7) != whole) std::abort();
  audit::CheckReport report;
  audit::ChainChecker checker(report, 1000);
  checker.beginFile("fuzz", 1, Digest{});
  for (const std::string& line : whole) {
    checker.line(line);
    if (const auto entry = audit::parseEntry(line); entry && entry->seq == 0) std::abort();
  }
  // The first key is all zeroes here. What is called whole from its first line on must follow link by link.
  if (!report.findings.empty() || report.first_seq != 1) return;
  audit::Link link;
  for (const std::string& line : whole)
    if (!audit::follows(line, link)) std::abort();
}

void checkHead(std::string_view text) {
  audit::HeadBytes bytes{};
  std::memcpy(bytes.data(), text.data(), std::min(text.size(), bytes.size()));
  if (const auto head = audit::decode(bytes)) {
    audit::HeadBytes again{};
    const auto slot = audit::encode(*head);
    std::memcpy(again.data() + audit::slotOf(*head) * audit::kSlotBytes, slot.data(), slot.size());
    if (!audit::decode(again)) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  checkSame(text);
  checkHead(text);
  // The same bytes as the details of a line that the writer made: it must always read back.
  audit::Link link;
  std::string line;
  audit::appendLine(
      line, link,
      {audit::EventType::lifecycle, audit::Severity::info, std::string(text), audit::Fields().text(text, text)}, 0, 1);
  if (!audit::parseEntry(line)) std::abort();
  audit::Link start;
  if (!audit::follows(line, start)) std::abort();
  return 0;
}
