#include "image_store/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "base/format.h"
#include "base/safe_text.h"

namespace caisson::image {
namespace {

constexpr auto kRedraw = std::chrono::milliseconds(100);
constexpr std::size_t kBarWidth = 30;

std::string barLine(std::uint64_t done, std::uint64_t total) {
  if (total == 0) return readableSize(done);
  const auto filled = static_cast<std::size_t>(std::min(done, total) * kBarWidth / total);
  return "[" + std::string(filled, '=') + (filled < kBarWidth ? ">" : "") +
         std::string(kBarWidth - std::min(kBarWidth, filled + 1), ' ') + "] " + readableSize(done) + "/" +
         readableSize(total);
}

}  // namespace

std::string readableSize(std::uint64_t bytes) {
  if (bytes < 1000) return std::to_string(bytes) + " B";
  auto value = static_cast<double>(bytes);
  for (const char* unit : {"kB", "MB", "GB", "TB"}) {
    value /= 1000;
    if (value < 1000 || std::string_view(unit) == "TB") {
      char text[32];
      std::snprintf(text, sizeof(text), "%.3g %s", value, unit);
      return text;
    }
  }
  return "";
}

Progress::Progress(bool quiet) : quiet_(quiet), terminal_(::isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() { draw(true); }

std::size_t Progress::begin(std::string_view text, std::uint64_t total) {
  const std::lock_guard guard(mutex_);
  steps_.push_back({.text = safeLine(text), .total = total});
  draw(true);
  return steps_.size() - 1;
}

void Progress::advance(std::size_t step, std::uint64_t done) {
  const std::lock_guard guard(mutex_);
  steps_[step].done = done;
  draw(false);
}

void Progress::end(std::size_t step, std::string_view how) {
  const std::lock_guard guard(mutex_);
  steps_[step].how = safeLine(how);
  if (!quiet_ && !terminal_) std::fputs((steps_[step].text + ": " + steps_[step].how + "\n").c_str(), stderr);
  draw(true);
}

void Progress::draw(bool now) {
  if (quiet_ || !terminal_) return;
  const auto time = std::chrono::steady_clock::now();
  if (!now && time - last_ < kRedraw) return;
  last_ = time;
  std::string out = drawn_ == 0 ? "" : "\033[" + std::to_string(drawn_) + "A";
  for (std::size_t at = first_; at < steps_.size(); ++at) {
    const Step& step = steps_[at];
    out += "\r\033[K" + padded(step.text, 24) + " " + (step.how.empty() ? barLine(step.done, step.total) : step.how) +
           "\n";
  }
  drawn_ = steps_.size() - first_;
  while (first_ < steps_.size() && !steps_[first_].how.empty()) {
    ++first_;
    --drawn_;
  }
  std::fputs(out.c_str(), stderr);
}

}  // namespace caisson::image
