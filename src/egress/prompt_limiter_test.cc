#include "egress/prompt_limiter.h"

#include <gtest/gtest.h>

namespace caisson::egress {
namespace {

using Step = PromptLimiter::Step;

TEST(PromptLimiter, ConcurrentRequestsForOneTargetShareOnePrompt) {
  PromptLimiter questions;
  EXPECT_EQ(questions.next("a:80"), Step::ask);
  EXPECT_EQ(questions.next("a:80"), Step::wait);
  EXPECT_EQ(questions.next("a:443"), Step::ask);
}

TEST(PromptLimiter, DenialIsRememberedAndAllowOnceIsNot) {
  PromptLimiter questions;
  questions.next("a:80");
  questions.answered("a:80", true);
  EXPECT_EQ(questions.next("a:80"), Step::refuse);
  questions.next("b:80");
  questions.answered("b:80", false);
  EXPECT_EQ(questions.next("b:80"), Step::ask);
}

TEST(PromptLimiter, AnswerWithoutAPromptIsIgnored) {
  PromptLimiter questions;
  questions.answered("a:80", true);
  EXPECT_EQ(questions.next("a:80"), Step::ask);
}

TEST(PromptLimiter, NumberOfPromptsIsLimited) {
  PromptLimiter questions;
  int asked = 0;
  for (int i = 0; i < 1000; ++i) {
    const std::string target = "host" + std::to_string(i) + ":80";
    if (questions.next(target) == Step::ask) ++asked;
    questions.answered(target, false);
  }
  EXPECT_EQ(asked, 256);
}

}  // namespace
}  // namespace caisson::egress
