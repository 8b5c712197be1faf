#include "base/look_alikes.h"

#include <gtest/gtest.h>

namespace caisson {
namespace {

TEST(LookAlikes, OrdinaryNamesOfManyLanguagesAreNone) {
  for (const char* name : {"main.cc",
                           "Zoë.txt",
                           "naïve",
                           "Łódź",
                           "Việt",
                           "Договор с банком.docx",
                           "сон.txt",
                           "Ελλάδα.md",
                           "Δt.csv",
                           "日本語.txt",
                           "ファイルＡ.txt",
                           "한국어",
                           "עברית",
                           "العربية",
                           "report – final.odt",
                           "№5",
                           "20°C",
                           "don’t",
                           "🙂.png",
                           "ß",
                           "x²",
                           "3–4",
                           "USB-кабель"})
    EXPECT_FALSE(looksLikeAnotherName(name)) << name;
}

TEST(LookAlikes, MixedWordsAreSome) {
  for (const char* name : {"mаin.cc", "Мakefile", "pаckage.json", "RΕADME", "cοnfig", "ｍain", "setuр.py", "ѕcript",
                           "ındex", "𝐦ain", "co⩁f٥o", "ＡB"})
    EXPECT_TRUE(looksLikeAnotherName(name)) << name;
}

TEST(LookAlikes, WordsOfLookAlikesOnlyAreSome) {
  for (const char* name : {"сор.py", "ехес", "ο", "ａｂｃ", "сор-é.txt", "сор🙂.txt", "𝚖𝚊𝚒𝚗.cc", "ᎪᏴ", "Ⅿ"})
    EXPECT_TRUE(looksLikeAnotherName(name)) << name;
}

TEST(LookAlikes, DecomposedLettersAndSignsLikeSlashesAreSome) {
  for (const char* name : {"Zoe\u0308.txt", "\u1112\u1161\u11ab", "src\u2215main.cc", "a\u2044b", "..\u2024",
                           "pre\u2011commit", "は\u3099"})
    EXPECT_TRUE(looksLikeAnotherName(name)) << name;
}

}  // namespace
}  // namespace caisson
