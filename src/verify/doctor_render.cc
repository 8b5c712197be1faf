#include <algorithm>
#include <array>

#include "base/json_writer.h"
#include "base/safe_text.h"
#include "base/text.h"
#include "verify/doctor.h"

namespace caisson::verify {
namespace {

struct TextOptions {
  bool colour;
  std::size_t columns;
};

constexpr std::size_t kStateWidth = 10;
constexpr std::size_t kNameWidth = 17;
constexpr std::size_t kIndent = 2;
constexpr std::size_t kColumn = kIndent + kStateWidth + kNameWidth;

std::string padded(std::string_view text, std::size_t width) {
  std::string field(text);
  field.resize(std::max(width, field.size() + 1), ' ');
  return field;
}

/// Wraps at spaces; continuation lines start at `column`, which is also the current column.
std::string wrapped(std::string_view text, std::size_t column, std::size_t columns) {
  std::string out;
  std::size_t at = column;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (at != column && at + 1 + word.size() > columns) {
      out.append("\n").append(column, ' ');
      at = column;
    } else if (at != column) {
      out += ' ';
      ++at;
    }
    while (at + word.size() > columns) {  // a single word wider than the line
      out.append(word.substr(0, columns - at)).append("\n").append(column, ' ');
      word.remove_prefix(columns - at);
      at = column;
    }
    out += word;
    at += word.size();
  }
  return out;
}

std::string coloured(std::string_view text, ItemState state, bool colour) {
  if (!colour) return std::string(text);
  const std::string_view code = state == ItemState::pass ? "32" : state == ItemState::degraded ? "33" : "31";
  return std::string("\x1b[").append(code).append("m").append(text).append("\x1b[0m");
}

std::string row(std::string_view word, ItemState state, std::string_view name, std::string_view text,
                const TextOptions& options) {
  return std::string(kIndent, ' ') + coloured(padded(word, kStateWidth), state, options.colour) +
         padded(name, kNameWidth) + wrapped(safeLine(text), kColumn, options.columns) + "\n";
}

/// Prose is indented below the item, commands less, so that they fit on one line.
std::string remedyLines(std::string_view remedy, const TextOptions& options) {
  constexpr std::size_t kProse = 12;
  std::string out;
  while (!remedy.empty()) {
    const std::size_t end = std::min(remedy.find('\n'), remedy.size());
    const std::string line = safeLine(remedy.substr(0, end));
    remedy.remove_prefix(std::min(end + 1, remedy.size()));
    if (line.starts_with("$ ")) {
      out.append(kProse + 2, ' ').append(line, 2).append("\n");
    } else {
      out.append(kProse, ' ').append(wrapped(line, kProse, options.columns)).append("\n");
    }
  }
  return out;
}

std::string_view levelTitle(const LevelVerdict& level) {
  if (level.name == "landlock") return "landlock tier";
  return level.name;
}

}  // namespace

std::string renderText(const DoctorReport& report, bool colour, std::size_t columns) {
  const TextOptions options{.colour = colour, .columns = std::max<std::size_t>(columns, 60)};
  std::string out = "caisson doctor: " + safeLine(report.host) + "\n\n";
  for (const DoctorItem& item : report.items) {
    out += row(name(item.state), item.state, item.name, item.found, options);
    out += remedyLines(item.remedy, options);
  }
  out += "\nLevels on this host\n";
  for (const LevelVerdict& level : report.levels) {
    const ItemState state = level.available ? ItemState::pass : ItemState::fail;
    out += row(level.available ? "yes" : "no", state, levelTitle(level),
               level.reason.empty() ? "available" : level.reason, options);
  }
  return out;
}

std::string renderJson(const DoctorReport& report) {
  JsonWriter json(JsonWriter::Layout::indented);
  json.beginObject().key("host").string(report.host).key("full_available").boolean(report.full_available);
  json.key("levels").beginArray();
  for (const LevelVerdict& level : report.levels) {
    json.beginObject().key("name").string(level.name).key("available").boolean(level.available);
    json.key("reason").string(level.reason).key("allow_weaker").beginArray();
    for (const std::string& rung : level.allow_weaker) json.string(rung);
    json.end().end();
  }
  json.end().key("items").beginArray();
  for (const DoctorItem& item : report.items) {
    json.beginObject().key("name").string(item.name).key("state").string(name(item.state));
    json.key("found").string(item.found).key("remedy").string(item.remedy).end();
  }
  return json.end().end().text() + "\n";
}

}  // namespace caisson::verify
