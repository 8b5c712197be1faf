#include "base/sha256.h"

#include <bit>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
// The C library's header uses _Bool, which Clang supports in C only.
#ifdef __clang__
#define _Bool bool
#endif
#include <sys/platform/x86.h>
#undef _Bool
#endif

// Clang before 16 offers the intrinsics only if the whole program is compiled for them.
#if defined(__aarch64__) && (!defined(__clang__) || __clang_major__ >= 16)
#define CAISSON_ARM_SHA
#include <arm_neon.h>
#include <asm/hwcap.h>
#include <sys/auxv.h>
#ifdef __clang__
#define CAISSON_ARM_SHA_TARGET gnu::target("sha2")
#else
#define CAISSON_ARM_SHA_TARGET gnu::target("+crypto")
#endif
#endif

namespace caisson {
namespace {

constexpr std::uint32_t kRound[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

std::uint32_t bigEndian(const std::uint8_t* bytes) {
  return static_cast<std::uint32_t>(bytes[0]) << 24U | static_cast<std::uint32_t>(bytes[1]) << 16U |
         static_cast<std::uint32_t>(bytes[2]) << 8U | bytes[3];
}

int lowerHexDigit(char letter) {
  if (letter >= '0' && letter <= '9') return letter - '0';
  if (letter >= 'a' && letter <= 'f') return letter - 'a' + 10;
  return -1;
}

#if defined(__x86_64__)
/// Uses the C library's CPUID result from start-up: CPUID traps to the hypervisor in a virtual machine.
bool hasShaInstructions() { return CPU_FEATURE_ACTIVE(SHA) && CPU_FEATURE_ACTIVE(SSE4_1); }

/// Five times as fast as the portable code; a launch hashes a few thousand bytes for its audit record.
[[gnu::target("sha,sse4.1")]] void compressByInstructions(std::uint32_t* state, const std::uint8_t* block) {
  const __m128i reversed = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
  // The instructions take the eight words as (a b e f) and (c d g h), the first word in the highest lane.
  const __m128i badc = _mm_shuffle_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i_u*>(state)), 0xb1);
  const __m128i hgfe = _mm_shuffle_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i_u*>(state + 4)), 0x1b);
  const __m128i abef_before = _mm_alignr_epi8(badc, hgfe, 8);
  const __m128i cdgh_before = _mm_blend_epi16(hgfe, badc, 0xf0);
  __m128i abef = abef_before;
  __m128i cdgh = cdgh_before;
  __m128i words[4];
  for (int at = 0; at < 4; ++at) {
    words[at] = _mm_shuffle_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i_u*>(block) + at), reversed);
  }
  for (int group = 0; group < 16; ++group) {
    __m128i& oldest = words[group % 4];
    const __m128i newest = words[(group + 3) % 4];
    const __m128i round = _mm_loadu_si128(reinterpret_cast<const __m128i_u*>(kRound) + group);
    const __m128i sum = _mm_add_epi32(oldest, round);
    cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
    abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum, 0x0e));
    if (group >= 12) continue;
    const __m128i middle = _mm_alignr_epi8(newest, words[(group + 2) % 4], 4);
    const __m128i mixed = _mm_add_epi32(_mm_sha256msg1_epu32(oldest, words[(group + 1) % 4]), middle);
    oldest = _mm_sha256msg2_epu32(mixed, newest);
  }
  abef = _mm_add_epi32(abef, abef_before);
  cdgh = _mm_add_epi32(cdgh, cdgh_before);
  const __m128i feba = _mm_shuffle_epi32(abef, 0x1b);
  const __m128i dchg = _mm_shuffle_epi32(cdgh, 0xb1);
  _mm_storeu_si128(reinterpret_cast<__m128i_u*>(state), _mm_blend_epi16(feba, dchg, 0xf0));
  _mm_storeu_si128(reinterpret_cast<__m128i_u*>(state + 4), _mm_alignr_epi8(dchg, feba, 8));
}
#endif

#if defined(CAISSON_ARM_SHA)
/// Initialized before main(), so that no lock is needed later.
const bool has_sha_instructions = (::getauxval(AT_HWCAP) & HWCAP_SHA2) != 0;

[[CAISSON_ARM_SHA_TARGET]] void compressByInstructions(std::uint32_t* state, const std::uint8_t* block) {
  const uint32x4_t abcd_before = vld1q_u32(state);
  const uint32x4_t efgh_before = vld1q_u32(state + 4);
  uint32x4_t abcd = abcd_before;
  uint32x4_t efgh = efgh_before;
  uint32x4_t words[4];
  for (int at = 0; at < 4; ++at) words[at] = vreinterpretq_u32_u8(vrev32q_u8(vld1q_u8(block + 16 * at)));
  for (int group = 0; group < 16; ++group) {
    uint32x4_t& oldest = words[group % 4];
    const uint32x4_t sum = vaddq_u32(oldest, vld1q_u32(kRound + 4 * group));
    if (group < 12) {
      oldest = vsha256su1q_u32(vsha256su0q_u32(oldest, words[(group + 1) % 4]), words[(group + 2) % 4],
                               words[(group + 3) % 4]);
    }
    const uint32x4_t before = abcd;
    abcd = vsha256hq_u32(abcd, efgh, sum);
    efgh = vsha256h2q_u32(efgh, before, sum);
  }
  vst1q_u32(state, vaddq_u32(abcd, abcd_before));
  vst1q_u32(state + 4, vaddq_u32(efgh, efgh_before));
}
#endif

}  // namespace

void Sha256::compress(const std::uint8_t* block) {
#if defined(CAISSON_ARM_SHA)
  if (way_ == Way::fastest && has_sha_instructions) return compressByInstructions(state_.data(), block);
#endif
#if defined(__x86_64__)
  if (way_ == Way::fastest && hasShaInstructions()) return compressByInstructions(state_.data(), block);
#endif
  compressPortably(block);
}

void Sha256::compressPortably(const std::uint8_t* block) {
  std::uint32_t words[64];
  for (int at = 0; at < 16; ++at) words[at] = bigEndian(block + static_cast<std::ptrdiff_t>(4) * at);
  for (int at = 16; at < 64; ++at) {
    const std::uint32_t low = words[at - 15];
    const std::uint32_t high = words[at - 2];
    words[at] = words[at - 16] + words[at - 7] + (std::rotr(low, 7) ^ std::rotr(low, 18) ^ low >> 3U) +
                (std::rotr(high, 17) ^ std::rotr(high, 19) ^ high >> 10U);
  }
  auto [a, b, c, d, e, f, g, h] = state_;
  for (int at = 0; at < 64; ++at) {
    const std::uint32_t first =
        h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) + ((e & f) ^ (~e & g)) + kRound[at] + words[at];
    const std::uint32_t second =
        (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    h = g;
    g = f;
    f = e;
    e = d + first;
    d = c;
    c = b;
    b = a;
    a = first + second;
  }
  const std::uint32_t added[8] = {a, b, c, d, e, f, g, h};
  for (std::size_t at = 0; at < 8; ++at) state_[at] += added[at];
}

Sha256& Sha256::add(const void* data, std::size_t size) {
  const auto* bytes = static_cast<const std::uint8_t*>(data);
  total_ += size;
  while (size > 0) {
    if (have_ == 0 && size >= pending_.size()) {
      compress(bytes);
      bytes += pending_.size();
      size -= pending_.size();
      continue;
    }
    const std::size_t taken = size < pending_.size() - have_ ? size : pending_.size() - have_;
    std::memcpy(pending_.data() + have_, bytes, taken);
    have_ += taken;
    bytes += taken;
    size -= taken;
    if (have_ < pending_.size()) break;
    compress(pending_.data());
    have_ = 0;
  }
  return *this;
}

Digest Sha256::finish() {
  const std::uint64_t bits = total_ * 8;
  std::uint8_t padding[72] = {0x80};
  const std::size_t zeros = (have_ < 56 ? 55 : 119) - have_;
  for (std::size_t at = 0; at < 8; ++at) padding[1 + zeros + at] = static_cast<std::uint8_t>(bits >> (56 - 8 * at));
  add(padding, 1 + zeros + 8);
  Digest digest;
  for (std::size_t at = 0; at < digest.size(); ++at) {
    digest[at] = static_cast<std::uint8_t>(state_[at / 4] >> (24 - 8 * (at % 4)));
  }
  return digest;
}

void writeHex(const Digest& digest, char* to) {
  static constexpr char kDigits[] = "0123456789abcdef";
  for (const std::uint8_t byte : digest) {
    *to++ = kDigits[byte >> 4U];
    *to++ = kDigits[byte & 15U];
  }
}

std::string hex(const Digest& digest) {
  std::string text(2 * digest.size(), '0');
  writeHex(digest, text.data());
  return text;
}

bool readHex(std::string_view text, Digest& digest) {
  if (text.size() != 2 * digest.size()) return false;
  for (std::size_t at = 0; at < digest.size(); ++at) {
    const int high = lowerHexDigit(text[2 * at]);
    const int low = lowerHexDigit(text[2 * at + 1]);
    if (high < 0 || low < 0) return false;
    digest[at] = static_cast<std::uint8_t>(high << 4 | low);
  }
  return true;
}

}  // namespace caisson
