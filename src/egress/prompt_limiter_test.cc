#include "egress/prompt_limiter.h"

#include <gtest/gtest.h>

namespace caisson::egress {
namespace {

using Step = PromptLimiter::Step;

TEST(PromptLimiter, ConcurrentRequestsForOneTargetShareOnePrompt) {
  PromptLimiter limiter;
  EXPECT_EQ(limiter.next("a:80"), Step::ask);
  EXPECT_EQ(limiter.next("a:80"), Step::wait);
  EXPECT_EQ(limiter.next("a:443"), Step::ask);
}

TEST(PromptLimiter, DenialIsRememberedAndAllowOnceIsNot) {
  PromptLimiter limiter;
  limiter.next("a:80");
  limiter.answered("a:80", true);
  EXPECT_EQ(limiter.next("a:80"), Step::refuse);
  limiter.next("b:80");
  limiter.answered("b:80", false);
  EXPECT_EQ(limiter.next("b:80"), Step::ask);
}

TEST(PromptLimiter, AnswerWithoutAPromptIsIgnored) {
  PromptLimiter limiter;
  limiter.answered("a:80", true);
  EXPECT_EQ(limiter.next("a:80"), Step::ask);
}

TEST(PromptLimiter, NumberOfPromptsIsLimited) {
  PromptLimiter limiter;
  int prompts = 0;
  for (int i = 0; i < 1000; ++i) {
    const std::string target = "host" + std::to_string(i) + ":80";
    if (limiter.next(target) == Step::ask) ++prompts;
    limiter.answered(target, false);
  }
  EXPECT_EQ(prompts, 256);
}

}  // namespace
}  // namespace caisson::egress
