#include "base/terminal_reset.h"

namespace caisson {

std::string_view terminalReset(const char* term) {
  if (term == nullptr || *term == '\0' || std::string_view(term) == "dumb") return "\r\n";
  return "\x18\x1b\\"                                    // cancel a partial escape sequence or string
         "\x0f\x1b(B\x1b)B"                              // ASCII character set
         "\x1b]104\x1b\\\x1b]110\x1b\\\x1b]111\x1b\\"    // reset palette, foreground and background (OSC 4, 10, 11)
         "\x1b[?1047l\x1b[?47l"                          // leave the alternate screen; 1049 would move the cursor
         "\x1b[?69l\x1b[?6l\x1b[r"                       // reset margins, origin mode, scroll region
         "\x1b[?5l\x1b[?7h\x1b[4l\x1b[?25h"              // reset reverse video, wrapping, insert mode, cursor
         "\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1004l"  // disable mouse and focus reports
         "\x1b[0m\x1b[999;1H\r\n\x1b[J";                 // plain text on an empty line at the bottom
}

}  // namespace caisson
