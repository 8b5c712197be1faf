#include "egress/questions.h"

namespace caisson::egress {
namespace {

constexpr std::size_t kMaxQuestions = 256;

}  // namespace

bool Questions::mayAsk(const std::string& target) const {
  return !refused_.contains(target) && (open_.contains(target) || asked_ < kMaxQuestions);
}

Questions::Step Questions::about(const std::string& target) {
  if (!mayAsk(target)) return Step::refuse;
  if (open_.contains(target)) return Step::wait;
  ++asked_;
  open_.insert(target);
  return Step::ask;
}

void Questions::answered(const std::string& target, bool refused) {
  if (open_.erase(target) > 0 && refused) refused_.insert(target);
}

}  // namespace caisson::egress
