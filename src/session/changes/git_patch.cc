#include "session/changes/git_patch.h"

#include <algorithm>
#include <array>

#include "session/changes/binary_patch.h"

namespace caisson::session {
namespace {

constexpr std::size_t kBinaryProbe = 8000;
constexpr std::ptrdiff_t kMaxLines = 1'000'000;  // each costs some 50 bytes while a patch is made
constexpr std::string_view kNoNewline = "\\ No newline at end of file\n";

std::string_view text(PatchSide::Mode mode) {
  switch (mode) {
    case PatchSide::Mode::none: break;
    case PatchSide::Mode::file: return "100644";
    case PatchSide::Mode::executable: return "100755";
    case PatchSide::Mode::link: return "120000";
  }
  return "000000";
}

void appendLine(std::string& out, char mark, std::string_view line) {
  out += mark;
  out += line;
  if (!line.ends_with('\n')) {
    out += '\n';
    out += kNoNewline;
  }
}

/// git writes the line before an empty range, and leaves a count of one out.
std::string range(std::size_t begin, std::size_t count) {
  std::string text = std::to_string(count == 0 ? begin : begin + 1);
  if (count != 1) text += "," + std::to_string(count);
  return text;
}

void appendHunks(std::string& out, const std::vector<std::string_view>& before,
                 const std::vector<std::string_view>& now, const std::vector<LineEdit>& edits, std::size_t context) {
  for (std::size_t first = 0; first < edits.size();) {
    std::size_t last = first;
    // Edits whose context lines touch share a hunk.
    while (last + 1 < edits.size() &&
           edits[last + 1].old_begin - (edits[last].old_begin + edits[last].old_count) <= 2 * context) {
      ++last;
    }
    const std::size_t lead = std::min(context, edits[first].old_begin);
    const std::size_t old_begin = edits[first].old_begin - lead, new_begin = edits[first].new_begin - lead;
    const std::size_t old_end = edits[last].old_begin + edits[last].old_count;
    const std::size_t trail = std::min(context, before.size() - old_end);
    const std::size_t new_end = edits[last].new_begin + edits[last].new_count + trail;
    out +=
        "@@ -" + range(old_begin, old_end + trail - old_begin) + " +" + range(new_begin, new_end - new_begin) + " @@\n";
    std::size_t at = old_begin;
    for (std::size_t i = first; i <= last; ++i) {
      for (; at < edits[i].old_begin; ++at) appendLine(out, ' ', before[at]);
      for (std::size_t n = 0; n < edits[i].old_count; ++n) appendLine(out, '-', before[at++]);
      for (std::size_t n = 0; n < edits[i].new_count; ++n) appendLine(out, '+', now[edits[i].new_begin + n]);
    }
    for (; at < old_end + trail; ++at) appendLine(out, ' ', before[at]);
    first = last + 1;
  }
}

/// `--- a/NAME`: after an unquoted name with a space git puts a tab, where the name would otherwise end.
std::string fileLine(std::string_view mark, std::string_view prefix, const PatchSide& side) {
  if (side.mode == PatchSide::Mode::none) return std::string(mark) + "/dev/null\n";
  std::string name = quotePath(prefix, side.path);
  if (name.front() != '"' && name.find(' ') != std::string::npos) name += '\t';
  return std::string(mark) + name + "\n";
}

std::string header(const PatchSide& before, const PatchSide& now, unsigned similarity) {
  const bool created = before.mode == PatchSide::Mode::none;
  const bool deleted = now.mode == PatchSide::Mode::none;
  const std::string_view old_path = created ? now.path : before.path;
  const std::string_view new_path = deleted ? before.path : now.path;
  std::string out = "diff --git " + quotePath("a/", old_path) + " " + quotePath("b/", new_path) + "\n";
  if (created) return out + "new file mode " + std::string(text(now.mode)) + "\n";
  if (deleted) return out + "deleted file mode " + std::string(text(before.mode)) + "\n";
  if (before.mode != now.mode) {
    out += "old mode " + std::string(text(before.mode)) + "\nnew mode " + std::string(text(now.mode)) + "\n";
  }
  if (old_path != new_path) {
    out += "similarity index " + std::to_string(similarity) + "%\n";
    out += "rename from " + quotePath("", old_path) + "\nrename to " + quotePath("", new_path) + "\n";
  }
  return out;
}

std::string idOf(const PatchSide& side) {
  return side.mode == PatchSide::Mode::none ? std::string(40, '0') : blobId(side.content);
}

void appendBinary(std::string& out, const PatchSide& before, const PatchSide& now, bool content) {
  const bool same_mode = before.mode == now.mode;
  if (content) {
    out += "index " + idOf(before) + ".." + idOf(now) + (same_mode ? " " + std::string(text(now.mode)) : "") +
           "\nGIT binary patch\n" + binaryLiteral(now.content) + binaryLiteral(before.content);
    return;
  }
  const auto name = [](const PatchSide& side, std::string_view prefix) {
    return side.mode == PatchSide::Mode::none ? std::string("/dev/null") : quotePath(prefix, side.path);
  };
  out += "Binary files " + name(before, "a/") + " and " + name(now, "b/") + " differ\n";
}

}  // namespace

std::string quotePath(std::string_view prefix, std::string_view path) {
  constexpr std::string_view kShort = "abtnvfr";  // 7 to 13
  std::string out = "\"" + std::string(prefix);
  bool quoted = false;
  for (const char letter : path) {
    const auto byte = static_cast<unsigned char>(letter);
    if (byte >= 0x20 && byte < 0x7F && letter != '"' && letter != '\\') {
      out += letter;
      continue;
    }
    quoted = true;
    out += '\\';
    if (letter == '"' || letter == '\\') {
      out += letter;
    } else if (byte >= 7 && byte <= 13) {
      out += kShort[byte - 7U];
    } else {
      for (const int shift : {6, 3, 0}) out += static_cast<char>('0' + ((byte >> shift) & 7));
    }
  }
  return quoted ? out + "\"" : out.substr(1);
}

bool isBinary(std::string_view content) {
  return content.substr(0, kBinaryProbe).find('\0') != std::string_view::npos ||
         std::count(content.begin(), content.end(), '\n') > kMaxLines;
}

FilePatch makePatch(const PatchSide& before, const PatchSide& now, unsigned similarity, const PatchOptions& options,
                    DiffBudget& budget) {
  using Mode = PatchSide::Mode;
  const bool kind_changes =
      before.mode != Mode::none && now.mode != Mode::none && (before.mode == Mode::link) != (now.mode == Mode::link);
  if (kind_changes) {
    FilePatch removed = makePatch(before, {}, 0, options, budget);
    FilePatch created = makePatch({}, now, 0, options, budget);
    created.text = removed.text + created.text;
    created.removed_lines += removed.removed_lines;
    created.binary = created.binary || removed.binary;
    return created;
  }
  FilePatch patch;
  const bool link = before.mode == Mode::link || now.mode == Mode::link;
  patch.binary = !link && (isBinary(before.content) || isBinary(now.content));
  if (options.text) patch.text = header(before, now, similarity);
  if (before.content == now.content) return patch;  // only mode or name, or an empty file
  if (patch.binary) {
    if (options.text) appendBinary(patch.text, before, now, options.binary_content);
    return patch;
  }
  const auto old_lines = splitLines(before.content), new_lines = splitLines(now.content);
  const auto edits = diffLines(old_lines, new_lines, budget);
  for (const LineEdit& edit : edits) {
    patch.removed_lines += edit.old_count;
    patch.added_lines += edit.new_count;
  }
  if (!options.text) return patch;
  patch.text += fileLine("--- ", "a/", before) + fileLine("+++ ", "b/", now);
  appendHunks(patch.text, old_lines, new_lines, edits, options.context_lines);
  return patch;
}

}  // namespace caisson::session
