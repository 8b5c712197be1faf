#include "egress/questions.h"

namespace caisson::egress {
namespace {

constexpr std::size_t kMost = 256;

}  // namespace

Questions::Step Questions::about(const std::string& target) {
  if (refused_.contains(target)) return Step::refuse;
  if (open_.contains(target)) return Step::wait;
  if (asked_ >= kMost) return Step::refuse;
  ++asked_;
  open_.insert(target);
  return Step::ask;
}

void Questions::answered(const std::string& target, bool refused) {
  if (open_.erase(target) > 0 && refused) refused_.insert(target);
}

}  // namespace caisson::egress
