#include "base/terminal_reset.h"

#include <algorithm>

#include "base/utf8.h"

namespace caisson {
namespace {

bool isDumb(const char* term) { return term == nullptr || *term == '\0' || std::string_view(term) == "dumb"; }

/// The lines of a screen that a line of text takes. Wide characters have two columns, and these are all in the upper
/// part of Unicode; counting too many is harmless.
unsigned rowsOf(std::string_view line, unsigned columns) {
  std::size_t width = 0;
  while (!line.empty()) {
    const Character next = firstCharacter(line);
    width += next.code == '\t' ? 8 : next.code >= 0x1100 ? 2 : 1;
    line.remove_prefix(next.length);
  }
  return static_cast<unsigned>(width / columns) + 1;
}

}  // namespace

std::string terminalReset(const char* term) {
  if (isDumb(term)) return "\r\n";
  std::string reset =
      "\x1b\x03\x1b<"                                 // leave xterm's Tektronix and VT52 modes, which read no sequence
      "\x18\x1b\\"                                    // cancel a partial escape sequence or string
      "\x1b[?2026l"                                   // show again what is written
      "\x1b[0$}"                                      // write to the screen and not to a status line
      "\x1b[!p"                                       // soft reset
      "\x0f\x1b(B\x1b)B"                              // ASCII character set
      "\x1b]104\x1b\\\x1b]110\x1b\\\x1b]111\x1b\\"    // reset palette, foreground and background (OSC 4, 10, 11)
      "\x1b[?1047l\x1b[?47l"                          // leave the alternate screen; 1049 would move the cursor
      "\x1b[?69l\x1b[?6l\x1b[r"                       // reset margins, origin mode, scroll region
      "\x1b[?5l\x1b[?7h\x1b[4l\x1b[20l\x1b[?25h"      // reset reverse video, wrapping, insert and line mode, cursor
      "\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1004l"  // disable mouse and focus reports
      "\x1b[?2004l\x1b[>4;0m\x1b[=0u\x1b[?1l\x1b>";   // keys arrive as they are typed
  if (std::string_view(term).starts_with("linux")) reset += "\x1b]R";  // palette; other terminals read a string here
  return reset + "\x1b[0m\x1b[999;1H\r\n\x1b[J";                       // plain text on an empty line at the bottom
}

std::string freshScreen(const char* term, unsigned rows) {
  std::string text = terminalReset(term) + std::string(rows, '\n');
  // Lines that scroll away stay readable above; what is erased in place would be lost.
  return isDumb(term) ? text + "\r" : text + "\x1b[H\x1b[2J";
}

std::vector<std::string> screenPages(std::string_view text, unsigned rows, unsigned columns) {
  std::vector<std::string> pages(1);
  unsigned used = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const unsigned needed = rowsOf(text.substr(0, end), std::max(columns, 1U));
    if (used > 0 && used + needed > rows) {
      pages.emplace_back();
      used = 0;
    }
    pages.back().append(text.substr(0, end)).append("\n");
    used += needed;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return pages;
}

}  // namespace caisson
