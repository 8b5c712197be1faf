#include "egress/questions.h"

#include <gtest/gtest.h>

namespace caisson::egress {
namespace {

using Step = Questions::Step;

TEST(Questions, ATargetIsAskedAboutOnceAndTheOthersWait) {
  Questions questions;
  EXPECT_EQ(questions.about("a:80"), Step::ask);
  EXPECT_EQ(questions.about("a:80"), Step::wait);
  EXPECT_EQ(questions.about("a:443"), Step::ask);
}

TEST(Questions, ANoIsRememberedAndOnceIsNot) {
  Questions questions;
  questions.about("a:80");
  questions.answered("a:80", true);
  EXPECT_EQ(questions.about("a:80"), Step::refuse);
  questions.about("b:80");
  questions.answered("b:80", false);
  EXPECT_EQ(questions.about("b:80"), Step::ask);
}

TEST(Questions, AnAnswerToNothingChangesNothing) {
  Questions questions;
  questions.answered("a:80", true);
  EXPECT_EQ(questions.about("a:80"), Step::ask);
}

TEST(Questions, ThereIsAnEndToThem) {
  Questions questions;
  int asked = 0;
  for (int i = 0; i < 1000; ++i) {
    const std::string target = "host" + std::to_string(i) + ":80";
    if (questions.about(target) == Step::ask) ++asked;
    questions.answered(target, false);
  }
  EXPECT_EQ(asked, 256);
}

}  // namespace
}  // namespace caisson::egress
