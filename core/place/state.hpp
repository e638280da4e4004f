// A placement under construction: what adding one container changes, in time that does not grow with
// the number of containers already there.
//
// `delta(k, n)` is the change of the violation if a container of kind k is put on machine n, with the
// effect on all others. Items cost O(1) each; a choice costs the machines that share a touched set.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "place/problem.hpp"

namespace argosy::place {

struct Effect {
  double violation = 0;
  // A hard upper bound would be broken, or broken further.
  bool is_forbidden = false;
  // Nothing is broken that this container could not repair with others of its kind.
  bool is_clean = true;

  static constexpr std::uint8_t forbidden = 1, unclean = 2;
  std::uint8_t flags() const {
    return static_cast<std::uint8_t>((is_forbidden ? forbidden : 0) | (is_clean ? 0 : unclean));
  }
};

class State {
 public:
  explicit State(Problem problem) : p_(std::move(problem)) {
    shares_.reserve(p_.capacity.size());
    for (const std::int64_t whole : p_.capacity) {
      shares_.push_back(whole > 0 ? 1 / static_cast<double>(whole) : 0);
    }
    by_kind_.resize(static_cast<std::size_t>(p_.kinds));
    for (std::int32_t k = 0; k < p_.kinds; ++k) {
      for (std::size_t i = 0; i < p_.items.size(); ++i) {
        if (p_.items[i].subject[at(k)] || p_.items[i].match[at(k)]) by_kind_[at(k)].push_back(i);
      }
    }
    for (const Item& item : p_.items) {
      if (item.hard) first_.push_back({item.both, item.other});
    }
    hard_extents(at_first_);
    const auto is_zero = [](const std::vector<std::int32_t>& counts) {
      return std::all_of(counts.begin(), counts.end(), [](std::int32_t count) { return count == 0; });
    };
    for (const Item& item : p_.items) {
      blank_.push_back(is_zero(item.gamma) && is_zero(item.both) && is_zero(item.other));
    }
  }

  const Problem& problem() const { return p_; }

  // Items that have the kind as a subject or count it.
  const std::vector<std::size_t>& items_of(std::int32_t kind) const { return by_kind_[at(kind)]; }

  bool fits(std::int32_t kind, std::int32_t machine) const {
    return allows(kind, machine) && has_room(kind, machine);
  }

  bool allows(std::int32_t kind, std::int32_t machine) const {
    const auto& allowed = p_.allowed[at(kind)];
    return allowed.empty() || allowed[at(machine)];
  }

  bool has_room(std::int32_t kind, std::int32_t machine) const {
    const std::int64_t* room = &p_.free[at(machine) * at(p_.dimensions)];
    const std::int64_t* asked = &p_.requests[at(kind) * at(p_.dimensions)];
    for (std::int32_t d = 0; d < p_.dimensions; ++d) {
      if (asked[d] > room[d]) return false;
    }
    return true;
  }

  // Whether the container would leave less than the smallest useful room where there is enough now.
  bool fragments(std::int32_t kind, std::int32_t machine) const {
    const std::int64_t* room = &p_.free[at(machine) * at(p_.dimensions)];
    const std::int64_t* asked = &p_.requests[at(kind) * at(p_.dimensions)];
    bool is_whole = true, stays_whole = true;
    for (std::int32_t d = 0; d < p_.dimensions; ++d) {
      is_whole &= room[d] >= p_.smallest[at(d)];
      stays_whole &= room[d] - asked[d] >= p_.smallest[at(d)];
    }
    return is_whole && !stays_whole;
  }

  // The smallest free share of any dimension after the container is placed.
  double slack(std::int32_t kind, std::int32_t machine) const {
    double least = 1;
    for (std::int32_t d = 0; d < p_.dimensions; ++d) {
      const std::size_t row = at(machine) * at(p_.dimensions) + at(d);
      if (p_.capacity[row] == 0) continue;
      const std::int64_t left = p_.free[row] - p_.requests[at(kind) * at(p_.dimensions) + at(d)];
      least = std::min(least, static_cast<double>(left) * shares_[row]);
    }
    return least;
  }

  Effect effect(std::int32_t kind, std::int32_t machine) {
    Effect result;
    for (const std::size_t i : by_kind_[at(kind)]) add_item(p_.items[i], kind, machine, result);
    for (const Spread& spread : p_.spreads) add_spread(spread, kind, machine, result);
    for (std::size_t c = 0; c < p_.choices.size(); ++c) add_choice(c, kind, machine, result);
    return result;
  }

  // Effects on all machines at once, item by item: the same as `effect` for each, several times as fast. False,
  // and nothing is done, for kinds that a spread or a choice concerns.
  bool effects(std::int32_t kind, std::vector<double>& violation, std::vector<std::uint8_t>& flags) const {
    for (const Spread& spread : p_.spreads) {
      if (spread.subject[at(kind)]) return false;
    }
    if (!p_.choices.empty()) return false;
    violation.assign(at(p_.machines), 0);
    flags.assign(at(p_.machines), 0);
    const std::size_t machines = at(p_.machines);
    for (const std::size_t i : by_kind_[at(kind)]) {
      const Item& item = p_.items[i];
      const Family& family = p_.families[at(item.family)];
      const std::size_t sets = at(family.sets);
      Effect blank;
      set_effect(item, kind, 0, 0, 0, blank);
      if (item.family == 0) {
        if (blank_[i]) {
          for (std::size_t n = 0; n < machines; ++n) violation[n] += blank.violation;
          if (const std::uint8_t bits = blank.flags()) {
            for (std::size_t n = 0; n < machines; ++n) flags[n] |= bits;
          }
          continue;
        }
        for (std::size_t n = 0; n < machines; ++n) {
          if ((item.gamma[n] | item.both[n] | item.other[n]) == 0) {
            violation[n] += blank.violation;
            flags[n] |= blank.flags();
          } else {
            Effect mine;
            set_effect(item, kind, item.gamma[n], item.both[n], item.other[n], mine);
            violation[n] += mine.violation;
            flags[n] |= mine.flags();
          }
        }
        continue;
      }
      per_set_.assign(sets + 1, {});
      for (std::size_t s = 0; s < sets; ++s) {
        set_effect(item, kind, item.gamma[s], item.both[s], item.other[s], per_set_[s]);
      }
      outside_effect(item, kind, per_set_[sets]);
      for (std::size_t n = 0; n < machines; ++n) {
        const Effect& mine = per_set_[family.set_of[n] < 0 ? sets : at(family.set_of[n])];
        violation[n] += mine.violation;
        flags[n] |= mine.flags();
      }
    }
    return true;
  }

  // sign +1 adds a container, -1 removes it.
  void change(std::int32_t kind, std::int32_t machine, std::int32_t sign) {
    for (std::int32_t d = 0; d < p_.dimensions; ++d) {
      p_.free[at(machine) * at(p_.dimensions) + at(d)] -=
          sign * p_.requests[at(kind) * at(p_.dimensions) + at(d)];
    }
    for (const std::size_t i : by_kind_[at(kind)]) {
      Item& item = p_.items[i];
      blank_[i] = false;
      const std::size_t set = set_in(item.family, machine);
      const bool s = item.subject[at(kind)], m = item.match[at(kind)];
      item.gamma[set] += m ? sign : 0;
      item.both[set] += s && m ? sign : 0;
      item.other[set] += s && !m ? sign : 0;
    }
    for (Spread& spread : p_.spreads) {
      if (!spread.subject[at(kind)]) continue;
      spread.subjects += sign;
      each_set(spread.family, machine, [&](std::size_t set) { count_use(spread.inside[set], spread.used, sign); });
    }
    change_choices(kind, machine, sign);
  }

  // The total violation.
  double violation() const {
    double total = 0;
    for (const Item& item : p_.items) {
      const std::size_t sets = item.gamma.size() - 1;
      for (std::size_t s = 0; s < sets; ++s) {
        total += item.weight * cost(item, item.gamma[s], item.both[s], item.other[s]);
      }
      total += item.weight * item.outside * (item.both[sets] + item.other[sets]);
    }
    for (const Spread& spread : p_.spreads) {
      total += spread.weight * static_cast<double>(spread.subjects) * spread.bounds.extent(spread.used);
    }
    for (const Choice& choice : p_.choices) {
      for (std::int32_t k = 0; k < p_.all_kinds; ++k) {
        const auto& here = choice.here[at(k)];
        for (std::size_t n = 0; n < here.size(); ++n) {
          if (here[n]) total += choice.weight * here[n] * own_cost(choice, k, static_cast<std::int32_t>(n));
        }
      }
    }
    return total;
  }

  // Whether some running container is further from a hard constraint than at the start.
  bool worsens() const {
    std::vector<double> now;
    hard_extents(now);
    for (std::size_t i = 0; i < now.size(); ++i) {
      if (now[i] > at_first_[i] + 1e-9) return true;
    }
    return false;
  }

  // Whether a container of the kind on the machine currently breaks a hard constraint.
  bool breaks_hard(std::int32_t kind, std::int32_t machine) const {
    for (const std::size_t i : by_kind_[at(kind)]) {
      const Item& item = p_.items[i];
      if (!item.hard || !item.subject[at(kind)]) continue;
      const std::size_t set = set_in(item.family, machine);
      if (set + 1 == item.gamma.size()) {
        if (item.outside > 0) return true;
      } else if (item.bounds.extent(item.gamma[set] - item.match[at(kind)]) > 0) {
        return true;
      }
    }
    for (const Spread& spread : p_.spreads) {
      if (spread.hard && spread.subject[at(kind)] && spread.bounds.extent(spread.used) > 0) return true;
    }
    for (const Choice& choice : p_.choices) {
      if (choice.hard && !choice.alternatives[at(kind)].empty() && own_cost(choice, kind, machine) > 0) {
        return true;
      }
    }
    return false;
  }

  // Machines whose effects may differ, for any kind, once a container of this kind is put on the machine: all
  // that share a set in which a count changed. A choice reaches further: its subjects there may see several
  // counts, and all machines that share any of their sets are affected.
  enum class Reach : std::uint8_t { items, choices, everywhere };
  Reach touched(std::int32_t kind, std::int32_t machine, std::vector<std::int32_t>& out) {
    out.assign(1, machine);
    std::vector<std::int32_t> families, chosen;
    for (const std::size_t i : by_kind_[at(kind)]) families.push_back(p_.items[i].family);
    for (const Spread& spread : p_.spreads) {
      if (spread.subject[at(kind)]) return Reach::everywhere;
    }
    for (const Choice& choice : p_.choices) {
      bool concerns = !choice.alternatives[at(kind)].empty();
      for (const std::int32_t c : choice.counters) concerns |= p_.counters[at(c)].match[at(kind)] != 0;
      if (!concerns) continue;
      for (const std::int32_t c : choice.counters) {
        if (p_.counters[at(c)].is_spread) return Reach::everywhere;
        chosen.push_back(p_.counters[at(c)].family);
      }
    }
    families.insert(families.end(), chosen.begin(), chosen.end());
    add_neighbours(families, {machine}, out);
    if (!chosen.empty()) {
      const std::vector<std::int32_t> near(out);
      add_neighbours(chosen, near, out);
    }
    return chosen.empty() ? Reach::items : Reach::choices;
  }

  static std::size_t at(std::int32_t index) { return static_cast<std::size_t>(index); }

  // The set of the machine in a family without overlaps; one past the last means outside.
  std::size_t set_in(std::int32_t family, std::int32_t machine) const {
    const Family& f = p_.families[at(family)];
    const std::int32_t set = f.set_of[at(machine)];
    return set < 0 ? at(f.sets) : at(set);
  }

  template <class Visit>
  void each_set(std::int32_t family, std::int32_t machine, Visit visit) const {
    const Family& f = p_.families[at(family)];
    for (std::int32_t i = f.first_set[at(machine)]; i < f.first_set[at(machine) + 1]; ++i) {
      visit(at(f.sets_of[at(i)]));
    }
  }

 private:
  // Adds all machines that share a set of the families with one of `from`, each once; `out` already contains
  // `from`.
  void add_neighbours(std::vector<std::int32_t> families, const std::vector<std::int32_t>& from,
                      std::vector<std::int32_t>& out) {
    std::sort(families.begin(), families.end());
    families.erase(std::unique(families.begin(), families.end()), families.end());
    is_out_.resize(at(p_.machines), 0);
    for (const std::int32_t n : out) is_out_[at(n)] = 1;
    for (const std::int32_t f : families) {
      if (f == 0) continue;
      const Family& family = p_.families[at(f)];
      is_set_.assign(at(family.sets) + 1, 0);
      for (const std::int32_t n : from) {
        each_set(f, n, [&](std::size_t set) {
          if (is_set_[set]) return;
          is_set_[set] = 1;
          for (std::int32_t i = family.first_member[set]; i < family.first_member[set + 1]; ++i) {
            const std::int32_t member = family.members[at(i)];
            if (!is_out_[at(member)]) out.push_back(member);
            is_out_[at(member)] = 1;
          }
        });
      }
    }
    for (const std::int32_t n : out) is_out_[at(n)] = 0;
  }

  // Hard constraints come before soft ones.
  static double urgency(double weight, bool is_hard) { return is_hard ? 1000 * weight : weight; }

  static double cost(const Item& item, std::int64_t gamma, std::int64_t both, std::int64_t other) {
    double value = 0;
    if (both) value += static_cast<double>(both) * item.bounds.extent(gamma - 1);
    if (other) value += static_cast<double>(other) * item.bounds.extent(gamma);
    return value;
  }

  static void count_use(std::int32_t& inside, std::int64_t& used, std::int32_t sign) {
    const bool before = inside > 0;
    inside += sign;
    used += (inside > 0) - before;
  }

  void add_item(const Item& item, std::int32_t kind, std::int32_t machine, Effect& result) const {
    const std::size_t set = set_in(item.family, machine);
    if (set + 1 == item.gamma.size()) {
      outside_effect(item, kind, result);
    } else {
      set_effect(item, kind, item.gamma[set], item.both[set], item.other[set], result);
    }
  }

  static void outside_effect(const Item& item, std::int32_t kind, Effect& result) {
    if (!item.subject[at(kind)] || item.outside == 0) return;
    result.violation += urgency(item.weight, item.hard) * item.outside;
    result.is_clean = false;
    result.is_forbidden |= item.hard;
  }

  static void set_effect(const Item& item, std::int32_t kind, std::int64_t gamma, std::int64_t both,
                         std::int64_t other, Effect& result) {
    const bool s = item.subject[at(kind)], m = item.match[at(kind)];
    const double before = cost(item, gamma, both, other);
    const double after = cost(item, gamma + m, both + (s && m), other + (s && !m));
    result.violation += urgency(item.weight, item.hard) * (after - before);
    const bool own_excess = s && item.bounds.excess(gamma) > 0;
    const bool harms = m && ((both && item.bounds.excess(gamma) > 0) ||
                             (other && item.bounds.excess(gamma + 1) > 0));
    if (own_excess || harms) {
      result.is_clean = false;
      result.is_forbidden |= item.hard;
    }
    if (s && !m && gamma < item.bounds.least) result.is_clean = false;
  }

  void add_spread(const Spread& spread, std::int32_t kind, std::int32_t machine, Effect& result) const {
    if (!spread.subject[at(kind)]) return;
    std::int64_t used = spread.used;
    each_set(spread.family, machine, [&](std::size_t set) { used += spread.inside[set] == 0; });
    const double before = static_cast<double>(spread.subjects) * spread.bounds.extent(spread.used);
    const double after = static_cast<double>(spread.subjects + 1) * spread.bounds.extent(used);
    result.violation += urgency(spread.weight, spread.hard) * (after - before);
    if (spread.bounds.excess(used) > 0) {
      result.is_clean = false;
      result.is_forbidden |= spread.hard;
    }
  }

  double own_cost(const Choice& choice, std::int32_t kind, std::int32_t machine) const {
    double best = -1;
    for (const Alternative& alternative : choice.alternatives[at(kind)]) {
      double sum = 0;
      for (const Term& term : alternative) sum += term_cost(term, machine);
      if (best < 0 || sum < best) best = sum;
    }
    return std::max(0.0, best);
  }

  double term_cost(const Term& term, std::int32_t machine) const {
    if (term.is_spread) {
      const Atom& atom = term.atoms[0];
      return atom.bounds.extent(p_.counters[at(atom.counter)].used);
    }
    double best = -1;
    each_set(term.family, machine, [&](std::size_t set) {
      double sum = 0;
      for (const Atom& atom : term.atoms) {
        sum += atom.bounds.extent(p_.counters[at(atom.counter)].count[set] - atom.self);
      }
      if (best < 0 || sum < best) best = sum;
    });
    return best < 0 ? 1 : best + term.never;
  }

  void shift(std::int32_t number, std::int32_t kind, std::int32_t machine, std::int32_t sign) {
    Counter& counter = p_.counters[at(number)];
    if (!counter.match[at(kind)]) return;
    each_set(counter.family, machine, [&](std::size_t set) { count_use(counter.count[set], counter.used, sign); });
  }

  void change_choices(std::int32_t kind, std::int32_t machine, std::int32_t sign) {
    for (std::size_t c = 0; c < p_.counters.size(); ++c) shift(static_cast<std::int32_t>(c), kind, machine, sign);
    for (Choice& choice : p_.choices) {
      if (!choice.alternatives[at(kind)].empty()) choice.here[at(kind)][at(machine)] += sign;
    }
  }

  // How far each kind of running container is from each hard constraint, in a fixed order.
  void hard_extents(std::vector<double>& out) const {
    std::size_t next = 0;
    for (const Item& item : p_.items) {
      if (!item.hard) continue;
      const auto& [both, other] = first_[next++];
      for (std::size_t s = 0; s + 1 < item.gamma.size(); ++s) {
        if (both[s]) out.push_back(item.bounds.extent(item.gamma[s] - 1));
        if (other[s]) out.push_back(item.bounds.extent(item.gamma[s]));
      }
    }
    for (const Spread& spread : p_.spreads) {
      // Without running subjects, the new ones are checked one by one.
      if (spread.hard) out.push_back(spread.started ? spread.bounds.extent(spread.used) : 0);
    }
    for (const Choice& choice : p_.choices) {
      if (!choice.hard) continue;
      for (std::int32_t k = p_.kinds; k < p_.all_kinds; ++k) {
        const auto& here = choice.here[at(k)];
        for (std::size_t n = 0; n < here.size(); ++n) {
          if (here[n]) out.push_back(own_cost(choice, k, static_cast<std::int32_t>(n)));
        }
      }
    }
  }

  // The cost of the containers on the machines of `scratch_`.
  double cost_around(const Choice& choice) const {
    double total = 0;
    for (std::int32_t k = 0; k < p_.all_kinds; ++k) {
      const auto& here = choice.here[at(k)];
      if (here.empty()) continue;
      for (const std::int32_t n : scratch_) {
        if (here[at(n)]) total += here[at(n)] * own_cost(choice, k, n);
      }
    }
    return total;
  }

  void costs_around(const Choice& choice, std::vector<double>& out) const {
    out.clear();
    for (std::int32_t k = 0; k < p_.all_kinds; ++k) {
      const auto& here = choice.here[at(k)];
      if (here.empty()) continue;
      for (const std::int32_t n : scratch_) out.push_back(here[at(n)] ? own_cost(choice, k, n) : 0);
    }
  }

  void add_choice(std::size_t number, std::int32_t kind, std::int32_t machine, Effect& result) {
    Choice& choice = p_.choices[number];
    const bool concerns = !choice.alternatives[at(kind)].empty();
    bool counts = false, everywhere = false;
    scratch_.assign(1, machine);
    for (const std::int32_t c : choice.counters) {
      const Counter& counter = p_.counters[at(c)];
      if (!counter.match[at(kind)]) continue;
      counts = true;
      everywhere |= counter.is_spread;
      if (counter.family == 0 || everywhere) continue;
      const Family& family = p_.families[at(counter.family)];
      each_set(counter.family, machine, [&](std::size_t set) {
        scratch_.insert(scratch_.end(), family.members.begin() + family.first_member[set],
                        family.members.begin() + family.first_member[set + 1]);
      });
    }
    if (!concerns && !counts) return;
    if (everywhere) {
      scratch_.resize(at(p_.machines));
      for (std::int32_t n = 0; n < p_.machines; ++n) scratch_[at(n)] = n;
    } else {
      std::sort(scratch_.begin(), scratch_.end());
      scratch_.erase(std::unique(scratch_.begin(), scratch_.end()), scratch_.end());
    }
    const double before = cost_around(choice);
    if (choice.hard) costs_around(choice, each_before_);
    change_choices(kind, machine, 1);
    const double after = cost_around(choice);
    const double own = concerns ? own_cost(choice, kind, machine) : 0;
    change_choices(kind, machine, -1);
    result.violation += urgency(choice.weight, choice.hard) * (after - before);
    if (own > 0 || after - own > before + 1e-9) result.is_clean = false;
    if (!choice.hard) return;
    // Others may still repair its own shortfall; harm done to others stays.
    for (auto& counter : choice.counters) shift(counter, kind, machine, 1);
    costs_around(choice, each_after_);
    for (auto& counter : choice.counters) shift(counter, kind, machine, -1);
    for (std::size_t i = 0; i < each_before_.size(); ++i) {
      result.is_forbidden |= each_after_[i] > each_before_[i] + 1e-9;
    }
  }

  Problem p_;
  // Items that have a kind as a subject or count it.
  std::vector<std::vector<std::size_t>> by_kind_;
  std::vector<std::uint8_t> blank_;  // per item: whether it counts nothing anywhere
  std::vector<double> shares_;  // one over the capacity
  std::vector<std::int32_t> scratch_;
  std::vector<double> each_before_, each_after_;
  // Running subjects per hard item, and how far from each hard constraint they were at the start.
  std::vector<std::pair<std::vector<std::int32_t>, std::vector<std::int32_t>>> first_;
  std::vector<std::uint8_t> is_out_, is_set_;
  std::vector<double> at_first_;
  mutable std::vector<Effect> per_set_;
};

}  // namespace argosy::place
