#include "sys/mount_table.h"

#include <algorithm>
#include <charconv>

#include "base/text.h"

namespace caisson::sys {

std::string unescapeMountField(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto digit = [&](std::size_t at) { return at < text.size() && text[at] >= '0' && text[at] <= '7'; };
    if (text[i] == '\\' && digit(i + 1) && digit(i + 2) && digit(i + 3)) {
      plain += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0'));
      i += 3;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

std::vector<MountEntry> parseMountTable(std::string_view mountinfo) {
  std::vector<MountEntry> mounts;
  for (const std::string_view line : split(mountinfo, '\n')) {
    const auto fields = split(line, ' ');  // id parent major:minor root mount-point options ...
    if (fields.size() < 6) continue;
    MountEntry mount{.device = std::string(fields[2]),
                     .root = unescapeMountField(fields[3]),
                     .point = unescapeMountField(fields[4]),
                     .type = {}};
    const auto end = std::ranges::find(fields.begin() + 6, fields.end(), std::string_view("-"));
    if (end != fields.end() && end + 1 != fields.end()) mount.type = end[1];
    const std::string_view id = fields[0];
    if (std::from_chars(id.data(), id.data() + id.size(), mount.id).ptr != id.data() + id.size()) continue;
    mounts.push_back(std::move(mount));
  }
  return mounts;
}

}  // namespace caisson::sys
