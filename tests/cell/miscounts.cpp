// Prints what an audit finds in a cell of which one count was changed behind its back, one change at a time.
// Built without access control: nothing but a bug in the cell could make such a change.
#include <cstdio>
#include <functional>

#include "cell/cell.hpp"

using namespace argosy;

namespace {

const std::int64_t other_job = task_number(1, 0);

// Dimension 1 consists of devices. Machine 0 has two and runs both tasks of job 0, which share the first device;
// machine 1 has one and runs job 1, whose claim is assumed. All tasks carry tag 3, and both machines are in set 0.
Cell sound() {
  Cell cell(2, 1);
  cell.set_devices(1);
  const std::vector<std::int32_t> sets{0};
  const std::vector<std::vector<std::int64_t>> capacities{{10, 2000}, {10, 1000}};
  for (const auto& capacity : capacities) cell.add_machine(capacity.data(), sets, {});
  cell.add_scheduler();
  cell.shapes().intern({2, 300}, {}, {3}, 0);
  cell.begin();
  for (const std::int64_t task : {0, 1}) cell.place(task, 0, 0, 1);
  cell.place(other_job, 1, 0, 1, true);
  return cell;
}

struct Change {
  const char* name;
  std::function<void(Cell&)> apply;
};

Claim& claim(Cell& cell, std::int64_t task) { return cell.claims_.mutable_at(cell.claims_.slot(task)); }

const std::vector<Change> changes{
    {"nothing", [](Cell&) {}},
    {"a task's slot", [](Cell& cell) { cell.claims_.slot_of_.insert(1, 0), --cell.claims_.slot_of_.size_; }},
    {"a claim's machine", [](Cell& cell) { claim(cell, 1).machine = 7; }},
    {"a claim's shape", [](Cell& cell) { claim(cell, 1).shape = 7; }},
    {"a claim's scheduler", [](Cell& cell) { claim(cell, 1).scheduler = 7; }},
    {"a shape's reach", [](Cell& cell) { cell.shapes_->parts_[0].reach = 3; }},
    {"an unlisted assumption", [](Cell& cell) { cell.assumed_.erase(other_job), cell.assumed_.insert(1) = 2; }},
    {"an older assumption", [](Cell& cell) { *cell.assumed_.find(other_job) = 2; }},
    {"the number of assumptions", [](Cell& cell) { cell.assumed_.insert(0) = 1; }},
    {"the number of claims", [](Cell& cell) { ++cell.claims_.slot_of_.size_; }},
    {"a claim's devices", [](Cell& cell) { claim(cell, 1).devices = 0; }},
    {"another device", [](Cell& cell) { claim(cell, 1).devices = 2; }},
    {"a device that is not there", [](Cell& cell) { claim(cell, 1).devices = 4; }},
    {"capacity below what is used",
     [](Cell& cell) {
       cell.columns_.writable(0).capacity[0] = 3;
       cell.capacity_[0] = cell.capacity_ever_[0] = 13;
     }},
    {"what is free", [](Cell& cell) { ++cell.columns_.free_for_writing(1)[0]; }},
    {"what is free of a device", [](Cell& cell) { cell.columns_.writable(1).devices[most_devices] = 650; }},
    {"what is usable of devices", [](Cell& cell) { cell.columns_.free_for_writing(0)[1] = 1400; }},
    {"a machine that is gone",
     [](Cell& cell) {
       cell.columns_.set_flags(1, flag_gone);
       cell.capacity_ = {10, 2000};
     }},
    {"a machine that was gone", [](Cell& cell) { cell.capacity_ever_[1] += 1000; }},
    {"the order of a machine's claims", [](Cell& cell) { claim(cell, 0).sequence = 2; }},
    {"a broken list", [](Cell& cell) { claim(cell, 1).previous = -1; }},
    {"a list that ends early", [](Cell& cell) { claim(cell, 0).next = -1; }},
    {"the end of a list", [](Cell& cell) { cell.claims_.ends_[0].last = 0; }},
    {"the total used", [](Cell& cell) { --cell.used_[1]; }},
    {"the total capacity", [](Cell& cell) { ++cell.capacity_[0]; }},
    {"what a scheduler uses", [](Cell& cell) { ++cell.schedulers_[1].used[1]; }},
    {"a scheduler's claims", [](Cell& cell) { --cell.schedulers_[1].claims; }},
    {"the operator's claims", [](Cell& cell) { ++cell.schedulers_[0].claims; }},
    {"a job's tasks", [](Cell& cell) { cell.schedulers_[1].jobs.count(0, 1); }},
    {"a job more", [](Cell& cell) { cell.schedulers_[1].jobs.count(2, 1); }},
    {"one job for another",
     [](Cell& cell) { cell.schedulers_[1].jobs.count(1, -1), cell.schedulers_[1].jobs.count(2, 1); }},
    {"a machine's tags", [](Cell& cell) { cell.machine_tags_.add(0, 3, 1); }},
    {"a tag that nothing carries", [](Cell& cell) { cell.machine_tags_.add(1, 4, 2); }},
    {"a set's tags", [](Cell& cell) { cell.set_tags_.add(0, 3, -3); }},
};

}  // namespace

int main() {
  for (const Change& change : changes) {
    Cell cell = sound();
    change.apply(cell);
    std::printf("%s\n", change.name);
    for (const std::string& finding : cell.audit()) std::printf("  %s\n", finding.c_str());
  }
}
