#include "egress/prompt_limiter.h"

namespace caisson::egress {
namespace {

constexpr std::size_t kMaxQuestions = 256;

}  // namespace

bool PromptLimiter::mayAsk(const std::string& target) const {
  return !refused_.contains(target) && (open_.contains(target) || asked_ < kMaxQuestions);
}

PromptLimiter::Step PromptLimiter::next(const std::string& target) {
  if (!mayAsk(target)) return Step::refuse;
  if (open_.contains(target)) return Step::wait;
  ++asked_;
  open_.insert(target);
  return Step::ask;
}

void PromptLimiter::answered(const std::string& target, bool refused) {
  if (open_.erase(target) > 0 && refused) refused_.insert(target);
}

}  // namespace caisson::egress
