// Placing containers under placement constraints: the problem as flat arrays.
//
// Machines 0..M-1 have room in D dimensions. Kinds 0..G-1 are new containers that are alike (count,
// request, application, tags); kinds G..K-1 are running ones, which matter only where a constraint has
// alternatives. A family is a node group: each machine is in any number of its sets.
//
// An item is one tag constraint of a constraint without alternatives, in a family whose sets do not
// overlap. For a set S it knows
//
//     gamma   containers in S that carry the counted tags (and static machine tags)
//     both    subjects in S that carry the counted tags themselves: they see gamma - 1
//     other   subjects in S that do not: they see gamma
//
// and the item's violation is  weight * sum over S of  both * h(gamma - 1) + other * h(gamma),  where
// h(g) = max(0, least - g) / max(1, least) + max(0, g - most) / max(1, most). Machines outside of every
// set form one more set, where each subject costs `outside`.
//
// A spread item knows how many subjects are in each set, and costs  weight * subjects * h(sets in use).
//
// A choice is a constraint with alternatives, or in a family whose sets overlap. A container of kind k
// on machine n costs the smallest over its alternatives of the sum over their terms of the smallest
// over the sets of n of the sum over their atoms of h. This is evaluated container by container.
//
// Numbers: resources are below 2^53, counts below 2^31, weights at most 1e9. Violations are sums of
// doubles; comparisons use them rounded to 2^-30 of the largest weight, so that the order of summing
// does not decide.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace argosy::place {

struct Family {
  std::int32_t sets = 0;
  // The set of each machine if none is in two; otherwise empty. -1 is outside.
  std::vector<std::int32_t> set_of;
  // Both directions as compressed rows.
  std::vector<std::int32_t> first_set, sets_of;
  std::vector<std::int32_t> first_member, members;
};

struct Bounds {
  std::int32_t least = 0;
  std::int32_t most = -1;  // -1: none

  double extent(std::int64_t count) const {
    double value = 0;
    if (count < least) value += static_cast<double>(least - count) / std::max(1, least);
    if (most >= 0 && count > most) value += static_cast<double>(count - most) / std::max(1, most);
    return value;
  }
  double excess(std::int64_t count) const {
    return most >= 0 && count > most ? static_cast<double>(count - most) / std::max(1, most) : 0;
  }
};

struct Item {
  std::int32_t family = 0;
  Bounds bounds;
  double weight = 1;
  double outside = 0;
  bool hard = false;
  // Per new kind.
  std::vector<std::uint8_t> subject, match;
  // Per set; the last is for machines outside all sets.
  std::vector<std::int32_t> gamma, both, other;
};

struct Spread {
  std::int32_t family = 0;
  Bounds bounds;
  double weight = 1;
  bool hard = false;
  std::vector<std::uint8_t> subject;
  std::vector<std::int32_t> inside;  // subjects per set
  std::int64_t subjects = 0;
  std::int64_t used = 0;   // sets with a subject
  bool started = false;    // whether subjects already run
};

// Counts of a choice: containers with certain tags per set, or (spread) sets that have any.
struct Counter {
  std::int32_t family = 0;
  bool is_spread = false;
  std::vector<std::uint8_t> match;  // per kind
  std::vector<std::int32_t> count;
  std::int64_t used = 0;
};

struct Atom {
  std::int32_t counter = 0;
  Bounds bounds;
  bool self = false;
};

struct Term {
  std::int32_t family = 0;
  bool is_spread = false;
  std::int32_t never = 0;  // tag constraints that can never hold: each costs 1
  std::vector<Atom> atoms;
};

using Alternative = std::vector<Term>;

struct Choice {
  double weight = 1;
  bool hard = false;
  std::vector<std::int32_t> counters;
  // Per kind; empty for kinds that the constraint does not concern.
  std::vector<std::vector<Alternative>> alternatives;
  // Per kind and machine, row by row: number of such containers. Only for kinds it concerns.
  std::vector<std::vector<std::int32_t>> here;
};

struct Problem {
  std::int32_t machines = 0;
  std::int32_t dimensions = 0;
  std::int32_t kinds = 0;      // new ones
  std::int32_t all_kinds = 0;  // and running ones
  std::int32_t apps = 0;
  std::vector<std::int64_t> free, capacity, smallest;
  std::vector<std::int64_t> requests;
  std::vector<std::int32_t> counts, app_of;
  // Per kind; a smaller one is placed first.
  std::vector<std::int32_t> tiers;
  // Per kind, the machines it may be on; empty if all.
  std::vector<std::vector<std::uint8_t>> allowed;
  std::vector<Family> families;
  std::vector<Item> items;
  std::vector<Spread> spreads;
  std::vector<Counter> counters;
  std::vector<Choice> choices;
};

}  // namespace argosy::place
