#include "broker/mask.h"

#include <algorithm>

namespace caisson::broker {
namespace {

constexpr std::size_t kShortHead = 2;
constexpr unsigned kTwoBytes = 126, kEightBytes = 127;

unsigned byteAt(std::string_view text, std::size_t at) { return static_cast<unsigned char>(text[at]); }

std::size_t headSize(unsigned length) { return kShortHead + (length == kTwoBytes ? 2 : length == kEightBytes ? 8 : 0); }

}  // namespace

std::string withoutSecrets(std::string_view text, const std::vector<std::string_view>& secrets) {
  std::string masked(text);
  for (const std::string_view secret : secrets) {
    if (secret.empty()) continue;
    for (std::size_t at = masked.find(secret); at != std::string::npos; at = masked.find(secret, at)) {
      masked.replace(at, secret.size(), "***");
    }
  }
  return masked;
}

bool FrameMasker::addToHead(char byte, std::string& out) {
  head_ += byte;
  if (head_.size() < kShortHead) return true;
  constexpr unsigned kExtensionBits = 0x70, kMasked = 0x80;
  if ((byteAt(head_, 0) & kExtensionBits) != 0 || (byteAt(head_, 1) & kMasked) != 0) return false;
  const unsigned length = byteAt(head_, 1);
  if (head_.size() < headSize(length)) return true;
  left_ = length < kTwoBytes ? length : 0;
  for (std::size_t at = kShortHead; at < head_.size(); ++at) left_ = left_ << 8 | byteAt(head_, at);
  if (left_ >> 63 != 0) return false;
  out += head_;
  head_.clear();
  return true;
}

std::size_t FrameMasker::undecided(const std::vector<std::string_view>& secrets) const {
  std::size_t most = 0;
  for (const std::string_view secret : secrets) {
    if (secret.empty()) continue;
    for (std::size_t size = std::min(secret.size() - 1, held_.size()); size > most; --size) {
      if (held_.ends_with(secret.substr(0, size))) most = size;
    }
  }
  return most;
}

bool FrameMasker::feed(std::string_view bytes, const std::vector<std::string_view>& secrets, std::string& out) {
  while (!bytes.empty()) {
    if (left_ == 0) {
      if (!addToHead(bytes.front(), out)) return false;
      bytes.remove_prefix(1);
      continue;
    }
    const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(left_, bytes.size()));
    held_.append(bytes.substr(0, size));
    bytes.remove_prefix(size);
    left_ -= size;
    for (const std::string_view secret : secrets) {
      if (secret.empty()) continue;
      for (std::size_t at = held_.find(secret); at != std::string::npos; at = held_.find(secret, at)) {
        held_.replace(at, secret.size(), secret.size(), '*');
      }
    }
    const std::size_t sure = held_.size() - (left_ == 0 ? 0 : undecided(secrets));
    out.append(held_, 0, sure);
    held_.erase(0, sure);
  }
  return true;
}

}  // namespace caisson::broker
