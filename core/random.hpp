// Counter-based random streams.
//
// Philox-4x32-10 (Salmon et al., SC 2011): block i of the stream (key) is a bijection of the counter
// i under ten rounds keyed by `key`. A stream is therefore a pure function of (seed, name): it needs
// no warm-up, streams never overlap by accident, and results depend on no platform library.
//
// Floating point. Uniforms have 53 random bits. log and exp are computed here from +, -, * and /
// alone (each correctly rounded by IEEE 754, contraction is off in the build), so that every drawn
// number is the same on every machine. Their error is below 4 ulp, which is of no matter for
// sampling. Nothing here allocates or fails.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <string_view>

namespace argosy {

inline std::array<std::uint32_t, 4> philox_block(std::uint64_t counter, std::uint64_t key) {
  std::uint32_t c0 = static_cast<std::uint32_t>(counter);
  std::uint32_t c1 = static_cast<std::uint32_t>(counter >> 32);
  std::uint32_t c2 = 0;
  std::uint32_t c3 = 0;
  std::uint32_t k0 = static_cast<std::uint32_t>(key);
  std::uint32_t k1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53} * c0;
    const std::uint64_t p1 = std::uint64_t{0xCD9E8D57} * c2;
    const std::uint32_t n0 = static_cast<std::uint32_t>(p1 >> 32) ^ c1 ^ k0;
    const std::uint32_t n2 = static_cast<std::uint32_t>(p0 >> 32) ^ c3 ^ k1;
    c1 = static_cast<std::uint32_t>(p1);
    c3 = static_cast<std::uint32_t>(p0);
    c0 = n0;
    c2 = n2;
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return {c0, c1, c2, c3};
}

// A bijective scrambler (the finaliser of SplitMix64): spreads keys and breaks ties.
inline std::uint64_t scramble(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15ULL;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

// Natural logarithm for finite x > 0: x = m * 2^e with m in [sqrt(1/2), sqrt(2)), and
// log m = 2 atanh(s), s = (m - 1) / (m + 1), |s| < 0.1716, by its odd series up to s^23.
inline double exact_log(double x) {
  std::uint64_t bits = std::bit_cast<std::uint64_t>(x);
  int exponent = static_cast<int>((bits >> 52) & 0x7FF) - 1023;
  if (exponent == -1023) {  // subnormal
    bits = std::bit_cast<std::uint64_t>(x * 0x1p54);
    exponent = static_cast<int>((bits >> 52) & 0x7FF) - 1023 - 54;
  }
  double m = std::bit_cast<double>((bits & 0xFFFFFFFFFFFFFULL) | 0x3FF0000000000000ULL);
  if (m > 1.4142135623730951) {
    m = m * 0.5;
    exponent += 1;
  }
  const double s = (m - 1.0) / (m + 1.0);
  const double z = s * s;
  double sum = 0.0;
  for (int k = 23; k >= 3; k -= 2) sum = (sum + 1.0 / k) * z;
  return exponent * 0.6931471805599453 + 2.0 * (s + s * sum);
}

// e^x, saturating at 0 and at 2^1023: x = k ln 2 + r with |r| <= ln(2)/2, Taylor series up to r^17.
inline double exact_exp(double x) {
  if (x > 709.0) return 0x1p1023;
  if (x < -708.0) return 0.0;
  const double k = std::floor(x * 1.4426950408889634 + 0.5);
  // ln 2 in two parts, so that k * high is exact.
  const double r = (x - k * 0.693147180369123816490) - k * 1.90821492927058770002e-10;
  double sum = 1.0;
  for (int n = 17; n >= 1; --n) sum = 1.0 + sum * r / n;
  return sum * std::bit_cast<double>(static_cast<std::uint64_t>(1023 + static_cast<int>(k)) << 52);
}

class Random {
 public:
  explicit Random(std::uint64_t seed) : key_(scramble(seed)) {}

  // The child stream `name`, independent of what was drawn from this stream before.
  Random child(std::string_view name) const {
    std::uint64_t hash = key_;
    for (const char c : name) hash = scramble(hash ^ static_cast<unsigned char>(c));
    return Random(hash ^ name.size());
  }

  std::uint64_t bits() {
    if (have_ == 0) {
      const auto block = philox_block(counter_++, key_);
      words_[0] = (std::uint64_t{block[1]} << 32) | block[0];
      words_[1] = (std::uint64_t{block[3]} << 32) | block[2];
      have_ = 2;
    }
    return words_[2 - have_--];
  }

  // Uniform on 0 .. n-1, without bias (Lemire's multiply and reject); n >= 1.
  std::uint64_t below(std::uint64_t n) {
    __extension__ using Wide = unsigned __int128;
    Wide product = static_cast<Wide>(bits()) * n;
    // What is rejected is below the threshold (2^64 mod n), and so below n: most draws need no division.
    if (static_cast<std::uint64_t>(product) < n) {
      const std::uint64_t threshold = (0 - n) % n;
      while (static_cast<std::uint64_t>(product) < threshold) product = static_cast<Wide>(bits()) * n;
    }
    return static_cast<std::uint64_t>(product >> 64);
  }

  // Uniform on [0, 1).
  double uniform() { return static_cast<double>(bits() >> 11) * 0x1p-53; }

  // Exponential with mean 1.
  double exponential() { return -exact_log(1.0 - uniform()); }

  // Standard normal, by the polar method; the second value of a pair is kept for the next call.
  double normal() {
    if (has_spare_) {
      has_spare_ = false;
      return spare_;
    }
    for (;;) {
      const double u = 2.0 * uniform() - 1.0;
      const double v = 2.0 * uniform() - 1.0;
      const double s = u * u + v * v;
      if (s > 0.0 && s < 1.0) {
        const double scale = std::sqrt(-2.0 * exact_log(s) / s);
        spare_ = v * scale;
        has_spare_ = true;
        return u * scale;
      }
    }
  }

  // Pareto on [low, high] with tail index alpha, by inversion; 0 < low < high, alpha > 0.
  double bounded_pareto(double low, double high, double alpha) {
    const double ratio = exact_exp(alpha * exact_log(low / high));
    const double u = uniform();
    return low * exact_exp(-exact_log(1.0 - u * (1.0 - ratio)) / alpha);
  }

 private:
  std::uint64_t key_;
  std::uint64_t counter_ = 0;
  std::uint64_t words_[2] = {0, 0};
  int have_ = 0;
  bool has_spare_ = false;
  double spare_ = 0.0;
};

}  // namespace argosy
