// Reason codes: why a claim, a release or a machine was refused, or a task lost its place.
//
// The numbers appear in journals and never change their meaning; argosy.model.explanations turns them into
// sentences. Some are used only outside the core.
#pragma once

#include <cstdint>

namespace argosy {

enum class Why : std::uint8_t {
  none = 0,
  // The machine lacks `lacking` of `dimension`, even after every permitted preemption.
  no_room = 1,
  // Coarse detection: the machine changed since the version the claim was decided on.
  stale = 2,
  machine_unknown = 3,
  machine_gone = 4,
  machine_draining = 5,
  // The scheduler would exceed its limit of `dimension` by `lacking`.
  resource_limit = 6,
  // The scheduler has reached its limit on jobs.
  job_limit = 7,
  // The task already holds a claim.
  duplicate = 8,
  // Another claim of the same atomic transaction or gang was refused.
  together = 9,
  // The task to be released holds no claim.
  not_claimed = 10,
  // The task to be released belongs to another scheduler.
  not_yours = 11,
  // Required attributes, tags or constraints exclude the machine.
  filtered = 12,
  // The task was removed in favour of one of higher precedence.
  preempted = 13,
  // The scheduler gave up after its limit of attempts.
  attempts = 14,
  // The scheduler that held the task stopped.
  scheduler_lost = 15,
  // The claim's precedence is `lacking` above the highest that the scheduler may use.
  precedence_limit = 16,
  // The task to be moved ended while the claim was on its way.
  ended = 17,
  // The machine's queue was full.
  queue_full = 18,
  // The claim to be confirmed or forgotten is not assumed, or is already confirmed.
  not_assumed = 19,
  // The task now runs on another machine.
  moved = 20,
  // Its scheduler took the task from its machine.
  released = 21,
  // A user cancelled the task.
  cancelled = 22,
  // The task ended in failure.
  failed = 23,
  // Nothing is offered to the task's framework.
  not_offered = 24,
  // Its scheduler tries another task first, which has no machine yet.
  behind = 25,
};

}  // namespace argosy
