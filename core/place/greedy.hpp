// Greedy placement: container by container, each where it does least harm.
//
// The order of containers and the rule that chooses a machine are inputs. The scores of all machines are
// kept per kind, and updated only for sets that the last placement touched, so a container costs one scan
// of the scores (O(M)) plus the machines it touched; the first of a kind costs O(M x items of the kind).
//
// An application is placed whole or not at all: if one container finds no machine, the others are removed.
// Hard lower bounds are checked at the end, when everything that could satisfy them is placed.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "place/state.hpp"
#include "random.hpp"

namespace argosy::place {

enum class Order : std::uint8_t {
  given = 0,
  // Next is the kind with the fewest machines on which it would break nothing, within a tier.
  candidates = 1,
};

enum class Rule : std::uint8_t {
  // The least loss of the objective, then the most room left.
  scored = 0,
  // The first machine on which nothing is broken, else the first with room.
  first_fit = 1,
  // Kubernetes: constraints, least requested and balanced allocation, one third each.
  kube = 2,
  // Any machine with room, in the order in which heartbeats happen to arrive.
  heartbeat = 3,
};

struct Weights {
  // The cost of one unit of violation, of a newly fragmented machine, and of a newly used machine.
  double violation = 1, fragment = 0, used = 0, load = 0;
};

struct Placed {
  std::vector<std::int32_t> kinds, machines;
  // Number of machines scanned: a measure of work that does not depend on the computer.
  std::int64_t looks = 0;
};

class Greedy {
 public:
  // With `thorough`, every score is recomputed after every step: slow, for comparison with the incremental way.
  Greedy(State& state, Weights weights, bool thorough = false)
      : state_(state), w_(weights), thorough_(thorough) {}

  Placed run(const std::vector<std::int32_t>& sequence, Order order, Rule rule, Random& random) {
    const Problem& p = state_.problem();
    left_ = p.counts;
    failed_.assign(static_cast<std::size_t>(p.apps), 0);
    scores_.assign(static_cast<std::size_t>(p.kinds), {});
    done_ = {};
    bases_.clear();
    ties_ = 0;
    if (rule == Rule::scored || order == Order::candidates) make_bases();
    if (rule == Rule::heartbeat) shuffle(random);
    if (order == Order::given) {
      for (const std::int32_t kind : sequence) {
        while (left_[at(kind)] > 0 && step(kind, rule)) {
        }
        scores_[at(kind)] = {};
      }
    } else {
      for (std::int32_t kind; (kind = tightest()) >= 0;) step(kind, rule);
    }
    drop_broken();
    return std::move(done_);
  }

 private:
  static constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

  struct Scores {
    // The loss in the upper bits and the used share in the lower 20: smaller is better.
    std::vector<std::int64_t> score;  // `never` if it cannot go there
    std::vector<std::uint8_t> clean;
    std::int64_t candidates = 0;
    // Lookahead per machine for the kind's own gathering constraints.
    std::vector<double> ahead;
  };

  static std::size_t at(std::int32_t index) { return static_cast<std::size_t>(index); }

  void shuffle(Random& random) {
    beats_.resize(at(state_.problem().machines));
    std::iota(beats_.begin(), beats_.end(), 0);
    for (std::size_t i = beats_.size(); i > 1; --i) std::swap(beats_[i - 1], beats_[random.below(i)]);
    beat_ = 0;
  }

  // Places one container of the kind; false if its application failed.
  bool step(std::int32_t kind, Rule rule) {
    done_.looks += state_.problem().machines;
    const std::int32_t machine = choose(kind, rule);
    if (machine < 0) {
      fail(state_.problem().app_of[at(kind)]);
      return false;
    }
    put(kind, machine, 1);
    done_.kinds.push_back(kind);
    done_.machines.push_back(machine);
    --left_[at(kind)];
    return true;
  }

  void put(std::int32_t kind, std::int32_t machine, std::int32_t sign) {
    state_.change(kind, machine, sign);
    for (std::size_t b = 0; b < bases_.size(); ++b) bases_[b][at(machine)] = base_score(like_[b], machine);
    const State::Reach reach = state_.touched(kind, machine, touched_);
    for (std::int32_t k = 0; k < state_.problem().kinds; ++k) {
      Scores& scores = scores_[at(k)];
      if (scores.score.empty()) continue;
      if (thorough_ || reach == State::Reach::everywhere) {
        for (std::int32_t n = 0; n < state_.problem().machines; ++n) update(k, n);
      } else if (reach == State::Reach::choices || is_near(kind, k)) {
        for (const std::int32_t n : touched_) update(k, n);
      } else {
        update(k, machine);
      }
    }
  }

  // Whether some constraint over more than one machine concerns or counts both kinds.
  bool is_near(std::int32_t a, std::int32_t b) {
    const std::size_t kinds = at(state_.problem().kinds);
    if (near_.empty()) {
      near_.assign(kinds * kinds, 0);
      std::vector<std::size_t> among;
      for (const Item& item : state_.problem().items) {
        if (item.family == 0) continue;
        among.clear();
        for (std::size_t k = 0; k < kinds; ++k) {
          if (item.subject[k] || item.match[k]) among.push_back(k);
        }
        for (const std::size_t i : among) {
          for (const std::size_t j : among) near_[i * kinds + j] = 1;
        }
      }
    }
    return near_[at(a) * kinds + at(b)] != 0;
  }

  void fail(std::int32_t app) {
    const Problem& p = state_.problem();
    failed_[at(app)] = 1;
    for (std::int32_t k = 0; k < p.kinds; ++k) {
      if (p.app_of[at(k)] == app) left_[at(k)] = 0;
    }
    std::size_t kept = 0;
    for (std::size_t i = 0; i < done_.kinds.size(); ++i) {
      if (p.app_of[at(done_.kinds[i])] == app) {
        put(done_.kinds[i], done_.machines[i], -1);
      } else {
        done_.kinds[kept] = done_.kinds[i];
        done_.machines[kept++] = done_.machines[i];
      }
    }
    done_.kinds.resize(kept);
    done_.machines.resize(kept);
  }

  void drop_broken() {
    for (bool again = true; again;) {
      again = false;
      for (std::size_t i = 0; i < done_.kinds.size(); ++i) {
        if (state_.breaks_hard(done_.kinds[i], done_.machines[i])) {
          fail(state_.problem().app_of[at(done_.kinds[i])]);
          again = true;
          break;
        }
      }
    }
  }

  std::int32_t tightest() {
    std::int32_t best = -1;
    for (std::int32_t k = 0; k < state_.problem().kinds; ++k) {
      if (left_[at(k)] <= 0) continue;
      const std::int32_t tier = state_.problem().tiers[at(k)];
      if (best >= 0 && tier > state_.problem().tiers[at(best)]) continue;
      prepare(k);
      if (best < 0 || tier < state_.problem().tiers[at(best)] ||
          scores_[at(k)].candidates < scores_[at(best)].candidates) {
        best = k;
      }
    }
    return best;
  }

  void prepare(std::int32_t kind) {
    Scores& scores = scores_[at(kind)];
    if (!scores.score.empty()) return;
    done_.looks += state_.problem().machines;
    const std::size_t machines = at(state_.problem().machines);
    scores.score.assign(machines, never);
    scores.clean.assign(machines, 0);
    look_ahead(kind, scores.ahead);
    const std::vector<std::int64_t>& base = bases_[at(base_of_[at(kind)])];
    const bool is_plain = state_.effects(kind, violations_, flags_);
    for (std::int32_t n = 0; n < state_.problem().machines; ++n) {
      if (base[at(n)] == never || !state_.allows(kind, n)) continue;
      if (is_plain) {
        set_score(scores, n, base[at(n)], violations_[at(n)], flags_[at(n)]);
      } else {
        const Effect effect = state_.effect(kind, n);
        set_score(scores, n, base[at(n)], effect.violation, effect.flags());
      }
    }
  }

  void update(std::int32_t kind, std::int32_t machine) {
    Scores& scores = scores_[at(kind)];
    scores.candidates -= scores.clean[at(machine)];
    scores.clean[at(machine)] = 0;
    scores.score[at(machine)] = never;
    const std::int64_t base = bases_[at(base_of_[at(kind)])][at(machine)];
    if (base == never || !state_.allows(kind, machine)) return;
    const Effect effect = state_.effect(kind, machine);
    set_score(scores, machine, base, effect.violation, effect.flags());
  }

  static std::int64_t rounded(double loss) {
    // Truncation of a positive number rounds without a call.
    return (static_cast<std::int64_t>((std::clamp(loss, -2e3, 2e3) + 2048) * 1073741824.0 + 0.5) -
            (std::int64_t{2048} << 30)) *
           1048576;
  }

  void set_score(Scores& scores, std::int32_t machine, std::int64_t base, double violation,
                 std::uint8_t flags) const {
    if (flags & Effect::forbidden) return;
    if (!scores.ahead.empty()) violation += scores.ahead[at(machine)];
    scores.score[at(machine)] = base + (violation == 0 ? 0 : rounded(w_.violation * violation));
    const bool is_clean = !(flags & Effect::unclean);
    scores.clean[at(machine)] = is_clean;
    scores.candidates += is_clean;
  }

  // The cost of a request on a machine, regardless of the kind: kinds with equal requests share it.
  std::int64_t base_score(std::int32_t kind, std::int32_t machine) const {
    if (!state_.has_room(kind, machine)) return never;
    const double slack = std::clamp(state_.slack(kind, machine), 0.0, 1.0);
    double loss = 0;
    if (w_.fragment > 0 && state_.fragments(kind, machine)) loss += w_.fragment;
    if (w_.load > 0) loss += w_.load * (1 - slack);
    if (w_.used > 0 && is_empty(machine)) loss += w_.used;
    const auto in_use = static_cast<std::int64_t>((1 - slack) * 1048575);
    return (loss == 0 ? 0 : rounded(loss)) + in_use;
  }

  void make_bases() {
    const Problem& p = state_.problem();
    base_of_.assign(at(p.kinds), -1);
    bases_.clear();
    like_.clear();
    for (std::int32_t k = 0; k < p.kinds; ++k) {
      const auto* mine = &p.requests[at(k) * at(p.dimensions)];
      for (std::size_t b = 0; b < like_.size() && base_of_[at(k)] < 0; ++b) {
        const auto* theirs = &p.requests[at(like_[b]) * at(p.dimensions)];
        if (std::equal(mine, mine + p.dimensions, theirs)) base_of_[at(k)] = static_cast<std::int32_t>(b);
      }
      if (base_of_[at(k)] >= 0) continue;
      base_of_[at(k)] = static_cast<std::int32_t>(bases_.size());
      like_.push_back(k);
      auto& base = bases_.emplace_back(at(p.machines));
      for (std::int32_t n = 0; n < p.machines; ++n) base[at(n)] = base_score(k, n);
    }
  }

  bool is_empty(std::int32_t machine) const {
    const Problem& p = state_.problem();
    for (std::int32_t d = 0; d < p.dimensions; ++d) {
      const std::size_t row = at(machine) * at(p.dimensions) + at(d);
      if (p.free[row] != p.capacity[row]) return false;
    }
    return true;
  }

  // How many containers of the kind the machine could take without breaking an upper bound there.
  std::int64_t clean_slots(std::int32_t kind, std::int32_t machine) const {
    const Problem& p = state_.problem();
    if (!state_.fits(kind, machine)) return 0;
    std::int64_t slots = p.counts[at(kind)];
    for (std::int32_t d = 0; d < p.dimensions; ++d) {
      const std::int64_t asked = p.requests[at(kind) * at(p.dimensions) + at(d)];
      const std::int64_t room = p.free[at(machine) * at(p.dimensions) + at(d)];
      // Most machines have room for all of them, which a multiplication shows.
      if (asked > 0 && room < asked * slots) slots = room / asked;
    }
    for (const std::size_t i : state_.items_of(kind)) {
      const Item& item = p.items[i];
      const bool s = item.subject[at(kind)], m = item.match[at(kind)];
      if (item.family != 0 || item.bounds.most < 0 || !(s || m)) continue;
      const std::int64_t gamma = item.gamma[at(machine)], most = item.bounds.most;
      if (s && !m && gamma > most) return 0;
      if (m && (s || item.both[at(machine)])) slots = std::min(slots, most + 1 - gamma);
      if (m && item.other[at(machine)]) slots = std::min(slots, most - gamma);
    }
    return std::max<std::int64_t>(0, slots);
  }

  // For constraints that gather the kind in a set: what the remaining containers would still lack if they went
  // where there is room. It keeps the first container out of sets that cannot hold the others.
  void look_ahead(std::int32_t kind, std::vector<double>& ahead) const {
    const Problem& p = state_.problem();
    std::vector<std::int64_t> slots;
    for (const Item& item : p.items) {
      if (item.family == 0 || item.bounds.least == 0 || !item.subject[at(kind)] || !item.match[at(kind)]) {
        continue;
      }
      if (slots.empty()) {
        slots.resize(at(p.machines));
        for (std::int32_t n = 0; n < p.machines; ++n) slots[at(n)] = clean_slots(kind, n);
        ahead.assign(at(p.machines), 0);
      }
      std::int64_t others = 0;
      for (std::int32_t k = 0; k < p.kinds; ++k) {
        if (k != kind && item.subject[at(k)] && item.match[at(k)]) others += left_[at(k)];
      }
      const Family& family = p.families[at(item.family)];
      for (std::int32_t s = 0; s < family.sets; ++s) {
        std::int64_t room = 0;
        for (std::int32_t i = family.first_member[at(s)]; i < family.first_member[at(s) + 1]; ++i) {
          room += slots[at(family.members[at(i)])];
        }
        const std::int64_t most = item.gamma[at(s)] + std::min<std::int64_t>(room, left_[at(kind)]) + others;
        const Bounds lower{item.bounds.least, -1};
        const double lacking = item.weight * left_[at(kind)] * lower.extent(most - 1);
        if (lacking == 0) continue;
        for (std::int32_t i = family.first_member[at(s)]; i < family.first_member[at(s) + 1]; ++i) {
          ahead[at(family.members[at(i)])] += lacking;
        }
      }
    }
  }

  std::int32_t choose(std::int32_t kind, Rule rule) {
    switch (rule) {
      case Rule::scored: return best_score(kind);
      case Rule::first_fit: return first_fit(kind);
      case Rule::kube: return best_kube(kind);
      case Rule::heartbeat: return next_beat(kind);
    }
    return -1;
  }

  std::int32_t best_score(std::int32_t kind) {
    prepare(kind);
    const Scores& scores = scores_[at(kind)];
    std::int64_t least = never;
    for (const std::int64_t score : scores.score) least = score < least ? score : least;
    if (least == never) return -1;
    const auto best = std::find(scores.score.begin(), scores.score.end(), least);
    return static_cast<std::int32_t>(best - scores.score.begin());
  }

  std::int32_t first_fit(std::int32_t kind) {
    std::int32_t any = -1;
    for (std::int32_t n = 0; n < state_.problem().machines; ++n) {
      if (!state_.fits(kind, n)) continue;
      const Effect effect = state_.effect(kind, n);
      if (effect.is_forbidden) continue;
      if (effect.is_clean) return n;
      if (any < 0) any = n;
    }
    return any;
  }

  std::int32_t best_kube(std::int32_t kind) {
    const Problem& p = state_.problem();
    std::vector<std::pair<std::int32_t, double>> fitting;
    double least = std::numeric_limits<double>::infinity(), most = -least;
    for (std::int32_t n = 0; n < p.machines; ++n) {
      if (!state_.fits(kind, n)) continue;
      const Effect effect = state_.effect(kind, n);
      if (effect.is_forbidden) continue;
      fitting.emplace_back(n, effect.violation);
      least = std::min(least, effect.violation);
      most = std::max(most, effect.violation);
    }
    if (fitting.empty()) return -1;
    std::int64_t best = -1;
    std::vector<std::int32_t> ties;
    for (const auto& [n, violation] : fitting) {
      const double near = most > least ? 10 * (most - violation) / (most - least) : 10;
      double room = 0, low = 1, high = 0;
      for (std::int32_t d = 0; d < p.dimensions; ++d) {
        const std::size_t row = at(n) * at(p.dimensions) + at(d);
        const auto whole = static_cast<double>(std::max<std::int64_t>(1, p.capacity[row]));
        const auto after = static_cast<double>(
            p.free[row] - p.requests[at(kind) * at(p.dimensions) + at(d)]);
        room += after / whole;
        low = std::min(low, after / whole);
        high = std::max(high, after / whole);
      }
      const std::int64_t score = static_cast<std::int64_t>(near) +
                                 static_cast<std::int64_t>(10 * room / p.dimensions) +
                                 static_cast<std::int64_t>(10 - 10 * (high - low));
      if (score > best) {
        best = score;
        ties.clear();
      }
      if (score == best) ties.push_back(n);
    }
    return ties[ties_++ % ties.size()];
  }

  // The next machine that reports and has room takes one container.
  std::int32_t next_beat(std::int32_t kind) {
    for (std::size_t tried = 0; tried < beats_.size(); ++tried) {
      const std::int32_t machine = beats_[beat_];
      beat_ = (beat_ + 1) % beats_.size();
      if (state_.fits(kind, machine)) return machine;
    }
    return -1;
  }

  State& state_;
  Weights w_;
  bool thorough_;
  std::vector<std::int32_t> left_;
  std::vector<std::uint8_t> failed_;
  std::vector<Scores> scores_;
  // Per distinct request, the base scores of all machines, and a kind with this request.
  std::vector<std::vector<std::int64_t>> bases_;
  std::vector<std::int32_t> like_, base_of_;
  std::vector<double> violations_;
  std::vector<std::uint8_t> flags_;
  std::vector<std::uint8_t> near_;
  std::vector<std::int32_t> touched_, beats_;
  std::size_t beat_ = 0, ties_ = 0;
  Placed done_;
};

}  // namespace argosy::place
